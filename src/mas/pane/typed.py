"""Records which messages pass to the agent: the first line of each, and the Enter that submits it.

The process that types a message may be killed at any moment; these records show the next one how far it came.
"""

from __future__ import annotations

import time

from mas.store.agent.agentlog import MARK_END, MARK_START

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_HEADER = b"[MAS from="
# No text of a message holds an escape character either.
_PASTED_HEADER = b"\x1b[200~" + _HEADER
_ID = b" id=m-"
_DIGITS = 16
_LONGEST_HEADER = 512
_ENTER = b"\r"
_LONGEST_MARK = 64
_PATIENCE = 0.05


class Typed:
    """Watches what is typed to one agent; `note` gets what happened (typed, entered, taken, mark) and its id."""

    def __init__(self, note: Callable[[str, str], None]) -> None:
        self._note = note
        self._notes: list[tuple[str, str]] = []
        self._submitted = ""
        self._message = b""
        self._rest = b""
        self._held = b""
        self.due: float | None = None
        """Until when to wait for the rest of what may be a mark, by the monotonic clock."""

    def feed(self, data: bytes) -> bytes:
        """What of `data` is for the agent: all but marks, and what may yet become one."""
        if MARK_START[:1] in data or self._held:
            return b"".join(self._without_marks(self._held + data))
        self._look(data)
        return data

    def release(self) -> bytes:
        """What was held back and is no mark: the rest did not come."""
        held, self._held, self.due = self._held, b"", None
        self._look(held)
        return held

    def tell(self) -> None:
        """Write the records. The agent need not wait for that: it is done before its output is read again."""
        notes, self._notes = self._notes, []
        for what, name in notes:
            self._note(what, name)

    def begins_to_work(self) -> None:
        """The agent says that it does something: it has taken what was submitted last."""
        if self._submitted:
            self._notes.append(("taken", self._submitted))
            self._submitted = ""

    def _without_marks(self, data: bytes) -> list[bytes]:
        self._held = b""
        pieces = []
        while True:
            before, start, rest = data.partition(MARK_START)
            mark, end, after = rest.partition(MARK_END)
            if start and (end and len(mark) <= _LONGEST_MARK):
                pieces.append(before)
                self._look(before)
                self._notes.append(("mark", mark.decode("ascii", "replace")))
                data = after
                continue
            # The rest of a mark may be yet to come.
            whole = _unfinished(data)
            self._held = data[whole:]
            self.due = time.monotonic() + _PATIENCE if self._held else None
            pieces.append(data[:whole])
            self._look(data[:whole])
            return pieces

    def _look(self, data: bytes) -> None:
        data = self._rest + data
        self._rest = b""
        while data:
            if self._message:
                # No text of a message holds this character, so it is a key.
                place = data.find(_ENTER)
                again = data.find(_PASTED_HEADER)
                if again >= 0 and not 0 <= place < again:
                    # Without an Enter between them: the program has lost the first, which is typed again, or given up.
                    self._message, data = b"", data[again:]
                    continue
                if place < 0:
                    self._rest = _may_be_start_of(_PASTED_HEADER, data)
                    return
                self._submitted = self._message.decode()
                self._notes.append(("entered", self._submitted))
                self._message, data = b"", data[place + 1 :]
            place = data.find(_HEADER)
            if place < 0:
                self._rest = _may_be_start_of(_HEADER, data)
                return
            header, end, _ = data[place : place + _LONGEST_HEADER].partition(b"]")
            if not end:
                self._rest = data[place:] if len(data) - place < _LONGEST_HEADER else b""
                return
            name = _message_id(header)
            if name:
                self._message = name
                self._notes.append(("typed", name.decode()))
            data = data[place + len(header) + 1 :]


def _message_id(header: bytes) -> bytes:
    """The id at the end of a message's first line; nothing if there is none."""
    digits = header.rpartition(_ID)[2]
    sound = len(digits) == _DIGITS and not digits.strip(b"0123456789abcdef") and b"\n" not in header
    return b"m-" + digits if sound else b""


def _may_be_start_of(word: bytes, data: bytes) -> bytes:
    """The end of `data` that may be the start of `word`."""
    for size in range(min(len(word) - 1, len(data)), 0, -1):
        if word.startswith(data[-size:]):
            return data[-size:]
    return b""


def _unfinished(data: bytes) -> int:
    """Where an unfinished mark begins; the length of `data` if there is none."""
    place = data.rfind(MARK_START)
    if place >= 0 and MARK_END not in data[place + 1 :] and len(data) - place < _LONGEST_MARK:
        return place
    return len(data) - len(_may_be_start_of(MARK_START, data))
