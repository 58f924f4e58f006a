"""Wakes the viewers of a log when it grows: by inotify where there is one, else by looking again and again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from mas.http.supervisor import Supervisor

if TYPE_CHECKING:
    from asyncinotify import Event, Inotify

# How often to look where the kernel does not tell.
_LOOK = 0.02


class Waker:
    """One viewer that waits. `happened` says that something else than output is to be looked at."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.happened = False
        self.blind = True

    def wake(self, happened: bool = False) -> None:
        self.happened = self.happened or happened
        self._event.set()

    def clear(self) -> None:
        """What comes from here on wakes; called before looking, so that nothing is missed."""
        self._event.clear()

    async def wait(self, timeout: float) -> None:
        """Return when there may be something new, or after `timeout` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(timeout, _LOOK) if self.blind else timeout)):
                await self._event.wait()


class Tails:
    """All logs that are watched by one server. The kernel's list of watches is opened with the first of them."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        # The directories, each with those who wait for a file in it.
        self._waiting: dict[str, dict[str, set[Waker]]] = {}
        self._directories: dict[int, str] = {}
        self._inotify: Inotify | None = None
        self._listener: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, log: str) -> Iterator[Waker]:
        """Wakes when the log grows, and when its `.events.jsonl` does."""
        directory, name = os.path.split(log)
        names = (name, f"{name.removesuffix('.log')}.events.jsonl")
        waker = Waker()
        files = self._waiting.setdefault(directory, {})
        for file in names:
            files.setdefault(file, set()).add(waker)
        self._look_at(directory)
        try:
            yield waker
        finally:
            for file in names:
                files[file].discard(waker)
                if not files[file]:
                    del files[file]
            if not files:
                self._leave(directory)

    def _look_at(self, directory: str) -> None:
        """Have the kernel tell of a directory; whoever waits for it looks by itself where it cannot."""
        if directory not in self._directories.values():
            try:
                from asyncinotify import Inotify

                if self._listener is None:
                    self._inotify = Inotify()
                    self._listener = self._supervisor.start("terminals", self._listen)
                if self._inotify is None:
                    # The listener failed and is about to begin again, with all directories.
                    return
                self._add(self._inotify, directory)
            except (ImportError, OSError):
                return
        for waker in self._wakers(directory):
            waker.blind = False

    def _add(self, inotify: Inotify, directory: str) -> None:
        from asyncinotify import Mask

        # Not MOVED_FROM: what replaces a log that was renamed is created or moved here.
        mask = Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO | Mask.ONLYDIR
        self._directories[inotify.add_watch(directory, mask).wd] = directory

    def _leave(self, directory: str) -> None:
        del self._waiting[directory]
        for wd, known in list(self._directories.items()):
            if known == directory and self._inotify:
                del self._directories[wd]
                watch = next((watch for watch in self._inotify.watches if watch.wd == wd), None)
                if watch:
                    with suppress(OSError):
                        self._inotify.rm_watch(watch)
        if not self._waiting:
            self._close()

    def _close(self) -> None:
        """Let go of the kernel's list; the listener closes it."""
        self._inotify = None
        self._directories.clear()
        if self._listener:
            self._listener.cancel()
        self._listener = None

    async def _listen(self) -> None:
        """Wake those who wait, until there are none left. If it fails, they look by themselves until it is back."""
        from asyncinotify import Inotify

        inotify = self._inotify or Inotify()
        with inotify:
            if self._inotify is None:
                self._inotify = inotify
                for directory in self._waiting:
                    self._look_at(directory)
            try:
                while True:
                    self._hear(await inotify.get())
            finally:
                if self._inotify is inotify:
                    self._inotify = None
                    self._directories.clear()
                    for waker in set().union(*map(self._wakers, self._waiting)):
                        waker.blind = True
                        waker.wake(happened=True)

    def _hear(self, event: Event) -> None:
        from asyncinotify import Mask

        watch = event.watch
        directory = self._directories.get(watch.wd, "") if watch else ""
        if Mask.Q_OVERFLOW in event.mask:
            for waker in set().union(*map(self._wakers, self._waiting)):
                waker.wake(happened=True)
        elif Mask.IGNORED in event.mask and watch:
            # The directory is gone; should it come back, it is another one.
            self._directories.pop(watch.wd, None)
            for waker in self._wakers(directory):
                waker.blind = True
                waker.wake(happened=True)
        elif event.name is not None:
            name = str(event.name)
            for waker in self._waiting.get(directory, {}).get(name, ()):
                waker.wake(happened=name.endswith(".jsonl"))

    def _wakers(self, directory: str) -> set[Waker]:
        return set().union(*self._waiting.get(directory, {}).values())
