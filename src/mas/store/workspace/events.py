"""The event store: what happened in a workspace, kept for a while so that listeners can resume.

An event's id is its segment and the place just after its line, so that going on from there is a seek. Readers
take no lock. A damaged line, which a killed writer or a full disk leaves, is skipped.

Every command may add an event, few read them: what only readers need is imported when they read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mas.model.session import Status
from mas.model.views import camel
from mas.store.files.descriptors import READ
from mas.store.layout import Layout
from mas.store.workspace.eventlog import append_event, segment_path, segments

if TYPE_CHECKING:
    from mas.model.event import Event, EventPage

# Before all there is.
OLDEST = "0"
_BLOCK = 1 << 18
_LONGEST = 1 << 16
# Ten digits, a dot, and an offset that a file can have.
_LONGEST_ID = 29
_OWN = ("id", "at", "event", "sessionId", "agent")


class Events:
    """Adds events and reads them back."""

    def __init__(self, layout: Layout, now: Callable[[], str]) -> None:
        self._directory = layout.events
        self._now = now

    def add(self, event: str, session_id: str | None = None, agent: str | None = None, **details: Any) -> None:  # noqa: ANN401 - JSON
        """Tell what happened. Never an error of the disk, and never worth waiting for.

        Details are called `exit_status` here and `exitStatus` on the wire; `id` and `at` are the event's own. Details
        too long to be news are left out.
        """
        known = {"at": self._now(), "event": event}
        if session_id is not None:
            known["sessionId"] = session_id
        if agent is not None:
            known["agent"] = agent
        told = {camel(name): value for name, value in details.items()}
        text = _dumped(known | told | known)
        append_event(self._directory, text if len(text) <= _LONGEST else _dumped(known))

    def status(self, session_id: str, status: str) -> None:
        """Tell that a session has changed its status; that it is damaged is a warning too."""
        self.add("session", session_id, status=status)
        if status == Status.ERROR:
            self.add("warning", session_id, text=f"Session {session_id} is damaged: mas repair")

    def read(self, after: str | None, most: int) -> EventPage:
        """Up to `most` events after the one called `after`; None means from now on, `0` from the oldest kept."""
        from mas.model.event import EventPage

        try:
            found = segments(self._directory)
        except FileNotFoundError:
            found = []
        if after is None:
            return EventPage((), self._end(found[-1]) if found else OLDEST, False)
        known = _place(after)
        if not found:
            # If the files were removed, the next event will show the gap.
            return EventPage((), after if known else OLDEST, not known and after != OLDEST)
        segment, offset = known or (0, 0)
        if segment in found and self._begins_line(segment, offset):
            return self._page(found[found.index(segment) :], offset, most, gap=False)
        later = [number for number in found if number >= segment]
        return self._page(later or found, 0, most, gap=after != OLDEST)

    def _page(self, found: list[int], offset: int, most: int, gap: bool) -> EventPage:
        """Read through the segments; what is missing between them ends the page, or begins it."""
        from mas.model.event import EventPage

        events: list[Event] = []
        last = f"{found[0]:010d}.{offset}"
        for number, segment in enumerate(found):
            if number and segment != found[number - 1] + 1:
                if events:
                    break
                gap = True
            try:
                for end, line in self._lines(segment, offset):
                    last = f"{segment:010d}.{end}"
                    if event := _parsed(last, line):
                        events.append(event)
                    if len(events) >= most:
                        return EventPage(tuple(events), last, gap)
            except OSError:
                # Removed since it was listed, or not to be read at all.
                if events:
                    break
                gap = True
            offset = 0
        return EventPage(tuple(events), last, gap)

    def _lines(self, segment: int, offset: int) -> Iterator[tuple[int, bytes]]:
        """Every whole line from `offset` on, and where it ends."""
        fd = self._open(segment)
        try:
            rest = b""
            while block := os.pread(fd, _BLOCK, offset + len(rest)):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    offset += len(line) + 1
                    yield offset, line
        finally:
            os.close(fd)

    def _end(self, segment: int) -> str:
        """Where the last whole line of a segment ends; lines are far shorter than a block."""
        end = 0
        try:
            fd = self._open(segment)
            try:
                start = max(0, os.fstat(fd).st_size - _BLOCK)
                line_feed = os.pread(fd, _BLOCK, start).rfind(b"\n")
                end = start + line_feed + 1 if line_feed >= 0 else 0
            finally:
                os.close(fd)
        except OSError:
            # Unreadable; a listener that continues from here will see a gap.
            pass
        return f"{segment:010d}.{end}"

    def _begins_line(self, segment: int, offset: int) -> bool:
        """Whether `offset` is the beginning of the segment, or just after a line."""
        if offset == 0:
            return True
        try:
            fd = self._open(segment)
            try:
                return os.pread(fd, 1, offset - 1) == b"\n"
            finally:
                os.close(fd)
        except OSError:
            return False

    def _open(self, segment: int) -> int:
        path = segment_path(self._directory, segment)
        return os.open(path, READ)


def _place(event_id: str) -> tuple[int, int] | None:
    """The segment and offset an id means; None if it is none."""
    segment, _, offset = event_id.partition(".")
    if not event_id.isascii() or not (segment.isdecimal() and offset.isdecimal()) or len(event_id) > _LONGEST_ID:
        return None
    place = int(segment), int(offset)
    return place if event_id == f"{place[0]:010d}.{place[1]}" else None


def _parsed(event_id: str, line: bytes) -> Event | None:
    """The event a line holds; None if it holds none."""
    from mas.model.event import KINDS, Event

    if not line:
        return None
    try:
        body = json.loads(line)
        at, event, session_id, agent = body["at"], body["event"], body.get("sessionId"), body.get("agent")
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if event not in KINDS or not all(isinstance(text, str) for text in (at, session_id or "", agent or "")):
        return None
    details = {name: value for name, value in body.items() if name not in _OWN}
    return Event(event_id, at, event, session_id, agent, details)


def _dumped(fields: dict[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"))
