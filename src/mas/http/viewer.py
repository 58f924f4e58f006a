"""One viewer of one agent's terminal: shows the screen, follows what is printed, types what is sent.

A viewer that falls far behind is shown the screen afresh instead of all it missed.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from anyio import CapacityLimiter

from mas.http.threads import in_thread
from mas.http.watch import Waker, Watches
from mas.model.errors import MasError
from mas.service.agents.terminal import Look, Terminal

_CHUNK = 64 << 10
# More bytes than this behind the agent, or ahead of a viewer who says what it has drawn, is too far.
_BEHIND = 1 << 20
# How often size and state are looked at.
_LOOK = 2.0
# An agent writes down that it ends a moment before its pane is dead, and tmux may need another to know its status.
_SOON = 0.1
_FOR_STATUS = 10
# The least time between two screens, and between two frames of one viewer once it is busy.
_REDRAW = 0.25
_COALESCE = 0.004
_WAITING = 64
_TYPED_AT_ONCE = 32 << 10

_T = TypeVar("_T")


class Outlet(Protocol):
    """Where a viewer's frames go."""

    async def send(self, fields: dict[str, Any] | None, data: bytes | None = None) -> None:
        """Send a text frame, bytes, or both with nothing in between; returns once a slow reader has room for them."""
        ...


class Hall:
    """What all viewers of a server share. Those who wait for tmux do not keep others from reading."""

    def __init__(self, watches: Watches) -> None:
        self._watches = watches
        self._readers = CapacityLimiter(8)
        self._callers = CapacityLimiter(16)

    def watching(self, log: str) -> AbstractContextManager[Waker]:
        """Wakes when the log grows, and when its `.events.jsonl` does."""
        directory, name = os.path.split(log)
        return self._watches.watching(directory, (name, f"{name.removesuffix('.log')}.events.jsonl"))

    async def read(self, work: Callable[[], _T]) -> _T:
        return await in_thread(work, limiter=self._readers, abandon_on_cancel=True)

    async def ask(self, work: Callable[[], _T]) -> _T:
        return await in_thread(work, limiter=self._callers, abandon_on_cancel=True)


class Size(NamedTuple):
    """A size that is asked for."""

    columns: int
    rows: int


class _Shown(NamedTuple):
    """What the viewer has on its screen."""

    run: str
    size: tuple[int, int]
    ended: bool
    position: int


class _Looks:
    """When to look at the terminal next, and what a look means for what is shown."""

    def __init__(self, shown: _Shown) -> None:
        self._shown = shown
        self._without_status = 0
        self.at = time.monotonic() + _LOOK
        # How the program ended, if it did since it was shown.
        self.ending: Look | None = None

    def changed(self, look: Look | None) -> bool:
        """Whether there is another program than the one shown, or another size. None is a look that failed."""
        self.at = time.monotonic() + _LOOK
        if look is None:
            return False
        if look.run and (look.run, (look.columns, look.rows)) != (self._shown.run, self._shown.size):
            return True
        self.ending = look if look.ended and not self._shown.ended else None
        if self.ending and look.run and look.exit_status is None and self._without_status < _FOR_STATUS:
            self._without_status += 1
            self.ending, self.at = None, time.monotonic() + _SOON
        return False


