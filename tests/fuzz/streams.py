"""What agents print and people type, and what tmux says of it."""

from __future__ import annotations

import json
import os
from collections import deque

from mas.http.terminal import _Abuse, _fields
from mas.model.network import is_name
from mas.pane.cast import Cast
from mas.pane.osc import ReportFilter, Titles
from mas.pane.screen import dialog_on, known_screens, state_on
from mas.pane.typed import Typed
from mas.providers.demo import DemoMessage, Editor
from mas.providers.provider import Providers
from mas.runtime.control import _Connection, _Request
from mas.runtime.network.names import OK, answer, parse_question
from mas.runtime.runtime import Snapshot
from mas.runtime.snapshot import _FLAGS, _NUMBERS, drawn
from mas.store.agent.agentlog import MARK_END, MARK_START
from tests.fuzz.files import state_plan_of
from tests.fuzz.ground import PARSERS, Ground, is_typed

_MESSAGE = b"\x1b[200~[MAS from=person to=00 id=m-0123456789abcdef]\nhello\x1b[201~\r"
_QUERY = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\x03web\x07example\x03com\0\0\1\0\1"
_REPORT = b"\x1b]7501;state=blocked:kind=permission:app=x:msg=aGVsbG8=\x1b\\"
# More than a filter may ever keep back of a stream: its longest sequence, and what begins and ends it.
_KEPT_BACK = 6000
_TYPED = 2000
_COLUMNS, _ROWS = 80, 24
_SHIPPED = Providers("/nowhere", {})
_PLANS = [state_plan_of(_SHIPPED.get(name)) for name in _SHIPPED.names()]
_RULES = [known_screens(plan) for plan in _PLANS]
_TITLES = tuple(sign for plan in _PLANS for sign in plan.title_map)


class Heard(_Connection):
    """What listens to tmux, without a tmux to listen to."""

    def __init__(self) -> None:
        self._waiting = deque()
        self._block = None
        self.ended = False

    def expects(self) -> _Request:
        """Somebody has asked something."""
        self._waiting.append(_Request())
        return self._waiting[0]


def pieces(data: bytes) -> list[bytes]:
    """The same bytes as they may come: cut where they say themselves, so that its bytes say everything about a case."""
    size = 1 + (data[0] if data else 0) % 97
    return [data[place : place + size] for place in range(0, len(data), size)]


@PARSERS.of(_QUERY, _QUERY.replace(b"\x03web", b"\xc0\x0cab"), _QUERY[:20])
def name_query(ground: Ground, data: bytes) -> None:
    """A query from inside a session's network is about one name of a host, or about none; its answer stays short."""
    try:
        question = parse_question(data)
    except (ValueError, IndexError):
        return
    assert question.name == "" or is_name(question.name)
    reply = answer(question, OK, "127.64.4.1")
    assert reply[:2] == data[:2]
    assert len(reply) <= len(data) + 16


@PARSERS.of(b"text" + _REPORT + b"\x1b]7501;?\x07\x1b[31m", b"\x1b]7501;state=idle" + b"x" * 6000)
def osc_reports(ground: Ground, data: bytes) -> None:
    """However a stream is cut, the same passes and the same is reported; little of it is ever kept back."""
    whole, cut = ReportFilter(), ReportFilter()
    passed = whole.feed(data) + whole.rest()
    seen = b""
    for piece in pieces(data):
        seen += cut.feed(piece)
        assert len(cut._held) < _KEPT_BACK
    assert (seen + cut.rest(), cut.reports, cut.queries) == (passed, whole.reports, whole.queries)
    assert is_typed(list[tuple[str, str, str, str]], whole.reports)
    assert len(passed) <= len(data)


@PARSERS.of("\x1b]0;◇ Ready\x07\x1b]2;⠐ x\x1b\\".encode(), b"\x1b]0;" + b"t" * 2000)
def titles(ground: Ground, data: bytes) -> None:
    """However a stream is cut, its titles that are not too long say the same."""
    watching = Titles(_TITLES)
    said = []
    for piece in pieces(data):
        said += watching.feed(piece)
        assert len(watching._held) <= 1024
    assert is_typed(list[tuple[str, str, str, str]], said)
    assert len(data) > 1024 or said == Titles(_TITLES).feed(data)


