"""The tools that agents call, one function each, on the `Mas` protocol. Independent of any SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

from mas.model.errors import BadInput, NotFound
from mas.model.fields import AGENT_ID, Rule
from mas.model.ids import SessionId, shown
from mas.model.message import Box, Until
from mas.model.self_report import LONGEST_REPORT
from mas.model.shapes import read
from mas.model.views import wire
from mas.service.mas import Mas

Answer = dict[str, Any]


class Speaker(NamedTuple):
    """On whose behalf tools are called: an agent of a session, or a person (None)."""

    mas: Mas
    session_id: SessionId
    agent: str | None


class Tool(NamedTuple):
    """One tool: the function that does it, whose docstring is for callers, and what that takes."""

    do: Callable[[Speaker, Any], Answer]
    arguments: type
    only_reads: bool = True
    waits: bool = False

    @property
    def name(self) -> str:
        return self.do.__name__

    @property
    def description(self) -> str:
        return " ".join((self.do.__doc__ or "").split())


def call(name: str, speaker: Speaker, arguments: Mapping[str, Any]) -> Answer:
    """Do what the tool of that name does; whatever is refused raises a `MasError`."""
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    if tool is None:
        raise NotFound(f"No tool {shown(name)} (there are: {', '.join(tool.name for tool in TOOLS)})")
    return tool.do(speaker, read(tool.arguments, arguments, called=name))


def _up_to(most: int, about: str) -> Rule:
    return Rule(f"a whole number from 1 to {most}", about, least=1, most=most)


class _Sending(NamedTuple):
    target: Annotated[
        str, Rule(about="an agent id (two digits, such as 21), a unit's name, `managers`, `all` or `person`")
    ]
    message: Annotated[str, Rule(about="the text, up to 1 MiB")]


def send_message(speaker: Speaker, given: _Sending) -> Answer:
    """Send a message to agents of your team. It is typed to each agent as soon as that agent is ready for input.

    You may write to your own unit and its manager. Managers may also write to the meta manager, who may write to
    managers. A team can have other rules; an error names the rule that applies.
    """
    sent = speaker.mas.send(speaker.session_id, given.target, given.message, speaker.agent)
    return {"id": sent.id, "agents": list(sent.agents), "deliveries": wire(sent.deliveries)}


class _Inbox(NamedTuple):
    limit: Annotated[int, _up_to(100, "default: 20")] = 20


def read_inbox(speaker: Speaker, given: _Inbox) -> Answer:
    """Read the messages that were sent to you, newest last."""
    # A person has no inbox: all there is.
    box = Box.INBOX if speaker.agent else Box.ALL
    found = speaker.mas.messages(speaker.session_id, speaker.agent, given.limit, 0, box)
    return {
        "messages": [
            {
                "id": message.id,
                "from": message.sender or "person",
                "target": message.target,
                "message": message.message,
                "createdAt": message.created_at,
            }
            for message in found.messages
        ],
        "total": found.total,
    }


class _Nothing(NamedTuple):
    """No arguments."""


def list_team(speaker: Speaker, given: _Nothing) -> Answer:
    """List the agents of your team: their units, roles and states, what they are doing, and which agent you are."""
    names = ("id", "unit", "role", "provider", "state", "stateText", "report")
    views = map(wire, speaker.mas.agents(speaker.session_id))
    return {"you": speaker.agent or "person", "agents": [{name: view[name] for name in names} for view in views]}


class _Screen(NamedTuple):
    agent: Annotated[str, AGENT_ID._replace(about="an agent id, such as 21")]
    lines: Annotated[int, _up_to(1000, "default: 50")] = 50
    screen: Annotated[bool, Rule(about="true: its screen in any case")] = False


def read_output(speaker: Speaker, given: _Screen) -> Answer:
    """Read what another agent said last, or its screen if that is not recorded or the agent waits for a decision; in
    the result, `source` is `transcript`, `screen` or `log`. You may read agents that you may write to.
    """
    found = speaker.mas.output(speaker.session_id, given.agent, given.lines, speaker.agent, given.screen)
    return {"agent": found.agent, "text": found.text, "source": found.source}


class _Wait(NamedTuple):
    agent: Annotated[str | None, AGENT_ID._replace(about="an agent id (default: all)")] = None
    until: Annotated[Until, Rule(about="default: idle")] = "idle"
    # Programs give up on a tool that takes longer.
    timeout: Annotated[int, _up_to(600, "default: 30 s")] = 30


def wait_for(speaker: Speaker, given: _Wait) -> Answer:
    """Wait until an agent, or all agents, are `idle`, have `replied` to you, have `answered` (replied or are idle),
    are `blocked` (waiting for a decision) or have `exited`. In the result, `end` is `reached`, `timeout`, `blocked`
    or `exited`, and `reply` is the message that you got.
    """
    target, timeout = given.agent or "all", float(given.timeout)
    waited: Answer = wire(speaker.mas.wait(speaker.session_id, target, given.until, timeout, speaker.agent))
    return waited


class _Report(NamedTuple):
    text: Annotated[
        str, Rule(f"1 to {LONGEST_REPORT} characters", "such as: reviewing the API", longest=LONGEST_REPORT)
    ]


def report_status(speaker: Speaker, given: _Report) -> Answer:
    """Report in one line what you are doing. People and other agents see it next to your name."""
    if speaker.agent is None:
        raise BadInput("Only agents can report a status, and you are not running as one", "mas mcp --as AGENT")
    told = speaker.mas.report(speaker.session_id, speaker.agent, given.text)
    return {"agent": told.agent, "text": told.text, "at": told.at}


TOOLS = (
    Tool(send_message, _Sending, only_reads=False),
    Tool(read_inbox, _Inbox),
    Tool(list_team, _Nothing),
    Tool(read_output, _Screen),
    Tool(wait_for, _Wait, waits=True),
    Tool(report_status, _Report, only_reads=False),
)
