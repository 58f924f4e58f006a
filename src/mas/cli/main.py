"""`mas`: finds the command, imports only what that command needs, turns errors into exit codes."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from contextlib import suppress
from typing import NoReturn, Protocol

from mas import __version__
from mas.cli.entry import given_path
from mas.cli.render import Render
from mas.model.errors import (
    BadInput,
    Conflict,
    Corrupt,
    Denied,
    Disk,
    Forbidden,
    MasError,
    NotFound,
    TimedOut,
    Unavailable,
)
from mas.settings import ServerAddress, ServerOptions, as_agent, server_address

GROUPS: dict[str, dict[str, str]] = {
    "A session's life": {
        "up": "bring up a team and its web page, in a new workspace if needed",
        "init": "make a workspace",
        "start": "start a session",
        "teams": "list the teams, or print one",
        "list": "list sessions",
        "show": "show one session and its agents",
        "stop": "end a session's programs, keep its directory",
        "restore": "bring stopped sessions back",
    },
    "Working with agents": {
        "attach": "see a session in tmux",
        "send": "send a message to agents",
        "ask": "send a message and wait for the answer",
        "wait": "wait until agents are idle, ask or reply",
        "inbox": "show messages and whether they arrived",
        "approvals": "list the agents that wait for your decision",
        "approve": "allow what an agent asks for",
        "deny": "deny what an agent asks for",
        "restart-agent": "start an agent again after it exited",
        "output": "show an agent's screen",
        "report": "say, as an agent, what you are doing",
        "logs": "show a session's or an agent's log",
        "env": "print a session's variables for a shell",
    },
    "Beyond the shell": {
        "serve": "serve the workspace over HTTP",
        "url": "print an address that signs a browser in",
        "token": "print the token that the API asks for",
        "mcp": "give an agent's program its team as MCP tools",
    },
    "Keeping order": {
        "clone": "copy a session into a new one",
        "rename": "give a session another name",
        "archive": "pack stopped sessions into verified files",
        "unarchive": "bring an archived session back",
        "delete": "move sessions to the trash",
        "undelete": "bring a deleted session back",
        "prune": "remove old sessions",
        "migrate": "copy old workspaces and sessions into isolated ones",
        "stats": "show sessions, running agents, CPU, memory and disk",
        "doctor": "check everything MAS needs",
        "repair": "find and repair damage",
        "completion": "print shell completion for bash, zsh or fish",
        "version": "print the version",
    },
}
HIDDEN = ("complete", "hook")
_ONLY_HERE = ("up", "init", "serve", "url", "token")
# What an agent does by its own token, where its workspace's server runs.
_FOR_AGENTS = ("send", "inbox", "show", "output", "report", "wait", "ask", "mcp")
_NEEDS_NO_SERVER = ("completion", "complete", "hook", "version")
_TAKE_A_VALUE = ("--workspace", "--url", "--token", "--token-file", "--ca")
# What other programs taught people to type.
ALIASES = {"ls": "list", "ps": "list", "rm": "delete"}
# Options of every command that would do nothing in these, and are not taken.
_NO_PRODUCT = ("workspace", "url", "token", "token-file", "ca")
_WITHOUT: dict[str, tuple[str, ...]] = {"completion": _NO_PRODUCT, "version": _NO_PRODUCT}
_PATHS = ("DIR", "FILE")
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}

# The options of every command: what stands behind each, and what it means.
COMMON: dict[str, tuple[str | None, str]] = {
    "workspace": ("DIR", "the workspace (default: $MAS_WORKSPACE_ROOT, else the nearest)"),
    "url": ("URL", "work through this server (default: $MAS_URL, else none)"),
    "token": ("TOKEN", "the server's token (default: $MAS_TOKEN)"),
    "token-file": ("FILE", "a file with the token (default: $MAS_TOKEN_FILE)"),
    "ca": ("FILE", "certificates to trust the server by (default: $MAS_CA)"),
    "json": (None, "print what the API would answer"),
}

EXIT_CODES: tuple[tuple[type[MasError], int], ...] = (
    (BadInput, 2),
    (NotFound, 3),
    (Conflict, 4),
    (Corrupt, 5),
    (Disk, 6),
    (Unavailable, 7),
    (Denied, 8),
    (TimedOut, 9),
    (MasError, 1),
)
EXIT_CODE_HELP = """\
exit codes:
  0  it worked               5  a file is damaged (mas repair)
  1  it failed               6  the disk is full or refused
  2  bad arguments           7  tmux, server, program or isolation is missing
  3  no such workspace,      8  the token is missing, wrong or may not do this
     session or agent        9  timed out
  4  the session is in     130  interrupted
     another state, busy
     or archived"""


class CommandModule(Protocol):
    """A file in this room: one command."""

    EXAMPLES: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, args: argparse.Namespace, out: Render) -> int:
        """Do it; answers the exit code."""


class HelpAsked(Exception):
    """Somebody asked for help; the text is the message."""


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves printing to us."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{self.prog}: {message}", f"{self.prog} --help")

    def print_help(self, file: object = None) -> NoReturn:
        raise HelpAsked(self.format_help())


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help that looks the same under every Python."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        # Examples stand as they are; a description is as wide as the terminal.
        kind = argparse.RawDescriptionHelpFormatter if "examples:\n" in text else argparse.HelpFormatter
        return kind._fill_text(self, text, width, indent)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        # Newer Pythons write `-n, --lines N`, older ones `-n N, --lines N`.
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def main() -> NoReturn:
    """The `mas` command."""
    # A command is over before collecting what its imports left would pay.
    gc.set_threshold(100_000)
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    # Nothing is open any more; taking the interpreter apart would cost about an empty start.
    os._exit(code)


def run(argv: list[str]) -> int:
    """Run one command line and answer its exit code."""
    out = Render("--json" in argv)
    try:
        code = _dispatch(argv, out)
        out.flush()
        return code
    except MasError as error:
        error.hint = error.hint or _help_for(argv)
        out.error(error)
        return next(code for kind, code in EXIT_CODES if isinstance(error, kind))
    except KeyboardInterrupt:
        out.talk("interrupted")
        return 130
    except BrokenPipeError:
        # The reader has gone (`mas list | head`); say nothing more.
        return 0
    except OSError as error:
        # A path that was given leads where none of us looked for trouble.
        where = f": {error.filename}" if error.filename else ""
        out.error(Disk(f"{error.strerror or error}{where}", _help_for(argv)))
        return 6


def _dispatch(argv: list[str], out: Render) -> int:
    first = _command_at(argv)
    top = top_parser().parse_args(argv[:first])
    command, rest = argv[first] if first < len(argv) else None, argv[first + 1 :]
    if top.version:
        out.line(f"mas {__version__}")
        return 0
    if top.help or command is None:
        out.raw(top_help())
        return 0 if top.help else 2
    if command == "help":
        return _dispatch([*rest[:1], "--help"], out)
    command = ALIASES.get(command, command)
    module = load(command)
    try:
        args = parsed(command_parser(command, module), rest)
    except HelpAsked as asked:
        out.raw(str(asked))
        return 0
    args.command = command
    for name in _WITHOUT.get(command, ()):
        if getattr(top, name.replace("-", "_")):
            raise BadInput(f"mas {command} has no --{name}", f"mas {command} --help")
        setattr(args, name.replace("-", "_"), None)
    args.workspace = args.workspace or top.workspace
    options = ServerOptions(
        args.url or top.url, args.token or top.token, args.token_file or top.token_file, args.ca or top.ca
    )
    args.server = _server(command, options, args.workspace)
    shape = getattr(args, "output", None)
    args.json = out.as_json = args.json or top.json or shape == "json"
    out.is_wide, out.utc = shape == "wide", getattr(args, "utc", False)
    return module.run(args, out)


def parsed(parser: Parser, words: list[str]) -> argparse.Namespace:
    """What the words say. One that may be left out is not looked for behind options unless it must be somewhere."""
    args, strangers = parser.parse_known_args(words)
    return parser.parse_intermixed_args(words) if strangers else args


def _server(command: str, options: ServerOptions, workspace: str | None) -> ServerAddress | None:
    """The server that the command works through, if any; what concerns this machine cannot be done elsewhere."""
    if command in _NEEDS_NO_SERVER:
        return None
    here = None if options.token or options.token_file else as_agent(options.url, workspace)
    if here and command in _FOR_AGENTS:
        from mas.bootstrap import own_server

        # Tools may be called later, when there is a server.
        return None if command == "mcp" else own_server(here)
    if here and here.is_isolated and command != "init":
        raise Forbidden(f"mas {command} is not for an isolated agent", "outside, in the workspace: mas --help")
    if command not in _ONLY_HERE:
        return server_address(options, workspace)
    if any(options):
        raise BadInput(f"mas {command} is for the machine that the workspace is on: run it there, without --url")
    return None


def _command_at(argv: list[str]) -> int:
    """Where the command stands, after the options of `mas` itself. All behind it is the command's, `--` too."""
    position = 0
    while position < len(argv) and argv[position].startswith("-"):
        position += 2 if argv[position] in _TAKE_A_VALUE else 1
    return position


