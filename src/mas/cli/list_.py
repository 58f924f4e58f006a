"""mas list: List the workspace's sessions, newest first, with their status checked in tmux."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, opened
from mas.cli.listing import (
    add_limit,
    add_output,
    add_sort,
    add_status,
    add_utc,
    add_watch,
    by_name,
    number,
    only_names,
    status_of,
    watched,
)
from mas.cli.render import Render, count
from mas.model.session import LISTED, LOST, Gone, Status
from mas.model.views import SessionInfo, SessionList
from mas.service.mas import Mas

SUMMARY = "list sessions"
EXAMPLES = """
mas list
mas list --status active,error --sort activity
mas list -o wide
mas list --watch
mas list --status deleted
mas stop $(mas list --status active -q)
"""
# With `--sort status`: first what needs attention.
_URGENCY = {word: place for place, word in enumerate((Status.ERROR, LOST, Status.ACTIVE, Status.STOPPED, *Gone))}
_KEYS = ("created", "activity", "name", "status")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_status(
        parser,
        LISTED,
        f"only sessions with this status: {', '.join(LISTED)}; several with commas (default: all but archived and"
        " deleted)",
    )
    add_sort(parser, _KEYS, "created and activity: newest first (default: created; with --json: oldest first)")
    add_limit(parser)
    parser.add_argument("--offset", type=number, default=0, metavar="N", help="skip the first N sessions")
    add_output(parser, "full ids", "names; ids of sessions without a name")
    add_utc(parser)
    add_watch(parser)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    return watched(args.watch, out, lambda: _find(mas, args, out), lambda found: _show(mas, found, args, out))


def _find(mas: Mas, args: Arguments, out: Render) -> SessionList:
    if out.as_json and args.sort is None and len(args.status) <= 1:
        # As the API gives it.
        return mas.list(args.status[0] if args.status else None, args.limit, args.offset, agents=True)
    words: list[str | None] = [word for word in Gone if word in args.status]
    if len(words) < len(args.status) or not words:
        words.insert(0, None)
    pages = [mas.list(word, agents=out.as_json) for word in words]
    sessions = [info for page in pages for info in page.sessions if _is_wanted(info, args.status)]
    _sort(sessions, args.sort)
    if out.as_json and args.sort is None:
        sessions.reverse()
    end = None if args.limit is None else args.offset + args.limit
    warnings = tuple(warning for page in pages for warning in page.warnings)
    return SessionList(tuple(sessions[args.offset : end]), len(sessions), warnings)


def _is_wanted(info: SessionInfo, statuses: list[str]) -> bool:
    return not statuses or info.status in statuses or (info.lost and LOST in statuses)


def _sort(sessions: list[SessionInfo], key: str | None) -> None:
    sessions.sort(key=lambda info: (info.created_at, info.session_id), reverse=True)
    if key == "activity":
        sessions.sort(key=lambda info: info.last_activity, reverse=True)
    elif key == "name":
        sessions.sort(key=by_name)
    elif key == "status":
        sessions.sort(key=lambda info: _URGENCY[status_of(info)])


def _show(mas: Mas, found: SessionList, args: Arguments, out: Render) -> None:
    for warning in found.warnings:
        out.warn(warning)
    if only_names(found.sessions, args, out):
        return
    if out.as_json or found.sessions:
        out.result(found, lambda: _table(found, out))
    else:
        out.talk(_nothing(mas, found, args))


def _table(found: SessionList, out: Render) -> None:
    if out.is_wide:
        out.table(
            ("SESSION", "NAME", "STATUS", "AGENTS", "TIER", "CREATED (UTC)", "LAST ACTIVITY (UTC)", "ENDED (UTC)"),
            [
                (
                    *(info.session_id, info.name or "-", status_of(info), str(info.agent_count), info.tier or "-"),
                    *map(out.time, (info.created_at, info.last_activity, info.stopped_at or "")),
                )
                for info in found.sessions
            ],
        )
        return
    out.table(
        ("SESSION", "NAME", "STATUS", "AGENTS", out.heading("CREATED")),
        [
            (
                *(info.session_id[:8], info.name or "-", _since(info, out)),
                *(str(info.agent_count), out.time(info.created_at)),
            )
            for info in found.sessions
        ],
    )


def _since(info: SessionInfo, out: Render) -> str:
    """`lost 2 h ago` for people, `lost` for programs."""
    since = f" {out.time(info.stopped_at)}" if info.stopped_at and out.is_relative else ""
    return status_of(info) + since


def _nothing(mas: Mas, found: SessionList, args: Arguments) -> str:
    """Why nothing is shown, and where there is something."""
    if found.total > args.offset:
        return f"{count(found.total, 'session')}, but -n 0 shows none"
    if found.total:
        return f"There is nothing after the first {args.offset}: {count(found.total, 'session')} in all"
    if args.status:
        return f"No session has the status {' or '.join(args.status)}"
    elsewhere = [(mas.list(word, 1).total, word) for word in Gone]
    kept = [f"{total} {word}: mas list --status {word}" for total, word in elsewhere if total]
    return "\n".join(["No sessions; start one: mas start", *kept])
