"""mas stats: Show how many sessions there are, which agents live, and what they take of processor, memory and disk."""

from __future__ import annotations

import argparse
import time

from mas.cli.command import ID_HELP, Arguments, opened, seconds
from mas.cli.render import Render, count, size
from mas.model.isolation import shown_size
from mas.model.reports import AgentStats, HostStats, SessionStats, Stats

EXAMPLES = """
mas stats
mas stats 550e8400 --json
mas stats --watch
"""
_EVERY = 2.0
_AT_LEAST = 0.5
# To the top left corner, and away with what was there.
_CLEAR = "\x1b[H\x1b[J"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="ID", help=f"{ID_HELP}, with each of its agents; left out: all")
    parser.add_argument(
        "--watch",
        nargs="?",
        type=seconds,
        const=_EVERY,
        metavar="SECONDS",
        help=f"look again every so often (every {_EVERY:g} s), until interrupted",
    )


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id = mas.resolve(args.session) if args.session else None
    try:
        while True:
            found = mas.stats(session_id)
            if args.watch is not None and out.is_terminal and not out.as_json:
                out.raw(_CLEAR)
            for warning in found.warnings:
                out.warn(warning)
            _show(found, session_id is not None, out)
            if args.watch is None:
                return 0
            out.flush()
            time.sleep(max(args.watch, _AT_LEAST))
    except KeyboardInterrupt:
        if args.watch is None:
            raise
        return 0


def _show(found: Stats, one: bool, out: Render) -> None:
    out.result(found, lambda: _text(found, one, out))


def _text(found: Stats, one: bool, out: Render) -> None:
    out.line(
        f"{found.active} active, {found.stopped} stopped, {found.error} damaged, {found.archived} archived, "
        f"{found.deleted} deleted; {count(found.live_agents, 'agent')} live, {size(found.disk)} on disk"
    )
    if found.host:
        out.line(_machine(found.host))
    if found.sessions:
        out.line()
        out.table(
            ("SESSION", "STATUS", "AGENTS", "PROCESSES", "CPU", "CPU TIME", "MEMORY", "DISK", "NAME"),
            [_row(session) for session in found.sessions],
        )
    for session in found.sessions if one else ():
        if session.each:
            out.line()
            out.table(
                ("AGENT", "PROCESSES", "CPU", "CPU TIME", "MEMORY"), [_agent_row(agent) for agent in session.each]
            )


def _machine(host: HostStats) -> str:
    return (
        f"this machine: {host.cpu:.1f} of {count(host.cores, 'core')} in use, "
        f"{size(host.memory_free)} of {size(host.memory)} memory free, {size(host.disk_free)} disk free"
    )


def _row(session: SessionStats) -> tuple[str, ...]:
    disk = size(session.disk) + (f" of {shown_size(session.disk_limit)}" if session.disk_limit else "")
    return (
        session.session_id,
        session.status,
        f"{session.live_agents}/{session.agents}",
        str(session.processes),
        f"{session.cpu:.0%}",
        _time(session.cpu_seconds),
        size(session.memory),
        disk,
        session.name or "",
    )


def _agent_row(agent: AgentStats) -> tuple[str, ...]:
    return agent.id, str(agent.processes), f"{agent.cpu:.0%}", _time(agent.cpu_seconds), size(agent.memory)


def _time(taken: float) -> str:
    minutes, rest = divmod(taken, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:04.1f}" if hours else f"{minutes}:{rest:04.1f}"
