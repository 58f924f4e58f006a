"""mas forward: Open a port of an agent's network on this machine, until Ctrl-C or until the session stops."""

from __future__ import annotations

import argparse
from contextlib import suppress

from mas.bootstrap import open_remote, open_serving
from mas.cli.command import opened
from mas.cli.render import Render
from mas.cli.target import OPTIONAL_SESSION_HELP, Arguments, add_session_option, session_of, whole
from mas.model.errors import BadInput, NotFound
from mas.model.forwards import LARGEST_PORT, Forward, PortList
from mas.model.ids import SessionId, shown
from mas.model.isolation import NetworkMode
from mas.service.mas import Mas
from mas.settings import ServerAddress

SUMMARY = "reach a port inside a session's network"
WHERE = "here"
OF_STATUS = "active"
EXAMPLES = """
mas forward web 3000
mas forward web 1455 1455
mas forward --list web
mas forward --detach web 3000
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION", help=OPTIONAL_SESSION_HELP)
    parser.add_argument("port", nargs="?", metavar="PORT", help="the port that a program of the session listens at")
    parser.add_argument("local", nargs="?", metavar="LOCAL", help="the port of this machine (default: a free one)")
    add_session_option(parser, argparse.SUPPRESS)
    parser.add_argument("--any-user", action="store_true", help="for programs of all users of this machine")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="list the ports that the session's programs listen at")
    what.add_argument("--detach", action="store_true", help="have the workspace's server keep it, and return")
    what.add_argument("--stop", action="store_true", help="close one that the server keeps")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    reference, port, local = _words(args)
    session_id = session_of(mas, reference)
    if args.list:
        return _list(mas, args, out, session_id)
    if port is None:
        raise BadInput("No port given", f"mas forward --list {session_id[:8]}; mas forward {session_id[:8]} 3000")
    if args.stop:
        ended = _server(args).end_forward(session_id, port)
        out.talk(f"Closed {ended.url}")
        out.result(ended, lambda: None)
        return 0
    keeper = _server(args) if args.detach else mas
    forward = keeper.forward(session_id, port, local, args.any_user)
    _tell(forward, out)
    if not args.detach and forward.network is not NetworkMode.SHARED:
        out.flush()
        _stay(mas, forward, out)
    return 0


def _stay(mas: Mas, forward: Forward, out: Render) -> None:
    """Keep it until it ends, or Ctrl-C does."""
    session_id = SessionId(forward.session_id)
    try:
        mas.wait_for_forward(session_id, forward.port)
        out.talk("The session has stopped, and so has the forward")
    finally:
        with suppress(NotFound):
            mas.end_forward(session_id, forward.port)


def _words(args: Arguments) -> tuple[str | None, int | None, int | None]:
    """The session, the port and the local one: a session may be left out, and is no number."""
    words = [word for word in (args.session, args.port, args.local) if word is not None]
    session = args.named
    if args.list:
        if len(words) > 1:
            raise BadInput("--list takes a session, and no port", "mas forward --list SESSION")
        return (whole(words[0]) if words else session), None, None
    if words and (len(words) == 3 or not _is_number(words[0])):
        session = whole(words.pop(0))
    if args.named not in (None, session) or len(words) > 2:
        raise BadInput("Give one session and at most two ports", "mas forward SESSION PORT LOCAL")
    ports = [*map(_port, words), None, None]
    return session, ports[0], ports[1]


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _port(word: str) -> int:
    if not _is_number(word) or not 1 <= int(word) <= LARGEST_PORT:
        raise BadInput(f"Not a port: {shown(word)}", "mas forward --list")
    return int(word)


def _server(args: Arguments) -> Mas:
    """The workspace's server, which keeps forwards for longer than a command runs."""
    return open_remote(ServerAddress(f"unix:{open_serving(args.workspace).need().socket}", None))


def _tell(forward: Forward, out: Render) -> None:
    short = forward.session_id[:8]
    if not forward.listening:
        out.talk(f"No program of session {short} listens at port {forward.port} yet; connections fail until one does")
    if forward.network is NetworkMode.SHARED:
        out.talk("The session shares this machine's network: the port needs no forward")
    else:
        out.talk(f"127.0.0.1:{forward.local} leads to port {forward.port} of session {short}")
    out.result(forward, lambda: out.line(forward.url))


def _list(mas: Mas, args: Arguments, out: Render, session_id: SessionId) -> int:
    found = mas.ports(session_id)
    server = open_serving(args.workspace).find()
    kept = _server(args).forwards(session_id) if server else ()
    value = {"network": found.network, "ports": found.ports, "forwards": kept}
    out.result(value, lambda: _show(found, kept, out))
    return 0


def _show(found: PortList, kept: tuple[Forward, ...], out: Render) -> None:
    urls = {one.port: one.url for one in kept}
    if not found.ports and not kept:
        out.talk("No program of the session listens at a port that can be forwarded")
    agents = {one.port: one.agent or "?" for one in found.ports}
    rows = [(str(port), agents.get(port, "-"), urls.get(port, "")) for port in sorted({*agents, *urls})]
    if rows:
        out.table(("PORT", "AGENT", "FORWARD"), rows)
