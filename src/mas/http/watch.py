"""Wakes readers when files grow: with inotify if it works, else by polling."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from mas.http.supervisor import Supervisor

if sys.platform == "linux":
    from asyncinotify import Event, Inotify, Mask, Watch

    # Not MOVED_FROM: what replaces a log that was renamed is created or moved here.
    _GROWS = Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO
    _GOES = Mask.DELETE_SELF | Mask.MOVE_SELF
# How often to look if inotify does not work.
_LOOK = 0.02


class Waker:
    """One waiting reader. `happened` means that there is something other than output to look at."""

    def __init__(self, names: Collection[str], watch: Callable[[], bool], look: float) -> None:
        """`watch` is asked for the kernel's help until it has it; without that, it wakes every `look` seconds."""
        self.happened = False
        self.blind = not watch()
        self._names = names
        self._watch = watch
        self._look = look
        self._event = asyncio.Event()

    def hear(self, name: str) -> None:
        """A file of the directory has grown or come."""
        if not self._names or name in self._names:
            self.wake(happened=name.endswith(".jsonl"))

    def wake(self, happened: bool = False) -> None:
        self.happened = self.happened or happened
        self._event.set()

    def clear(self) -> None:
        """What comes from here on wakes; called before looking, so that nothing is missed."""
        self._event.clear()

    async def wait(self, timeout: float) -> None:
        """Return when there may be something new, or after `timeout` seconds."""
        if self.blind and self._watch():
            # What came before there was a watch went unseen.
            self.blind = False
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(timeout, self._look) if self.blind else timeout)):
                await self._event.wait()


class Watches:
    """All directories that one server watches. The kernel's list of them is opened with the first."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._wakers: dict[str, set[Waker]] = {}
        self._watched: dict[str, Watch] = {}
        self._inotify: Inotify | None = None
        self._listener: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, directory: str, names: Collection[str] = (), look: float = _LOOK) -> Iterator[Waker]:
        """Wakes when a file of the directory grows or comes: one of `names`, or any if none is named.

        The directory need not be there yet.
        """
        waker = Waker(names, partial(self._watch, directory), look)
        wakers = self._wakers.setdefault(directory, set())
        wakers.add(waker)
        try:
            yield waker
        finally:
            wakers.remove(waker)
            if not wakers:
                self._leave(directory)

    def _watch(self, directory: str) -> bool:
        """Whether inotify watches a directory; starts watching it if needed."""
        if directory in self._watched:
            return True
        if sys.platform != "linux":
            return False
        try:
            if self._listener is None:
                self._inotify = Inotify()
                self._listener = self._supervisor.start("files", self._listen)
            if self._inotify is None:
                # The listener failed and is about to begin again.
                return False
            self._watched[directory] = self._inotify.add_watch(directory, _GROWS | _GOES | Mask.ONLYDIR)
        except OSError:
            return False
        return True

    def _leave(self, directory: str) -> None:
        del self._wakers[directory]
        watch = self._watched.pop(directory, None)
        if watch and self._inotify:
            with suppress(OSError):
                self._inotify.rm_watch(watch)
        if not self._wakers and self._listener:
            # It closes the kernel's list.
            self._inotify = None
            self._listener.cancel()
            self._listener = None

    async def _listen(self) -> None:
        """Wake those who wait. If it fails, they look by themselves until it is back."""
        with self._inotify or Inotify() as inotify:
            self._inotify = inotify
            try:
                while True:
                    self._hear(await inotify.get())
            finally:
                if self._inotify is inotify:
                    self._inotify = None
                    self._lose(list(self._watched))

    def _hear(self, event: Event) -> None:
        watch = event.watch
        if Mask.Q_OVERFLOW in event.mask:
            for waker in set().union(*self._wakers.values()):
                waker.wake(happened=True)
        elif watch and event.mask & (_GOES | Mask.IGNORED):
            # Should another directory come in its place, that is watched then.
            self._lose([directory for directory, known in self._watched.items() if known is watch])
            if self._inotify:
                with suppress(OSError):
                    self._inotify.rm_watch(watch)
        elif watch and event.name is not None:
            for waker in self._wakers.get(str(watch.path), ()):
                waker.hear(str(event.name))

    def _lose(self, directories: list[str]) -> None:
        for directory in directories:
            del self._watched[directory]
            for waker in self._wakers[directory]:
                waker.blind = True
                waker.wake(happened=True)
