"""Hook: what an agent's program tells of itself by calling `mas hook`, written down with the state it means.

Runs inside the agent's pane, many times an hour, between two steps of the agent: it touches nothing but the files of
that agent, imports little, waits for nobody, and is never an error.
"""

from __future__ import annotations

import json
import os
from typing import Any

from mas.model.ids import is_agent_id, is_session_id
from mas.model.state import AgentState, State, fold
from mas.store.agentlog import AgentLog, Fields, json_object, plain, said_by, stamp
from mas.store.eventlog import append_event
from mas.store.launch import launch_path, read_launch

_LONGEST_NAME = 64
_PROMPT = 200
# That a program ends is its launcher's to say.
_MEANT = frozenset((State.STARTING, State.IDLE, State.WORKING, State.BLOCKED, State.ERROR))


def note_hook(session_dir: str, agent: str, name: str, payload: bytes) -> None:
    """Note that the hook `name` of an agent was called, with `payload`: JSON, if it is any."""
    if not os.path.isabs(session_dir) or not is_session_id(os.path.basename(session_dir)) or not is_agent_id(agent):
        return
    body = _parsed(payload)
    try:
        options = read_launch(launch_path(session_dir, agent))[2]
    except (OSError, ValueError):
        # Nobody whom MAS has started.
        return
    meant = _meaning(options.get("hook_map", ""), name, body)
    sources = tuple(options.get("sources", "").split(","))
    try:
        with AgentLog(os.path.join(session_dir, "logs", f"agent-{agent}.events.jsonl")) as log:
            log.add({"at": stamp(), "event": "hook", "name": plain(os.fsencode(name), _LONGEST_NAME), **_details(body)})
            now = _note_state(log, meant, sources) if meant else None
    except OSError:
        return
    if now:
        _tell(session_dir, agent, now)


def _note_state(log: AgentLog, meant: AgentState, sources: tuple[str, ...]) -> AgentState | None:
    """Write the state down, if it is another than hooks told last; answers it if it is the agent's state now."""
    run = log.last_run()
    before = fold([line for line in run if said_by("hooks") in line], ("hooks",))
    if before[:3] == meant[:3]:
        return None
    line: Fields = {"at": meant.at, "event": "state", "source": "hooks", "state": meant.state}
    line |= {"kind": meant.kind, "text": meant.text}
    log.add(line)
    after = fold([*run, json_object(line)], sources)
    return after if after.source == "hooks" else None


def _tell(session_dir: str, agent: str, state: AgentState) -> None:
    """Add the agent's new state to what happens in the workspace."""
    sessions, session_id = os.path.split(session_dir)
    told: Fields = {"at": state.at, "event": "agent", "sessionId": session_id, "agent": agent}
    told |= {"state": state.state, "stateText": state.words, "stateSource": state.source, "kind": state.kind}
    append_event(os.path.join(sessions, ".mas", "events"), json_object(told))


def _meaning(hook_map: str, name: str, body: dict[str, Any]) -> AgentState | None:
    """The state that a hook means: lines of the map are `name=state` or `name=state:kind`."""
    known = dict(line.split("=", 1) for line in hook_map.split("\n") if "=" in line)
    state, _, kind = known.get(name, "").partition(":")
    if state not in _MEANT:
        return None
    text = ""
    if state in (State.BLOCKED, State.ERROR):
        text = _request(body)
    if state == State.BLOCKED:
        kind = kind or ("permission" if "tool_name" in body else "question")
    return AgentState(State(state), kind, text, "hooks", stamp())


def _request(body: dict[str, Any]) -> str:
    """What the agent asks for, in a line."""
    if message := _text(body, "message") or _text(body, "error"):
        return plain(message)
    tool, given = _text(body, "tool_name"), body.get("tool_input")
    told = given if isinstance(given, dict) else {}
    what = next(filter(None, (_text(told, key) for key in ("command", "file_path", "url", "description"))), b"")
    return plain(b"approve " + tool + (b": " + what if what else b"")) if tool else ""


def _details(body: dict[str, Any]) -> Fields:
    """What is worth keeping of a payload: enough to know a message again, the tool, the conversation."""
    kept = (
        ("prompt", "prompt", _PROMPT),
        ("tool", "tool_name", _LONGEST_NAME),
        ("session", "session_id", _LONGEST_NAME),
    )
    return {name: plain(_text(body, key), most) for name, key, most in kept if _text(body, key)}


def _text(body: dict[str, Any], key: str) -> bytes:
    value = body.get(key)
    # Half of a surrogate pair is valid JSON and no text.
    return value.encode("utf-8", "replace") if isinstance(value, str) else b""


def _parsed(payload: bytes) -> dict[str, Any]:
    try:
        body = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
