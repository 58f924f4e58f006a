"""What agents show, and what was done with them."""

from typing import NamedTuple

from mas.model.transcript import Source
from mas.model.views import AgentView


class AgentOutput(NamedTuple):
    """What an agent said last, from its `transcript`; else its `screen`, or the end of its `log`: see `source`."""

    agent: str
    text: str
    source: Source = "screen"


class RestartedAgent(NamedTuple):
    """An agent that was restarted. If its conversation could not be resumed, a warning says why."""

    session_id: str
    agent: AgentView
    warnings: tuple[str, ...] = ()


class AgentList(NamedTuple):
    """The agents of a session."""

    agents: tuple[AgentView, ...]


class LogText(NamedTuple):
    """The end of a log; `agent` is null for the session's own log."""

    agent: str | None
    text: str


class Variables(NamedTuple):
    """Environment variables."""

    variables: dict[str, str]
