"""Admission: one check after the other reads a request's head and raises a `MasError`, or lets it pass."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from mas.http.errors import problem, refuse
from mas.http.guard.record import arrival_of, client_of, method_of
from mas.http.guard.tickets import shown_host, ticket_in
from mas.http.limits import ServerLimits
from mas.http.page import ASSETS
from mas.http.peer import Entrance
from mas.model.browser import PAGE_BEARER
from mas.model.errors import Forbidden, MasError, NotSignedIn, TooMuch
from mas.model.principal import NOBODY, OWNER, Principal
from mas.service.access import Access
from mas.service.browsers import Browsers

# The page holds nothing but itself: what it shows it has to ask for, and for that it has to sign in.
_HEALTH = "/health"
_OPEN = {"/", _HEALTH, "/login", "/favicon.ico", "/browser/hello", "/browser/bearer"}
# What an agent's token is good for, in its own session only.
_FOR_AGENTS = tuple(
    (method, re.compile(path))
    for method, path in (
        ("GET", r"messages"),
        ("POST", r"messages"),
        ("GET", r"agents"),
        ("GET", r"agents/[0-9]{2}/output"),
        ("GET", r"agents/(?P<self>[0-9]{2})/transcript"),
        ("POST", r"agents/(?P<self>[0-9]{2})/report"),
        ("GET", r"wait"),
    )
)
# The path of the agents' tools; a caller there speaks for itself.
_TOOLS = "/mcp"
_SAFE = {"GET", "HEAD", "OPTIONS"}
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.IGNORECASE)
_MOST_CALLERS = 4096

Check = Callable[[HTTPConnection], None]


class Admission:
    """ASGI middleware: what any of `checks` refuses comes no further."""

    def __init__(self, app: ASGIApp, checks: Iterable[Check]) -> None:
        self._app = app
        self._checks = tuple(checks)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HTTPConnection(scope)
        try:
            for check in self._checks:
                check(request)
        except MasError as error:
            await refuse(scope, send, problem(error))
        else:
            await self._app(scope, receive, send)


def check_peer(request: HTTPConnection) -> None:
    """Who comes by the owner's socket file must see the machine as we do: out of a sandbox no token is good there."""
    if arrival_of(request.scope).is_elsewhere:
        raise Forbidden(
            "This program does not run beside the server: it is in a sandbox or container, or its process is hidden",
            "connect from a shell of the user who runs the server; else use its address and the token: mas token",
        )


class HostCheck:
    """Refuses names that are not this server's: another site's may lead here (DNS rebinding)."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._hosts = {host.lower() for host in hosts}

    def __call__(self, request: HTTPConnection) -> None:
        if arrival_of(request.scope).entrance is not Entrance.ADDRESS:
            return
        given = ", ".join(request.headers.getlist("host"))
        host = _HOST.fullmatch(given)
        if host is None or host[1].strip("[]").lower() not in self._hosts:
            raise Forbidden(f"The host name {given[:100]!r} is not allowed here", "mas serve --allow-host NAME")


def check_origin(request: HTTPConnection) -> None:
    """A page of another site may not use this server, nor read its answers."""
    origin = request.headers.get("origin")
    if origin is None:
        return
    scheme, _, place = origin.partition("://")
    # What came encrypted has an encrypted page. Where a proxy did that, only it knows.
    schemes = ("https",) if request.scope["scheme"] in ("https", "wss") else ("http", "https")
    # Host has been checked; whatever port or proxy it names, the browser's page has the same.
    if scheme not in schemes or place.lower() != request.headers.get("host", "").lower():
        raise Forbidden(f"Pages from {origin[:100]!r} are not allowed to use this server")


class TokenCheck:
    """Finds the caller: `principal` of the request's state, None if unknown; and `browser`, if it is a page of ours."""

    def __init__(self, access: Access, browsers: Browsers) -> None:
        self._access = access
        self._browsers = browsers

    def __call__(self, request: HTTPConnection) -> None:
        request.state.browser = browser = self._browser(request)
        if browser:
            _check_site(request)
        request.state.principal = OWNER if browser else self._who(request)

    def is_still_good(self, request: HTTPConnection) -> bool:
        """Whether what was shown to come in is good even now; a page stays in until it is signed out."""
        principal: Principal = request.state.principal
        browser: str | None = request.state.browser
        try:
            if browser:
                return self._browsers.knows(browser, shown_host(request))
            return principal is NOBODY or self._who(request) == principal
        except MasError:
            return False

    def _browser(self, request: HTTPConnection) -> str | None:
        bearer = _bearer(request)
        if bearer is not None and bearer.startswith(f"{PAGE_BEARER}."):
            return self._browsers.bearer_of(bearer, shown_host(request))
        target, ticket = ticket_in(request)
        is_shown = ticket != "" and bearer is None
        return self._browsers.spend_ticket(ticket, shown_host(request), target) if is_shown else None

    def _who(self, request: HTTPConnection) -> Principal | None:
        bearer = _bearer(request)
        return self._access.who(bearer) if bearer is not None else None


