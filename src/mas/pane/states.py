"""The states an agent is in as its sources tell them: what has changed is written down, at a bearable rate."""

from __future__ import annotations

from mas.pane.record import Record

# So many changes may come at once, and so many a second in the long run; of more than that only the last counts.
_BURST = 40.0
_RATE = 8.0


class States:
    """What each source said last. Of `sources`, the first that has spoken decides what the agent's state is."""

    def __init__(self, record: Record, sources: tuple[str, ...], now: float) -> None:
        self.due: float | None = None
        """When what had to wait can be written, by the monotonic clock."""
        self._record = record
        self._sources = sources
        self._said: dict[str, tuple[str, str, str]] = {}
        self._waiting: dict[str, tuple[str, str, str]] = {}
        self._room = _BURST
        self._at = now

    def say(self, source: str, state: str, kind: str, text: str, now: float) -> None:
        """A source tells a state; written only if it is another than it told last."""
        self._waiting.pop(source, None)
        if self._said.get(source) != (state, kind, text):
            self._waiting[source] = (state, kind, text)
        self.look(now)

    def look(self, now: float) -> None:
        """Write what waits, as far as there is room."""
        self._room = min(_BURST, self._room + (now - self._at) * _RATE)
        self._at = now
        while self._waiting and self._room >= 1:
            source = next(iter(self._waiting))
            self._write(source, self._waiting.pop(source))
            self._room -= 1
        self.due = now + (1 - self._room) / _RATE if self._waiting else None

    def finish(self) -> None:
        """Write all that waits: nothing more will come."""
        for source, said in self._waiting.items():
            self._write(source, said)
        self._waiting = {}

    def last(self, source: str) -> tuple[str, str]:
        """The state and kind that a source told last, written or not."""
        return (self._waiting.get(source) or self._said.get(source) or ("", "", ""))[:2]

    def _write(self, source: str, said: tuple[str, str, str]) -> None:
        self._said[source] = said
        self._record.state(source, *said, decides=self._decides(source))

    def _decides(self, source: str) -> bool:
        """Whether the agent's state is what this source says."""
        for other in self._sources:
            if other == source:
                return True
            # Hooks are written down by processes of their own.
            if other in self._said or (other == "hooks" and self._record.has_hooks()):
                return False
        return False
