"""The launcher's side of an isolated agent's hooks: waits for new ones, and starts a process that records them.

That process is the launcher's fork, outside the sandbox, there for as long as something rings. It trusts nothing that
lies in the spool: only files are opened, none by a link, none that is too large, and only names that rang.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` would import `enum`: a third of the launcher's start
import fcntl
import os
import select
import stat
import time

from mas.pane.processes import die_with_parent
from mas.store.agent.hook_spool import ANSWER, ASKED, BELL, LARGEST, RING, spool_path
from mas.store.files.descriptors import DIRECTORY, NEW, READ, SAFE, try_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mas.store.agent.hooks import PendingQuestion

_IGNORED = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
_HIGHEST_FD = 256
_BLOCK = 32 * RING
# A clerk (the process that records hooks) exits after this long without a hook; the next starts no sooner than this.
_QUIET = 1.0
_PAUSE = 0.25
# How many hooks may come at once, and how many a second in the long run; the others wait, and then give up.
_BURST = 64.0
_RATE = 40.0
# What rings for nothing costs next to nothing.
_NOTHING = 0.02
_GLANCE = 0.05
# At most this many questions wait at once; more are recorded, and their dialogs are left to people.
_QUESTIONS = 8
_HEX = frozenset(b"0123456789abcdef")


class Hooks:
    """Receives one agent's hooks. `OSError` if its spool cannot be created."""

    def __init__(self, session_dir: str, agent: str) -> None:
        self.due: float | None = None
        """When to listen again, by the monotonic clock; None for now."""
        self._session_dir = session_dir
        self._agent = agent
        self._clerk = 0
        place, name = os.path.split(spool_path(session_dir, agent))
        outer = os.open(place, DIRECTORY)
        try:
            self._owner = os.fstat(outer)
            self._directory = self._made(outer, name)
        finally:
            os.close(outer)
        self._bell = self._hung_up()

    @property
    def fd(self) -> int:
        """The descriptor to watch; -1 while a clerk watches it."""
        return -1 if self._clerk or self.due is not None else self._bell

    def hear(self, now: float) -> None:
        """Something rings: have it seen to."""
        self.due = now + _PAUSE
        try:
            clerk = os.fork()
        except OSError:
            # As many processes as may be; there will be fewer.
            return
        if clerk:
            self._clerk = clerk
            return
        try:
            _leave_the_pane((self._directory, self._bell))
            _Clerk(self._session_dir, self._agent, self._directory, self._bell, self._owner).work()
        finally:
            os._exit(0)

    def look(self, now: float) -> None:
        """The pause after the last clerk started is over."""
        self.due = None

    def ended(self, pid: int) -> None:
        """A child of the launcher was reaped."""
        if pid == self._clerk:
            self._clerk = 0

    def rest(self) -> None:
        """The agent has exited: no question waits any more."""
        if self._clerk:
            os.kill(self._clerk, signal.SIGKILL)
            os.waitpid(self._clerk, 0)
            self._clerk = 0

    def _made(self, outer: int, name: str) -> int:
        """The spool, which is a directory and no link, whatever a former run left there."""
        try:
            os.unlink(name, dir_fd=outer)
        except OSError:
            # Nothing, or a directory.
            pass
        try:
            os.mkdir(name, 0o700, dir_fd=outer)
        except FileExistsError:
            pass
        fd = os.open(name, DIRECTORY, dir_fd=outer)
        os.fchmod(fd, 0o700)
        self._give(fd)
        return fd

    def _hung_up(self) -> int:
        """A new bell (a named pipe), open both ways: it never looks closed, and keeps what comes while no one reads."""
        try:
            os.unlink(BELL, dir_fd=self._directory)
        except FileNotFoundError:
            pass
        os.mkfifo(BELL, 0o600, dir_fd=self._directory)
        fd = os.open(BELL, os.O_RDWR | os.O_NONBLOCK | SAFE, dir_fd=self._directory)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            raise OSError("the bell is no pipe")
        self._give(fd)
        return fd

    def _give(self, fd: int) -> None:
        """A file in the agent's directory gets the owner of that directory."""
        if self._owner.st_uid != os.geteuid():
            os.fchown(fd, self._owner.st_uid, self._owner.st_gid)


