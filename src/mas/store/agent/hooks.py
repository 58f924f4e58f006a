"""What an agent's program reports by its hooks, recorded with the state that it means.

Runs many times an hour, between two steps of the agent: it touches nothing but the files of that agent, imports little,
and is never an error. It waits only for the answer to a question, if the program's provider wants questions asked in a
hook.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mas.model.launch import Sign, StatePlan
from mas.model.state import AgentState, State, fold
from mas.store.agent.agentlog import AgentLog, Fields, json_object, last_run, plain, said_by
from mas.store.agent.launch_plan import launch_path, read_plan
from mas.store.agent.reports import report_line, send_state
from mas.store.files.descriptors import utc_now

if TYPE_CHECKING:
    from mas.store.agent.answers import Request

_LONGEST_NAME = 64
_PROMPT = 200
# Between two looks for an answer.
_GLANCE = 0.05
# Only the launcher reports that a program has exited.
_MEANT = frozenset((State.STARTING, State.IDLE, State.WORKING, State.BLOCKED, State.ERROR))


class Question(NamedTuple):
    """What the program asks in a hook."""

    log: str
    plan: StatePlan
    event: str
    state: AgentState
    request: Request


def note_hook(session_dir: str, agent: str, name: str, payload: bytes) -> Question | None:
    """Record that the hook `name` of an agent was called, with `payload`, which should be JSON.

    Returns the question that it asks, if its program waits for the answer here: see `hear_answer`.
    """
    body = _parsed(payload)
    try:
        plan = read_plan(launch_path(session_dir, agent)).states
    except (OSError, ValueError):
        # Not an agent that MAS started.
        return None
    signs = {sign.match: sign for sign in plan.hook_map}
    # What a tool of its own means comes first: a question with options is no permission, which has an answer here.
    of_tool = signs.get(f"{name}:{_text(body, 'tool_name').decode()}")
    asks = bool(name) and plan.answer_hook == name and not of_tool
    sign = of_tool or (Sign(match=name, state="blocked") if asks else signs.get(name))
    meant = _meaning(sign, body) if sign else None
    path = os.path.join(session_dir, "logs", f"agent-{agent}.events.jsonl")
    question = None
    try:
        with AgentLog(path) as log:
            called = plain(os.fsencode(name), _LONGEST_NAME)
            log.add({"at": utc_now(), "event": "hook", "name": called, **_details(body)})
            if asks and meant:
                before = _last_reported(log.last_run())
                state = before if before[:3] == meant[:3] else meant
                # Before the question is visible: from then on it can be answered.
                request = _request_of(session_dir, agent, state)
                question = Question(path, plan, name, state, request) if request else None
            now = _note_state(log, meant, plan.sources) if meant else None
    except OSError:
        return None
    if now:
        send_state(session_dir, agent, now)
    return question


def hear_answer(question: Question, say: Callable[[str], None]) -> None:
    """Wait for the answer, pass it to `say` as the program expects it, and record that the program goes on.

    `say` is not called if no answer comes in time, if the agent goes on by itself (a person answered at the terminal),
    or if the program that asks has exited: then its own dialog stays as it is.
    """
    parent = os.getppid()
    waiting = PendingQuestion(question)
    try:
        while not waiting.look(os.getppid() == parent, say):
            time.sleep(_GLANCE)
    finally:
        waiting.close()


class PendingQuestion:
    """A question that waits for its answer while its process checks it. Closing it ends the wait."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._deadline = time.monotonic() + question.plan.answer_timeout
        self._was_blocked = False

    def look(self, is_wanted: bool, say: Callable[[str], None]) -> bool:
        """Whether the wait is over: by an answer, which is passed to `say`, or because none is wanted any more."""
        question = self._question
        word = question.request.answer()
        if not word:
            is_blocked = fold(last_run(question.log), question.plan.sources).state is State.BLOCKED
            goes_on = self._was_blocked and not is_blocked
            if is_wanted and not goes_on and time.monotonic() <= self._deadline:
                self._was_blocked = is_blocked
                return False
            word = question.request.give_up()
        if word:
            decision = {"hookEventName": question.event, "decision": {"behavior": word}}
            say(json.dumps({"hookSpecificOutput": decision}))
            _note_going_on(question)
        return True

    def close(self) -> None:
        self._question.request.close()


def _note_going_on(question: Question) -> None:
    """Record that the program has its answer; it may then report by itself what it does."""
    session_dir, agent = question.log.rsplit("/logs/agent-", 1)
    try:
        with AgentLog(question.log) as log:
            if _last_reported(log.last_run()) != question.state:
                # Another question has come up beside this one, or the program has reported what it does.
                return
            now = _note_state(log, AgentState(State.WORKING, "", "", "hooks", utc_now()), question.plan.sources)
    except OSError:
        return
    if now:
        send_state(session_dir, agent.partition(".")[0], now)


def _request_of(session_dir: str, agent: str, state: AgentState) -> Request | None:
    """Where the answer will come; None if that cannot be, and only a person at the terminal can give it."""
    from mas.store.agent.answers import Request

    try:
        return Request(session_dir, agent, state.at)
    except OSError:
        return None


def _last_reported(run: list[bytes]) -> AgentState:
    """The state that hooks reported last."""
    return fold([line for line in run if said_by("hooks") in line], ("hooks",))


def _note_state(log: AgentLog, meant: AgentState, sources: tuple[str, ...]) -> AgentState | None:
    """Record the state if it differs from the last that hooks reported; returns it if it is the agent's state now."""
    run = log.last_run()
    if _last_reported(run)[:3] == meant[:3]:
        return None
    line = report_line(meant)
    log.add(line)
    after = fold([*run, json_object(line)], sources)
    return after if after.source == "hooks" else None


def _meaning(sign: Sign, body: dict[str, Any]) -> AgentState | None:
    """The state that a hook means."""
    state, kind = sign.state, sign.kind
    if state not in _MEANT:
        return None
    text = ""
    if state in (State.BLOCKED, State.ERROR):
        text = _request(body)
    if state == State.BLOCKED:
        kind = kind or ("permission" if "tool_name" in body else "question")
    return AgentState(State(state), kind, text, "hooks", utc_now())


def _request(body: dict[str, Any]) -> str:
    """What the agent asks for, in a line."""
    if message := _text(body, "message") or _text(body, "error"):
        return plain(message)
    tool, given = _text(body, "tool_name"), body.get("tool_input")
    arguments = given if isinstance(given, dict) else {}
    if isinstance(questions := arguments.get("questions"), list):
        return plain(b" ".join(_text(one, "question") for one in questions if isinstance(one, dict)))
    what = next(filter(None, (_text(arguments, key) for key in ("command", "file_path", "url", "description"))), b"")
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
