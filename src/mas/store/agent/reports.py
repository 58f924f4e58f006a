"""Reports of an agent's state by others than its launcher: a line in its event file, and an event of the workspace."""

from __future__ import annotations

import os

from mas.model.state import COMPOSER, AgentState, State, fold
from mas.store.agent.agentlog import AgentLog, Fields, json_object
from mas.store.files.descriptors import utc_now
from mas.store.workspace.eventlog import append_event


def report_line(state: AgentState) -> Fields:
    """The line that reports a state."""
    line: Fields = {"at": state.at, "event": "state", "source": state.source, "state": state.state}
    return line | {"kind": state.kind, "text": state.text}


def send_state(session_dir: str, agent: str, state: AgentState) -> None:
    """Add the agent's new state to what happens in the workspace."""
    sessions, session_id = os.path.split(session_dir)
    event: Fields = {"at": state.at, "event": "agent", "sessionId": session_id, "agent": agent}
    event |= {"state": state.state, "stateText": state.words, "stateSource": state.source, "kind": state.kind}
    append_event(os.path.join(sessions, ".mas", "events"), json_object(event))


def report_composer(session_dir: str, agent: str, sources: tuple[str, ...], kind: str = "", text: str = "") -> None:
    """Report that the program's input line is not there, and what is; without a `kind`, that it is back.

    Only news is recorded. A file that cannot be written keeps nothing from being typed, or from not being typed.
    """
    path = os.path.join(session_dir, "logs", f"agent-{agent}.events.jsonl")
    state = AgentState(State.BLOCKED if kind else State.STARTING, kind, text, COMPOSER, utc_now())
    try:
        with AgentLog(path) as log:
            run = log.last_run()
            before = fold(run, sources)
            if before[:4] == state[:4] or not (kind or before.source == COMPOSER):
                return
            line = report_line(state)
            log.add(line)
    except OSError:
        return
    send_state(session_dir, agent, fold([*run, json_object(line)], sources))
