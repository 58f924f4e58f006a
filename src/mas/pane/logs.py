"""The launcher's logs: the agent's output, and what happened to the agent.

A full disk must not stop an agent: what cannot be written is counted, and the count is logged once there is room again.
"""

from __future__ import annotations

import fcntl
import os
import time

from mas.pane.cast import Cast
from mas.pane.home import Home
from mas.store.agent.agentlog import AgentLog, Fields, has_called, has_spoken, json_object
from mas.store.files.descriptors import DIRECTORY, SAFE, utc_now

_LARGEST_LOG = 32 << 20
# What `show` prints for an agent whose program reports nothing, and for one that has not reported yet.
_RUNNING = "running; reports no state"
_LAUNCHED = "launched"
# Events kept until there is room for them, and how long to wait before the next look.
_MOST_UNWRITTEN = 1000
_NEXT_TRY = 1.0
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | SAFE


def how_ended(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit status {code}"


class AgentLogs:
    """The logs of one agent: `agent-{id}.log` (bytes as they came), `.cast` (the same with times), `.events.jsonl`.

    What the whole workspace should know of goes to its event log too.
    """

    def __init__(self, session_dir: str, agent: str) -> None:
        logs = _held(os.path.join(session_dir, "logs"))
        self._log = os.path.join(logs, f"agent-{agent}.log")
        self._events = os.path.join(logs, f"agent-{agent}.events.jsonl")
        sessions, self._session_id = os.path.split(session_dir)
        self._workspace = os.path.join(sessions, ".mas", "events")
        self.home = Home(session_dir)
        self._agent = agent
        self._fd = -1
        self._is_ahead = False
        self._size = 0
        self._lost = 0
        self._cast: Cast | None = None
        self._has_hooks = False
        self._has_called = False
        self._events_size = -1
        self._unwritten: list[Fields] = []
        self._again_at = 0.0

    @property
    def due(self) -> float | None:
        """When something waits to be written, by the monotonic clock."""
        waiting = self._cast.due if self._cast else None
        if self._unwritten:
            return self._again_at if waiting is None else min(waiting, self._again_at)
        return waiting

    def film(self, columns: int, rows: int, term: str) -> None:
        """Begin a recording of the terminal too."""
        self._cast = Cast(f"{self._log.removesuffix('.log')}.cast", columns, rows, term)

    def output(self, data: bytes) -> None:
        """Log what the agent printed; past its largest size the log starts again, and one predecessor is kept.

        The log stays locked until `drawn` is called: so readers know how much of it the pane shows.
        """
        try:
            if self._fd < 0 or self._size > _LARGEST_LOG:
                self._open()
            self._is_ahead = self._is_ahead or _lock(self._fd)
            if self._lost:
                note = f"\r\n[{self._lost} bytes of output could not be recorded]\r\n".encode()
                os.write(self._fd, note)
                self._lost = 0
            written = os.write(self._fd, data)
            self._size += written
            self._lost += len(data) - written
        except OSError:
            self._lost += len(data)
        if self._cast:
            self._cast.output(data, time.monotonic())

    def drawn(self) -> None:
        """The pane has been given all that was kept."""
        if self._is_ahead:
            self._is_ahead = False
            fcntl.lockf(self._fd, fcntl.LOCK_UN)

    def _open(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._is_ahead = False
            os.replace(self._log, f"{self._log}.1")
        self._fd = os.open(self._log, _FLAGS, 0o600)
        os.fchmod(self._fd, 0o600)
        self._size = os.fstat(self._fd).st_size

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size."""
        if self._cast:
            self._cast.resize(columns, rows, time.monotonic())

    def look(self, now: float) -> None:
        """Write what waits, if it is due."""
        if self._unwritten and now >= self._again_at:
            self._write_events()
        if self._cast and self._cast.due is not None and now >= self._cast.due:
            self._cast.flush()

    def close(self) -> None:
        """The agent prints nothing more. Events can still be recorded."""
        if self._cast:
            self._cast.close()
            self._cast = None

    def event(self, what: str, **details: int | str | list[str]) -> None:
        """Record an event."""
        at = utc_now()
        self._append({"at": at, "event": what, **details})
        if what == "start":
            self._has_hooks = False
            waits = bool(details.get("sources"))
            state, text = ("starting", _LAUNCHED) if waits else ("unknown", _RUNNING)
            self._tell(at, {"state": state, "stateText": text, "stateSource": "launcher", "kind": ""})
        elif what == "exit":
            code = details["status"]
            assert isinstance(code, int)
            how = how_ended(code)
            state = "starting" if details.get("again") else "error" if details.get("limit") else "exited"
            told: Fields = {"state": state, "stateText": details.get("reason", how), "stateSource": "launcher"}
            self._tell(at, told | {"kind": "", "exitStatus": code if code >= 0 else 128 - code})

    def state(self, source: str, state: str, kind: str, text: str, decides: bool) -> None:
        """Record the state that a source reports; if that is the agent's state now, send it as an event."""
        at = utc_now()
        self._append({"at": at, "event": "state", "source": source, "state": state, "kind": kind, "text": text})
        if decides:
            words = ": ".join(word for word in (kind, text) if word)
            self._tell(at, {"state": state, "stateText": words, "stateSource": source, "kind": kind})

    def warn(self, text: str) -> None:
        """Record a warning, for the agent and for the whole workspace."""
        from mas.store.workspace.eventlog import append_event

        at = utc_now()
        self._append({"at": at, "event": "warning", "text": text})
        whose: Fields = {"at": at, "event": "warning", "sessionId": self._session_id, "agent": self._agent}
        append_event(self._workspace, json_object(whose | {"text": f"Agent {self._agent}: {text}"}))

    def refused(self, agent: str, name: str, port: str, reason: str, remedy: str) -> None:
        """Add what an agent of the session may not reach to what happens in the workspace."""
        from mas.store.workspace.eventlog import append_event

        told: Fields = {"at": utc_now(), "event": "network", "sessionId": self._session_id}
        told |= {"agent": agent} if agent.isdecimal() else {}
        told |= {"name": name, "result": "refused", "reason": reason}
        told |= {"port": int(port)} if port != "0" else {}
        append_event(self._workspace, json_object(told | ({"remedy": remedy} if remedy else {})))

    def tell_silence(self, state: str, kind: str, text: str) -> None:
        """Send an event that the agent is again as it was before any source reported."""
        state, text = (state, text) if state else ("starting", _LAUNCHED)
        self._tell(utc_now(), {"state": state, "stateText": text, "stateSource": "launcher", "kind": kind})

    def has_hooks(self) -> bool:
        """Whether a hook of the agent has reported a state since it started."""
        self._has_hooks = self._has_hooks or has_spoken(self._events, "hooks")
        return self._has_hooks

    def has_called(self) -> bool:
        """Whether the agent has called a hook since it started."""
        if not self._has_called:
            try:
                size = os.stat(self._events).st_size
            except OSError:
                return False
            # It is asked for often, and seldom is there anything new.
            self._has_called = size != self._events_size and has_called(self._events)
            self._events_size = size
        return self._has_called

    def _tell(self, at: str, fields: Fields) -> None:
        """Add the agent's new state to what happens in the workspace."""
        # Only now: the agent runs already, or runs no more, and has not waited for this.
        from mas.store.workspace.eventlog import append_event

        whose: Fields = {"at": at, "event": "agent", "sessionId": self._session_id, "agent": self._agent}
        append_event(self._workspace, json_object(whose | fields))

    def _append(self, fields: Fields) -> None:
        """Record it after all that could not be recorded yet, so that a reader sees events in order and without gaps.

        These records show whether a message has passed; a message whose record is missing would be typed again.
        """
        self._unwritten = [*self._unwritten[1 - _MOST_UNWRITTEN :], fields]
        self._write_events()

    def _write_events(self) -> None:
        try:
            with AgentLog(self._events) as log:
                while self._unwritten:
                    log.add(self._unwritten[0])
                    del self._unwritten[0]
        except OSError:
            self._again_at = time.monotonic() + _NEXT_TRY


def _lock(fd: int) -> bool:
    """Whether the file is now locked; an agent that locks its own log does not stop it."""
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _held(directory: str) -> str:
    """Another path of the directory, which stays that of this one, whatever is put in its place meanwhile."""
    try:
        fd = os.open(directory, DIRECTORY)
    except OSError:
        # Nothing can be written there, and nothing of that is worth an agent.
        return "/dev/null"
    held = f"/proc/self/fd/{fd}"
    return held if os.path.isdir(held) else directory
