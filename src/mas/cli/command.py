"""Shared by the commands: open the product, and do one thing to several sessions or agents."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TypeVar

from mas.bootstrap import open_mas, open_remote, open_serving
from mas.cli.render import Render, count
from mas.cli.target import SESSION_HELP, whole
from mas.cli.target import Arguments as Arguments
from mas.model.errors import BadInput, Forbidden, MasError, NoSession
from mas.model.ids import SessionId, find_session, shown
from mas.model.views import SessionInfo
from mas.service.mas import Mas
from mas.settings import as_agent

Result = TypeVar("Result")
Find = Callable[[Mas, str], SessionId]

_MOST_MESSAGES = 1000

_LONGEST = 7 * 86400.0


def resolved(mas: Mas, reference: str) -> SessionId:
    return mas.resolve(reference)


def opened(args: Arguments) -> Mas:
    """The product: on this machine, or behind the server that was named."""
    if args.server:
        return open_remote(args.server)
    # A server would see to it that an agent speaks for itself only.
    here, sender = as_agent(None, args.workspace), getattr(args, "sender", None)
    if here and sender not in (None, here.agent):
        raise Forbidden(f"Agent {here.agent} cannot speak as {shown(sender)}")
    return open_mas(args.workspace)


def add_no_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-server", action="store_true", help="do not start the workspace's server")


def summon_server(args: Arguments, out: Render) -> None:
    """Have the workspace's server come up behind a session that was just started; the answer does not wait for it."""
    if args.server or args.no_server:
        return
    out.flush()
    open_serving(args.workspace).summon()


