"""The demo agent: its line editor, and the program on a terminal."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.providers import demo
from mas.providers.demo import Demo, DemoMessage, Editor, Work, read_place, status
from tests.pane.pane import pane
from tests.site import Site, short_directory, until
from tests.terminal import Terminal

START, END = b"\x1b[200~", b"\x1b[201~"
TEXT = "erste Zeile\n\tzweite: 日本 🙂\n\nlast".encode()


def feed(*parts: bytes) -> list[bytes]:
    """The messages that typing the parts one after the other submits."""
    editor = Editor()
    return [message for part in parts for message in editor.feed(part)]


@pytest.mark.parametrize("enter", [b"\r", b"\n"])
def test_enter_submits_a_line(enter: bytes) -> None:
    assert feed(b"hello" + enter) == [b"hello"]
    assert feed(b"one" + enter + b"two" + enter) == [b"one", b"two"]
    assert feed(b"not yet") == []


def test_a_paste_is_one_message_however_many_lines_it_has() -> None:
    assert feed(START + TEXT + END + b"\r") == [TEXT]
    assert feed(b"before " + START + TEXT + END + b" after\r") == [b"before " + TEXT + b" after"]
    assert feed(START + END + b"\r") == [b""]


def test_a_paste_split_at_any_byte_is_the_same_message() -> None:
    typed = START + TEXT + END + b"\r"
    for cut in range(len(typed) + 1):
        assert feed(typed[:cut], typed[cut:]) == [TEXT], cut


def test_a_paste_that_comes_byte_by_byte_is_the_same_message() -> None:
    typed = b"a" + START + TEXT + END + b"b\r" + START + TEXT + END + b"\r"
    assert feed(*(bytes([value]) for value in typed)) == [b"a" + TEXT + b"b", TEXT]


@settings(deadline=None, database=None)
@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(0, 250), max_size=12))
def test_pastes_of_any_bytes_cut_anywhere_arrive_exactly(texts: list[bytes], cuts: list[int]) -> None:
    texts = [text.replace(END, b"") for text in texts]
    texts = [text for text in texts if END not in text + END[:-1]]
    typed = b"".join(START + text + END + b"\r" for text in texts)
    edges = [0, *sorted(min(cut, len(typed)) for cut in cuts), len(typed)]
    assert feed(*(typed[start:end] for start, end in pairwise(edges))) == texts


def test_what_looks_like_the_end_of_a_paste_is_text() -> None:
    for almost in (b"\x1b", b"\x1b[201", b"\x1b[2010~", b"\x1b[200~", b"[201~"):
        text = b"x" + almost + b"y"
        for cut in range(len(text)):
            assert feed(START + text[:cut], text[cut:] + END + b"\r") == [text]


def test_enter_and_control_characters_inside_a_paste_are_text() -> None:
    text = b"a\rb\nc\x03d\x04e\x15f\x7fg"
    assert feed(START + text + END + b"\r") == [text]


def test_keys_edit_the_line() -> None:
    assert feed("grün🙂\x7f\x08x\r".encode()) == ["grüx".encode()]
    assert feed(b"\x7f\x7fa\r") == [b"a"]
    assert feed(b"wrong\x15right\r") == [b"right"]
    assert feed(b"a\x04b\r") == [b"ab"]
    assert feed(b"tab\x01\x02bed\r") == [b"tabbed"]


def test_ctrl_c_and_ctrl_d_end_the_agent() -> None:
    with pytest.raises(KeyboardInterrupt):
        feed(b"some text\x03")
    with pytest.raises(EOFError):
        feed(b"\x04")


def test_what_is_being_typed_can_be_shown_at_any_time() -> None:
    editor = Editor()
    half = "ü".encode()
    editor.feed(b"gr" + half[:1])
    assert editor.tail() == "gr"
    editor.feed(half[1:] + b"n")
    assert editor.tail() == "grün"


def test_answers_say_what_arrived() -> None:
    assert "2 lines, 4 bytes" in demo.answer("ü\nx")
    assert "1 line, 1 bytes" in demo.answer("x")
    assert "/quit" in demo.answer("/help")


def test_the_demo_agent_takes_a_paste_keeps_it_and_quits(bare: Site) -> None:
    program = (sys.executable, "-ISE", demo.__file__)
    with pane(bare, *program, agent_env={"MAS_AGENT_ID": "00", "MAS_SESSION_ID": "an-id"}) as one:
        one.expect(b"no model behind it")
        one.expect(b"\x1b[?2004h00> ")
        one.send(START + TEXT + END + b"\r")
        one.expect(f"(demo) got 4 lines, {len(TEXT)} bytes".encode())
        inbox = one.path("inbox.md")
        until(lambda: os.path.exists(inbox), "the inbox")
        with open(inbox, "rb") as file:
            assert file.read() == TEXT + b"\n\n"
        one.send(b"/env\r")
        one.expect(b"MAS_SESSION_ID=an-id")
        one.send(b"\r/quit\r")
        assert one.wait() == 0
        assert b"\x1b[?2004l" in one.output


@pytest.mark.parametrize("keys", [b"\x03", b"\x04", b"/exit\r"])
def test_the_demo_agent_ends_in_good_order(bare: Site, keys: bytes) -> None:
    with pane(bare, sys.executable, "-ISE", demo.__file__) as one:
        one.expect(b"??> ")
        one.send(keys)
        assert one.wait() == 0
        assert b"Traceback" not in one.output


def test_a_message_of_one_mebibyte_arrives_whole(bare: Site) -> None:
    text = b"".join(b"%07d\n" % number for number in range(1 << 17))
    with pane(bare, sys.executable, "-ISE", demo.__file__) as one:
        one.expect(b"?2004h")
        one.send(START + text + END + b"\r")
        one.expect(b"%d bytes; kept" % len(text))
        with open(one.path("inbox.md"), "rb") as file:
            assert file.read() == text + b"\n\n"


def test_a_task_is_worked_on_in_steps_that_can_be_watched(
    stage: Stage, own_directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKFLOWS_DIR", own_directory)
    for name in ("ROLE.md", "00_manager.md"):
        with open(name, "w", encoding="utf-8") as file:
            file.write("one\ntwo\n")
    shown = stage.type(b"task: [0a1b2c by 10] Bake it\r")
    assert stage.states(shown) == ["working"]
    assert "✓" not in shown
    shown = stage.type(b"", 15.0)
    assert re.findall(r"✓\x1b\[0m (.*)\r", shown) == [
        "read ROLE.md, 2 lines",
        "read 00_manager.md, 2 lines",
        "wrote notes.md",
    ]
    with open("notes.md", encoding="utf-8") as file:
        assert file.read() == "- Bake it\n"


def test_a_step_that_finds_nothing_says_so(stage: Stage) -> None:
    shown = stage.type(b"task: [0a1b2c by 10] Bake it\r")
    shown = stage.type(b"", 15.0)
    assert "could not read ROLE.md: No such file" in shown
    assert "no workflow to read" in shown


def test_arrow_keys_type_nothing() -> None:
    editor = Editor()
    assert editor.feed(b"a\x1b[Ab\x1bOC\x1b[1;5Dc\r") == [b"abc"]


class Clock:
    """A clock that the test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Stage:
    """An agent without a terminal of its own, and what it shows."""

    def __init__(self, agent: str, capsys: pytest.CaptureFixture[str], session: str = "") -> None:
        self.clock = Clock()
        self.demo = Demo(agent, session, clock=self.clock)
        self._capsys = capsys

    def type(self, data: bytes, seconds: float = 0.0) -> str:
        """Type, let time pass, and see what is shown."""
        self.demo.typed(data)
        self.demo.step()
        self.clock.now += seconds
        self.demo.step()
        return self._capsys.readouterr().out

    def is_at_rest(self) -> bool:
        """Go on, and say whether there is nothing more to go on with."""
        self.demo.step()
        return self.demo.patience() is None

    def states(self, shown: str) -> list[str]:
        return re.findall(r"\x1b\]7501;state=(\w+)", shown)


