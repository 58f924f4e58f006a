"""The tools that agents call, one function each, on the `Mas` protocol. Independent of any SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mas.model.errors import BadInput, NotFound
from mas.model.ids import SessionId, parse_agent_id, shown
from mas.model.message import UNTIL, Box
from mas.model.views import wire
from mas.service.mas import Mas

Arguments = Mapping[str, Any]
Answer = dict[str, Any]
_MOST_MESSAGES = 100
_MOST_LINES = 1000
# Programs give up on a tool that takes longer.
_LONGEST_WAIT = 600


class Speaker(NamedTuple):
    """On whose behalf tools are called: an agent of a session, or a person (None)."""

    mas: Mas
    session_id: SessionId
    agent: str | None


class Tool(NamedTuple):
    """One tool: its description for callers, and what it does."""

    name: str
    description: str
    properties: dict[str, dict[str, Any]]
    required: tuple[str, ...]
    only_reads: bool
    do: Callable[[Speaker, Arguments], Answer]
    waits: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }


def call(name: str, speaker: Speaker, arguments: Arguments) -> Answer:
    """Do what the tool of that name does; whatever is refused raises a `MasError`."""
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    if tool is None:
        raise NotFound(f"No tool {shown(name)} (there are: {', '.join(tool.name for tool in TOOLS)})")
    for given in arguments:
        if given not in tool.properties:
            raise BadInput(f"{name} has no argument {shown(given)} (it has: {', '.join(tool.properties) or 'nothing'})")
    for needed in tool.required:
        if arguments.get(needed) is None:
            raise BadInput(f"{name} needs {needed}")
    return tool.do(speaker, arguments)


def _send_message(speaker: Speaker, arguments: Arguments) -> Answer:
    target, message = _text(arguments, "target"), _text(arguments, "message")
    sent = speaker.mas.send(speaker.session_id, target, message, speaker.agent)
    return {"id": sent.id, "agents": list(sent.agents), "deliveries": wire(sent.deliveries)}


def _read_inbox(speaker: Speaker, arguments: Arguments) -> Answer:
    limit = _number(arguments, "limit", 20, _MOST_MESSAGES)
    # A person has no inbox: all there is.
    box = Box.INBOX if speaker.agent else Box.ALL
    found = speaker.mas.messages(speaker.session_id, speaker.agent, limit, 0, box)
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


def _list_team(speaker: Speaker, arguments: Arguments) -> Answer:
    names = ("id", "unit", "role", "provider", "state", "stateText", "report")
    views = map(wire, speaker.mas.agents(speaker.session_id))
    return {"you": speaker.agent or "person", "agents": [{name: view[name] for name in names} for view in views]}


def _read_output(speaker: Speaker, arguments: Arguments) -> Answer:
    agent = parse_agent_id(_text(arguments, "agent"))
    lines = _number(arguments, "lines", 50, _MOST_LINES)
    found = speaker.mas.output(speaker.session_id, agent, lines, speaker.agent)
    return {"agent": found.agent, "text": found.text}


def _wait_for(speaker: Speaker, arguments: Arguments) -> Answer:
    agent = arguments.get("agent")
    target = "all" if agent is None else parse_agent_id(_text(arguments, "agent"))
    until = _text(arguments, "until") if arguments.get("until") is not None else "idle"
    if until not in UNTIL:
        raise BadInput(f"until is {shown(until)}; it can be: {', '.join(UNTIL)}")
    timeout = _number(arguments, "timeout", 30, _LONGEST_WAIT)
    waited: Answer = wire(speaker.mas.wait(speaker.session_id, target, until, float(timeout), speaker.agent))
    return waited


def _report_status(speaker: Speaker, arguments: Arguments) -> Answer:
    if speaker.agent is None:
        raise BadInput("Only agents can report a status, and you are not running as one", "mas mcp --as AGENT")
    told = speaker.mas.report(speaker.session_id, speaker.agent, _text(arguments, "text"))
    return {"agent": told.agent, "text": told.text, "at": told.at}


def _text(arguments: Arguments, name: str) -> str:
    value = arguments[name]
    if not isinstance(value, str):
        raise BadInput(f"{name} must be text")
    return value


def _number(arguments: Arguments, name: str, usual: int, most: int) -> int:
    value = arguments.get(name)
    if value is None:
        return usual
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise BadInput(f"{name} must be a whole number from 1 to {most}")
    return value


TOOLS = (
    Tool(
        "send_message",
        "Send a message to agents of your team. It is typed to each agent as soon as that agent is ready for input. "
        "You may write to your own unit and its manager. Managers may also write to the meta manager, who may write "
        "to managers. A team can have other rules; an error names the rule that applies.",
        {
            "target": {
                "type": "string",
                "description": "an agent id (two digits, such as 21), a unit's name, `managers`, `all` or `person`",
            },
            "message": {"type": "string", "description": "the text, up to 1 MiB"},
        },
        ("target", "message"),
        False,
        _send_message,
    ),
    Tool(
        "read_inbox",
        "Read the messages that were sent to you, newest last.",
        {"limit": {"type": "integer", "minimum": 1, "maximum": _MOST_MESSAGES, "description": "default: 20"}},
        (),
        True,
        _read_inbox,
    ),
    Tool(
        "list_team",
        "List the agents of your team: their units, roles and states, what they are doing, and which agent you are.",
        {},
        (),
        True,
        _list_team,
    ),
    Tool(
        "read_output",
        "Read another agent's screen. You may read the screens of agents that you may write to.",
        {
            "agent": {"type": "string", "pattern": "^[0-9]{2}$", "description": "an agent id, such as 21"},
            "lines": {"type": "integer", "minimum": 1, "maximum": _MOST_LINES, "description": "default: 50"},
        },
        ("agent",),
        True,
        _read_output,
    ),
    Tool(
        "wait_for",
        "Wait until an agent, or all agents, are `idle`, have `replied` to you, have `answered` (replied or are idle), "
        "are `blocked` (waiting for a decision) or have `exited`. In the result, `end` is `reached`, `timeout`, "
        "`blocked` or `exited`, and `reply` is the message that you got.",
        {
            "agent": {"type": "string", "pattern": "^[0-9]{2}$", "description": "an agent id (default: all)"},
            "until": {"type": "string", "enum": list(UNTIL), "description": "default: idle"},
            "timeout": {"type": "integer", "minimum": 1, "maximum": _LONGEST_WAIT, "description": "default: 30 s"},
        },
        (),
        True,
        _wait_for,
        waits=True,
    ),
    Tool(
        "report_status",
        "Report in one line what you are doing. People and other agents see it next to your name.",
        {"text": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "such as: reviewing the API"}},
        ("text",),
        False,
        _report_status,
    ),
)