def _leave_the_pane(kept: tuple[int, int]) -> None:
    """Be no part of the terminals and signals that the launcher is there for, but end with it."""
    die_with_parent()
    signal.set_wakeup_fd(-1)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    first, second = sorted(kept)
    os.closerange(3, first)
    os.closerange(first + 1, second)
    os.closerange(second + 1, _HIGHEST_FD)


class _Clerk:
    """Records hooks one after the other, and waits with those that are questions."""

    def __init__(self, session_dir: str, agent: str, directory: int, bell: int, owner: os.stat_result) -> None:
        self._session_dir = session_dir
        self._agent = agent
        self._directory = directory
        self._bell = bell
        self._owner = owner
        self._waiting: dict[str, tuple[PendingQuestion, int]] = {}
        self._room = _BURST
        self._at = time.monotonic()

    def work(self) -> None:
        """Until all is quiet."""
        rest = b""
        quiet_at = time.monotonic() + _QUIET
        while self._waiting or time.monotonic() < quiet_at:
            if select.select([self._bell], [], [], _GLANCE if self._waiting else _QUIET)[0]:
                *rings, rest = (rest + os.read(self._bell, _BLOCK)).split(b"\n")
                rest = rest[-RING:]
                for ring in rings:
                    is_name = len(ring) == RING - 1 and _HEX.issuperset(ring)
                    self._spend(1 if is_name and self._note(ring.decode()) else _NOTHING)
                self._spend(_NOTHING)
                quiet_at = time.monotonic() + _QUIET
            for name in list(self._waiting):
                self._look(name)

    def _spend(self, cost: float) -> None:
        """Go no faster than is bearable."""
        now = time.monotonic()
        self._room = min(_BURST, self._room + (now - self._at) * _RATE) - cost
        self._at = now
        if self._room < 0:
            time.sleep(-self._room / _RATE)

    def _note(self, name: str) -> bool:
        """Whether there was something to record."""
        from mas.store.agent.hooks import PendingQuestion, note_hook

        try:
            fd = os.open(name, READ, dir_fd=self._directory)
        except OSError:
            return False
        is_kept = False
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1 or info.st_size > LARGEST:
                return True
            hook, _, payload = os.read(fd, LARGEST).partition(b"\n")
            question = note_hook(self._session_dir, self._agent, os.fsdecode(hook), payload)
            if question:
                if len(self._waiting) < _QUESTIONS and self._put(name + ASKED, b""):
                    self._waiting[name] = PendingQuestion(question), fd
                    is_kept = True
                else:
                    question.request.close()
        except OSError:
            pass
        finally:
            if not is_kept:
                os.close(fd)
            self._remove(name)
        return True

    def _look(self, name: str) -> None:
        """Check whether an answer has come, or the program no longer waits for it."""
        waiting, fd = self._waiting[name]
        try:
            if not waiting.look(_is_locked(fd), lambda answer: self._answer(name, answer)):
                return
        except OSError:
            pass
        del self._waiting[name]
        waiting.close()
        os.close(fd)
        self._remove(name + ASKED)

    def _answer(self, name: str, text: str) -> None:
        half = f".{os.urandom(16).hex()}"
        if self._put(half, text.encode()):
            os.rename(half, name + ANSWER, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def _put(self, name: str, data: bytes) -> bool:
        """Make a file; False if there is something already, or the disk will not have it."""
        try:
            fd = os.open(name, os.O_WRONLY | NEW, 0o600, dir_fd=self._directory)
        except OSError:
            return False
        try:
            if self._owner.st_uid != os.geteuid():
                os.fchown(fd, self._owner.st_uid, self._owner.st_gid)
            return os.write(fd, data) == len(data)
        except OSError:
            return False
        finally:
            os.close(fd)

    def _remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._directory)
        except OSError:
            return


def _is_locked(fd: int) -> bool:
    if not try_lock(fd, shared=True):
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False
