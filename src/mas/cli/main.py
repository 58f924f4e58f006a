"""`mas`: finds the command, imports only what that command needs, turns errors into exit codes."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import NoReturn, Protocol

from mas import __version__
from mas.cli.render import Render
from mas.model.errors import (
    BadInput,
    Conflict,
    Corrupt,
    Disk,
    MasError,
    NotFound,
    Unavailable,
)

GROUPS: dict[str, dict[str, str]] = {
    "A session's life": {
        "up": "make a workspace if needed and start a team: the newcomer's one command",
        "init": "make a workspace",
        "start": "start a session",
        "list": "list sessions",
        "show": "show one session and its agents",
        "stop": "end a session's programs, keep its directory",
        "restore": "bring stopped sessions back",
    },
    "Working with agents": {
        "attach": "see a session in tmux",
        "send": "type a message to agents",
        "output": "show an agent's screen",
        "logs": "show a session's or an agent's log",
        "env": "print a session's variables for a shell",
    },
    "Keeping order": {
        "clone": "copy a session into a new one",
        "archive": "pack stopped sessions into verified files",
        "unarchive": "bring an archived session back",
        "delete": "move sessions to the trash",
        "undelete": "bring a deleted session back",
        "prune": "remove old sessions",
        "migrate": "copy old workspaces and sessions into isolated ones",
        "stats": "show sessions, live agents and disk",
        "doctor": "check everything MAS needs",
        "repair": "find and mend damage",
        "completion": "print shell completion for bash, zsh or fish",
        "version": "print the version",
    },
}
HIDDEN = ("complete",)
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}

_EXIT_CODES: tuple[tuple[type[MasError], int], ...] = (
    (BadInput, 2),
    (NotFound, 3),
    (Conflict, 4),
    (Corrupt, 5),
    (Disk, 6),
    (Unavailable, 7),
    (MasError, 1),
)
EXIT_CODE_HELP = """\
exit codes:
  0  it worked                 4  the session is in another state, busy or archived
  1  it failed                 5  a file is damaged (mas repair)
  2  bad arguments             6  the disk is full or refused
  3  no such workspace,        7  tmux or an agent's program is missing
     session or agent        130  interrupted"""


class CommandModule(Protocol):
    """A file in this room: one command."""

    EXAMPLES: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, args: argparse.Namespace, out: Render) -> int:
        """Do it; answers the exit code."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are ours."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{self.prog}: {message}", f"{self.prog} --help")


def main() -> NoReturn:
    """The `mas` command."""
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """Run one command line and answer its exit code."""
    out = Render("--json" in argv)
    try:
        top = top_parser().parse_args(argv)
        if top.version:
            out.line(f"mas {__version__}")
            return 0
        if top.help or top.command is None:
            out.raw(top_help())
            return 0 if top.help else 2
        if top.command == "help":
            return run([*top.rest[:1], "--help"])
        module = load(top.command)
        parser = command_parser(top.command, module)
        args = parser.parse_args(top.rest)
        args.command = top.command
        args.workspace = args.workspace or top.workspace
        args.json = out.as_json = args.json or top.json
        return module.run(args, out)
    except MasError as error:
        out.error(error)
        return next(code for kind, code in _EXIT_CODES if isinstance(error, kind))
    except KeyboardInterrupt:
        out.talk("interrupted")
        return 130
    except BrokenPipeError:
        # The reader has gone (`mas list | head`); say nothing more.
        sys.stdout = None
        return 0


def load(command: str) -> CommandModule:
    """The module of a command, or an error that names a near one."""
    if command not in COMMANDS and command not in HIDDEN:
        from difflib import get_close_matches

        near = get_close_matches(command, COMMANDS, 1)
        hint = f"mas {near[0]}" if near else "mas --help"
        raise BadInput(f"No command {command[:40]!r}", hint)
    return importlib.import_module(f"mas.cli.{command}_")


def top_parser() -> Parser:
    parser = Parser(prog="mas", add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("-V", "--version", action="store_true")
    _add_common(parser)
    parser.add_argument("command", nargs="?")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    return parser


def command_parser(command: str, module: CommandModule) -> Parser:
    parser = Parser(
        prog=f"mas {command}",
        description=(module.__doc__ or "").partition(": ")[2],
        epilog="examples:\n" + "".join(f"  {line}\n" for line in module.EXAMPLES.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.arguments(parser)
    _add_common(parser)
    return parser


def _add_common(parser: Parser) -> None:
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="the workspace (default: $MAS_WORKSPACE_ROOT, else the nearest parent with .masrc)",
    )
    parser.add_argument("--json", action="store_true", help="print what the API would answer")


def top_help() -> str:
    lines = [
        "mas: teams of command-line agents, each team in an isolated session of its own",
        "",
        "usage: mas [--workspace DIR] [--json] COMMAND …",
    ]
    for title, group in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<11} {summary}" for name, summary in group.items()]
    lines += ["", "mas COMMAND --help shows a command's options and examples.", "", EXIT_CODE_HELP, ""]
    return "\n".join(lines)
