"""The server: where it listens, whether it is healthy, how a browser signs in."""

from typing import NamedTuple

from mas.model.isolation import TierView


class Health(NamedTuple):
    """Whether the server is well (`ok` or `degraded`), and how agents of a session started now would be isolated."""

    status: str
    version: str
    isolation: TierView
    failing: tuple[str, ...] = ()
    """The background tasks of the server that failed and have not run well since."""


class LoginCode(NamedTuple):
    """A code that signs one browser in, once."""

    code: str
    url: str
    expires_at: str


class ServerInfo(NamedTuple):
    """A server that runs: where it listens, on an address and on a socket file.

    `until_idle` is how many seconds without a session and a client it stays; None for one that stays for good.
    """

    pid: int
    url: str
    socket: str
    started_at: str
    version: str
    until_idle: float | None = None
