"""What an agent's screen shows: startup dialogs, and its state if no better source reports it.

The screen is what tmux has drawn, so tmux is asked for it: by a separate process whose output is read in the main
loop, one at a time, when output has paused, and at growing intervals while it does not. It is only read; no
key is ever pressed. A screen that could not be read means nothing.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` would import `enum`: a third of the launcher's start
import os

from mas.store.agent.agentlog import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from mas.model.launch import Sign, StatePlan

    # State, kind, text.
    Say = Callable[[str, str, str], None]
    Known = tuple[re.Pattern[str], Sign]

# The screen of a starting program is read once it has printed nothing for this long, or after a growing pause.
_CALM = 0.3
_SOON = 0.5
_SELDOM = 8.0
# The least time between two looks; it grows once this many looks have found nothing new.
_SPACE = 0.5
_MANY = 10
_LARGEST_SPACE = 8.0
# tmux may not have drawn yet what it has been given: after such pauses the same screen is looked at again.
_AGAIN = 1.0
_LAST = 8.0
# A tmux that has not responded for this long is not waited for, and asked less and less often.
_PATIENCE = 3.0
_LONGEST_PATIENCE = 60.0
_BLOCK = 1 << 16
_LARGEST = 1 << 20
_LAST_LINES = 24
# What is printed so soon after something was typed is its echo.
_ECHO = 1.0
_ENTER = b"\r"
_LONGEST_TEXT = 200
# What frames a line and marks a choice.
_FRAME = " \t│┃║|╭╮╰╯─━❯›>•●*"

_IDLE = ("idle", "")


class ScreenReader:
    """Looks at the screen of a pane (`where`: the socket of its tmux and its id) and says what it means.

    The plan's `dialogs` are matched while the program starts; once a dialog is gone, `starting` takes it back. Its
    `screen_map` is matched against the last lines of a screen that has not changed for `quiet` seconds; from the first
    match on, Enter, a screen that changes and one that matches nothing mean `working`. An idle program to which
    something is typed is idle until Enter.
    """

    def __init__(self, where: tuple[str, str], plan: StatePlan, say: Say, now: float) -> None:
        self.due: float | None = None
        """When to look, by the monotonic clock."""
        self.fd = -1
        """Where tmux's answer comes from, while one is awaited."""
        self._command = ["tmux", "-u", "-N", "-S", where[0], "capture-pane", "-p", "-t", where[1]]
        self._plan = plan
        self._known: tuple[list[Known], list[Known]] | None = None
        self._quiet = max(0.1, plan.quiet)
        self._say = say
        self._dialog: tuple[str, str, str] | None = None
        self._state: tuple[str, str] | None = None
        self._typed = now - _ECHO
        self._drafted = False
        self._pid = 0
        self._answer = bytearray()
        self._changed = now
        self._looked = now
        self._fresh = True
        self._looks = 0
        self._pause = _SOON
        self._again = _AGAIN
        self._patience = _PATIENCE
        self._not_before = now
        self._plan_look()

    def stir(self, now: float) -> None:
        """tmux was given something to draw."""
        self._changed = now
        self._fresh = True
        if self._state == _IDLE and now - self._typed < _ECHO:
            self._drafted = True
        elif self._state:
            self._tell("working", "")
        if not self._pid:
            self._plan_look()

    def hear(self, data: bytes, now: float) -> None:
        """Something is typed to the program."""
        if _ENTER not in data:
            self._typed = now
        elif self._state:
            # A program may take it without a sign: look what came of it.
            self._typed = now - _ECHO
            self.stir(now)

    def look(self, now: float) -> None:
        """Ask tmux for the screen, or give up waiting for it."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            # Its exit is reported like that of every process.
            self.due = None
            return
        calm = now - self._changed >= _CALM
        self._pause = _SOON if calm else min(self._pause * 2, _SELDOM)
        self._again = _AGAIN if self._fresh else self._again * 2
        self._looked = now
        self._fresh = False
        self._looks += 1
        self._ask(now)

    def read(self) -> None:
        """Take what tmux answers."""
        try:
            data = os.read(self.fd, _BLOCK)
        except BlockingIOError:
            return
        self._answer += data
        if not data or len(self._answer) > _LARGEST:
            self._hang_up()

    def ended(self, pid: int, status: int, now: float) -> None:
        """A process has ended: if it is the one that was asked, its answer is whole."""
        if pid != self._pid:
            return
        before = -1
        while self.fd >= 0 and before < len(self._answer):
            before = len(self._answer)
            self.read()
        self._hang_up()
        self._pid = 0
        answer, self._answer = bytes(self._answer), bytearray()
        if status:
            self._back_off(now)
        else:
            self._patience = _PATIENCE
            self._judge(answer.decode("utf-8", "replace"))
            self._plan_look()

    def close(self) -> None:
        """Look no more."""
        self.due = None
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0
        self._hang_up()

    def _plan_look(self) -> None:
        """When to look next; never, if the screen has stayed as it was seen more than once."""
        if self._fresh and self._plan.dialogs and not self._state:
            space = min(_SPACE * 2.0 ** (self._looks // _MANY), _LARGEST_SPACE)
            due = max(min(self._changed + _CALM, self._looked + self._pause), self._looked + space)
        elif self._plan.screen_map and self._looked < self._changed + self._quiet:
            due = max(self._changed + self._quiet, self._looked + _SPACE)
        elif self._again <= _LAST:
            due = self._looked + self._again
        else:
            self.due = None
            return
        self.due = max(due, self._not_before)

    def _ask(self, now: float) -> None:
        try:
            self.fd, answer = os.pipe()
        except OSError:
            self._back_off(now)
            return
        os.set_blocking(self.fd, False)
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, answer, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        usual = [signal.SIGPIPE, signal.SIGXFSZ]
        try:
            self._pid = os.posix_spawnp("tmux", self._command, os.environ, file_actions=actions, setsigdef=usual)
            self.due = now + self._patience
        except OSError:
            # No tmux to be found, or no room for a process.
            self._hang_up()
            self._back_off(now)
        finally:
            os.close(answer)

    def _back_off(self, now: float) -> None:
        self._fresh = True
        self.due = self._not_before = now + self._patience
        self._patience = min(self._patience * 2, _LONGEST_PATIENCE)

    def _hang_up(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _judge(self, screen: str) -> None:
        """Say what the screen means, if that is another thing than it meant before."""
        if self._known is None:
            self._known = known_screens(self._plan)
        lines = screen.rstrip().split("\n")
        if not self._state and (found := dialog_on(lines, self._known[0])):
            if found != self._dialog:
                self._news(found)
                self._say(*found)
            return
        if self._known[1] and not self._fresh and self._looked - self._changed >= self._quiet:
            state, text = state_on(lines, self._known[1])
            if state or self._state:
                self._dialog = None
                self._tell(state or ("idle" if self._drafted else "working"), text)
                return
        if self._dialog:
            self._news(None)
            self._say("starting", "", "")

    def _news(self, dialog: tuple[str, str, str] | None) -> None:
        """What has just changed is likely to change again."""
        self._dialog = dialog
        self._looks = 0
        self._pause = _SOON

    def _tell(self, state: str, text: str) -> None:
        self._drafted = self._drafted and state == "idle"
        if (state, text) != self._state:
            self._state = (state, text)
            self._say(state, "question" if state == "blocked" else "", text)


def screen_of(plan: StatePlan, say: Say, now: float) -> ScreenReader | None:
    """The screen of this process's own pane; None if there is no tmux that draws it."""
    socket = os.environ.get("TMUX", "").rsplit(",", 2)[0]
    pane = os.environ.get("TMUX_PANE", "")
    if not socket or not pane:
        return None
    return ScreenReader((socket, pane), plan, say, now)


