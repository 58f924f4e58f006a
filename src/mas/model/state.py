"""States: what an agent is doing, computed from the lines of its event file."""

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

NO_REPORTS = "running; reports no state"
LAUNCHED = "launched"
SOURCES = ("osc7501", "hooks", "title", "foreground", "screen")
# Who types to an agent reports by this name what keeps it from that: the program's input line is not there.
COMPOSER = "composer"


class State(StrEnum):
    """How an agent can be."""

    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    BLOCKED = "blocked"
    ERROR = "error"
    EXITED = "exited"
    UNKNOWN = "unknown"


_REPORTABLE = frozenset((State.STARTING, State.IDLE, State.WORKING, State.BLOCKED, State.ERROR))


# What a program may report while something other than its input line is on the screen.
_AT_REST = frozenset((State.IDLE, State.ERROR))


class AgentState(NamedTuple):
    """An agent's state, since when, and who says so.

    `kind` is what a blocked agent is waiting for (permission, question, auth, trust, …), `text` what it reports. The
    source is one of `SOURCES`, or composer, launcher, tmux, none.
    """

    state: State
    kind: str = ""
    text: str = ""
    source: str = "none"
    at: str = ""

    @property
    def gone(self) -> bool:
        """Whether the agent has ended; it is in error if a limit ended it."""
        return self.state is State.EXITED or (self.state is State.ERROR and self.source == "launcher")

    @property
    def words(self) -> str:
        """Kind and text as people read them."""
        return ": ".join(word for word in (self.kind, self.text) if word)


def fold(lines: Iterable[str | bytes], sources: tuple[str, ...]) -> AgentState:
    """The agent's state, from the lines of its last run in its event file.

    If the agent has exited, that decides. Otherwise the first of `sources` that has reported a state decides, by its
    last report; a screen that reports `starting` withdraws its earlier report. If no source has reported, the launcher
    may have recorded that it waited in vain. An idle program without its input line is blocked, until another source
    has something new to report. Damaged lines, which a killed writer leaves, are skipped.
    """
    begun = ""
    reports: dict[str, AgentState] = {}
    ended: AgentState | None = None
    for line in lines:
        event = _parsed(line)
        if event["event"] == "start":
            begun, reports, ended = _text(event, "at"), {}, None
        elif event["event"] == "exit":
            # One that its launcher is about to run again is not gone.
            by_limit = State.ERROR if event.get("limit") else State.EXITED
            state = State.STARTING if event.get("again") else by_limit
            ended = AgentState(state, "", _how(event), "launcher", _text(event, "at"))
        elif event["event"] == "state" and (report := _reported(event)):
            # The last report comes last.
            reports.pop(report.source, None)
            reports[report.source] = report
    if ended:
        return ended
    if "screen" in reports and reports["screen"].state is State.STARTING:
        del reports["screen"]
    decided = next((reports[source] for source in sources if source in reports), None)
    if decided is None:
        if not sources:
            return AgentState(State.UNKNOWN, "", NO_REPORTS, "none", begun)
        decided = reports.get("launcher") or AgentState(State.STARTING, "", LAUNCHED, "launcher", begun)
    return reports[COMPOSER] if _lacks_input(decided, reports) else decided


def _lacks_input(decided: AgentState, reports: dict[str, AgentState]) -> bool:
    """Whether a program at rest was seen without its input line since it reported that it is."""
    order = list(reports)
    return (
        COMPOSER in reports
        and reports[COMPOSER].state is State.BLOCKED
        and decided.state in _AT_REST
        and order.index(decided.source) < order.index(COMPOSER)
    )


def _parsed(line: str | bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else {"event": ""}


def _reported(event: dict[str, Any]) -> AgentState | None:
    """The state that a line reports; only the launcher may report that it is unknown."""
    state, source = _text(event, "state"), _text(event, "source")
    if state not in (_REPORTABLE if source != "launcher" else (State.UNKNOWN,)):
        return None
    return AgentState(State(state), _text(event, "kind"), _text(event, "text"), source, _text(event, "at"))


def _text(event: dict[str, Any], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _how(event: dict[str, Any]) -> str:
    """How an agent ended, as its launcher says it to the person at the pane."""
    if reason := _text(event, "reason"):
        return reason
    code = event.get("status")
    if not isinstance(code, int):
        return "ended"
    return f"signal {-code}" if code < 0 else f"exit status {code}"
