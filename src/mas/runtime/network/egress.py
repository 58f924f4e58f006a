"""The egress process of a session: answers for names inside, and joins connections with the world outside.

It lives outside the session's network and uses sockets that were made inside. It exits when the last launcher of the
session has closed its connection. Nothing an agent sends is trusted: names are looked up and addresses checked here,
and a connection is made to the very address that was checked.
"""

from __future__ import annotations

import os
import socket
import struct
import time

from mas.model.launch import fields_in
from mas.model.network import LOCALHOST, NetworkRules
from mas.model.proxy import rules_in
from mas.runtime.descriptors import MOST_DESCRIPTORS, send
from mas.runtime.network.asked import UNKNOWN, Agents, AskedLog
from mas.runtime.network.hold import APPLY, REFUSED, SOCKET
from mas.runtime.network.inner_proxy import ProxyRequest, ProxyVisit, refuse, why_not
from mas.runtime.network.joining import IN, Joins, Loop, allow_descriptors, reset
from mas.runtime.network.name_stream import NameStream
from mas.runtime.network.names import AAAA, FAILED, LONGEST_QUERY, NO_NAME, OK, A, Names, answer, parse_question
from mas.runtime.network.outside import Checked, Outside
from mas.runtime.network.pasta import end_pasta, running_pasta
from mas.runtime.network.relay import RelayedQuery, name_servers
from mas.runtime.network.space import DOOR_PORT, LOOPBACK, NAME_SERVERS, PROXY_PORT, Space, add_listeners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_RULES, _NAMES = "rules.json", "names"
# How many connections there may be at a time: to MAS, and to the world.
_MOST_TO_MAS, _MOST_OUT = 256, 768
_MOST_NAME_STREAMS, _MOST_RELAYED = 64, 256
_FILES = 4096
_OF_OUR_OWN = 64
_AT_ONCE = 64
# How often silent connections are looked for.
_LOOK = 30.0
# How soon the first launcher must come.
_FIRST = 30.0
# How many refusals are reported as events in a minute; all of them are in the log.
_MOST_EVENTS, _MINUTE = 60, 60.0
_REFUSED = "refused: "


def main(directory: str, descriptors: list[int]) -> int:
    """Serve until no launcher is left."""
    files = allow_descriptors(_FILES)
    Egress(directory, _rules_in(directory), descriptors, files).run()
    return 0


def _rules_in(directory: str) -> dict[str, Any]:
    with open(os.path.join(directory, _RULES), "rb") as file:
        return fields_in(os.fsdecode(file.read()))