@pytest.fixture
def own_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with short_directory() as directory:
        monkeypatch.chdir(directory)
        yield directory
        monkeypatch.chdir("/")


@pytest.fixture
def stage(own_directory: str, capsys: pytest.CaptureFixture[str]) -> Stage:
    return Stage("00", capsys)


def test_a_status_report_is_what_terminals_understand() -> None:
    report = status("blocked", "permission", "run «ls»")
    body = re.fullmatch(r"\x1b\]7501;(.*)\x1b\\", report)
    assert body
    fields = dict(field.split("=", 1) for field in body[1].split(":"))
    assert (fields["state"], fields["kind"]) == ("blocked", "permission")
    assert base64.b64decode(fields["msg"]).decode() == "run «ls»"


def test_a_message_is_worked_on_and_then_answered(stage: Stage) -> None:
    shown = stage.type(b"hello\r")
    assert stage.states(shown) == ["working"]
    assert "got 1 line" not in shown
    shown = stage.type(b"", 1.0)
    assert "(demo) got 1 line, 5 bytes; kept in inbox.md" in shown
    assert stage.states(shown) == ["idle"]


def test_what_comes_while_it_works_waits_its_turn(stage: Stage) -> None:
    stage.type(b"one\rtwo\r")
    shown = stage.type(b"", 1.0)
    assert shown.count("got 1 line") == 1
    assert stage.type(b"", 1.0).count("got 1 line") == 1
    with open("inbox.md", encoding="utf-8") as file:
        assert file.read() == "one\n\ntwo\n\n"


