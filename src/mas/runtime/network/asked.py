"""Which agent asked for which name, and with what result: a file of bounded size in the session's logs."""

from __future__ import annotations

import os
import time

from mas.runtime.sandbox.system import SAFE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LARGEST = 1 << 20
_MOST_KNOWN = 2048
# The same result for the same agent and name is written once in this many seconds.
_AGAIN = 60.0
# How often in a second the process behind a connection is looked for, at most.
_LOOKS = 50
UNKNOWN = "?"
_TABLES = {"tcp": ("tcp", "tcp6"), "udp": ("udp", "udp6")}


class Agents:
    """The agents inside, by the process namespaces they run in; who has a socket is found in /proc."""

    def __init__(self) -> None:
        self._agents: dict[str, tuple[int, str]] = {}
        self._second, self._looks = 0, 0

    def add(self, agent: str, pid: int) -> None:
        space = _link(f"/proc/{pid}/ns/pid")
        if space:
            self._agents[agent] = pid, space

    def who(self, port: int, kind: str) -> str:
        """The agent whose socket has this port inside; unknown if too many ask, or it is closed already."""
        now = int(time.monotonic())
        self._second, self._looks = (now, self._looks + 1) if self._second == now else (now, 1)
        if self._looks > _LOOKS:
            return UNKNOWN
        if len(self._agents) == 1:
            return next(iter(self._agents))
        inode = self._inode(port, kind)
        return self._owner(inode) if inode else UNKNOWN

    def _inode(self, port: int, kind: str) -> str:
        wanted = f":{port:04X}"
        for pid, _ in self._agents.values():
            for table in _TABLES[kind]:
                try:
                    with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:
                        for line in file:
                            words = line.split()
                            if words[1].endswith(wanted) and words[9] != "0":
                                return words[9]
                except (OSError, IndexError):
                    continue
            # All of them are in the same network.
            if os.path.exists(f"/proc/{pid}"):
                break
        return ""

    def _owner(self, inode: str) -> str:
        wanted = f"socket:[{inode}]"
        spaces = {space: agent for agent, (_, space) in self._agents.items()}
        own = _link("/proc/self/ns/pid")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            space = _link(f"/proc/{pid}/ns/pid")
            agent = spaces.get(space, "") if space != own else ""
            if agent and _has_open(pid, wanted):
                return agent
        return UNKNOWN


def _has_open(pid: str, wanted: str) -> bool:
    try:
        return any(_link(f"/proc/{pid}/fd/{fd}") == wanted for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


class AskedLog:
    """`logs/network.jsonl`, and the one before it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[tuple[str, str, int, str], tuple[float, int]] = {}

    def add(self, agent: str, name: str, port: int, result: str, remedy: str = "") -> bool:
        """Record what an agent asked for, unless the same was recorded a moment ago; whether it is news.

        `remedy` is the list of the policy that would let it through.
        """
        key, now = (agent, name, port, result), time.monotonic()
        last, count = self._known.pop(key, (-_AGAIN, 0))
        again = now - last < _AGAIN
        self._known[key] = (last, count + 1) if again else (now, 0)
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        if again:
            return False
        line: dict[str, Any] = {"at": _now(), "agent": agent, "name": name, "port": port, "result": result}
        if count:
            line["before"] = count
        if remedy:
            line["remedy"] = remedy
        try:
            self._write("{" + ", ".join(f"{_text(key)}: {_text(value)}" for key, value in line.items()) + "}\n")
        except OSError:
            # A full disk, or a removed session, is no reason to cut agents off.
            pass
        return True

    def _write(self, line: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | SAFE
        fd = os.open(self._path, flags, 0o600)
        try:
            if os.fstat(fd).st_size > _LARGEST:
                os.rename(self._path, f"{self._path}.1")
            os.write(fd, line.encode())
        finally:
            os.close(fd)


def _text(value: str | int) -> str:
    from _json import encode_basestring_ascii

    return str(value) if isinstance(value, int) else encode_basestring_ascii(value)


def _now() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
