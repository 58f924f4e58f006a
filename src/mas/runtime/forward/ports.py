"""Which ports the programs of a session listen at, and whose program each is."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import NamedTuple

from mas.runtime.forward.peers import listeners
from mas.runtime.network.hold import DIRECTORY, Lost, egress_of
from mas.runtime.network.space import DOOR_PORT, PROXY_PORT, STRAIGHT_PORTS
from mas.runtime.proc import living, trees

OF_MAS = frozenset((53, DOOR_PORT, PROXY_PORT, *STRAIGHT_PORTS))
"""The ports of a session's network that lead to MAS, or outside."""
# Where a client at loopback reaches what listens.
_REACHED = ("127.0.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1")  # noqa: S104 - only compared with
_MOST = 200


class Listening(NamedTuple):
    """A port that a program listens at, and the agent whose program it is, if that is known."""

    port: int
    agent: str | None


def listening(launchers: Mapping[str, int], network: str | None, others: Collection[int] = ()) -> list[Listening]:
    """The ports that can be reached at loopback. `network` is the directory of the session's own network, if any.

    Of a network that is shared, those of the session's own programs. `others` are ports that lead outside.
    """
    processes = trees(launchers.values(), {pid: int(fields[1]) for pid, _, fields in living()})
    below = {agent: processes[pid] for agent, pid in launchers.items()}
    at = "self" if network is None else _process_in(network, below)
    if not at:
        return []
    found = {
        inode: port
        for address, port, inode in listeners((f"/proc/{at}/net/tcp", f"/proc/{at}/net/tcp6"))
        if address in _REACHED and not (network and (port in OF_MAS or port in others))
    }
    owners = _owners(found, below)
    ports: dict[int, str | None] = {}
    for inode, port in found.items():
        if network or inode in owners:
            ports[port] = owners.get(inode) or ports.get(port)
    return [Listening(port, ports[port]) for port in sorted(ports)[:_MOST]]


def _process_in(network: str, below: Mapping[str, list[int]]) -> str:
    """A process in the session's network: that of any agent; empty if none is left."""
    directory = os.open(network, DIRECTORY)
    try:
        wanted = f"net:[{egress_of(directory)[-1]}]"
    except Lost:
        return ""
    finally:
        os.close(directory)
    pids = (pid for tree in below.values() for pid in tree)
    return next((str(pid) for pid in pids if _link(f"/proc/{pid}/ns/net") == wanted), "")


def _owners(inodes: Collection[str], below: Mapping[str, list[int]]) -> dict[str, str]:
    """The agents whose programs have these sockets open."""
    found = {}
    for agent, pids in below.items():
        for pid in pids:
            try:
                names = os.listdir(f"/proc/{pid}/fd")
            except OSError:
                continue
            for name in names:
                kind, _, inode = _link(f"/proc/{pid}/fd/{name}").partition(":[")
                if kind == "socket" and inode[:-1] in inodes:
                    found[inode[:-1]] = agent
    return found


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
