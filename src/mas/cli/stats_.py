"""mas stats: Show how many sessions there are, which agents live, and what disk they take."""

from __future__ import annotations

import argparse

from mas.cli.command import ID_HELP, Arguments, opened
from mas.cli.render import Render, count, size
from mas.model.reports import Stats

EXAMPLES = """
mas stats
mas stats 550e8400 --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="ID", help=f"{ID_HELP}; left out: all of them")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    found = mas.stats(mas.resolve(args.session) if args.session else None)
    out.result(found, lambda: _text(found, out))
    return 0


def _text(found: Stats, out: Render) -> None:
    out.line(
        f"{found.active} active, {found.stopped} stopped, {found.error} damaged, {found.archived} archived, "
        f"{found.deleted} deleted; {count(found.live_agents, 'agent')} live, {size(found.disk)} on disk"
    )
    if found.sessions:
        out.line()
        out.table(
            ("SESSION", "STATUS", "AGENTS", "PROCESSES", "DISK", "NAME"),
            [
                (
                    one.session_id,
                    one.status,
                    f"{one.live_agents}/{one.agents}",
                    str(one.processes),
                    size(one.disk),
                    one.name or "",
                )
                for one in found.sessions
            ],
        )