def _help_for(argv: list[str]) -> str:
    """The help of the command that was meant: the next step where an error names none of its own."""
    command = next((word for word in argv if word in COMMANDS), None)
    return f"mas {command} --help" if command else "mas --help"


def load(command: str) -> CommandModule:
    """The module of a command, or an error that names a near one."""
    if command not in COMMANDS and command not in HIDDEN:
        from difflib import get_close_matches

        near = get_close_matches(command, COMMANDS, 1)
        hint = f"mas {near[0]}" if near else "mas --help"
        raise BadInput(f"No command {command[:40]!r}", hint)
    return importlib.import_module(f"mas.cli.{command.replace('-', '_')}_")


def top_parser() -> Parser:
    parser = Parser(prog="mas", add_help=False, allow_abbrev=False)
    parser.add_argument("-h", "--help", action="store_true", help="show all commands")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    for name, (_, text) in COMMON.items():
        _add_common(parser, name, text)
    return parser


def command_parser(command: str, module: CommandModule) -> Parser:
    parser = Parser(
        prog=f"mas {command}",
        description=(module.__doc__ or "").partition(": ")[2],
        epilog=_epilog(command, module),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    module.arguments(parser)
    for name in _common_of(command):
        # One line below says where they are explained.
        _add_common(parser, name, argparse.SUPPRESS)
    return parser


def _common_of(command: str) -> list[str]:
    return [name for name in COMMON if name not in _WITHOUT.get(command, ())]


def _epilog(command: str, module: CommandModule) -> str:
    lines = [f"  {line}\n" for line in module.EXAMPLES.strip().splitlines()]
    options = " ".join(f"--{name}" for name in _common_of(command))
    return f"common options (mas --help): {options}\n\nexamples:\n{''.join(lines)}"


def _add_common(parser: Parser, name: str, text: str) -> None:
    metavar, _ = COMMON[name]
    if metavar:
        parser.add_argument(f"--{name}", type=given_path if metavar in _PATHS else str, metavar=metavar, help=text)
    else:
        parser.add_argument(f"--{name}", action="store_true", help=text)


def top_help() -> str:
    lines = [
        "mas: teams of command-line agents, each team in an isolated session of its own",
        "",
        "usage: mas [--workspace DIR | --url URL [--token TOKEN]] [--json] COMMAND …",
    ]
    for title, group in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<13} {summary}" for name, summary in group.items()]
    lines += ["", "Options of every command, before or after it:"]
    options = {f"--{name} {metavar or ''}".rstrip(): text for name, (metavar, text) in COMMON.items()}
    lines += [f"  {option:<18} {text}" for option, text in options.items()]
    words = "A SESSION is a name or an id, an AGENT two digits, SESSION:AGENT both (web:21)."
    lines += ["", words, "mas COMMAND --help shows a command's options and examples.", "", EXIT_CODE_HELP, ""]
    return "\n".join(lines)
