"""What the commands share: how a session is named, and how several are done at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from mas.bootstrap import open_mas, open_remote, open_serving
from mas.cli.render import Render
from mas.model.errors import BadInput, Forbidden, MasError
from mas.model.ids import SessionId, is_agent_id, shown
from mas.service.mas import Mas
from mas.settings import as_agent, inside

Arguments = argparse.Namespace
Result = TypeVar("Result")

ID_HELP = "a session: its name, its UUID or 4 or more of the first characters, or mas-xxxxxxxx"
_LONGEST = 7 * 86400.0
OPTIONAL_ID_HELP = f"{ID_HELP}; left out: the one you are in, or the only active one"


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
    parser.add_argument("--no-server", action="store_true", help="do not bring up the workspace's server with it")


def summon_server(args: Arguments, out: Render) -> None:
    """Have the workspace's server come up behind a session that was just started; the answer does not wait for it."""
    if args.server or args.no_server:
        return
    out.flush()
    open_serving(args.workspace).summon()


def session_of(mas: Mas, reference: str | None) -> SessionId:
    """The session that was named, else the one this process is in, else the only active one."""
    if reference is not None:
        return mas.resolve(reference)
    here = inside().session
    return mas.resolve(here) if here else mas.only_active()


def session_and_agent(mas: Mas, args: Arguments) -> tuple[SessionId, str | None]:
    """`[ID] [AGENT]`: two digits are an agent, all else is a session."""
    words = [word for word in (args.session, args.agent) if word is not None]
    agents = [word for word in words if is_agent_id(word)]
    sessions = [word for word in words if not is_agent_id(word)]
    if len(agents) > 1 or len(sessions) > 1:
        raise BadInput(f"One session and one agent (two digits) at most, not: {' '.join(map(shown, words))}")
    return session_of(mas, sessions[0] if sessions else None), agents[0] if agents else None


def add_session_and_agent(parser: argparse.ArgumentParser, agent: str) -> None:
    parser.add_argument("session", nargs="?", metavar="ID", help=OPTIONAL_ID_HELP)
    parser.add_argument("agent", nargs="?", metavar="AGENT", help=agent)


def seconds(text: str) -> float:
    """An argument that is a time in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _LONGEST:
        raise argparse.ArgumentTypeError(f"not a number of seconds: {shown(text)}")
    return value


def add_sessions(parser: argparse.ArgumentParser, which: str, id_help: str = ID_HELP) -> None:
    """`ID…` or `--all`."""
    parser.add_argument("sessions", nargs="*", metavar="ID", help=id_help)
    parser.add_argument("--all", action="store_true", help=f"all {which} sessions")


def need_sessions(args: Arguments) -> None:
    """`BadInput` where neither a session nor all of them were named, or both."""
    if bool(args.sessions) == bool(args.all):
        raise BadInput("Which sessions? Name some, or say --all", f"mas list; mas {args.command} ID")


def each_session(
    args: Arguments,
    out: Render,
    status: tuple[str, ...],
    do: Callable[[Mas, SessionId], Result],
    say: Callable[[Result], object],
) -> int:
    """Do something to every session named, going on past failures; 0 only if all of it worked."""
    need_sessions(args)
    mas = opened(args)
    if args.all:
        ids = [SessionId(info.session_id) for word in status for info in mas.list(status=word).sessions]
        if not ids:
            out.talk(f"No session is {' or '.join(status)}")
    else:
        ids = [mas.resolve(reference) for reference in args.sessions]
    code, results = 0, []
    for session_id in ids:
        try:
            results.append(do(mas, session_id))
        except MasError as error:
            if len(ids) == 1:
                raise
            out.error(error)
            code = 1
    if len(ids) == 1 and not args.all:
        out.result(results[0], lambda: say(results[0]))
    else:
        out.result({"sessions": results}, lambda: [say(result) for result in results])
    return code
