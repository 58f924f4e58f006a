"""Browsers: a page and its server prove themselves to each other before the page sends anything else.

Both know a secret that is never sent: at first the code of a sign-in link, in the part of an address that browsers
keep to themselves; from then on the browser's key, which is handed over once, sealed with that code. The server keeps
no keys: it makes each again of the key's name, the address that the browser shows, and its own. So a program that took
the server's port cannot prove itself, not even with the help of the same server at another port; and the server can
also prove itself to a browser that it has signed out.

A page that has proven itself gets a bearer, good for minutes and for this run of the server; and, for what a browser
opens without headers, tickets, each good once for one address.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, NamedTuple

from mas.model.browser import PAGE_BEARER, Greeting, PageAccess, PageKey, Place
from mas.model.errors import Disk, NotSignedIn
from mas.service.access import is_same, mac_of
from mas.store.server.browsers import BrowserFile, SignedIn
from mas.store.server.secrets import Secrets

CODE_LIFE = 5 * 60
BEARER_LIFE = 15 * 60
TICKET_LIFE = 30
UNUSED_LIFE = 30 * 24 * 3600
MOST_BROWSERS = 64
_CHALLENGE_LIFE = 60
_MOST_CODES = 64
_MOST_TICKETS = 1024
# How exactly it is recorded when a browser was last used: each record is a write.
_USED_WITHIN = 3600
_NAME = 32


class _Code(NamedTuple):
    text: str
    until: float
    token: str


class _Ticket(NamedTuple):
    browser: str
    shown: str
    target: str
    until: float


class Hello(NamedTuple):
    """What a page shows: the key that it has, its own nonce and the server's challenge, and the proof made of them."""

    key: str
    nonce: str
    challenge: str
    proof: str


