"""mas stats: Show how many sessions there are, which agents are running, and how much CPU, memory and disk they use."""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.listing import add_limit, add_output, add_sort, add_watch, by_name, only_names, status_of, watched
from mas.cli.render import Render, count, size
from mas.cli.target import SESSION_HELP, Arguments, add_session, given_session
from mas.model.isolation import shown_size
from mas.model.stats import AgentStats, HostStats, SessionStats, Stats

SUMMARY = "show sessions, running agents, CPU, memory and disk"
EXAMPLES = """
mas stats
mas stats web --json
mas stats --sort cpu -n 5 --watch
"""
# Most first.
_AMOUNTS = ("cpu", "memory", "disk")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session(parser, f"{SESSION_HELP}; shows each of its agents (default: all sessions)")
    add_sort(parser, ("created", "name", "status", *_AMOUNTS), "cpu, memory and disk: most first (default: created)")
    add_limit(parser, "show at most N sessions")
    add_output(parser, "full ids", "names; ids of sessions without a name")
    add_watch(parser)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    given = given_session(args)
    session_id = None if given is None else mas.resolve(given)
    return watched(
        args.watch,
        out,
        lambda: _sorted(mas.stats(session_id), args.sort, args.limit),
        lambda found: _show(found, given is not None, args, out),
    )


def _sorted(found: Stats, key: str | None, limit: int | None) -> Stats:
    sessions = list(found.sessions)
    if key in _AMOUNTS:
        sessions.sort(key=lambda session: float(getattr(session, key)), reverse=True)
    elif key == "name":
        sessions.sort(key=by_name)
    elif key == "status":
        sessions.sort(key=status_of)
    return found._replace(sessions=tuple(sessions[:limit]))


def _show(found: Stats, one: bool, args: Arguments, out: Render) -> None:
    for warning in found.warnings:
        out.warn(warning)
    if not only_names(found.sessions, args, out):
        out.result(found, lambda: _text(found, one, out))


def _text(found: Stats, one: bool, out: Render) -> None:
    out.line(
        f"{found.active} active, {found.stopped} stopped, {found.error} in error, {found.archived} archived, "
        f"{found.deleted} deleted"
    )
    out.line(f"{count(found.live_agents, 'agent')} running, {size(found.disk)} on disk")
    if found.host:
        out.line(_machine(found.host))
    if found.sessions:
        out.line()
        out.table(
            (
                "SESSION",
                "NAME",
                "STATUS",
                "AGENTS",
                "PROCS",
                "CPU",
                *(("CPU TIME",) if out.is_wide else ()),
                "MEMORY",
                "DISK",
            ),
            [_row(session, out.is_wide) for session in found.sessions],
        )
    for session in found.sessions if one else ():
        if session.each:
            out.line()
            out.table(
                ("AGENT", "PROCESSES", "CPU", "CPU TIME", "MEMORY"), [_agent_row(agent) for agent in session.each]
            )


def _machine(host: HostStats) -> str:
    return (
        f"this machine: {host.cpu:.1f} of {count(host.cores, 'core')} in use; "
        f"free: {size(host.memory_free)} memory, {size(host.disk_free)} disk"
    )


def _row(session: SessionStats, wide: bool) -> tuple[str, ...]:
    disk = size(session.disk) + (f" of {shown_size(session.disk_limit)}" if session.disk_limit else "")
    return (
        session.session_id if wide else session.session_id[:8],
        session.name or "-",
        status_of(session),
        f"{session.live_agents}/{session.agents}",
        str(session.processes),
        f"{session.cpu:.0%}",
        *((_time(session.cpu_seconds),) if wide else ()),
        size(session.memory),
        disk,
    )


def _agent_row(agent: AgentStats) -> tuple[str, ...]:
    return agent.id, str(agent.processes), f"{agent.cpu:.0%}", _time(agent.cpu_seconds), size(agent.memory)


def _time(taken: float) -> str:
    minutes, rest = divmod(taken, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:04.1f}" if hours else f"{minutes}:{rest:04.1f}"
