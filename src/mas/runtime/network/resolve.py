"""Looks names up outside, with the machine's own resolver, in threads: that may take its time."""

from __future__ import annotations

import _thread
import os
import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_THREADS = 8
# How many names may be looked up at a time, and how many may wait for what is found.
_MOST_WAITING, _MOST_ASKING = 512, 2048
# For how long what was found may be used; a connection is made to an address that was checked, never to a name.
_FRESH = 20.0
_MOST_KEPT = 1024
_STACK = 256 << 10


class Found:
    """The addresses of a name, the best first. `failed` if the look-up failed, rather than there being none."""

    __slots__ = ("addresses", "at", "failed")

    def __init__(self, addresses: tuple[str, ...], failed: bool = False) -> None:
        self.addresses = addresses
        self.failed = failed
        self.at = time.monotonic()


class Resolver:
    """Look-ups under way. `wake` becomes readable when `deliver` has something to hand over."""

    def __init__(self) -> None:
        self.wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._kept: dict[str, Found] = {}
        self._waiting: dict[str, list[Callable[[Found], None]]] = {}
        self._todo: list[str] = []
        self._done: list[tuple[str, Found]] = []
        self._threads = 0
        self._asking = 0
        self._lock = _thread.allocate_lock()

    def find(self, name: str, then: Callable[[Found], None]) -> None:
        """Call `then` with what is found: at once if it is known."""
        kept = self._kept.get(name)
        if kept and time.monotonic() - kept.at < _FRESH:
            then(kept)
        elif self._asking >= _MOST_ASKING or (name not in self._waiting and len(self._waiting) >= _MOST_WAITING):
            then(Found((), failed=True))
        elif name in self._waiting:
            self._asking += 1
            self._waiting[name].append(then)
        else:
            self._asking += 1
            self._waiting[name] = [then]
            with self._lock:
                self._todo.append(name)
                more = self._threads < _THREADS
                self._threads += more
            if more:
                self._start()

    def _start(self) -> None:
        _thread.stack_size(_STACK)
        _thread.start_new_thread(self._work, ())

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._todo:
                    self._threads -= 1
                    return
                name = self._todo.pop(0)
            found = look_up(name)
            with self._lock:
                self._done.append((name, found))
            os.eventfd_write(self.wake, 1)

    def deliver(self) -> None:
        os.eventfd_read(self.wake)
        with self._lock:
            done, self._done = self._done, []
        for name, found in done:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            if not found.failed:
                self._kept[name] = found
            waiting = self._waiting.pop(name, [])
            self._asking -= len(waiting)
            for then in waiting:
                then(found)


def look_up(name: str) -> Found:
    """The addresses of a name outside."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return Found((), failed=error.errno not in (socket.EAI_NONAME, socket.EAI_NODATA))
    except (OSError, UnicodeError):
        return Found((), failed=True)
    return Found(tuple(dict.fromkeys(str(one[4][0]) for one in found)))