def test_a_question_blocks_until_it_is_answered_and_not_at_once(stage: Stage) -> None:
    shown = stage.type(b"/ask delete everything\r")
    assert stage.states(shown) == ["working", "blocked"]
    assert "May it delete everything?" in shown
    assert stage.type(b"\r", 0.4) == ""
    assert stage.type(b"\r", 0.2) == ""
    shown = stage.type(b"\r")
    assert "(demo) allowed" in shown
    assert stage.states(shown) == ["idle"]


@pytest.mark.parametrize(
    ("keys", "answer"),
    [(b"y\r", "allowed"), (b"n\r", "denied"), (b"no\r", "denied"), (b"\x1b", "denied"), (b"\r", "allowed"),
     (START + b"a message" + END + b"\r", "allowed")],
)  # fmt: skip
def test_an_answer_is_yes_no_enter_or_escape(stage: Stage, keys: bytes, answer: str) -> None:
    stage.type(b"/ask\r", 1.0)
    assert f"(demo) {answer}" in stage.type(keys)
    # What was pasted into the question is lost, as with real programs.
    assert not os.path.exists("inbox.md")
    assert "got 1 line" in stage.type(b"next\r", 1.0)


def test_commands_are_taken_behind_a_header(stage: Stage) -> None:
    header = "[MAS from=10 to=00 id=m-0011223344556677]\n"
    assert "May it look?" in stage.type(START + f"{header}/ask look".encode() + END + b"\r")
    stage.type(b"\x1b")
    shown = stage.type(b"/work 50\r", 49.0)
    assert stage.states(shown) == ["working"]
    assert stage.states(stage.type(b"", 2.0)) == ["idle"]
    assert "unknown command /nonsense" in stage.type(b"/nonsense\r")
    assert "/flood MB" in stage.type(b"/help\r")
    shown = stage.type(b"/flood 2\r")
    assert len(shown) > 1_900_000
    assert not os.path.exists("inbox.md")


def test_a_message_names_its_sender_and_its_kind() -> None:
    message = DemoMessage("[MAS from=10 to=11 id=m-1]\ntask: [0a1b2c by 10] Do it\nwell")
    assert (message.sender, message.to, message.kind, message.work) == ("10", "11", "task", "0a1b2c")
    assert (message.by, message.body) == ("10", "Do it\nwell")
    plain = DemoMessage("task: do it")
    assert (plain.kind, plain.by, plain.to, plain.body) == ("", "", "", "task: do it")
    assert DemoMessage("[MAS from=person to=00 id=m-1]\nhello").by == ""
    # Only the first line is a header.
    assert DemoMessage("see\n[MAS from=10 to=11 id=m-1]").sender == ""


def test_reports_are_collected_from_the_agents_that_were_asked() -> None:
    work = Work("a task", "00", ["11", "12"])
    work.note("13", "not asked")
    work.note("11", "done\n- and more")
    work.note("11", "again")
    assert work.waiting == {"12"}
    work.note("12", "done")
    assert work.summary() == "- 11: done\n  - and more\n- 12: done"


TEAM = {"metaManager": {"id": "00"}, "units": [{"name": "design", "manager": {"id": "10"}, "workers": [{"id": "11"}]}]}


@pytest.fixture
def session(own_directory: str) -> str:
    """A session of three, and a `mas` that records what it should send and fails for agent 99."""
    with open("config.json", "w", encoding="utf-8") as file:
        json.dump({"agents": TEAM}, file)
    return own_directory


