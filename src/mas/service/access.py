"""Access: who a token, a cookie or a one-time code stands for."""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from threading import Lock

from mas.model.principal import AGENT_TOKEN, OWNER, Principal, named_by
from mas.store.server.secrets import Secrets

COOKIE_LIFE = 30 * 24 * 3600
CODE_LIFE = 5 * 60
_MOST_CODES = 64


class Access:
    """Makes and checks the tokens, cookies and codes of callers. Only the two secrets are stored."""

    def __init__(self, secrets: Secrets, clock: Callable[[], float], elapsed: Callable[[], float]) -> None:
        """`clock` is the time of day, for cookies, which outlive a server; `elapsed` is a monotonic clock."""
        self._secrets = secrets
        self._clock = clock
        self._elapsed = elapsed
        # Until when each code is good, and with which token.
        self._codes: dict[str, tuple[float, str]] = {}
        self._lock = Lock()

    def make_secrets(self) -> None:
        """Create the secrets that are missing; from here on callers only read them."""
        self._secrets.token()
        self._secrets.key()

    def owner_token(self) -> str:
        return self._secrets.token()

    def renew_owner_token(self) -> str:
        """A new owner's token: the old one, and every browser signed in with it, is out. Agents stay in."""
        return self._secrets.renew_token()

    def agent_token(self, session_id: str, agent: str) -> str:
        """A token good for one agent of one session only."""
        who = f"{AGENT_TOKEN}.{session_id}.{agent}"
        return f"{who}.{_mac(self._secrets.key(), who)}"

    def who(self, token: str) -> Principal | None:
        """The owner or agent of a token; None if it is not valid."""
        if _same(token, self._secrets.token()):
            return OWNER
        named = named_by(token)
        if named and named.session_id and named.agent:
            return named if _same(token, self.agent_token(named.session_id, named.agent)) else None
        return None

    def cookie(self) -> str:
        """What a signed-in browser keeps: good for a while, and no longer than the owner's token."""
        until = str(int(self._clock()) + COOKIE_LIFE)
        return f"{until}.{_mac(self._secrets.token(), f'cookie {until}')}"

    def knows_cookie(self, cookie: str) -> bool:
        until, _, mac = cookie.partition(".")
        return (
            until.isascii()
            and until.isdigit()
            and _same(mac, _mac(self._secrets.token(), f"cookie {until}"))
            and int(until) > self._clock()
        )

    def new_code(self) -> str:
        """A code that signs a browser in once, within minutes."""
        code = os.urandom(24).hex()
        now = self._elapsed()
        with self._lock:
            self._codes = {kept: life for kept, life in self._codes.items() if life[0] > now}
            while len(self._codes) >= _MOST_CODES:
                del self._codes[next(iter(self._codes))]
            self._codes[code] = (now + CODE_LIFE, self._secrets.token())
        return code

    def spend_code(self, code: str) -> bool:
        """Whether the code was good; it is not any more."""
        with self._lock:
            known = next((kept for kept in self._codes if _same(kept, code)), None)
            until, token = self._codes.pop(known) if known is not None else (0.0, "")
            return until > self._elapsed() and token == self._secrets.token()


def _mac(key: str, text: str) -> str:
    return hmac.digest(key.encode(), text.encode(), "sha256").hex()


def _same(left: str, right: str) -> bool:
    """Whether two secrets are equal, taking as long for any wrong one."""
    return hmac.compare_digest(left.encode("utf-8", "replace"), right.encode("utf-8", "replace"))
