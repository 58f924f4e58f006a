"""Shared by the commands: open the product, and do one thing to several sessions or agents."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from mas.bootstrap import open_mas, open_remote, open_serving
from mas.cli.render import Render, count
from mas.cli.target import SESSION_HELP, whole
from mas.cli.target import Arguments as Arguments
from mas.model.errors import BadInput, Forbidden, MasError, NoSession, NoWorkspace
from mas.model.ids import SessionId, find_session, shown
from mas.model.session import Status
from mas.model.views import SessionDetail, SessionInfo
from mas.service.mas import Mas
from mas.settings import as_agent

Result = TypeVar("Result")
Find = Callable[[Mas, str], SessionId]

_MOST_MESSAGES = 1000

_LONGEST = 7 * 86400.0


def resolved(mas: Mas, reference: str) -> SessionId:
    return mas.resolve(reference)


def opened(args: Arguments) -> Mas:
    """The product: on this machine, or on the server that was given."""
    if args.server:
        return open_remote(args.server)
    # A server would see to it that an agent speaks for itself only.
    here, sender = as_agent(None, args.workspace), getattr(args, "sender", None)
    if here and sender not in (None, here.agent):
        raise Forbidden(f"Agent {here.agent} cannot speak as {shown(sender)}")
    return open_mas(args.workspace)


def looked_at(args: Arguments, look: Callable[[Mas], Result], without: Callable[[], Result]) -> Result:
    """What the workspace says or, outside of any, what is known without one."""
    try:
        return look(opened(args))
    except NoWorkspace as error:
        if error.is_named:
            raise
        return without()


def add_no_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-server", action="store_true", help="do not start the workspace's server")


def summon_server(args: Arguments, out: Render) -> None:
    """Start the workspace's server after a session was started; the command does not wait for it."""
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
    return try_each(mas, args, out, ids) if args.dry_run else do_each(mas, args, out, ids, do, say)


def bring_back(args: Arguments, out: Render, status: str, do: Callable[[Mas, SessionId], SessionDetail]) -> int:
    """Bring sessions of that status back as stopped ones."""

    def say(session: SessionDetail) -> None:
        for warning in session.warnings:
            out.warn(warning)
        out.talk(f"Brought back {session.tmux_session}; start it: mas restore {session.session_id[:8]}")
        out.line(session.session_id)

    return each_session(args, out, (status,), do, say, _gone(status))


def do_each(
    mas: Mas,
    args: Arguments,
    out: Render,
    ids: list[SessionId],
    do: Callable[[Mas, SessionId], Result],
    say: Callable[[Result], object],
) -> int:
    """The same for sessions that were found already."""
    results = list(_past_failures(out, [partial(do, mas, session_id) for session_id in ids]))
    _show_each(args, out, results, say)
    return 0 if len(results) == len(ids) else 1


def _past_failures(out: Render, steps: list[Callable[[], Result]]) -> Iterator[Result]:
    """The results of those steps that worked; of several, one that fails is reported and the others go on."""
    for step in steps:
        try:
            result = step()
        except MasError as error:
            if len(steps) == 1:
                raise
            out.error(error)
        else:
            yield result


def each_agent(
    out: Render,
    agents: list[tuple[SessionId, str]],
    do: Callable[[SessionId, str], Result],
    say: Callable[[Result], object],
) -> int:
    """Do something to every agent given, and say so at once, going on past failures; 0 only if all of it worked."""
    results = []
    for result in _past_failures(out, [partial(do, session_id, agent) for session_id, agent in agents]):
        results.append(result)
        say(result)
    if out.as_json:
        out.result(results[0] if len(agents) == 1 else {"agents": results}, lambda: None)
    return 0 if len(results) == len(agents) else 1


def try_each(mas: Mas, args: Arguments, out: Render, ids: list[SessionId]) -> int:
    """Say what would be done to which sessions, or why not, and print them as they are now."""

    def say(info: SessionInfo) -> None:
        out.talk(f"Would {args.command} {titled(info)}")
        out.line(info.session_id)

    return do_each(mas, args, out, ids, lambda mas, session_id: mas.dry_run(args.command, session_id), say)


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


def _gone(status: str) -> Find:
    """Finds sessions among those that are kept as archived or deleted."""

    def find(mas: Mas, reference: str) -> SessionId:
        try:
            return find_session(reference, ((info.session_id, info.name) for info in mas.list(status=status).sessions))
        except NoSession:
            raise NoSession(reference, f"mas list --status {status}") from None

    return find


def at_stake(mas: Mas, ids: list[SessionId]) -> tuple[str, str]:
    """For a question: which sessions these are, and what ending them would cut off."""
    found = listed(mas, ids).values()
    running: list[tuple[SessionId, str | None]] = [
        (SessionId(info.session_id), None) for info in found if info.status == Status.ACTIVE
    ]
    return ", ".join(map(titled, found)), work_of(mas, running)


def work_of(mas: Mas, agents: Iterable[tuple[SessionId, str | None]]) -> str:
    """What ending these agents (None: all of a session) would interrupt, in words; empty if nothing."""
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
            # It is damaged or just ending; the command itself will report that.
            continue
        working += len(busy)
        waiting += sum(any(to.state == DeliveryState.QUEUED for to in message.deliveries) for message in sent)
    parts = (
        f"{count(working, 'agent')} {'is' if working == 1 else 'are'} working" if working else "",
        f"{count(waiting, 'message')} {'is' if waiting == 1 else 'are'} waiting" if waiting else "",
    )
    return ", ".join(filter(None, parts))
