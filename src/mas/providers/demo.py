"""The demo agent: a small program that behaves like a real agent CLI, with no model behind it.

It takes messages by paste, works a moment, reports its states (OSC 7501), asks for permission on command, and in a
team passes a task on and collects the reports. A task is worked on in steps that can be watched. Run by path with
`python -ISE`, so it imports the standard library only.
"""

import binascii
import os
import re
import select
import signal
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable
from functools import partial

# A checker takes this name for true; `typing` itself would slow the start of every agent.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

_PASTE_START, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_ESCAPE = b"\x1b"
# Arrows and the like: it has no use for them, and their letters are no text.
_OTHER_KEYS = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]")
_SHOWN = 200
_HELP = """\
Type a message and press Enter. In a team, 00 passes a task on and shows the
reports. Commands:
  /ask [QUESTION]   ask for a permission    /work SECONDS   be busy
  /die [STATUS]     end at once             /hang           never answer again
  /ignore-signals   end only when killed    /flood MB       print a lot
  /env              show the session        /help  /quit"""
_HEADER = re.compile(r"\[MAS from=(\S+) to=(\S+) id=(\S+)\]")
# A task or report of one piece of work: its number, and the agent it comes from.
_MARKED = re.compile(r"(task|report): \[([0-9a-f]{6}) by (\d\d)\] ?")
_AGENT = re.compile(r"\d\d")
# Enter that comes this soon after a question was typed before it was seen: real programs ignore it too.
_TOO_SOON = 0.5
_SHORTEST_WORK, _LONGEST_WORK = 0.1, 0.5
# A step of a task takes this many times as long as a message, so that people can watch it.
_STEP = 6
_LONGEST_COMMAND = 3600.0
_MOST_FLOOD = 1024
_GLANCE = 0.02
_TITLE_OF_TASK = 60


class Editor:
    """Turns what is typed into messages: Enter submits, a bracketed paste may hold any number of lines."""

    def __init__(self) -> None:
        self._raw = b""
        self._line = b""
        self._pasting = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take what was typed; returns the messages that were submitted by it."""
        self._raw += data
        done = []
        while self._raw:
            if self._pasting:
                text, end, rest = self._raw.partition(_PASTE_END)
                if not end:
                    # Keep back what may be the beginning of the end mark.
                    keep = len(_PASTE_END) - 1
                    self._line += self._raw[:-keep]
                    self._raw = self._raw[-keep:]
                    break
                self._line += text
                self._raw, self._pasting = rest, False
            elif self._raw.startswith(_PASTE_START):
                self._raw, self._pasting = self._raw[len(_PASTE_START) :], True
            elif _PASTE_START.startswith(self._raw):
                break
            elif arrow := _OTHER_KEYS.match(self._raw):
                self._raw = self._raw[arrow.end() :]
            else:
                done += self._key(self._raw[:1])
                self._raw = self._raw[1:]
        return done

    def _key(self, key: bytes) -> list[bytes]:
        if key in (b"\r", b"\n"):
            line, self._line = self._line, b""
            return [line]
        if key in (b"\x7f", b"\x08"):
            self._line = self._line.decode("utf-8", "ignore")[:-1].encode()
        elif key == b"\x15":
            self._line = b""
        elif key == b"\x03":
            raise KeyboardInterrupt
        elif key == b"\x04" and not self._line:
            raise EOFError
        elif key >= b" ":
            self._line += key
        return []

    def tail(self) -> str:
        """The end of what is being typed, as much as one looks at."""
        return self._line[-_SHOWN:].decode("utf-8", "ignore").split("\n")[-1]


class DemoPlace:
    """This agent's place in its team: the agents that it leads, and their names."""

    def __init__(self, agent: str, units: list[list[str]], meta: str | None) -> None:
        self.agent = agent
        managers = [unit[0] for unit in units]
        if agent == meta:
            self.led = managers
        else:
            self.led = next((unit[1:] for unit in units if unit[0] == agent), [])
        self.is_meta = agent == meta and bool(managers)


