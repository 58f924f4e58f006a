"""mas list: List the workspace's sessions, oldest first, after one look at tmux."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, opened
from mas.cli.render import Render, when

EXAMPLES = """
mas list
mas list --status active --json
mas list --status deleted
"""
STATUSES = ("active", "stopped", "lost", "error", "archived", "deleted")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--status",
        choices=STATUSES,
        metavar="STATUS",
        help=f"only these: {', '.join(STATUSES)}; the last two are listed only so",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="at most N")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="leave out the first N")


def run(args: Arguments, out: Render) -> int:
    found = opened(args).list(args.status, args.limit, args.offset, agents=out.as_json)
    rows = [
        (
            info.session_id,
            "lost" if info.lost else info.status,
            str(info.agent_count),
            info.tier or "-",
            when(info.created_at),
            info.name or "",
        )
        for info in found.sessions
    ]
    for warning in found.warnings:
        out.warn(warning)
    if not rows and not out.as_json:
        out.talk("No sessions" + (f" that are {args.status}" if args.status else "; start one: mas start"))
        return 0
    out.result(found, lambda: out.table(("SESSION", "STATUS", "AGENTS", "TIER", "CREATED (UTC)", "NAME"), rows))
    return 0