class Viewer:
    """Runs until it is cancelled; a `MasError` means that the terminal could not be opened."""

    def __init__(self, hall: Hall, opening: Callable[[], Terminal], outlet: Outlet) -> None:
        self._hall = hall
        self._opening = opening
        self._opened: Terminal | None = None
        self._left = False
        self._outlet = outlet
        self._asked: asyncio.Queue[bytes | Size] = asyncio.Queue(_WAITING)
        self._sent = 0
        # What the viewer says it has drawn; None until it says so the first time.
        self._drawn: int | None = None
        self._more_drawn = asyncio.Event()

    async def put(self, asked: bytes | Size) -> None:
        """Keys to type or a size to have; waits while too much is waiting."""
        await self._asked.put(asked)

    def ack(self, count: int) -> None:
        """The viewer has drawn `count` more of the bytes it was sent."""
        self._drawn = min(self._sent, (self._drawn or 0) + count)
        self._more_drawn.set()

    async def run(self) -> None:
        try:
            terminal = await self._hall.ask(self._open)
            with self._hall.watching(terminal.log_path) as waker:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._watch(terminal, waker))
                    tasks.create_task(self._obey(terminal, waker))
        finally:
            self._left = True
            if self._opened:
                # Not waited for: tmux may be silent.
                asyncio.get_running_loop().run_in_executor(None, self._opened.close)

    def _open(self) -> Terminal:
        """Runs in a thread; its caller may be gone when it is done."""
        self._opened = self._opening()
        if self._left:
            self._opened.close()
        return self._opened

    async def _watch(self, terminal: Terminal, waker: Waker) -> None:
        while True:
            began = time.monotonic()
            try:
                shown = await self._show(terminal)
            except MasError as error:
                await self._outlet.send(refused(error))
                await asyncio.sleep(_LOOK)
                continue
            await self._follow(terminal, waker, shown)
            await asyncio.sleep(began + _REDRAW - time.monotonic())

    async def _show(self, terminal: Terminal) -> _Shown:
        look = await self._hall.ask(terminal.look)
        screen = await self._hall.ask(terminal.snapshot)
        await self._room(len(screen.data))
        await self._send({"type": "screen", "columns": screen.columns, "rows": screen.rows}, screen.data)
        if look.ended:
            await self._outlet.send(_end(look))
        return _Shown(look.run, (screen.columns, screen.rows), look.ended, screen.position)

    async def _follow(self, terminal: Terminal, waker: Waker, shown: _Shown) -> None:
        """Send what is printed; returns when the whole screen must be sent again."""
        position = shown.position
        looks = _Looks(shown)
        quiet_until = 0.0
        while True:
            waker.clear()
            most = await self._room(_CHUNK)
            piece = await self._hall.read(partial(terminal.read, position, most))
            if piece.lag > _BEHIND:
                return
            position = piece.position
            if piece.data:
                await self._send(None, piece.data)
                quiet_until = time.monotonic() + _COALESCE
            elif looks.ending:
                # All it printed was sent; its pane, if it still has one, shows how it exited.
                if looks.ending.run:
                    return
                await self._outlet.send(_end(looks.ending))
                looks = _Looks(shown._replace(run="", ended=True))
            if waker.happened:
                waker.happened = False
                looks.at = min(looks.at, time.monotonic() + _SOON)
            if time.monotonic() >= looks.at:
                if looks.changed(await self._looked(terminal)):
                    return
            elif not piece.data:
                await waker.wait(looks.at - time.monotonic())
                await asyncio.sleep(quiet_until - time.monotonic())

    async def _send(self, fields: dict[str, Any] | None, data: bytes) -> None:
        # Counted first: the viewer may have drawn them, and said so, before the call that sends them returns.
        self._sent += len(data)
        await self._outlet.send(fields, data)

    async def _looked(self, terminal: Terminal) -> Look | None:
        try:
            return await self._hall.ask(partial(terminal.look, fresh=True))
        except MasError:
            # Not now; what it prints is read all the same.
            return None

    async def _room(self, wanted: int) -> int:
        """How many bytes of `wanted` may be sent now; waits while the viewer has too many that it has not drawn."""
        while self._drawn is not None and (ahead := self._sent - self._drawn) > 0:
            if ahead < _BEHIND:
                return min(wanted, _BEHIND - ahead)
            self._more_drawn.clear()
            await self._more_drawn.wait()
        return wanted

    async def _obey(self, terminal: Terminal, waker: Waker) -> None:
        """Do what is asked, in its order; keys that wait are typed together, and of sizes only the last counts."""
        held: bytes | Size | None = None
        while True:
            asked, held = held if held is not None else await self._asked.get(), None
            while held is None and not self._asked.empty():
                more = self._asked.get_nowait()
                if isinstance(asked, bytes) and isinstance(more, bytes) and len(asked) < _TYPED_AT_ONCE:
                    asked += more
                elif isinstance(asked, Size) and isinstance(more, Size):
                    asked = more
                else:
                    held = more
            try:
                if isinstance(asked, bytes):
                    await self._hall.ask(partial(terminal.type, asked))
                else:
                    await self._hall.ask(partial(terminal.resize, *asked))
                    waker.wake(happened=True)
            except MasError as error:
                await self._outlet.send(refused(error))


def refused(error: MasError) -> dict[str, Any]:
    return {"type": "error", "code": error.code, "message": error.message}


def _end(look: Look) -> dict[str, Any]:
    return {"type": "end"} if look.exit_status is None else {"type": "end", "exitStatus": look.exit_status}
