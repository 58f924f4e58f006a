"""Wakes when a file grows: by inotify where there is one, else by looking again and again."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncinotify import Inotify

# How often to look where the kernel does not tell.
_LOOK = 0.25


class Watch:
    """Watches one file, or the files of one directory, which need not be there yet."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._inotify: Inotify | None = None

    async def __aenter__(self) -> Watch:
        self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    async def changed(self, timeout: float) -> None:
        """Return when something may have changed, or after `timeout` seconds. What changed meanwhile counts."""
        if self._inotify is None and self._begin():
            # What came before there was a watch went unseen.
            return
        if self._inotify is None:
            await asyncio.sleep(min(timeout, _LOOK))
            return
        from asyncinotify import Mask

        try:
            async with asyncio.timeout(timeout):
                event = await self._inotify.get()
        except TimeoutError:
            return
        if event.mask & (Mask.IGNORED | Mask.DELETE_SELF | Mask.MOVE_SELF):
            # Not at its place any more; another may come there.
            self._end()

    def _begin(self) -> bool:
        """Watch, if that can be had."""
        try:
            from asyncinotify import Inotify, Mask

            inotify = Inotify()
        except (ImportError, OSError):
            return False
        try:
            inotify.add_watch(self._path, Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO | Mask.DELETE_SELF | Mask.MOVE_SELF)
        except OSError:
            inotify.close()
            return False
        self._inotify = inotify
        return True

    def _end(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