def fake_mas(directory: str, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = os.path.join(directory, "mas")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\n{script}\n")
    os.chmod(path, 0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


def test_an_agent_knows_its_place(session: str) -> None:
    assert (read_place("00", session).led, read_place("00", session).is_meta) == (["10"], True)
    assert (read_place("10", session).led, read_place("10", session).is_meta) == (["11"], False)
    assert read_place("11", session).led == []
    assert read_place("00", "/nowhere").led == []


def test_a_task_goes_down_and_reports_come_up(
    session: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_mas(session, monkeypatch, 'echo "$@" > sent.$2.tmp; cat >> sent.$2.tmp; mv sent.$2.tmp sent.$2')

    def sent(target: str) -> str:
        path = os.path.join(session, f"sent.{target}")
        until(lambda: os.path.exists(path), f"what is sent to {target}")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        os.remove(path)
        assert text.startswith(f"send {target} -\n")
        return text.partition("\n")[2]

    meta, manager, worker = (Stage(agent, capsys, session) for agent in ("00", "10", "11"))
    shown = meta.type(b"task: Plan it\r", 1.0)
    assert "passing it on to 10" in shown
    down = sent("10")
    assert re.fullmatch(r"task: \[[0-9a-f]{6} by 00\] Plan it", down)
    manager.type(down.encode() + b"\r", 15.0)
    worker.type(sent("11").encode() + b"\r", 15.0)
    manager.type(sent("10").encode() + b"\r", 1.0)
    up = sent("00")
    assert up.startswith("report: [")
    shown = meta.type(START + f"[MAS from=10 to=00 id=m-1]\n{up}".encode() + END + b"\r")
    assert "all reports are in" in shown
    with open("report.md", encoding="utf-8") as file:
        assert file.read() == "# Report on: Plan it\n\n- 10: done: Plan it\n  - 11: done: Plan it\n"
    # A report that comes again is noted and goes nowhere.
    assert "passing" not in meta.type(START + up.encode() + END + b"\r", 1.0)
    for stage in (meta, manager, worker):
        until(stage.is_at_rest, "the last message sent")


def test_a_failed_message_is_reported_and_no_longer_waited_for(
    session: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_mas(session, monkeypatch, "echo 'error: Agent 10 is not running' >&2; exit 4")
    meta = Stage("00", capsys, session)
    shown = meta.type(b"Plan it\r", 1.0)
    until(meta.is_at_rest, "the end of the work")
    shown += meta.type(b"")
    assert "could not send to 10: error: Agent 10 is not running" in shown
    assert "all reports are in" in shown
    assert "- 10: not reached" in shown
    monkeypatch.setenv("PATH", "/nowhere")
    assert "could not send to 10: No such file" in meta.type(b"Plan it\r", 1.0)


def test_a_message_to_a_whole_group_is_not_passed_on(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    meta = Stage("00", capsys, session)
    shown = meta.type(START + b"[MAS from=person to=all id=m-1]\nhello" + END + b"\r", 1.0)
    assert "got 1 line" in shown
    assert "passing" not in shown


def run(directory: str, *arguments: str) -> Terminal:
    return Terminal([sys.executable, "-ISE", demo.__file__, *arguments], {"MAS_AGENT_ID": "07"}, directory)


def test_on_a_terminal_it_is_idle_works_asks_and_is_idle_again(own_directory: str) -> None:
    with run(own_directory) as terminal:
        terminal.until("state=idle")
        terminal.type("/ask go on\r")
        terminal.until("state=blocked:kind=permission")
        terminal.type("\x1b")
        terminal.until("(demo) denied")
        terminal.type("/quit\r")
        shown = terminal.end()
        assert terminal.code == 0
        assert re.findall(r"state=(\w+)", shown) == ["idle", "working", "blocked", "idle", "working"]


def test_it_dies_with_the_status_it_is_given(own_directory: str) -> None:
    with run(own_directory) as terminal:
        terminal.until("state=idle")
        terminal.type("/die 7\r")
        terminal.end()
        assert terminal.code == 7


@pytest.mark.parametrize("command", ["/hang", "/ignore-signals"])
def test_it_can_be_set_to_ignore_signals(bare: Site, command: str) -> None:
    with pane(bare, sys.executable, "-ISE", demo.__file__) as one:
        one.expect(b"??> ")
        one.send(f"{command}\r".encode())
        pid = one.event("start")["pid"]
        # All of them: it ignores one after the other, and its launcher sends it a hang-up first.
        every = sum(1 << (number - 1) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT))

        def ignores() -> bool:
            done = subprocess.run(["grep", "SigIgn", f"/proc/{pid}/status"], capture_output=True, text=True, check=True)
            return int(done.stdout.split()[1], 16) & every == every

        until(ignores, "its signals are ignored")
        os.kill(pid, signal.SIGTERM)
        one.process.terminate()
        one.wait()
        assert one.event("exit")["status"] == -signal.SIGKILL


def test_a_resumed_one_says_so(own_directory: str) -> None:
    with run(own_directory, "--resume") as terminal:
        terminal.until("(demo) resumed")
        terminal.type("/quit\r")
        terminal.end()
        assert terminal.code == 0
