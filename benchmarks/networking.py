"""What a session's own network costs: its egress process, and connections through it against straight ones."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable

import psutil

from benchmarks.measure import Effort, Group, Row, in_turns, timed, times
from mas.model.launch import NetworkPlan
from mas.runtime.network.hold import Network
from mas.runtime.sandbox.probe import probe
from mas.runtime.sandbox.system import die_with_parent

_TITLE = "A session's own network"
_MUCH = 64 << 20
_BLOCK = bytes(1 << 16)
_CONNECTIONS = 100
_IDLE = 10.0
_STRAIGHT = "straight, over loopback"


def measure(effort: Effort) -> Group:
    if why := probe("network"):
        return Group(_TITLE, (), (f"Not measured: {why}",))
    with tempfile.TemporaryDirectory(prefix="mas-network-") as directory, _serving() as service:
        place = service.getsockname()
        rules = {"mode": "names", "allow": [], "private": [f"localhost:{place[1]}"], "fixed": {}}
        with open(os.path.join(directory, "rules.json"), "w", encoding="utf-8") as file:
            json.dump({**rules, "door": "", "log": os.path.join(directory, "log")}, file)
        network = Network(NetworkPlan(directory=directory, listen=(place,)), "21")
        inside, outside = _Worker(place, network.space.join), _Worker(place, lambda: None)
        try:
            rows = _rows(effort, directory, inside, outside)
        finally:
            for worker in (inside, outside):
                worker.end()
            network.close()
    return Group(_TITLE, rows, ("Both ways lead to the same service of this machine, in turns.",))


def _rows(effort: Effort, directory: str, inside: _Worker, outside: _Worker) -> tuple[Row, ...]:
    joined, straight, much_joined, much_straight = in_turns(
        effort.repeats(9),
        lambda: inside.do("connect"),
        lambda: outside.do("connect"),
        lambda: inside.do("much"),
        lambda: outside.do("much"),
    )
    egress = psutil.Process(int(os.readlink(os.path.join(directory, "space")).split()[0]))
    before = egress.cpu_times()
    time.sleep(_IDLE)
    after = egress.cpu_times()
    ticks = round((after.user + after.system - before.user - before.system) * os.sysconf("SC_CLK_TCK"))
    memory = egress.memory_full_info().pss / (1 << 20)
    return (
        times(
            "connect and get a small answer through the egress process, fastest tenth", joined, _STRAIGHT, straight, 15
        ),
        times("send 64 MiB through the egress process", much_joined, _STRAIGHT, much_straight, 10),
        Row("memory of the egress process (PSS)", memory, bound="25 MiB", limit=25.0, unit="MiB"),
        Row(f"its processor time in {_IDLE:.0f} s in which nothing is sent", ticks, bound="0", limit=0, unit="ticks"),
    )


class _Worker:
    """A process, inside or outside, that makes connections and says how long they took."""

    def __init__(self, place: tuple[str, int], join: Callable[[], None]) -> None:
        self._ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            die_with_parent()
            join()
            while word := theirs.recv(64):
                work = _connect if word == b"connect" else _send_much
                theirs.send(f"{work(place)}".encode())
            os._exit(0)
        theirs.close()

    def do(self, word: str) -> float:
        self._ours.send(word.encode())
        return float(self._ours.recv(64))

    def end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._ours.close()


def _connect(place: tuple[str, int]) -> float:
    """What the fastest tenth takes: on a busy machine the others tell how long processes wait for their turn."""

    def work() -> None:
        with socket.create_connection(place) as one:
            one.sendall(b"?")
            one.recv(16)

    return sorted(timed(work) for _ in range(_CONNECTIONS))[_CONNECTIONS // 10]


def _send_much(place: tuple[str, int]) -> float:
    def work() -> None:
        with socket.create_connection(place) as one:
            one.sendall(b"!")
            for _ in range(_MUCH // len(_BLOCK)):
                one.sendall(_BLOCK)
            one.shutdown(socket.SHUT_WR)
            # The other side says when it has all.
            one.recv(16)

    return timed(work)


def _serving() -> socket.socket:
    """A service that answers short questions, and takes much."""
    service = socket.create_server(("127.0.0.1", 0), backlog=128)

    def serve() -> None:
        while True:
            try:
                one, _ = service.accept()
            except OSError:
                return
            with one:
                if one.recv(1) == b"!":
                    while one.recv(1 << 20):
                        pass
                one.sendall(b"yes")

    threading.Thread(target=serve, daemon=True).start()
    return service
