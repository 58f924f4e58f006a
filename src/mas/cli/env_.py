"""mas env: Print a session's variables for a shell to evaluate."""

from __future__ import annotations

import argparse
import os
import shlex

from mas.cli.command import OPTIONAL_ID_HELP, Arguments, opened, session_of
from mas.cli.render import Render
from mas.model.errors import NotFound
from mas.service.environment import REMOVED

EXAMPLES = """
eval "$(mas env 550e8400)"
eval "$(mas env 550e8400 --agent 21)"
. "$(mas env --shell-lib)"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="ID", help=OPTIONAL_ID_HELP)
    parser.add_argument("--agent", help="also say which agent to be")
    parser.add_argument(
        "--shell-lib", action="store_true", help="print where session.sh is, functions for bash to source"
    )


def run(args: Arguments, out: Render) -> int:
    if args.shell_lib:
        path = _shell_library()
        out.result({"path": path}, lambda: out.line(path))
        return 0
    mas = opened(args)
    found = mas.env(session_of(mas, args.session), args.agent)
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
            "session.sh is neither beside this mas nor installed with it", "install mas from its wheel again"
        )
    return os.path.realpath(installed)