@PARSERS.of(b"ls\r" + _MESSAGE, MARK_START + b"00ff" + MARK_END + _MESSAGE)
def typed(ground: Ground, data: bytes) -> None:
    """All that is typed reaches the agent but marks, however it comes; what is noted are ids and marks."""
    notes: list[tuple[str, str]] = []
    watching = Typed(lambda what, name: notes.append((what, name)))
    passed = b""
    for piece in pieces(data):
        passed += watching.feed(piece)
        assert len(watching._held) + len(watching._rest) < 1024
    passed += watching.release()
    watching.tell()
    marks = [name for what, name in notes if what == "mark"]
    assert len(data) - len(passed) >= len(marks) * len(MARK_START + MARK_END)
    assert bool(marks) or passed == data


@PARSERS.of("größe\r\n\x1b[31m".encode(), b"\xff\xfe\x00\xf0\x9f\x98")
def recording(ground: Ground, data: bytes) -> None:
    """A recording is lines of JSON that together are what was printed."""
    path = os.path.join(ground.session.logs, "agent-00.cast")
    for old in (path, f"{path}.1"):
        if os.path.exists(old):
            os.unlink(old)
    cast = Cast(path, _COLUMNS, _ROWS, "xterm")
    for number, piece in enumerate(pieces(data)):
        cast.output(piece, number * 0.001)
        cast.flush()
    cast.close()
    if not data:
        return
    with open(path, "rb") as file:
        header, *lines = map(json.loads, file.read().splitlines())
    assert header["version"] == 2
    assert "".join(text for _, kind, text in lines if kind == "o") == data.decode("utf-8", "replace")


@PARSERS.of("│ Do you trust the files in this folder?  │\n❯ 1. Yes\n".encode(), "───\na.py\n>".encode())
def screen(ground: Ground, data: bytes) -> None:
    """Every shipped provider reads a screen of anything, in no time."""
    lines = data.decode("utf-8", "replace").rstrip().split("\n")
    for dialogs, states in _RULES:
        found = dialog_on(lines, dialogs)
        assert found is None or all(isinstance(word, str) for word in found)
        state_on(lines, states)


@PARSERS.of(b"one\ntwo \x1b[41mred\n" * 30)
def captured_screen(ground: Ground, data: bytes) -> None:
    """A snapshot is made of whatever tmux captured."""
    numbers = {"pane_width": _COLUMNS, "pane_height": _ROWS, "scroll_region_lower": _ROWS - 1}
    for alternate in "01":
        told = ",".join(["mas-x", *(str(numbers.get(name, 0)) for name in _NUMBERS), *alternate * len(_FLAGS), "1"])
        name, snapshot = drawn(f"{told}\n{data.decode('utf-8', 'surrogateescape')}", 5)
        assert (name, is_typed(Snapshot, snapshot)) == ("mas-x", True)


@PARSERS.of(b"one\ntwo\n", b"%end 1 2 3\n%begin 4 5 6\n%exit\n")
def tmux_answer(ground: Ground, data: bytes) -> None:
    """What a screen shows is an answer like any other, even if it looks like what tmux says."""
    heard = Heard()
    request = heard.expects()
    for line in (b"%begin 7 8 1", *data.split(b"\n"), b"%end 7 8 1", b"%begin 7 9 1", request.word):
        heard._hear(line)
    assert request.done.is_set()
    assert not heard.ended
    assert request.printed == data.split(b"\n")


@PARSERS.of('{"type":"subscribe","session":"x"}', refusal=_Abuse)
def terminal_frame(ground: Ground, data: bytes) -> None:
    assert isinstance(_fields(data.decode("utf-8", "replace")), dict)


@PARSERS.of(_MESSAGE, b"abc\x7f\x15\x1b[A\r")
def demo_keys(ground: Ground, data: bytes) -> None:
    """The demo agent takes every key; it ends on Ctrl-C and Ctrl-D alone."""
    editor = Editor()
    try:
        for piece in pieces(data[:_TYPED]):
            for message in editor.feed(piece):
                DemoMessage(message.decode("utf-8", "replace"))
        editor.tail()
    except KeyboardInterrupt:
        assert b"\x03" in data
    except EOFError:
        assert b"\x04" in data
