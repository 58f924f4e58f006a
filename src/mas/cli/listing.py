"""Options that all listing commands share, and how a list is refreshed with --watch."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from mas.cli.render import Render
from mas.model.session import LOST

if TYPE_CHECKING:
    from mas.model.stats import SessionStats
    from mas.model.views import SessionDetail, SessionInfo

Found = TypeVar("Found")

_EVERY = 2.0
_SHORTEST = 0.5
_LONGEST = 86400.0
# To the top left corner, and away with what was there.
_CLEAR = "\x1b[H\x1b[J"


def add_output(parser: argparse.ArgumentParser, ids: str, name: str = "only the names") -> None:
    """`-o` and `-q`: in which shape."""
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument(
        "-o",
        "--output",
        choices=("wide", "json", "name"),
        metavar="FORMAT",
        help=f"wide (all columns, nothing cut), json, or name ({name})",
    )
    shape.add_argument("-q", "--quiet", action="store_true", help=f"print only {ids}, one per line")


def add_utc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--utc", action="store_true", help="show full UTC times, even on a terminal")


def add_limit(parser: argparse.ArgumentParser, words: str = "show at most N", default: int | None = None) -> None:
    parser.add_argument("-n", "--limit", type=number, default=default, metavar="N", help=words)


def add_sort(parser: argparse.ArgumentParser, keys: Iterable[str], words: str) -> None:
    parser.add_argument("--sort", choices=tuple(keys), metavar="KEY", help=f"sort by {', '.join(keys)}; {words}")


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--watch",
        nargs="?",
        type=_interval,
        const=_EVERY,
        metavar="SECONDS",
        help=f"refresh every SECONDS (default: {_EVERY:g}) until Ctrl-C",
    )


def add_status(parser: argparse.ArgumentParser, known: tuple[str, ...], words: str) -> None:
    """`--status` with one or more words, with commas or repeated."""

    def words_of(text: str) -> list[str]:
        found = [word.strip() for word in text.split(",")]
        for word in found:
            if word not in known:
                raise argparse.ArgumentTypeError(f"invalid choice: {word[:40]!r} (choose from {', '.join(known)})")
        return found

    parser.add_argument(
        "--status", type=words_of, action="extend", default=[], choices=_Words(known), metavar="STATUS", help=words
    )


def status_of(session: SessionInfo | SessionDetail | SessionStats) -> str:
    """The status as a listing shows it: a session that stopped without a `stop` is lost."""
    return LOST if session.lost else session.status


def by_name(session: SessionInfo | SessionStats) -> tuple[bool, str]:
    """Sorts by name; sessions without one come last."""
    return session.name is None, (session.name or "").casefold()


def only_names(sessions: Iterable[SessionInfo | SessionStats], args: argparse.Namespace, out: Render) -> bool:
    """Print no more than ids or names if that is what `-q` or `-o name` asked for; whether it was."""
    if not args.quiet and args.output != "name":
        return False
    for session in sessions:
        out.line(session.session_id if args.quiet else session.name or session.session_id)
    return True


class _Words(tuple[str, ...]):
    """Words that completion offers; the values were checked before."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return True


def number(text: str) -> int:
    """An argument that is a count."""
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"not a number from 0 to 999999999: {text[:40]!r}")
    return int(text)


def _interval(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not _SHORTEST <= value <= _LONGEST:
        raise argparse.ArgumentTypeError(f"not a number of seconds from {_SHORTEST:g} to {_LONGEST:.0f}: {text[:40]!r}")
    return value


def watched(every: float | None, out: Render, look: Callable[[], Found], show: Callable[[Found], object]) -> int:
    """Look and show; with `every`, repeat until interrupted."""
    while True:
        found = look()
        if every is not None and out.is_terminal and not out.as_json:
            out.raw(_CLEAR)
        show(found)
        if every is None:
            return 0
        out.flush()
        time.sleep(every)
