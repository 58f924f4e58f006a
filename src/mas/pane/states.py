"""An agent's states as its sources report them: changes are recorded, at a limited rate."""

from __future__ import annotations

from mas.pane.logs import AgentLogs

# How many changes may come at once, and how many a second in the long run; of more than that only the last counts.
_BURST = 40.0
_RATE = 8.0
# The least trusted source: a report of any other replaces it, and `starting` withdraws its own.
_SCREEN = "screen"
# How often to look whether a hook was called, and from when on how seldom.
_GLANCE = 0.1
_LATE = 30.0
_SELDOM = 1.0
_TITLE = "title"


class States:
    """What each source reported last. The first of `sources` that has reported decides the agent's state.

    If none has reported `patience` seconds after the start, the state is unknown; 0 is no limit. With
    `titles_wait` titles count from when the program has called a hook, however long that takes, and while its screen
    shows no dialog: some call themselves ready in their title before they are.
    """

    def __init__(
        self,
        logs: AgentLogs,
        sources: tuple[str, ...],
        now: float,
        patience: float = 0.0,
        titles_wait: bool = False,
    ) -> None:
        self.due: float | None = None
        """When there is something to write, by the monotonic clock: what had to wait, or that all are silent."""
        self._logs = logs
        self._sources = sources
        self._reported: dict[str, tuple[str, str, str]] = {}
        self._waiting: dict[str, tuple[str, str, str]] = {}
        self._room = _BURST
        self._at = now
        self._titles_wait = titles_wait
        self._late = now + _LATE
        self._patience = patience
        self._silent_since = "it started"
        self._silent_at = now + patience if patience and sources else None
        self._plan()

    def say(self, source: str, state: str, kind: str, text: str, now: float) -> None:
        """A source reports a state; recorded only if it differs from its last report."""
        self._waiting.pop(source, None)
        if self._reported.get(source) != (state, kind, text):
            self._waiting[source] = (state, kind, text)
        self.look(now)

    def look(self, now: float) -> None:
        """Record what is waiting, as far as the rate allows, and when it is time, that no source has reported."""
        self._room = min(_BURST, self._room + (now - self._at) * _RATE)
        self._at = now
        early = {_TITLE} if _TITLE in self._waiting and self._is_early() else set()
        ready = [source for source in self._waiting if source not in early]
        while ready and self._room >= 1:
            source = ready.pop(0)
            self._write(source, self._waiting.pop(source))
            self._room -= 1
        if self._silent_at is not None and now >= self._silent_at:
            self._silent_at = None
            if not self._waiting.keys() - early and not self._spoken(self._sources):
                reason = f"has reported nothing for {self._patience:g} s since {self._silent_since}"
                self._reported["launcher"] = ("unknown", "", reason)
                self._logs.state("launcher", "unknown", "", reason, decides=True)
        self._plan()

    def finish(self) -> None:
        """Write all that waits: nothing more will come."""
        for source, report in self._waiting.items():
            self._write(source, report)
        self._waiting = {}

    def last(self, source: str) -> tuple[str, str]:
        """The state and kind that a source reported last, recorded or not."""
        return (self._waiting.get(source) or self._reported.get(source) or ("", "", ""))[:2]

    def know_better(self, source: str) -> bool:
        """Whether a source that is believed more has spoken."""
        if source not in self._sources:
            return True
        better = self._sources[: self._sources.index(source)]
        waiting = [other for other in better if other in self._waiting]
        return bool(set(waiting) - {_TITLE} if self._titles_wait else waiting) or self._spoken(better)

    def _is_early(self) -> bool:
        """Whether what a title says does not count yet."""
        if self._titles_wait and _SCREEN not in self._reported and self._logs.has_called():
            self._titles_wait = False
        return self._titles_wait

    def _write(self, source: str, report: tuple[str, str, str]) -> None:
        decides = source in self._sources and not self._spoken(self._sources[: self._sources.index(source)])
        if source == _SCREEN and report[0] == "starting":
            self._take_back(report, decides)
            return
        self._reported[source] = report
        if source in self._sources:
            self._silent_at = None
        self._logs.state(source, *report, decides=decides)

    def _take_back(self, report: tuple[str, str, str], decides: bool) -> None:
        """What the screen showed is over; no source has reported the new state yet."""
        self._reported.pop(_SCREEN, None)
        self._logs.state(_SCREEN, *report, decides=False)
        if decides:
            self._logs.tell_silence(*self._reported.get("launcher", ("", "", "")))
            if self._patience and "launcher" not in self._reported:
                self._silent_since = "its dialog closed"
                self._silent_at = self._at + self._patience

    def _spoken(self, sources: tuple[str, ...]) -> bool:
        # Hooks are written down by processes of their own.
        return any(name in self._reported or (name == "hooks" and self._logs.has_hooks()) for name in sources)

    def _plan(self) -> None:
        pause = (1 - self._room) / _RATE
        if self._titles_wait and list(self._waiting) == [_TITLE]:
            pause = max(pause, _GLANCE if self._at < self._late else _SELDOM)
        due = [self._at + pause] if self._waiting else []
        if self._silent_at is not None:
            due.append(self._silent_at)
        self.due = min(due) if due else None
