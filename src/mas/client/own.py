"""The part of the product that an agent's token allows: its own session, as itself."""

from __future__ import annotations

from mas.client.remote import RemoteMas
from mas.model.errors import Forbidden, NoSession
from mas.model.ids import SessionId, find_session
from mas.model.principal import Principal


class OwnSession(RemoteMas):
    """`RemoteMas` for one agent. There is one session only; what else it asks for, the server refuses."""

    def __init__(
        self, url: str, token: str | None, agent: Principal, certificate: str | None = None, ca: str | None = None
    ) -> None:
        super().__init__(url, token, certificate, ca=ca)
        self._agent = agent

    def resolve(self, reference: str) -> SessionId:
        try:
            return find_session(reference, ((self.only_active(), None),))
        except NoSession:
            raise Forbidden(
                f"The token of agent {self._agent.agent} works only for its own session, given by its id",
                "leave the session out: mas send 21 …",
            ) from None

    def only_active(self) -> SessionId:
        return SessionId(self._agent.session_id or "")
