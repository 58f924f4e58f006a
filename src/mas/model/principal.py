"""Who is calling: the owner of the workspace, or one agent of one session."""

from typing import NamedTuple

from mas.model.ids import is_agent_id, is_session_id

# The word before an agent's token; no secret.
AGENT_TOKEN = "mas-agent"  # noqa: S105


class Principal(NamedTuple):
    """The caller: the owner, or the agent that it names."""

    session_id: str | None = None
    agent: str | None = None

    @property
    def is_owner(self) -> bool:
        return self.session_id is None

    def __str__(self) -> str:
        return "owner" if self.is_owner else f"agent {self.agent} of {self.session_id}"


OWNER = Principal()
NOBODY = Principal("", "")


def named_by(token: str) -> Principal | None:
    """The agent that a token names. Only a server can check whether the token is genuine."""
    word, _, rest = token.partition(".")
    session_id, _, rest = rest.partition(".")
    agent, _, _ = rest.partition(".")
    is_agents = word == AGENT_TOKEN and is_session_id(session_id) and is_agent_id(agent)
    return Principal(session_id, agent) if is_agents else None