class Browsers:
    """Signs browsers in and out, and knows the bearers and tickets of those that are in."""

    def __init__(
        self, secrets: Secrets, file: BrowserFile, clock: Callable[[], float], elapsed: Callable[[], float]
    ) -> None:
        """`clock` is the time of day, for keys, which outlive a server; `elapsed` is a monotonic clock."""
        self._secrets = secrets
        self._file = file
        self._clock = clock
        self._elapsed = elapsed
        self._run = os.urandom(32).hex()
        self._codes: dict[str, _Code] = {}
        self._tickets: dict[str, _Ticket] = {}
        self._lock = Lock()

    def new_code(self) -> str:
        """A code that signs a browser in once, within minutes."""
        code = os.urandom(24).hex()
        now = self._elapsed()
        with self._lock:
            self._codes = {name: kept for name, kept in self._codes.items() if kept.until > now}
            _drop_oldest(self._codes, _MOST_CODES)
            self._codes[name_of(code)] = _Code(code, now + CODE_LIFE, self._secrets.token())
        return code

    def greet(self, place: Place, nonce: str, keys: list[str]) -> Greeting:
        """Prove to a page that this is the server which it signed in to, by any of its keys."""
        until = int(self._elapsed()) + _CHALLENGE_LIFE
        challenge = f"{until}.{os.urandom(16).hex()}"
        challenge = f"{challenge}.{mac_of(self._run, f'challenge {challenge}')}"
        words = f"{place.shown} {nonce} {challenge}"
        return Greeting(challenge, tuple(mac_of(self._secret(key, place), f"server {key} {words}") for key in keys))

    def admit(self, place: Place, hello: Hello) -> PageAccess:
        """What a page that proves itself may use from now on; `NotSignedIn` if it does not."""
        key, nonce, challenge, proof = hello
        secret = self._secret(key, place)
        wanted = mac_of(secret, f"page {key} {place.shown} {nonce} {challenge}")
        if not (self._is_recent(challenge) and is_same(proof, wanted)):
            raise NotSignedIn("This browser is not signed in", "mas url")
        with self._lock:
            new = None
            if self._codes.pop(key, None):
                new = self._sign_in(place, secret, challenge)
            elif not self._use(key, place.shown):
                raise NotSignedIn("This browser was signed out", "mas url")
        name = new.name if new else key
        until = int(self._elapsed()) + BEARER_LIFE
        bearer = f"{PAGE_BEARER}.{name}.{until}"
        return PageAccess(f"{bearer}.{mac_of(self._run, f'{bearer} {place.shown}')}", BEARER_LIFE, new)

    def bearer_of(self, bearer: str, shown: str) -> str | None:
        """The signed-in browser that a bearer was made for, at the address that it was made for."""
        words, _, mac = bearer.rpartition(".")
        if not is_same(mac, mac_of(self._run, f"{words} {shown}")):
            return None
        _, name, until = words.split(".")
        return name if int(until) > self._elapsed() and self.knows(name, shown) else None

    def knows(self, name: str, shown: str) -> bool:
        """Whether a browser is signed in at that address, even now."""
        found = self._file.load().get(name)
        return found is not None and self._is_in(found) and found.shown == shown

    def end(self, name: str) -> None:
        """Sign a browser out: its key, bearers and tickets are worth nothing from this moment on."""
        with self._lock:
            self._file.save({one: kept for one, kept in self._file.load().items() if one != name})

    def new_ticket(self, name: str, shown: str, target: str) -> str:
        """Opens `target`, a path with its query, once."""
        ticket = os.urandom(24).hex()
        with self._lock:
            _drop_oldest(self._tickets, _MOST_TICKETS)
            self._tickets[ticket] = _Ticket(name, shown, target, self._elapsed() + TICKET_LIFE)
        return ticket

    def spend_ticket(self, ticket: str, shown: str, target: str) -> str | None:
        """The browser that a ticket was made for, if it opens `target`. It opens nothing any more."""
        with self._lock:
            found = self._tickets.pop(ticket, None)
        is_good = found and (found.shown, found.target) == (shown, target) and found.until > self._elapsed()
        return found.browser if found and is_good and self.knows(found.browser, shown) else None

    def _secret(self, key: str, place: Place) -> str:
        """What only this server and the owner of `key` know: a code that is still good, or the key itself."""
        code = self._codes.get(key)
        if code and code.until > self._elapsed() and code.token == self._secrets.token():
            return code.text
        return mac_of(self._secrets.key(), f"browser {key} {place.shown} {place.listens}")

    def _is_recent(self, challenge: str) -> bool:
        words, _, mac = challenge.rpartition(".")
        return is_same(mac, mac_of(self._run, f"challenge {words}")) and int(words.split(".")[0]) > self._elapsed()

    def _sign_in(self, place: Place, code: str, challenge: str) -> PageKey:
        name = os.urandom(_NAME // 2).hex()
        seal = int(mac_of(code, f"seal {challenge}"), 16)
        sealed = f"{int(self._secret(name, place), 16) ^ seal:064x}"
        self._keep(SignedIn(name, place.shown, self._mark(name, place.shown), int(self._clock())))
        return PageKey(name, sealed)

    def _use(self, name: str, shown: str) -> bool:
        """Whether the browser is signed in; it is in use."""
        found = self._file.load().get(name)
        if found is None or not self.knows(name, shown):
            return False
        now = int(self._clock())
        if abs(now - found.used_at) > _USED_WITHIN:
            # A full disk keeps no page out.
            with suppress(Disk):
                self._keep(found._replace(used_at=now))
        return True

    def _keep(self, browser: SignedIn) -> None:
        """Record a browser as the one used last; those that are out, and the one not used for longest, make room."""
        kept = {name: one for name, one in self._file.load().items() if self._is_in(one) and name != browser.name}
        _drop_oldest(kept, MOST_BROWSERS)
        self._file.save(kept | {browser.name: browser})

    def _is_in(self, browser: SignedIn) -> bool:
        is_used = browser.used_at + UNUSED_LIFE > self._clock()
        return is_used and is_same(browser.mac, self._mark(browser.name, browser.shown))

    def _mark(self, name: str, shown: str) -> str:
        """A new token ends every browser, and nothing that is not made with it begins one."""
        return mac_of(self._secrets.token(), f"browser {name} {shown}")


def name_of(code: str) -> str:
    """How a page names a code without showing it."""
    return mac_of(code, "name")[:_NAME]


def _drop_oldest(things: dict[str, Any], most: int) -> None:
    """Make room for one more."""
    while len(things) >= most:
        del things[next(iter(things))]