def read_place(agent: str, session: str) -> DemoPlace:
    """The place that the session's configuration gives it; alone if there is none."""
    import json

    try:
        with open(os.path.join(session, "config.json"), encoding="utf-8") as file:
            team = json.load(file)["agents"]
        units = [[member["id"] for member in (unit["manager"], *unit["workers"])] for unit in team["units"]]
        return DemoPlace(agent, units, team.get("metaManager", {}).get("id"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return DemoPlace(agent, [], None)


class DemoMessage:
    """What was typed or pasted: its header, if it has one, and the text behind it."""

    def __init__(self, text: str) -> None:
        first, _, rest = text.partition("\n")
        header = _HEADER.fullmatch(first.strip())
        self.sender = header[1] if header else ""
        self.to = header[2] if header else ""
        self.text = rest if header else text
        marked = _MARKED.match(self.text)
        self.kind, self.work, by = marked.groups() if marked else ("", "", "")
        self.by = by or (self.sender if _AGENT.fullmatch(self.sender) else "")
        self.body = self.text[marked.end() :] if marked else self.text


class Work:
    """One task that was passed on, and the reports that are still to come."""

    def __init__(self, task: str, asked_by: str, waiting: list[str]) -> None:
        self.task = task
        self.asked_by = asked_by
        self.waiting = set(waiting)
        self.reports: dict[str, str] = {}

    def note(self, agent: str, report: str) -> None:
        if agent in self.waiting:
            self.waiting.discard(agent)
            self.reports[agent] = report

    def summary(self) -> str:
        """All reports, each agent's own lines under its name."""
        lines = []
        for agent, report in sorted(self.reports.items()):
            first, *rest = report.split("\n")
            lines += [f"- {agent}: {first}", *(f"  {line}" for line in rest if line)]
        return "\n".join(lines)


def answer(message: str) -> str:
    """What the demo agent prints for a message."""
    if message == "/help":
        return _HELP
    if message == "/env":
        names = ("MAS_SESSION_ID", "MAS_AGENT_ID", "MAS_SESSION_DIR", "UNIT_DIR", "WORKFLOWS_DIR")
        return "\n".join(f"{name}={os.environ.get(name, '')}" for name in names)
    lines = message.count("\n") + 1
    return f"(demo) got {lines} line{'s' * (lines > 1)}, {len(message.encode())} bytes; kept in inbox.md"


def status(state: str, kind: str = "", text: str = "") -> str:
    """The bytes by which a program reports to its terminal what it is doing."""
    fields = [f"state={state}", f"kind={kind}" if kind else "", "app=mas-demo"]
    fields.append(f"msg={binascii.b2a_base64(text.encode(), newline=False).decode()}" if text else "")
    return f"\x1b]7501;{':'.join(field for field in fields if field)}\x1b\\"


def show(text: str) -> None:
    sys.stdout.write(text.replace("\n", "\r\n"))
    sys.stdout.flush()


def keep(message: str) -> None:
    with open("inbox.md", "a", encoding="utf-8") as file:
        file.write(message + "\n\n")


class Sender:
    """Passes messages on with `mas send`, in the background."""

    def __init__(self) -> None:
        self._running: list[tuple[str, str, subprocess.Popen[bytes]]] = []

    def send(self, target: str, text: str, work: str) -> str:
        """Begin to send; returns why it cannot even begin, or nothing."""
        try:
            # A file that has no name: a message may be larger than what a pipe holds.
            path = f".outgoing-{os.getpid()}"
            with open(path, "w+b") as file:
                os.unlink(path)
                file.write(text.encode())
                file.seek(0)
                process = _popen(["mas", "send", target, "-"], file.fileno())
        except OSError as error:
            return f"{error.strerror or error}"
        self._running.append((target, work, process))
        return ""

    def busy(self) -> bool:
        return bool(self._running)

    def ended(self) -> list[tuple[str, str, str]]:
        """What has been sent, or not: target, work, and why not."""
        done = []
        for item in [item for item in self._running if item[2].poll() is not None]:
            self._running.remove(item)
            target, work, process = item
            printed = process.communicate()[1].decode("utf-8", "replace").strip().split("\n")
            done.append((target, work, (printed[0] or f"status {process.returncode}") if process.returncode else ""))
        return done


def _popen(argv: list[str], stdin: int) -> "subprocess.Popen[bytes]":
    # Only an agent of a team needs it, and it would slow the start of every one.
    import subprocess

    return subprocess.Popen(argv, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Demo:
    """The agent: what it is doing, what waits, and what it has passed on."""

    def __init__(
        self, agent: str, session: str, speed: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._agent = agent
        self._session = session
        self._speed = speed
        self._clock = clock
        self._editor = Editor()
        self._sender = Sender()
        self._waiting: deque[str] = deque()
        self._works: dict[str, Work] = {}
        self._busy_until: float | None = None
        self._then: DemoMessage | None = None
        self._steps: deque[Callable[[], str]] = deque()
        self._asked_at: float | None = None
        self._state = ""
        self._prompt = f"{agent}> "

    def begin(self, resumed: bool) -> None:
        show(f"Demo agent {self._agent}, no model behind it. Try /help\n")
        if resumed:
            show("(demo) resumed: earlier messages are in inbox.md\n")
        show(f"\x1b[?2004h{self._prompt}")
        self._report("idle")

    def patience(self) -> float | None:
        """How long nothing needs to be done, if nothing is typed."""
        waits = [self._busy_until - self._clock()] if self._busy_until is not None else []
        if self._sender.busy():
            waits.append(_GLANCE)
        return max(0.0, min(waits)) if waits else None

    def typed(self, data: bytes) -> None:
        if self._asked_at is not None:
            self._answer(data)
            return
        for message in self._editor.feed(data):
            text = message.decode("utf-8", "replace")
            show(f"\r\x1b[K{self._prompt}{text}\n")
            if text.strip():
                self._waiting.append(text)
        show(f"\r\x1b[K{self._prompt}{self._editor.tail()}")

    def step(self) -> None:
        """Go on with what is due."""
        for target, work, why in self._sender.ended():
            if why:
                self._not_sent(target, work, why)
        while self._steps and self._is_due():
            self._say(f"\x1b[32m✓\x1b[0m {self._steps.popleft()()}")
            self._busy_until = (self._busy_until or 0.0) + self._pause() * _STEP
        if self._is_due():
            self._busy_until, done, self._then = None, self._then, None
            if done is not None:
                self._finish(done)
        while self._waiting and self._busy_until is None and self._asked_at is None:
            self._take(self._waiting.popleft())
        if self._busy_until is None and self._asked_at is None:
            self._report("idle")

    def _is_due(self) -> bool:
        return self._busy_until is not None and self._clock() >= self._busy_until

    def _say(self, text: str) -> None:
        show(f"\r\x1b[K{text}\n{self._prompt}{self._editor.tail()}")

    def _report(self, state: str, kind: str = "", text: str = "") -> None:
        """Report to the terminal, but only changes."""
        report = status(state, kind, text)
        if report != self._state:
            self._state = report
            show(f"{report}\x1b]2;demo {self._agent} {state}\x07")

    def _work(self, seconds: float, then: DemoMessage | None = None) -> None:
        self._busy_until, self._then = self._clock() + seconds, then

    def _take(self, text: str) -> None:
        """Begin with a message: a command, a report, or something to work on."""
        message = DemoMessage(text)
        self._report("working", text=message.body[:_TITLE_OF_TASK].split("\n")[0])
        if message.text.startswith("/"):
            self._command(message.text)
            return
        keep(text)
        if message.kind == "report":
            self._collect(message)
        elif message.kind == "task":
            self._steps.extend((_read_role, partial(_read_workflow, self._agent), partial(_write_notes, message.body)))
            self._work(self._pause() * _STEP, message)
        else:
            self._work(self._pause(), message)

    def _pause(self) -> float:
        return (_SHORTEST_WORK + (_LONGEST_WORK - _SHORTEST_WORK) * os.urandom(1)[0] / 255) / self._speed

    def _command(self, text: str) -> None:
        word, _, rest = text.strip().partition(" ")
        if word in ("/quit", "/exit"):
            raise EOFError
        if word == "/ask":
            self._ask(rest.strip() or "run a command")
        elif word == "/work":
            self._work(_number(rest, 1.0, _LONGEST_COMMAND))
        elif word == "/die":
            os._exit(int(_number(rest, 1, 255)))
        elif word == "/hang":
            _ignore_signals()
            while True:
                signal.pause()
        elif word == "/ignore-signals":
            _ignore_signals()
            self._say("(demo) now only a kill ends this agent")
        elif word == "/flood":
            _flood(int(_number(rest, 1, _MOST_FLOOD)))
        elif word in ("/help", "/env"):
            self._say(answer(word))
        else:
            self._say(f"(demo) unknown command {word[:20]}; /help lists the commands")

    def _ask(self, question: str) -> None:
        question = question.split("\n")[0]
        self._asked_at = self._clock()
        self._report("blocked", "permission", question)
        show(f"\r\x1b[K(demo) May it {question}?\n  Enter or y: yes   n or Escape: no\n? ")

    def _answer(self, data: bytes) -> None:
        """Keys at a question. As with real programs, text that is pasted here is lost, and Enter means yes."""
        lines = [b"n"] if data == _ESCAPE else self._editor.feed(data)
        assert self._asked_at is not None
        if lines and (data == _ESCAPE or self._clock() - self._asked_at >= _TOO_SOON):
            self._asked_at = None
            denied = lines[0].strip().lower() in (b"n", b"no")
            self._say("(demo) denied" if denied else "(demo) allowed")
            # What was typed after the answer is a normal message.
            self._waiting.extend(line.decode("utf-8", "replace") for line in lines[1:] if line.strip())

    def _finish(self, message: DemoMessage) -> None:
        """The work is done: report it to the agent that asked."""
        self._say(answer(message.text))
        task = message.body.removeprefix("task:").strip()
        # Only a task for this agent alone is passed on: a message to a whole group has reached all of them.
        alone = message.to in ("", self._agent)
        place = read_place(self._agent, self._session)
        if place.led and alone and (message.kind == "task" or (place.is_meta and not message.by)):
            self._pass_on(message.work or os.urandom(3).hex(), Work(task, message.by, place.led))
        elif message.kind == "task":
            self._send(message.by, f"report: [{message.work} by {self._agent}] {_done(task)}", message.work)

    def _pass_on(self, name: str, work: Work) -> None:
        self._works[name] = work
        self._say(f"(demo) passing it on to {', '.join(sorted(work.waiting))} (work {name})")
        for agent in sorted(work.waiting):
            self._send(agent, f"task: [{name} by {self._agent}] {work.task}", name)

    def _collect(self, message: DemoMessage) -> None:
        work = self._works.get(message.work)
        if work is not None:
            work.note(message.by, message.body)
            self._say(f"(demo) report of {message.by}; {len(work.waiting)} still to come (work {message.work})")
            self._close(message.work, work)

    def _close(self, name: str, work: Work) -> None:
        """Once all reports are in: pass them up, or show them if this agent has no manager."""
        if work.waiting:
            return
        del self._works[name]
        if work.asked_by:
            self._send(work.asked_by, f"report: [{name} by {self._agent}] {_done(work.task)}\n{work.summary()}", name)
            return
        text = f"# Report on: {work.task.splitlines()[0] if work.task else ''}\n\n{work.summary()}\n"
        with open("report.md", "w", encoding="utf-8") as file:
            file.write(text)
        self._say(f"(demo) all reports are in (work {name}); kept in report.md\n{text.rstrip()}")
        self._send("person", text, "")

    def _send(self, target: str, text: str, work: str) -> None:
        why = self._sender.send(target, text, work) if target else "the task does not say who asked for it"
        if why:
            self._not_sent(target, work, why)

    def _not_sent(self, target: str, name: str, why: str) -> None:
        self._say(f"(demo) could not send to {target or 'anybody'}: {why}")
        work = self._works.get(name)
        if work is not None and target in work.waiting:
            work.note(target, f"not reached ({why})")
            self._close(name, work)


def _read_role() -> str:
    return _read("ROLE.md")


def _read_workflow(agent: str) -> str:
    directory = os.environ.get("WORKFLOWS_DIR", "")
    try:
        own = [name for name in sorted(os.listdir(directory)) if name.startswith(agent)]
    except OSError:
        own = []
    return _read(os.path.join(directory, own[0])) if own else "no workflow to read"


def _read(path: str) -> str:
    name = os.path.basename(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return f"read {name}, {sum(1 for _ in file)} lines"
    except OSError as error:
        return f"could not read {name}: {error.strerror}"


def _write_notes(task: str) -> str:
    with open("notes.md", "a", encoding="utf-8") as file:
        file.write(f"- {task}\n")
    return "wrote notes.md"


def _done(task: str) -> str:
    title = task.split("\n")[0]
    return f"done: {title[:_TITLE_OF_TASK]}{'…' * (len(title) > _TITLE_OF_TASK)}"


def _number(text: str, usual: float, most: float) -> float:
    try:
        return min(max(float(text), 0.0), most) if text.strip() else usual
    except ValueError:
        return usual


def _ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


def _flood(megabytes: int) -> None:
    line = "demo " * 15 + "demo\n"
    for number in range(megabytes):
        show(f"{number + 1} MB\n" + line * (1_000_000 // len(line)))


def main() -> None:
    agent = os.environ.get("MAS_AGENT_ID", "??")
    speed = _number(os.environ.get("MAS_DEMO_SPEED", ""), 1.0, 1000.0) or 1.0
    demo = Demo(agent, os.environ.get("MAS_SESSION_DIR", ""), speed)
    saved = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        demo.begin("--resume" in sys.argv)
        while True:
            if select.select([0], [], [], demo.patience())[0]:
                data = os.read(0, 65536)
                if not data:
                    break
                demo.typed(data)
            demo.step()
    except (EOFError, KeyboardInterrupt):
        show("\n")
    finally:
        sys.stdout.write("\x1b[?2004l")
        sys.stdout.flush()
        termios.tcsetattr(0, termios.TCSANOW, saved)


if __name__ == "__main__":
    main()
