"""An agent's states as its sources report them: changes are recorded, at a limited rate."""

from __future__ import annotations

from mas.pane.logs import Record

# So many changes may come at once, and so many a second in the long run; of more than that only the last counts.
_BURST = 40.0
_RATE = 8.0
# The source that is believed least: the word of any other ends it, and `starting` takes back what it said.
_SCREEN = "screen"
# How often to look whether a hook was called, and how long titles wait for that.
_GLANCE = 0.1
_LATEST = 30.0
_TITLE = "title"


class States:
    """What each source said last. Of `sources`, the first that has spoken decides what the agent's state is.

    If none has said anything `patience` seconds after the start, the state is unknown; 0 is any time. With
    `titles_wait` titles count from when the program has called a hook, and while its screen shows no dialog: some call
    themselves ready in their title before they are.
    """

    def __init__(
        self,
        record: Record,
        sources: tuple[str, ...],
        now: float,
        patience: float = 0.0,
        titles_wait: bool = False,
    ) -> None:
        self.due: float | None = None
        """When there is something to write, by the monotonic clock: what had to wait, or that all are silent."""
        self._record = record
        self._sources = sources
        self._said: dict[str, tuple[str, str, str]] = {}
        self._waiting: dict[str, tuple[str, str, str]] = {}
        self._room = _BURST
        self._at = now
        self._titles_from: float | None = now + _LATEST if titles_wait else None
        self._patience = patience
        self._silent_since = "it started"
        self._silent_at = now + patience if patience and sources else None
        self._plan()

    def say(self, source: str, state: str, kind: str, text: str, now: float) -> None:
        """A source tells a state; written only if it is another than it told last."""
        self._waiting.pop(source, None)
        if self._said.get(source) != (state, kind, text):
            self._waiting[source] = (state, kind, text)
        self.look(now)

    def look(self, now: float) -> None:
        """Write what waits, as far as there is room, and that nobody has said anything if it is time for that."""
        self._room = min(_BURST, self._room + (now - self._at) * _RATE)
        self._at = now
        early = _TITLE in self._waiting and self._is_early(now)
        ready = [source for source in self._waiting if not (early and source == _TITLE)]
        while ready and self._room >= 1:
            source = ready.pop(0)
            self._write(source, self._waiting.pop(source))
            self._room -= 1
        if self._silent_at is not None and now >= self._silent_at:
            self._silent_at = None
            if not self._waiting and not self._spoken(self._sources):
                reason = f"has reported nothing for {self._patience:g} s since {self._silent_since}"
                self._said["launcher"] = ("unknown", "", reason)
                self._record.state("launcher", "unknown", "", reason, decides=True)
        self._plan()

    def finish(self) -> None:
        """Write all that waits: nothing more will come."""
        for source, said in self._waiting.items():
            self._write(source, said)
        self._waiting = {}

    def last(self, source: str) -> tuple[str, str]:
        """The state and kind that a source told last, written or not."""
        return (self._waiting.get(source) or self._said.get(source) or ("", "", ""))[:2]

    def know_better(self, source: str) -> bool:
        """Whether a source that is believed more has spoken."""
        if source not in self._sources:
            return True
        better = self._sources[: self._sources.index(source)]
        waiting = [other for other in better if other in self._waiting]
        return bool(waiting if self._titles_from is None else set(waiting) - {_TITLE}) or self._spoken(better)

    def _is_early(self, now: float) -> bool:
        """Whether what a title says does not count yet."""
        if self._titles_from is None:
            return False
        if _SCREEN not in self._said and (now >= self._titles_from or self._record.has_called()):
            self._titles_from = None
        return self._titles_from is not None

    def _write(self, source: str, said: tuple[str, str, str]) -> None:
        decides = source in self._sources and not self._spoken(self._sources[: self._sources.index(source)])
        if source == _SCREEN and said[0] == "starting":
            self._take_back(said, decides)
            return
        self._said[source] = said
        if source in self._sources:
            self._silent_at = None
        self._record.state(source, *said, decides=decides)

    def _take_back(self, said: tuple[str, str, str], decides: bool) -> None:
        """What the screen said is over; what it is now, nobody has said yet."""
        self._said.pop(_SCREEN, None)
        self._record.state(_SCREEN, *said, decides=False)
        if decides:
            self._record.tell_silence(*self._said.get("launcher", ("", "", "")))
            if self._patience and "launcher" not in self._said:
                self._silent_since = "its dialog closed"
                self._silent_at = self._at + self._patience

    def _spoken(self, sources: tuple[str, ...]) -> bool:
        # Hooks are written down by processes of their own.
        return any(name in self._said or (name == "hooks" and self._record.has_hooks()) for name in sources)

    def _plan(self) -> None:
        pause = (1 - self._room) / _RATE
        if self._titles_from is not None and list(self._waiting) == [_TITLE]:
            pause = max(pause, _GLANCE)
        due = [self._at + pause] if self._waiting else []
        if self._silent_at is not None:
            due.append(self._silent_at)
        self.due = min(due) if due else None
