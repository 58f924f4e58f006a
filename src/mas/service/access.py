"""Access: who a token stands for."""

from __future__ import annotations

import hmac

from mas.model.principal import AGENT_TOKEN, OWNER, Principal, named_by
from mas.store.server.secrets import Secrets


class Access:
    """Makes and checks the tokens of callers. Only the two secrets are stored."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

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
        return f"{who}.{mac_of(self._secrets.key(), who)}"

    def who(self, token: str) -> Principal | None:
        """The owner or agent of a token; None if it is not valid."""
        if is_same(token, self._secrets.token()):
            return OWNER
        named = named_by(token)
        if named and named.session_id and named.agent:
            return named if is_same(token, self.agent_token(named.session_id, named.agent)) else None
        return None


def mac_of(key: str, text: str) -> str:
    """What only who knows `key` can make of `text`."""
    return hmac.digest(key.encode(), text.encode("utf-8", "replace"), "sha256").hex()


def is_same(left: str, right: str) -> bool:
    """Whether two secrets are equal, taking as long for any wrong one."""
    return hmac.compare_digest(left.encode("utf-8", "replace"), right.encode("utf-8", "replace"))
