"""The server: where it listens, whether it is healthy, how a browser signs in."""

from typing import NamedTuple

from mas.model.isolation import TierView


class Health(NamedTuple):
    """Whether the server works (`ok` or `degraded`), and which isolation a session started now would get.

    A caller without a token is not shown the version and the isolation.
    """

    status: str
    version: str | None = None
    isolation: TierView | None = None
    failing: tuple[str, ...] = ()
    """The server's background tasks that failed and have not succeeded since."""


class LoginCode(NamedTuple):
    """A code that signs in one browser, once."""

    code: str
    url: str
    expires_at: str


class ServerInfo(NamedTuple):
    """A running server: its address and its socket file.

    It exits after `until_idle` seconds without a session and a client; None: it stays.
    """

    pid: int
    url: str
    socket: str
    started_at: str
    version: str
    until_idle: float | None = None