def _bearer(request: HTTPConnection) -> str | None:
    word, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if word.lower() == "bearer" else None


def _check_site(request: HTTPConnection) -> None:
    """What only our own page has comes from our own page."""
    headers = request.headers
    # A browser names the page's origin with everything that changes something; others have tokens.
    if method_of(request.scope) not in _SAFE and "origin" not in headers:
        raise Forbidden("A request from a signed-in browser needs an Origin header")
    if headers.get("sec-fetch-site") in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
        raise Forbidden("Pages from other servers are not allowed to use this one")


def check_entrance(request: HTTPConnection) -> None:
    """By the agents' socket file come agents, each session by its own network: any other token was stolen."""
    principal: Principal | None = request.state.principal
    arrival = arrival_of(request.scope)
    if arrival.entrance is not Entrance.AGENTS or principal is None:
        return
    if principal.is_owner:
        raise Forbidden("Only the tokens of agents are accepted here", "mas token --session SESSION --agent AGENT")
    if arrival.session and arrival.session != principal.session_id:
        raise Forbidden("The token of an agent of another session is not accepted here")


class Rates:
    """A bucket of requests per caller that fills again with time."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left: dict[str, tuple[float, float]] = {}

    def allow(self, caller: str, now: float) -> bool:
        """Whether there is one more for `caller`; takes it."""
        left, at = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        while len(self._left) >= _MOST_CALLERS:
            del self._left[next(iter(self._left))]
        self._left[caller] = (left - 1 if left >= 1 else left, now)
        return left >= 1


class RateCheck:
    """Refuses too many requests of one caller."""

    def __init__(self, limits: ServerLimits) -> None:
        self._rates = Rates(limits.rate, limits.burst)

    def __call__(self, request: HTTPConnection) -> None:
        caller = f"{client_of(request.scope)} {request.state.principal or ''}"
        if not self._rates.allow(caller, time.monotonic()):
            raise TooMuch("Too many requests; wait a second")


class SignInCheck:
    """Refuses who is not known, but for what is open to everybody; after some time, without a look at why."""

    def __init__(self, limits: ServerLimits) -> None:
        self._failures = Rates(limits.failed_rate, limits.failed_burst)

    def __call__(self, request: HTTPConnection) -> None:
        if request.state.principal is not None:
            return
        if _is_open(request):
            request.state.principal = NOBODY
            return
        if not self._failures.allow(client_of(request.scope), time.monotonic()):
            raise TooMuch("Too many requests without a good token; wait a second")
        raise NotSignedIn("A token is required", "mas token; mas url")


def check_connection(request: HTTPConnection) -> None:
    """The connection is the caller's from here on: refused if it has too many."""
    request.state.recognise(request.state.principal)


def check_scope(request: HTTPConnection) -> None:
    """An agent may use what is listed for agents, of its own session, and nothing else."""
    principal: Principal = request.state.principal
    method, path = method_of(request.scope), request.scope["path"]
    if not (_is_open(request) or principal.is_owner or _is_for_agent(principal, method, path)):
        raise Forbidden(f"The token of {principal} is not allowed to use {method} {path[:100]}")


def _is_open(request: HTTPConnection) -> bool:
    path: str = request.scope["path"]
    if arrival_of(request.scope).entrance is Entrance.AGENTS:
        # An agent has no use for the page, nor for signing in.
        return path == _HEALTH
    return path in _OPEN or path.startswith(ASSETS)


def _is_for_agent(principal: Principal, method: str, path: str) -> bool:
    """Whether a call is one for agents, of this one's session, and about itself where it speaks of one."""
    if path == _TOOLS:
        return True
    own = f"/sessions/{principal.session_id}/"
    if not path.startswith(own):
        return False
    for verb, what in _FOR_AGENTS:
        found = what.fullmatch(path.removeprefix(own)) if verb == method else None
        if found:
            return found.groupdict().get("self", principal.agent) == principal.agent
    return False
