"""mas env: Print a session's variables for a shell to evaluate."""

from __future__ import annotations

import argparse
import os
import shlex

from mas.cli.command import opened
from mas.cli.render import Render
from mas.cli.target import Arguments, add_session_and_agent, one_agent, session_and_agent
from mas.model.errors import NotFound
from mas.service.inspect.environment import REMOVED

SUMMARY = "print a session's variables for a shell"
EXAMPLES = """
eval "$(mas env web)"
eval "$(mas env web:21)"
. "$(mas env --shell-lib)"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "with an agent (two digits), also the variables that make a program act as it")
    for spelling, text in (("--as", "the agent to act as"), ("--agent", argparse.SUPPRESS)):
        parser.add_argument(spelling, dest="as_agent", metavar="AGENT", help=text)
    parser.add_argument(
        "--shell-lib", action="store_true", help="print the path of session.sh, bash functions to source"
    )


def run(args: Arguments, out: Render) -> int:
    if args.shell_lib:
        path = _shell_library()
        out.result({"path": path}, lambda: out.line(path))
        return 0
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    found = mas.env(session_id, one_agent(agent, args.as_agent))
    lines = [f"export {key}={shlex.quote(value)}" for key, value in found.items()]
    out.result(found, lambda: out.line("\n".join([*lines, f"unset {' '.join(REMOVED)}"])))
    return 0


def _shell_library() -> str:
    """Where `session.sh` is: in the checkout that this program runs from, else where it was installed."""
    import mas

    checkout = os.path.join(os.path.dirname(os.path.abspath(mas.__file__)), "..", "..", "lib", "session.sh")
    if os.path.isfile(checkout):
        return os.path.realpath(checkout)
    from importlib.metadata import distributions

    files = (file for one in distributions(name="mas") for file in one.files or ())
    installed = next((str(file.locate()) for file in files if file.match("share/mas/lib/session.sh")), None)
    if installed is None:
        raise NotFound(
            "session.sh was not installed with mas, and is not next to it", "install mas again from its wheel"
        )
    return os.path.realpath(installed)
