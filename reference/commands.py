"""The commands, from the parsers that read them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from mas.cli.main import GROUPS, HIDDEN, CommandModule, Formatter, Parser, load, top_parser
from reference.markdown import code, fenced, paragraphs, plain, table

_INSIDE = "Called by programs"
_WIDTH = 78
_HELP = (
    "`mas COMMAND --help` shows the options and examples of a command. In the site that `make docs` builds, this page"
    " has them all."
)


class _Wide(Formatter):
    """Help of one width, whatever terminal it is made in."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_WIDTH)


def commands() -> str:
    """Every command by group: what it does, its arguments, examples."""
    return paragraphs(part for title, names in _groups() for part in (f"## {title}", *map(_command, names)))


def summaries() -> str:
    """Every command by group, a line each."""
    tables = ((title, table(("command", "what it does"), map(_summary, names))) for title, names in _groups())
    return paragraphs([_HELP, *(part for title, rows in tables for part in (f"## {title}", rows))])


def common_options() -> str:
    """What every command takes."""
    return table(("option", "meaning"), _rows(top_parser()))


def _groups() -> Iterator[tuple[str, list[str]]]:
    for title, group in GROUPS.items():
        yield title, group.split()
    yield _INSIDE, list(HIDDEN)


def _summary(name: str) -> tuple[str, str]:
    return code(f"mas {name}"), plain(load(name).SUMMARY)


def _about(module: CommandModule) -> str:
    """What a command says of itself in its help."""
    return (module.__doc__ or "").partition(": ")[2].strip()


def _command(name: str) -> str:
    module = load(name)
    parser = Parser(f"mas {name}", add_help=False)
    parser.formatter_class = _Wide
    module.arguments(parser)
    return paragraphs(
        (
            f"### mas {name}",
            _about(module),
            fenced(parser.format_usage().removeprefix("usage: ").replace("\n       ", "\n")),
            table(("argument", "meaning"), _rows(parser)),
            fenced(module.EXAMPLES, "sh"),
        )
    ).strip()


def _rows(parser: Parser) -> Iterator[tuple[str, str]]:
    formatter = _Wide(parser.prog)
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            # Another spelling, or an option of every command.
            continue
        # The name alone of what may be left out or repeated: how often is said by the usage.
        name = formatter._format_action_invocation(action) if action.option_strings else action.metavar or action.dest
        yield code(str(name)), plain(formatter._expand_help(action))
