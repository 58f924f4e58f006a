"""The server: listens on an address and on a socket file until it is stopped. Agents keep running without it."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import uvicorn
from starlette.types import ASGIApp

from mas import __version__
from mas.bootstrap import ServerParts, open_server, utc_now
from mas.http.app import Doors, create_app
from mas.http.connections import HttpConnection
from mas.http.guard.chain import Guard
from mas.http.idle import until_gone, until_idle
from mas.http.limits import ServerLimits
from mas.http.log import open_log
from mas.http.peer import Entrance
from mas.http.state import ServerState
from mas.model.errors import BadInput, Unavailable
from mas.model.server import ServerInfo
from mas.settings import DEFAULT_PORT

_MORE_PORTS = 20
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANY = ("0.0.0.0", "::")  # noqa: S104 - only compared with
_BACKLOG = 1024
_LARGEST_FRAME = 256 << 10
_GOODBYE = 3
_BETWEEN_LOG_CHECKS = 5.0
_LONGEST_STAY = 1e9
_NO_DOORS: Doors = MappingProxyType({})
_log = logging.getLogger("mas.http")


class Options(NamedTuple):
    """How to listen."""

    host: str = "127.0.0.1"
    port: int | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_proxy: bool = False
    allow_hosts: tuple[str, ...] = ()
    until_idle: float | None = None
    limits: ServerLimits = ServerLimits()

    def check(self) -> None:
        """`BadInput` for options that would send tokens unencrypted over a network, or that no client could use."""
        stay = 1.0 if self.until_idle is None else self.until_idle
        files = [path for path in (self.tls_cert, self.tls_key) if path]
        unread = [path for path in files if not (os.path.isfile(path) and os.access(path, os.R_OK))]
        is_hidden = _is_loopback(self.host) or self.tls_cert or self.behind_proxy
        for is_wrong, *words in (
            (len(files) == 1, "TLS needs both --tls-cert and --tls-key"),
            (not 0 < stay < _LONGEST_STAY, "--until-idle takes a number of seconds, more than 0"),
            (not all((self.host, *self.allow_hosts)), "The address in --host or the name in --allow-host is empty"),
            (unread, f"Cannot read the file {', '.join(unread)}"),
            (
                not is_hidden,
                f"Listening on {self.host} without TLS would send tokens over the network unencrypted",
                "mas serve --host … --tls-cert FILE --tls-key FILE, or --behind-proxy",
            ),
            (
                self.host in _ANY and not self.allow_hosts,
                f"Listening on {self.host} needs an allowed name",
                "mas serve --allow-host NAME",
            ),
        ):
            if is_wrong:
                raise BadInput(*words)
        if files:
            _check_pair(*files)

    @property
    def hosts(self) -> tuple[str, ...]:
        own = () if self.host in _ANY else (self.host,)
        return (*_LOOPBACK, *own, *self.allow_hosts)


def serve(
    workspace: str | None, options: Options, ready: Callable[[ServerInfo], None], doors: Doors = _NO_DOORS
) -> bool:
    """Serve the workspace until a signal ends it; `ready` gets its address once it listens.

    `doors` are more ways to the product, by path. Returns whether it exited because it was idle.
    """
    options.check()
    with open_server(workspace) as parts:
        parts.presence.claim(to_stay=options.until_idle is None)
        try:
            return _serve(parts, options, ready, doors)
        finally:
            parts.presence.withdraw()


def _serve(parts: ServerParts, options: Options, ready: Callable[[ServerInfo], None], doors: Doors) -> bool:
    address = _listen(options)
    state = ServerState(parts, _url(options, address), options.hosts, options.limits)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn sends itself the signal again once it has ended; there is still something to put away.
        signal.signal(number, lambda *_: None)
    with _holding_twin(address), open_log(parts.log, utc_now) as log:

        def listening(info: ServerInfo) -> None:
            state.supervisor.start_every(_BETWEEN_LOG_CHECKS, "log", log.check)
            ready(info)

        threading.excepthook = state.thread_failed
        try:
            server = _Server(Guard(create_app(state, doors), state, log.request), state, options, listening)
            server.run([address])
            return server.is_needless
        finally:
            threading.excepthook = threading.__excepthook__


def _url(options: Options, address: socket.socket) -> str:
    host = "127.0.0.1" if options.host in _ANY else options.host
    scheme = "https" if options.tls_cert else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{address.getsockname()[1]}"


def _config(app: ASGIApp, options: Options) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=HttpConnection,
        ws="websockets-sansio",
        loop="uvloop",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=options.behind_proxy,
        forwarded_allow_ips="127.0.0.1,::1",
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
        ws_max_size=_LARGEST_FRAME,
        ws_per_message_deflate=False,
        timeout_keep_alive=options.limits.idle_time,
        timeout_graceful_shutdown=_GOODBYE,
    )


class _Server(uvicorn.Server):
    """Listens on two socket files too, which need no TLS, and ends streams before it waits for requests."""

    def __init__(self, app: ASGIApp, state: ServerState, options: Options, ready: Callable[[ServerInfo], None]) -> None:
        """`ready` is called once it listens."""
        super().__init__(_config(app, options))
        self._state = state
        self._presence = state.workspace.presence
        self._options = options
        self._ready = ready
        self.is_needless = False
        self._leaving: list[asyncio.Task[None]] = []

    def _leave_after(self, name: str, reason: Callable[[], Awaitable[None]], why: str, is_needless: bool) -> None:
        """Have a supervised task of that name end the server when `reason` returns."""

        async def wait_and_leave() -> None:
            await reason()
            _log.log(logging.INFO if is_needless else logging.WARNING, why)
            self.is_needless, self.should_exit = is_needless, True

        self._leaving.append(self._state.supervisor.start(name, wait_and_leave))

    def _announce(self) -> None:
        """It listens: say so, and watch for what ends it."""
        stay, presence = self._options.until_idle, self._presence
        info = ServerInfo(os.getpid(), self._state.url, presence.socket, utc_now(), __version__, stay)
        presence.announce(info, self._options.tls_cert)
        self._ready(info)
        gone = partial(until_gone, presence.is_ours)
        self._leave_after("workspace", gone, "the workspace was removed or moved: its server exits", is_needless=False)
        if stay is not None:
            idle = partial(until_idle, self._state.mas, lambda: bool(self.server_state.connections), stay)
            self._leave_after("idle", idle, "this server is idle and exits", is_needless=True)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        if self.should_exit:
            return
        loop = asyncio.get_running_loop()
        files = ((self._presence.socket, Entrance.OWNER), (self._presence.agents_socket, Entrance.AGENTS))
        for path, entrance in files:
            # Only this user can enter its directory, so no other user can connect before the mode is set.
            file = socket.socket(socket.AF_UNIX)
            file.bind(path)
            os.chmod(path, 0o600)
            made = partial(self._connection, entrance)
            self.servers.append(await loop.create_unix_server(made, sock=file, backlog=_BACKLOG))
        made, tls = partial(self._connection, Entrance.ADDRESS), self.config.ssl
        patience = self._options.limits.head_time if tls else None
        for address in sockets or ():
            self.servers.append(
                await loop.create_server(made, sock=address, backlog=_BACKLOG, ssl=tls, ssl_handshake_timeout=patience)
            )
        self._announce()

    def _connection(self, entrance: Entrance) -> asyncio.Protocol:
        state, crowd = self.lifespan.state, self._state.crowd
        return HttpConnection(self.config, self.server_state, state, crowd, self._options.limits, entrance)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for task in self._leaving:
            task.cancel()
        self._state.feed.close()
        await super().shutdown(sockets)


def _listen(options: Options) -> socket.socket:
    """A socket bound to the port asked for, or to the first that is free from the usual one on."""
    usual = range(DEFAULT_PORT, DEFAULT_PORT + _MORE_PORTS)
    # A server that starts automatically may listen on any free port.
    ports = [options.port] if options.port is not None else [*usual, 0] if options.until_idle else usual
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    for port in ports:
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((options.host, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            failed = error
            continue
        return listener
    where = f"{options.host}:{options.port or DEFAULT_PORT}"
    raise Unavailable(f"Cannot listen on {where}: {failed.strerror or failed}", "mas serve --port 0")


def _check_pair(cert: str, key: str) -> None:
    import ssl

    try:
        # Later there is no terminal to ask for a password.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:
        raise BadInput(f"Cannot use {cert} with {key}; a key with a password is not supported ({error})") from None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def _holding_twin(address: socket.socket) -> Iterator[None]:
    """Meanwhile no other program has the same port at ::1, which browsers try first for `localhost`."""
    host, port = address.getsockname()[:2]
    with ExitStack() as held:
        # There may be no IPv6 here, or another program was first; sign-in links name 127.0.0.1.
        with suppress(OSError):
            if host == _LOOPBACK[0]:
                # It does not listen, and has no SO_REUSEADDR, with which another program could share the port.
                held.enter_context(socket.socket(socket.AF_INET6)).bind(("::1", port))
        yield
