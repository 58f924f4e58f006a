"""The egress process of a session: answers for names inside, and joins connections with the world outside.

It lives outside the session's network and uses sockets that were made inside. It exits when the last launcher of the
session has closed its connection. Nothing an agent sends is trusted: names are looked up and addresses checked here,
and a connection is made to the very address that was checked.
"""

from __future__ import annotations

import os
import resource
import socket
import struct
import time

from mas.model.launch import fields_in
from mas.model.network import LOCALHOST, NetworkRules, is_address
from mas.runtime.network.addresses import LOOPBACK, NAMED, why_closed
from mas.runtime.network.asked import UNKNOWN, Agents, AskedLog
from mas.runtime.network.dialling import Dialling, tcp
from mas.runtime.network.hold import SOCKET
from mas.runtime.network.joining import IN, Join, Loop, reset
from mas.runtime.network.names import AAAA, FAILED, NO_NAME, OK, A, Names, Question, answer, parse_question
from mas.runtime.network.resolve import Found, Resolver
from mas.runtime.network.space import DOOR_PORT, PROXY_PORT, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_RULES, _NAMES = "rules.json", "names"
# How many connections there may be at a time: to MAS, and to the world.
_MOST_TO_MAS, _MOST_OUT = 256, 768
_FILES = 4096
_OF_OUR_OWN = 64
_AT_ONCE = 64
_LARGEST_QUERY = 513
# How long a connection may be silent; one that has ended on one side; and how often that is looked at.
_SILENT, _HALF_SILENT, _LOOK = 2 * 3600.0, 600.0, 30.0
# How soon the first launcher must come.
_FIRST = 30.0


def main(directory: str, descriptors: list[int]) -> int:
    """Serve until no launcher is left."""
    files = _allow_descriptors()
    with open(os.path.join(directory, _RULES), "rb") as file:
        config = fields_in(os.fsdecode(file.read()))
    Egress(directory, config, descriptors, files).run()
    return 0


