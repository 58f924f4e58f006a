"""What an agent reports to its terminal: status reports (OSC 7501), and titles if the provider gives them a meaning.

A report is `ESC ] 7501 ; state=…[:kind=…][:app=…][:msg=base64] ST`, and `ESC ] 7501 ; ? ST` asks whether the terminal
understands them. Both are for the launcher alone and are taken out; all else passes byte for byte. Of a sequence
that a read ended in, the beginning is kept back: no terminal would show anything of it either.

What an agent prints is never trusted: what is too long, or holds what no report can, is passed on as any output.
"""

from __future__ import annotations

from mas.store.agent.agentlog import LONGEST_TEXT, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from mas.model.launch import Sign

_BEGIN = b"\x1b]7501;"
_LONGEST = 5000
_CONTROLS = bytes([*range(0x20), 0x7F])
_QUERY = b"?"
# Each state that a program may report, and what it is called here; `clear` says nothing.
_STATES = {
    b"idle": "idle",
    b"done": "idle",
    b"working": "working",
    b"blocked": "blocked",
    b"error": "error",
}
_LONGEST_WORD = 32
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-.")
_TITLES = (b"\x1b]0;", b"\x1b]2;")
_LONGEST_TITLE = 1024

# State, kind, application, text.
Report = tuple[str, str, str, str]


class ReportFilter:
    """Takes reports and queries out of the stream of an agent's output."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        """The reports found since this list was last emptied."""
        self.queries: list[bytes] = []
        """The queries found; each is answered with its own bytes."""
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What of it passes to the terminal."""
        if self._held:
            data = self._held + data
            self._held = b""
        passed: list[bytes] = []
        done = at = 0
        while (start := data.find(_BEGIN, at)) >= 0:
            body = start + len(_BEGIN)
            end, after = _end_of(data, body)
            if after < 0:
                # Not a report. What broke it off may be the beginning of one.
                at = end
            elif after == 0:
                self._held = data[start:]
                passed.append(data[done:start])
                return b"".join(passed)
            else:
                self._hear(data[body:end], data[start:after])
                passed.append(data[done:start])
                done = at = after
        escape = data.rfind(b"\x1b", max(at, len(data) - len(_BEGIN) + 1))
        if escape >= 0 and _BEGIN.startswith(data[escape:]):
            self._held = data[escape:]
            passed.append(data[done:escape])
        elif not done:
            return data
        else:
            passed.append(data[done:])
        return b"".join(passed)

    def rest(self) -> bytes:
        """What was kept back, once nothing more will come."""
        held, self._held = self._held, b""
        return held

    def _hear(self, body: bytes, whole: bytes) -> None:
        if body == _QUERY:
            self.queries.append(whole)
        elif report := _report(body):
            self.reports.append(report)


def _end_of(data: bytes, body: int) -> tuple[int, int]:
    """Where a sequence's content ends, and where what follows it begins: 0 if that is yet to come, -1 if never."""
    escape = data.find(b"\x1b", body, body + _LONGEST + 1)
    bell = data.find(b"\x07", body, escape if escape >= 0 else body + _LONGEST + 1)
    end = bell if bell >= 0 else escape
    content = data[body : end if end >= 0 else body + _LONGEST + 1]
    if len(content) > _LONGEST or len(content.translate(None, _CONTROLS)) < len(content):
        return body, -1
    if bell >= 0:
        return bell, bell + 1
    if escape < 0 or escape + 1 == len(data):
        return len(data), 0
    return (escape, escape + 2) if data[escape + 1] == ord("\\") else (escape, -1)


def _report(body: bytes) -> Report | None:
    """What a report says; None if that is nothing we know."""
    fields: dict[bytes, bytes] = {}
    for field in body.split(b":"):
        key, _, value = field.partition(b"=")
        fields.setdefault(key, value)
    state = _STATES.get(fields.get(b"state", b""))
    if state is None:
        return None
    return state, _word(fields.get(b"kind", b"")), _word(fields.get(b"app", b"")), _text(fields.get(b"msg", b""))


def _word(value: bytes) -> str:
    return value.decode("ascii") if len(value) <= _LONGEST_WORD and _LETTERS.issuperset(value) else ""


def _text(value: bytes) -> str:
    if not value:
        return ""
    import binascii  # rarely needed, and never at the start

    # Some leave the padding out, which says nothing.
    value = value.rstrip(b"=")
    try:
        return plain(binascii.a2b_base64(value + b"=" * (-len(value) % 4)))
    except ValueError:
        return ""


class Titles:
    """Watches the titles an agent gives its terminal, and knows what some of them mean.

    The first sign that is found in a title decides, and a title that none is found in says nothing.
    """

    def __init__(self, signs: tuple[Sign, ...]) -> None:
        self._signs = [sign for sign in signs if sign.state.encode() in _STATES]
        self._known: list[tuple[re.Pattern[str], Sign]] | None = None
        self._held = b""

    def feed(self, data: bytes) -> list[Report]:
        """What the titles in it say, in their order."""
        if self._held:
            data = self._held + data
            self._held = b""
        said: list[Report] = []
        at = 0
        while (start := data.find(b"\x1b]", at)) >= 0:
            body = start + 4
            if len(data) < body:
                break
            at = start + 2
            if data[start:body] in _TITLES:
                escape = data.find(b"\x1b", body)
                bell = data.find(b"\x07", body, escape if escape >= 0 else len(data))
                end = bell if bell >= 0 else escape
                if end < 0:
                    break
                said += self._meaning(data[body:end])
                at = end
        if start >= 0:
            if len(data) - start <= _LONGEST_TITLE:
                self._held = data[start:]
        elif data.endswith(b"\x1b"):
            self._held = b"\x1b"
        return said

    def _meaning(self, title: bytes) -> list[Report]:
        if len(title) > _LONGEST_TITLE:
            return []
        text = plain(title, LONGEST_TEXT)
        if self._known is None:
            from mas.pane.signs import compiled

            self._known = compiled(self._signs)
        for pattern, sign in self._known:
            if pattern.search(text):
                return [(sign.state, sign.kind, "", text)]
        return []
