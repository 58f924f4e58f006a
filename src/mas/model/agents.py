"""What agents show, and what was done with them."""

from typing import NamedTuple

from mas.model.views import AgentView


class AgentOutput(NamedTuple):
    """What an agent's terminal shows, or last showed."""

    agent: str
    text: str


class RestartedAgent(NamedTuple):
    """An agent that runs again. Where it could not go on with its conversation, a warning says why."""

    session_id: str
    agent: AgentView
    warnings: tuple[str, ...] = ()


class AgentList(NamedTuple):
    """The agents of a session."""

    agents: tuple[AgentView, ...]


class LogText(NamedTuple):
    """The end of a log; `agent` is None for the session's own."""

    agent: str | None
    text: str


class Variables(NamedTuple):
    """Environment variables."""

    variables: dict[str, str]
