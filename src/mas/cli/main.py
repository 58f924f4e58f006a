"""`mas`: find the command, import only what it needs, turn errors into exit codes."""

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

# The overview: which commands there are, in what order. What a command is stands in its own file.
GROUPS = {
    "A session's life": "up init start teams providers list show stop restore",
    "Working with agents": "attach send ask wait inbox approvals approve deny restart-agent output transcript"
    " report logs network forward env",
    "Server and API": "serve url token keys mcp",
    "Maintenance": "clone rename archive unarchive delete undelete prune migrate stats doctor repair completion"
    " version",
}
COMMANDS = " ".join(GROUPS.values()).split()
HIDDEN = ("complete", "hook")
# What other programs taught people to type.
ALIASES = {"ls": "list", "ps": "list", "rm": "delete"}
_PATHS = ("DIR", "FILE")

# The options of every command: the value that each takes, and what it means.
COMMON: dict[str, tuple[str | None, str]] = {
    "workspace": ("DIR", "the workspace (default: $MAS_WORKSPACE_ROOT, else the nearest above)"),
    "url": ("URL", "use this server (default: $MAS_URL, else none)"),
    "token": ("TOKEN", "the server's token (default: $MAS_TOKEN)"),
    "token-file": ("FILE", "a file with the token (default: $MAS_TOKEN_FILE)"),
    "ca": ("FILE", "certificates to trust for the server (default: $MAS_CA)"),
    "json": (None, "print the JSON of the API"),
}
_TAKE_A_VALUE = [f"--{name}" for name, (metavar, _) in COMMON.items() if metavar]

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
  3  no such workspace,      8  the token is missing, wrong or not allowed this
     session or agent        9  timed out
  4  the session is in     130  interrupted
     another state, busy
     or archived"""


class CommandModule(Protocol):
    """A file in this room: one command. It may also have

    WHERE: `here`, only on the machine of the workspace; `own`, it finds a server by itself; `nowhere`, it needs no
        workspace and takes no option that names one. Without this it works here and through a server.
    FOR_AGENTS: agents may use it, through their workspace's `server` by their own token, or `here` without a server.
    OF_STATUS: the status of the sessions that completion offers.
    WORDS: words that its first argument can be instead of a session, and what each does.
    """

    SUMMARY: str
    EXAMPLES: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, args: argparse.Namespace, out: Render) -> int:
        """Do it; returns the exit code."""


class HelpAsked(Exception):
    """The user asked for help; the text is the message."""


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves printing to us."""

    def __init__(self, prog: str, text: str = "", epilog: str = "", add_help: bool = True) -> None:
        super().__init__(prog, None, text, epilog, formatter_class=_narrow, add_help=add_help, allow_abbrev=False)

    def format_help(self) -> str:
        self.formatter_class = Formatter
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{self.prog}: {message}", f"{self.prog} --help")

    def print_help(self, file: object = None) -> NoReturn:
        raise HelpAsked(self.format_help())


def _narrow(prog: str) -> Formatter:
    """What argparse tries every argument with: one that asked for the terminal's width would load shutil."""
    return Formatter(prog, width=80)


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
    for name in [name for name in COMMON if name not in _common_of(module)]:
        if getattr(top, name.replace("-", "_")):
            raise BadInput(f"mas {command} has no --{name}", f"mas {command} --help")
        setattr(args, name.replace("-", "_"), None)
    args.workspace = args.workspace or top.workspace
    options = ServerOptions(*(getattr(args, name) or getattr(top, name) for name in ServerOptions._fields))
    args.server = _server(command, module, options, args.workspace)
    shape = getattr(args, "output", None)
    args.json = out.as_json = args.json or top.json or shape == "json"
    out.is_wide, out.utc = shape == "wide", getattr(args, "utc", False)
    return module.run(args, out)


def parsed(parser: Parser, words: list[str]) -> argparse.Namespace:
    """The parsed words. Optional positional arguments after options are looked for only if words are left over."""
    args, strangers = parser.parse_known_args(words)
    return parser.parse_intermixed_args(words) if strangers else args


def _server(command: str, module: CommandModule, options: ServerOptions, workspace: str | None) -> ServerAddress | None:
    """The server that the command works through, if any; what concerns this machine cannot be done elsewhere."""
    where, for_agents = getattr(module, "WHERE", None), getattr(module, "FOR_AGENTS", None)
    if where in ("own", "nowhere"):
        return None
    here = None if options.token or options.token_file else as_agent(options.url, workspace)
    if here and for_agents == "server":
        from mas.bootstrap import own_server

        return own_server(here)
    if here and here.is_isolated and not for_agents:
        raise Forbidden(f"An isolated agent cannot use mas {command}", f"outside, in the workspace: mas {command}")
    if where != "here":
        return server_address(options, workspace)
    if any(options):
        raise BadInput(f"mas {command} works only on the workspace's own machine: run it there, without --url")
    return None


def _command_at(argv: list[str]) -> int:
    """The position of the command, after the options of `mas` itself. All after it is the command's, `--` too."""
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
        raise BadInput(f"Unknown command: {command[:40]!r}", hint)
    return importlib.import_module(f"mas.cli.{command.replace('-', '_')}_")


def summary(command: str) -> str:
    """The `SUMMARY` in the file of a command; to import all commands would take longer than everything else here."""
    with open(f"{os.path.dirname(__file__)}/{command.replace('-', '_')}_.py", encoding="utf-8") as file:
        return next(line.split('"')[1] for line in file if line.startswith("SUMMARY"))


def top_parser() -> Parser:
    parser = Parser("mas", add_help=False)
    parser.add_argument("-h", "--help", action="store_true", help="show all commands")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    for name, (_, text) in COMMON.items():
        _add_common(parser, name, text)
    return parser


def command_parser(command: str, module: CommandModule) -> Parser:
    description = (module.__doc__ or "").partition(": ")[2]
    parser = Parser(f"mas {command}", description, _epilog(module))
    module.arguments(parser)
    for name in _common_of(module):
        # One line below says where they are explained.
        _add_common(parser, name, argparse.SUPPRESS)
    return parser


def _common_of(module: CommandModule) -> list[str]:
    """The options of every command that this one takes: not those that would do nothing."""
    return ["json"] if getattr(module, "WHERE", None) == "nowhere" else list(COMMON)


def _epilog(module: CommandModule) -> str:
    lines = [f"  {line}\n" for line in module.EXAMPLES.strip().splitlines()]
    options = " ".join(f"--{name}" for name in _common_of(module))
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
        lines += [f"  {name:<13} {summary(name)}" for name in group.split()]
    lines += ["", "Options of every command, before or after it:"]
    options = {f"--{name} {metavar or ''}".rstrip(): text for name, (metavar, text) in COMMON.items()}
    lines += [f"  {option:<18} {text}" for option, text in options.items()]
    words = "SESSION is a name or an id, AGENT is two digits, SESSION:AGENT is both (web:21)."
    lines += ["", words, "mas COMMAND --help shows a command's options and examples.", "", EXIT_CODE_HELP, ""]
    return "\n".join(lines)