def _allow_descriptors() -> int:
    """Have as many as are needed, if that is allowed; returns how many there are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(soft, most)


class Egress:
    """All of it. `config` says which names are allowed, and where MAS is."""

    def __init__(self, directory: str, config: dict[str, Any], descriptors: list[int], files: int = _FILES) -> None:
        # Each connection has two ends.
        self._most_out = min(_MOST_OUT, files // 2 - _MOST_TO_MAS - _OF_OUR_OWN)
        self._out = 0
        self._directory = directory
        self._config = config
        self.rules = NetworkRules(config["mode"], tuple(config["allow"]), tuple(config["private"]))
        self.names = Names(os.path.join(directory, _NAMES), config["fixed"])
        self.log = AskedLog(config["log"])
        self.agents = Agents()
        self.loop = Loop()
        self.resolver = Resolver()
        door, _, _, *self._handed = descriptors
        for fd in descriptors:
            os.set_inheritable(fd, False)
        self._launchers: dict[int, socket.socket] = {}
        self._had_one = False
        self._joins: set[Join] = set()
        self._to_mas = 0
        self._dialling: set[Dialling] = set()
        self._began = time.monotonic()
        self._sockets = [socket.socket(fileno=fd) for fd in self._handed]
        self._door = socket.socket(fileno=door)
        self._listen()

    def _listen(self) -> None:
        self._door.setblocking(False)
        self.loop.watch(self._door.fileno(), IN, lambda _: self._launchers_come())
        self.loop.watch(self.resolver.wake, IN, lambda _: self.resolver.deliver())
        for one in self._sockets:
            one.setblocking(False)
            handler = self._asked if one.type == socket.SOCK_DGRAM else self._connected
            self.loop.watch(one.fileno(), IN, lambda _, one=one, handler=handler: handler(one))  # type: ignore[misc]

    def run(self) -> None:
        """Go on until the last launcher has gone."""
        looked = time.monotonic()
        while self._launchers or not self._had_one:
            self.loop.wait(self._patience())
            now = time.monotonic()
            if not self._had_one and now - self._began > _FIRST:
                break
            for dialling in [one for one in self._dialling if not one.is_over and one.deadline < now]:
                dialling.give_up()
            self._dialling = {one for one in self._dialling if not one.is_over}
            if now - looked > _LOOK:
                looked = now
                self._close_silent(now)
        try:
            os.unlink(os.path.join(self._directory, SOCKET))
        except FileNotFoundError:
            # The session was deleted.
            return

    def _patience(self) -> float:
        if self._dialling:
            return 0.5
        if not self._had_one:
            return 1.0
        return _LOOK if self._joins else -1.0

    def _close_silent(self, now: float) -> None:
        for join in list(self._joins):
            if now - join.used > (_HALF_SILENT if join.is_half else _SILENT):
                join.close()

    # --- launchers

    def _launchers_come(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                one, _address = self._door.accept()
            except OSError:
                return
            one.setblocking(False)
            self._had_one = True
            try:
                uid = struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
                if uid != os.getuid():
                    raise PermissionError
                send(one, b"sockets", self._handed)
            except OSError:
                # It is not ours, or has gone already.
                one.close()
                continue
            self._launchers[one.fileno()] = one
            self.loop.watch(one.fileno(), IN, lambda _, one=one: self._launcher_says(one))  # type: ignore[misc]

    def _launcher_says(self, one: socket.socket) -> None:
        """An agent and its process, or the end."""
        try:
            words = one.recv(256).split()
        except BlockingIOError:
            return
        except OSError:
            words = []
        if len(words) == 2 and words[1].isdigit():
            self.agents.add(words[0].decode("ascii", "replace"), int(words[1]))
            return
        self.loop.watch(one.fileno(), 0, _nothing)
        del self._launchers[one.fileno()]
        one.close()

    def _who(self, port: int, kind: str) -> str:
        """The agent that has a socket inside; one that has just started may not have been heard of yet."""
        agent = self.agents.who(port, kind)
        if agent == UNKNOWN:
            self._launchers_come()
            for one in list(self._launchers.values()):
                self._launcher_says(one)
            agent = self.agents.who(port, kind)
        return agent

    # --- names

    def _asked(self, one: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                packet, peer = one.recvfrom(_LARGEST_QUERY)
            except OSError:
                return
            try:
                question = parse_question(packet)
            except (ValueError, IndexError):
                continue
            self._answer(one, question, peer)

    def _answer(self, one: socket.socket, question: Question, peer: tuple[str, int]) -> None:
        name = question.name

        def reply(code: int, address: str = "") -> None:
            try:
                one.sendto(answer(question, code, address), peer)
            except OSError:
                # It has not waited.
                return

        if not name or name.endswith(".arpa"):
            reply(NO_NAME)
        elif name == LOCALHOST or name.endswith(f".{LOCALHOST}"):
            reply(OK, "127.0.0.1")
        elif question.kind not in (A, AAAA):
            reply(NO_NAME if self.rules.refusal(name, None) else OK)
        else:
            self._look_up(name, self._who(peer[1], "udp"), reply)

    def _look_up(self, name: str, agent: str, reply: Callable[..., None]) -> None:
        if why := self.rules.refusal(name, None):
            self.log.add(agent, name, 0, f"refused: {why}")
            reply(NO_NAME)
            return

        def found(result: Found) -> None:
            open_ones, why = self._checked(name, None, result)
            if not open_ones:
                self.log.add(agent, name, 0, why)
                reply(FAILED if result.failed else NO_NAME)
                return
            address = self.names.address_of(name)
            self.log.add(agent, name, 0, "found" if address else "failed: too many names")
            reply(OK if address else FAILED, address)

        self.resolver.find(name, found)

    def _checked(self, name: str, port: int | None, found: Found) -> tuple[list[str], str]:
        """Those of the addresses that agents may reach; if none, why."""
        if found.failed:
            return [], "failed: it could not be looked up"
        if not found.addresses:
            return [], "failed: there is no such name"
        closed = {address: why_closed(address) for address in found.addresses}
        may = ("", *self._may_also_be(name, port))
        kept = [address for address, kind in closed.items() if kind in may]
        kinds = ", ".join(dict.fromkeys(filter(None, closed.values())))
        return kept, "" if kept else f"refused: it is at an address that agents may not reach ({kinds})"

    def _may_also_be(self, name: str, port: int | None) -> tuple[str, ...]:
        """The kinds of addresses that the owner has allowed by naming this place."""
        if not self.rules.is_private(name, port):
            return ()
        if name == LOCALHOST:
            return (LOOPBACK,)
        return (why_closed(name),) if is_address(name) else NAMED

    # --- connections

    def _connected(self, listener: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                inner, peer = listener.accept()
                place = inner.getsockname()
            except OSError:
                return
            inner.setblocking(False)
            address, port = place[0], place[1]
            if listener.getsockname()[1] == DOOR_PORT:
                self._to_server(inner)
            elif listener.getsockname()[1] == PROXY_PORT:
                reset(inner)
            else:
                self._to_name(inner, self._name_at(address, port), port, peer[1])

    def _name_at(self, address: str, port: int) -> str:
        """The name that an address inside stands for."""
        if name := self.names.name_of(address):
            return name
        own = LOCALHOST if address in ("127.0.0.1", "::1") else address
        return own if self.rules.is_private(own, port) else ""

    def _to_name(self, inner: socket.socket, name: str, port: int, peer: int) -> None:
        if not name or self._out >= self._most_out:
            reset(inner)
            return
        self._out += 1
        agent = self._who(peer, "tcp")
        self.names.open(name)

        def over(why: str) -> None:
            self._out -= 1
            self.names.close(name)
            if why:
                self.log.add(agent, name, port, why)

        def found(result: Found) -> None:
            open_ones, why = self._checked(name, port, result)
            if not open_ones:
                over(why)
                reset(inner)
                return
            self._dial([tcp(address, port) for address in open_ones], connected)

        def connected(outer: socket.socket | None, why: str) -> None:
            if outer is None:
                over(f"failed: {why}")
                reset(inner)
                return
            self.log.add(agent, name, port, "connected")
            self._join(inner, outer, lambda: over(""))

        if why := self.rules.refusal(name, port):
            over(f"refused: {why}")
            reset(inner)
        elif is_address(name):
            found(Found((name,)))
        else:
            self.resolver.find(name, found)

    def _dial(self, addresses: list[tuple[int, object]], then: Callable[[socket.socket | None, str], None]) -> None:
        dialling = Dialling(self.loop, addresses, then)
        self._dialling.add(dialling)
        dialling.start()

    def _join(self, inner: socket.socket, outer: socket.socket, over: Callable[[], None]) -> None:
        def closed(join: Join) -> None:
            self._joins.discard(join)
            over()

        join = Join(self.loop, inner, outer, closed)
        self._joins.add(join)
        join.start()

    def _to_server(self, inner: socket.socket) -> None:
        """Join with MAS's server, by its socket for agents."""
        if self._to_mas >= _MOST_TO_MAS:
            reset(inner)
            return
        self._to_mas += 1

        def over() -> None:
            self._to_mas -= 1

        def connected(outer: socket.socket | None, _: str) -> None:
            if outer is None:
                over()
                reset(inner)
                return
            self._join(inner, outer, over)

        self._dial([(socket.AF_UNIX, self._config["door"])], connected)


def _nothing(_: int) -> None:
    """For what is no longer watched."""
