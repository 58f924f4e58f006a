"""Ports inside a session's network, and the addresses of this machine that lead to them."""

from typing import NamedTuple

from mas.model.isolation import NetworkMode

LARGEST_PORT = 65535
_SHORT_ID = 8


class OpenPort(NamedTuple):
    """A TCP port that a program of a session listens at; `agent` is null if it is not known whose program."""

    port: int
    agent: str | None = None


class PortList(NamedTuple):
    """The ports that the programs of a session listen at. In a `shared` network they are ports of the machine."""

    network: NetworkMode
    ports: tuple[OpenPort, ...]


class Forward(NamedTuple):
    """A port `local` of the server's machine, on loopback, that leads to a `port` inside a session's network.

    `url` is its address for a browser on that machine. `listening` says whether a program listened at `port` when it
    was opened. In a `shared` network nothing is forwarded, and both ports are the same.
    """

    session_id: str
    port: int
    local: int
    url: str
    network: NetworkMode
    listening: bool


class ForwardList(NamedTuple):
    """The open forwards of a session."""

    forwards: tuple[Forward, ...]


def host_of(session_id: str, port: int) -> str:
    """The host name of a forward: no other page has it, so a browser keeps them apart."""
    return f"{port}-{session_id[:_SHORT_ID]}.localhost"