class Egress:
    """All of it. `config` says which names are allowed, and where MAS is."""

    def __init__(self, directory: str, config: dict[str, Any], descriptors: list[int], files: int = _FILES) -> None:
        # Each connection has two ends.
        self._most_out = min(_MOST_OUT, files // 2 - _MOST_TO_MAS - _OF_OUR_OWN)
        self._out = 0
        self._directory = directory
        self._config = config
        self.rules = _network_rules(config)
        self.names = Names(os.path.join(directory, _NAMES), config["fixed"])
        self.log = AskedLog(config["log"])
        self.agents = Agents()
        self.loop = Loop()
        self.outside = Outside(self.loop, self.rules, rules_in(config.get("proxy", {})))
        door, user, net, *self._handed = descriptors
        self._space = Space(user, net)
        self._minute, self._told = 0, 0
        self._agent_of: dict[int, str] = {}
        for fd in descriptors:
            os.set_inheritable(fd, False)
        self._launchers: dict[int, socket.socket] = {}
        self._had_one = False
        self._joins = Joins(self.loop)
        self._to_mas = 0
        # Where agents reach public addresses themselves, they must know them.
        self._is_full = self.rules.mode == "full"
        self._servers = name_servers() if self._is_full else []
        self._pasta, self._has_pasta = 0, True
        self._visits: set[ProxyVisit | NameStream | RelayedQuery] = set()
        self._name_streams = 0
        self._began = time.monotonic()
        self._sockets = [socket.socket(fileno=fd) for fd in self._handed]
        self._door = socket.socket(fileno=door)
        self._listen()

    def _listen(self) -> None:
        self._door.setblocking(False)
        self.loop.watch(self._door.fileno(), IN, lambda _: self._launchers_come())
        resolver = self.outside.resolver
        self.loop.watch(resolver.wake, IN, lambda _: resolver.deliver())
        for one in self._sockets:
            self._listen_at(one)

    def _listen_at(self, one: socket.socket) -> None:
        one.setblocking(False)
        handler = self._asked if one.type == socket.SOCK_DGRAM else self._connected
        self.loop.watch(one.fileno(), IN, lambda _: handler(one))

    def run(self) -> None:
        """Go on until the last launcher has gone."""
        if self._is_full:
            self._watch_pasta()
        looked = time.monotonic()
        while (self._launchers or not self._had_one) and self._has_pasta:
            self.loop.wait(self._patience())
            now = time.monotonic()
            if not self._had_one and now - self._began > _FIRST:
                break
            self.outside.look(now)
            for visit in [one for one in self._visits if not one.is_over and one.deadline < now]:
                visit.give_up()
            self._visits = {one for one in self._visits if not one.is_over}
            if now - looked > _LOOK:
                looked = now
                self._joins.close_silent(now)
        if self._pasta:
            end_pasta(self._pasta)
        try:
            os.unlink(os.path.join(self._directory, SOCKET))
        except FileNotFoundError:
            # The session was deleted.
            return

    def _watch_pasta(self) -> None:
        """Exit with pasta: the launchers then start both again."""
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._pasta = running_pasta(directory)
            watched = os.pidfd_open(self._pasta)
            self.loop.watch(watched, IN, lambda _: self._pasta_exited())
        except OSError:
            self._pasta_exited()
        finally:
            os.close(directory)

    def _pasta_exited(self) -> None:
        self._pasta, self._has_pasta = 0, False

    def _patience(self) -> float:
        if self.outside.is_busy or self._visits:
            return 0.5
        if not self._had_one:
            return 1.0
        return _LOOK if self._joins else -1.0

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
        """An agent and its process; from MAS that the rules are others; or the end."""
        try:
            words = one.recv(256).split()
        except BlockingIOError:
            return
        except OSError:
            words = []
        if len(words) == 2 and words[1].isdigit():
            agent = words[0].decode("ascii", "replace")
            self._agent_of[one.fileno()] = agent
            self.agents.add(agent, int(words[1]))
            return
        if words == [APPLY]:
            self._apply(one)
            return
        self.loop.watch(one.fileno(), 0, _nothing)
        del self._launchers[one.fileno()]
        self._agent_of.pop(one.fileno(), None)
        one.close()

    def _apply(self, caller: socket.socket) -> None:
        """Read the rules again, listen where they say so, and report to MAS what of that failed."""
        try:
            failed = self._apply_rules(_rules_in(self._directory))
        except (OSError, ValueError, KeyError) as error:
            failed = str(error) or type(error).__name__
        try:
            caller.send(APPLY + b" " + failed.encode("utf-8", "replace"))
        except OSError:
            # It has not waited.
            return

    def _apply_rules(self, config: dict[str, Any]) -> str:
        """Returns why some places cannot be listened at; empty if all can."""
        self.rules = self.outside.rules = _network_rules(config)
        self.names.fix(config["fixed"])
        # Not what the last rules said: those may have been others before this process had read any.
        there = {one.getsockname() for one in self._sockets}
        wanted = tuple((str(host), int(port)) for host, port in config.get("listen", ()) if (host, port) not in there)
        if not wanted:
            return ""
        if len(self._handed) + len(wanted) > MOST_DESCRIPTORS:
            return "there are too many places with a port of their own"
        try:
            made = add_listeners(self._space, wanted)
        except OSError as error:
            return error.strerror or str(error)
        self._handed += made
        for fd in made:
            self._sockets.append(socket.socket(fileno=fd))
            self._listen_at(self._sockets[-1])
        for launcher in self._launchers.values():
            try:
                # They keep all of them open, for the next egress process.
                send(launcher, b"sockets", self._handed)
            except OSError:
                continue
        return ""

    def _record(self, agent: str, name: str, port: int, result: str, remedy: str = "") -> None:
        """Record what came of a request; a refusal is also reported to a launcher, which makes an event of it."""
        is_news = self.log.add(agent, name, port, result, remedy)
        if not is_news or not result.startswith(_REFUSED) or not self._may_tell():
            return
        launchers = [self._launchers[fd] for fd in self._agent_of]
        own = [self._launchers[fd] for fd, known in self._agent_of.items() if known == agent]
        words = "\0".join((agent, name, str(port), result.removeprefix(_REFUSED), remedy))
        for launcher in (own or launchers)[:1]:
            try:
                launcher.send(REFUSED + words.encode())
            except OSError:
                # It is busy or has exited; the log has it.
                return

    def _may_tell(self) -> bool:
        """Whether there is room for one more event: an agent that asks for a thousand names is no news."""
        minute = int(time.monotonic() / _MINUTE)
        self._minute, self._told = (minute, self._told + 1) if self._minute == minute else (minute, 1)
        return self._told <= _MOST_EVENTS

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
                packet, peer = one.recvfrom(LONGEST_QUERY + 1)
            except OSError:
                return

            def reply(packet: bytes, peer: tuple[str, int] = peer) -> None:
                try:
                    one.sendto(packet, peer)
                except OSError:
                    # It has not waited.
                    return

            self._answer(packet, lambda peer=peer: self._who(peer[1], "udp"), reply)  # type: ignore[misc]

    def _asked_by_stream(self, inner: socket.socket, peer: int) -> None:
        if self._name_streams >= _MOST_NAME_STREAMS:
            reset(inner)
            return
        self._name_streams += 1
        if self._servers:
            self._relay_stream(inner)
            return

        def asked(packet: bytes, stream: NameStream) -> None:
            self._answer(packet, lambda: self._who(peer, "tcp"), stream.reply)

        def over() -> None:
            self._name_streams -= 1

        self._visits.add(NameStream(self.loop, inner, asked, over))

    def _relay_stream(self, inner: socket.socket) -> None:
        def over() -> None:
            self._name_streams -= 1

        def connected(outer: socket.socket | None, _: str) -> None:
            if outer is None:
                over()
                reset(inner)
            else:
                self._joins.add(inner, outer, over)

        self.outside.dial(list(self._servers), connected)

    def _answer(self, packet: bytes, who: Callable[[], str], send_back: Callable[[bytes], None]) -> None:
        try:
            question = parse_question(packet)
        except (ValueError, IndexError):
            return
        name = question.name

        def reply(code: int, address: str = "") -> None:
            send_back(answer(question, code, address))

        if name == LOCALHOST or name.endswith(f".{LOCALHOST}"):
            reply(OK, "127.0.0.1")
        elif self._servers and not self.rules.is_private(name, None):
            if len(self._visits) < _MOST_RELAYED:
                self._visits.add(RelayedQuery(self.loop, self._servers, packet, send_back))
        elif not name or name.endswith(".arpa"):
            reply(NO_NAME)
        elif question.kind not in (A, AAAA):
            reply(NO_NAME if self.rules.refusal(name, None) else OK)
        else:
            self._look_up(name, who(), reply)

    def _look_up(self, name: str, agent: str, reply: Callable[..., None]) -> None:
        def checked(found: Checked) -> None:
            if found.why:
                self._record(agent, name, 0, found.why, found.remedy)
                reply(FAILED if found.may_exist else NO_NAME)
                return
            address = self.names.address_of(name)
            self._record(agent, name, 0, "found" if address else "failed: too many names")
            reply(OK if address else FAILED, address)

        self.outside.check(name, None, checked)

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
            if place == (LOOPBACK, DOOR_PORT):
                self._to_server(inner)
            elif place == (LOOPBACK, PROXY_PORT):
                self._to_proxy(inner, peer[1])
            elif place in NAME_SERVERS:
                self._asked_by_stream(inner, peer[1])
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
        self._reach(inner, peer, ProxyRequest(name, port), lambda *_: reset(inner))

    def _to_proxy(self, inner: socket.socket, peer: int) -> None:
        if self._out >= self._most_out:
            reset(inner)
            return
        self._out += 1

        def asked(request: ProxyRequest | None) -> None:
            if request is None:
                self._out -= 1
                return
            place = request.name, request.port
            self._reach(inner, peer, request, lambda *why: refuse(inner, *why_not(*place, *why)))

        self._visits.add(ProxyVisit(self.loop, inner, asked))

    def _reach(self, inner: socket.socket, peer: int, asked: ProxyRequest, failed: Callable[[str, str], None]) -> None:
        """Join with the place that is asked for, if it may be reached, and record how that went."""
        agent = self._who(peer, "tcp")
        name, port = asked.name, asked.port
        self.names.open(name)

        def over() -> None:
            self._out -= 1
            self.names.close(name)

        def then(outer: socket.socket | None, why: str, remedy: str, early: bytes) -> None:
            self._record(agent, name, port, "connected" if outer else why, remedy)
            if outer is None:
                over()
                failed(why, remedy)
            else:
                self._joins.add(inner, outer, over, asked.to_place, asked.to_program + early)

        self.outside.connect(name, port, then)

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
            self._joins.add(inner, outer, over)

        self.outside.dial([(socket.AF_UNIX, self._config["door"])], connected)


def _network_rules(config: dict[str, Any]) -> NetworkRules:
    return NetworkRules(config["mode"], tuple(config["allow"]), tuple(config["private"]))


def _nothing(_: int) -> None:
    """For what is no longer watched."""