_ORDER = ("blocked", "working", "idle")


def known_screens(plan: StatePlan) -> tuple[list[Known], list[Known]]:
    """What is known as a dialog, and what as a state: that it waits for an answer first, that it is idle last."""
    from mas.pane.signs import compiled

    by_state = [sign for sign in plan.screen_map if sign.state in _ORDER]
    return compiled(plan.dialogs), compiled(sorted(by_state, key=lambda sign: _ORDER.index(sign.state)))


def dialog_on(lines: list[str], known: list[Known]) -> tuple[str, str, str] | None:
    """The dialog that a screen shows: its state, its kind, its line with what a person can do."""
    screen = "\n".join(lines)
    # In a narrow pane a sentence goes on in the next line.
    flow = " ".join(" ".join(line.strip(_FRAME) for line in lines).split())
    for pattern, sign in known:
        if match := pattern.search(screen):
            text = _line_of(screen, match)
        elif match := pattern.search(flow):
            text = match[0]
        else:
            continue
        return sign.state, sign.kind, "; ".join(word for word in (_shown(text), sign.hint) if word)
    return None


def state_on(lines: list[str], known: list[Known]) -> tuple[str, str]:
    """The state that the last lines of a screen show, and the line with the question; nothing if none."""
    end = "\n".join(line.rstrip() for line in lines[-_LAST_LINES:])
    for pattern, sign in known:
        if match := pattern.search(end):
            return sign.state, _shown(_line_of(end, match)) if sign.state == "blocked" else ""
    return "", ""


def _line_of(screen: str, match: re.Match[str]) -> str:
    """The line of the screen in which a match ends."""
    start = screen.rfind("\n", 0, max(match.end() - 1, 0)) + 1
    end = screen.find("\n", max(match.end() - 1, 0))
    return screen[start : end if end >= 0 else len(screen)]


def _shown(text: str) -> str:
    return plain(" ".join(text.strip(_FRAME).split()).encode("utf-8", "replace"), _LONGEST_TEXT)
