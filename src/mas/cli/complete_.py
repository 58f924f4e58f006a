"""mas complete: What could stand where the cursor is; called by the completion scripts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from mas.bootstrap import open_mas
from mas.cli.command import Arguments
from mas.cli.main import COMMANDS, command_parser, load
from mas.cli.render import Render
from mas.model.errors import MasError
from mas.model.ids import is_agent_id
from mas.service.mas import Mas

EXAMPLES = """
mas complete -- stop 55
"""
_SESSIONS = {"session", "sessions", "words"}
_OF_STATUS = {"restore": "stopped", "archive": "stopped", "unarchive": "archived", "undelete": "deleted"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("line", nargs="*", help="the words of the command line, the last one unfinished")


def run(args: Arguments, out: Render) -> int:
    words = args.line or [""]
    start = words[-1]
    try:
        for candidate, about in _candidates(words, args.workspace):
            if candidate.startswith(start):
                out.line(f"{candidate}\t{about}")
    except MasError:
        # Outside a workspace there is nothing to offer, and a prompt is no place for complaints.
        return 1
    return 0


def _candidates(words: list[str], workspace: str | None) -> Iterator[tuple[str, str]]:
    """What may come next, each with a few words about it."""
    if len(words) == 1:
        yield from COMMANDS.items()
        return
    command, *before, start = words
    actions = command_parser(command, load(command))._actions
    asked = next((action for action in actions if before and before[-1] in action.option_strings), None)
    if asked is not None and asked.nargs != 0:
        yield from _values(asked, command, workspace)
    elif start.startswith("-"):
        for action in actions:
            for option in action.option_strings:
                if option.startswith("--"):
                    yield option, action.help or ""
    else:
        for action in actions:
            if not action.option_strings:
                yield from _values(action, command, workspace)


def _values(action: argparse.Action, command: str, workspace: str | None) -> Iterator[tuple[str, str]]:
    if action.choices:
        for choice in action.choices:
            yield str(choice), ""
    if action.dest in _SESSIONS:
        mas = open_mas(workspace)
        for info in mas.list(_OF_STATUS.get(command)).sessions:
            yield info.session_id, f"{info.status} {info.name or ''}".strip()
    if action.dest in ("words", "target", "agent", "sender"):
        yield from _agents(open_mas(workspace), with_groups=action.dest == "target")


def _agents(mas: Mas, with_groups: bool) -> Iterator[tuple[str, str]]:
    """The agents of the active sessions, and for messages their units and groups."""
    found: dict[str, str] = {}
    for info in mas.list("active").sessions:
        for agent in mas.show(mas.resolve(info.session_id)).agents:
            found[agent.id] = agent.role
            found.setdefault(agent.unit, "unit")
    if with_groups:
        found |= {"managers": "the first of every unit", "all": "everybody"}
    for name, about in found.items():
        if with_groups or is_agent_id(name):
            yield name, about