def seconds(text: str) -> float:
    """An argument that is a time in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _LONGEST:
        raise argparse.ArgumentTypeError(f"not a number of seconds from 0 to {_LONGEST:.0f} (7 days): {shown(text)}")
    return value


def add_sessions(parser: argparse.ArgumentParser, which: str, text: str = SESSION_HELP) -> None:
    """`SESSION…` or `--all`, and `--dry-run`."""
    parser.add_argument("sessions", nargs="*", metavar="SESSION", help=text)
    parser.add_argument("--session", dest="named", action="append", metavar="SESSION", help=argparse.SUPPRESS)
    parser.add_argument("--all", action="store_true", help=f"all sessions that are {which}")
    add_dry_run(parser)


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")


def add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def need_sessions(args: Arguments) -> None:
    """Take up all spellings; `BadInput` where neither a session nor all of them were given, or both."""
    args.sessions = [whole(word) for word in (*args.sessions, *(args.named or ()))]
    args.named = None
    if args.sessions and args.all:
        raise BadInput("Give sessions or --all, not both", f"mas {args.command} --all")
    if not args.sessions and not args.all:
        raise BadInput("No session given: name one or more, or use --all", f"mas list; mas {args.command} SESSION")


def chosen(mas: Mas, args: Arguments, statuses: tuple[str, ...], out: Render, find: Find = resolved) -> list[SessionId]:
    """The sessions that were named, each once; with `--all` those in one of `statuses`."""
    if not args.all:
        return list(dict.fromkeys(find(mas, reference) for reference in args.sessions))
    ids = [SessionId(info.session_id) for status in statuses for info in mas.list(status=status).sessions]
    if not ids:
        out.talk(f"No session has the status {' or '.join(statuses)}")
    return ids


def each_session(
    args: Arguments,
    out: Render,
    status: tuple[str, ...],
    do: Callable[[Mas, SessionId], Result],
    say: Callable[[Result], object],
    find: Find = resolved,
) -> int:
    """Do something to every session given, going on past failures; 0 only if all of it worked."""
    need_sessions(args)
    mas = opened(args)
    ids = chosen(mas, args, status, out, find)
    return show_plan(mas, args, out, ids) if args.dry_run else do_each(mas, args, out, ids, do, say)


def do_each(
    mas: Mas,
    args: Arguments,
    out: Render,
    ids: list[SessionId],
    do: Callable[[Mas, SessionId], Result],
    say: Callable[[Result], object],
) -> int:
    """The same for sessions that were found already."""
    code, results = 0, []
    for session_id in ids:
        try:
            results.append(do(mas, session_id))
        except MasError as error:
            if len(ids) == 1:
                raise
            out.error(error)
            code = 1
    _show_each(args, out, results, say)
    return code


def each_agent(
    out: Render,
    agents: list[tuple[SessionId, str]],
    do: Callable[[SessionId, str], Result],
    say: Callable[[Result], object],
) -> int:
    """Do something to every agent given, and say so at once, going on past failures; 0 only if all of it worked."""
    code, results = 0, []
    for session_id, agent in agents:
        try:
            results.append(do(session_id, agent))
        except MasError as error:
            if len(agents) == 1:
                raise
            out.error(error)
            code = 1
        else:
            say(results[-1])
    if out.as_json:
        out.result(results[0] if len(agents) == 1 else {"agents": results}, lambda: None)
    return code


def show_plan(mas: Mas, args: Arguments, out: Render, ids: list[SessionId]) -> int:
    """Say what would be done to which sessions, and print them as they are now."""

    def say(info: SessionInfo) -> None:
        out.talk(f"Would {args.command} {titled(info)}")
        out.line(info.session_id)

    _show_each(args, out, list(listed(mas, ids).values()), say)
    return 0


def _show_each(args: Arguments, out: Render, results: list[Result], say: Callable[[Result], object]) -> None:
    if len(results) == 1 and not args.all and len(args.sessions) == 1:
        out.result(results[0], lambda: say(results[0]))
    else:
        out.result({"sessions": results}, lambda: [say(result) for result in results])


def listed(mas: Mas, ids: list[SessionId]) -> dict[SessionId, SessionInfo]:
    """What listings say of these sessions, wherever they are kept; a damaged one could not be shown."""
    found: dict[str, SessionInfo] = {}
    for status in (None, "archived", "deleted"):
        if not set(ids) <= set(found):
            found = {info.session_id: info for info in mas.list(status=status).sessions} | found
    return {session_id: found[session_id] for session_id in ids if session_id in found}


def titled(info: SessionInfo) -> str:
    """A session for a sentence."""
    return f"{info.tmux_session} ({', '.join(filter(None, (info.status, info.name)))})"


def gone(status: str) -> Find:
    """Finds sessions among those that are kept as archived or deleted."""

    def find(mas: Mas, reference: str) -> SessionId:
        try:
            return find_session(reference, ((info.session_id, info.name) for info in mas.list(status=status).sessions))
        except NoSession:
            raise NoSession(reference, f"mas list --status {status}") from None

    return find


def running(sessions: Iterable[SessionInfo]) -> list[tuple[SessionId, str | None]]:
    return [(SessionId(info.session_id), None) for info in sessions if info.status == "active"]


def work_of(mas: Mas, agents: Iterable[tuple[SessionId, str | None]]) -> str:
    """What ending these agents (None: all of a session) would cut off, in words; nothing if nothing."""
    from mas.model.message import DeliveryState
    from mas.model.state import State

    # States of an agent in which ending it cuts something off.
    states = State.STARTING, State.WORKING, State.BLOCKED
    working = waiting = 0
    for session_id, only in agents:
        try:
            busy = [one.id for one in mas.agents(session_id) if one.state in states and only in (None, one.id)]
            sent = mas.messages(session_id, limit=_MOST_MESSAGES).messages if only is None else ()
        except MasError:
            # It is damaged or going; that is said by what is done to it.
            continue
        working += len(busy)
        waiting += sum(any(to.state == DeliveryState.QUEUED for to in message.deliveries) for message in sent)
    parts = (
        f"{count(working, 'agent')} {'is' if working == 1 else 'are'} working" if working else "",
        f"{count(waiting, 'message')} {'is' if waiting == 1 else 'are'} waiting" if waiting else "",
    )
    return ", ".join(filter(None, parts))
