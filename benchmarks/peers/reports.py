"""What the stand-in agents of one site say through their pipe, whoever started them."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable

from tests.site import Site

_HERE = os.path.dirname(os.path.abspath(__file__))
_PATIENCE = 120.0
LISTENING = "listening.py"


class Reports:
    """One pipe for all agents of a site, always read; messages are told apart by their numbers."""

    def __init__(self, site: Site) -> None:
        self._fifo = os.path.join(site.directory, "reports.fifo")
        os.mkfifo(self._fifo)
        # Open on both ends, so that neither side waits for the other to come.
        self._fd = os.open(self._fifo, os.O_RDWR)
        self._news = threading.Condition()
        self._ready: list[float] = []
        self._times: dict[tuple[str, str], float] = {}
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    @property
    def waiting(self) -> list[str]:
        """The program that only waits."""
        return ["/bin/sh", os.path.join(_HERE, "waiting.sh"), self._fifo]

    @property
    def listening(self) -> list[str]:
        """The program that reads messages."""
        return [sys.executable, "-ISE", os.path.join(_HERE, LISTENING), self._fifo]

    def all_ready(self, count: int) -> float:
        """When the last of `count` more programs said that it runs, in seconds of the monotonic clock."""
        self._wait(lambda: len(self._ready) >= count)
        last = self._ready[count - 1]
        del self._ready[:count]
        return last

    def forget(self) -> None:
        """Forget those who said that they run, and whom nobody waited for."""
        self._ready.clear()

    def last(self, what: str, numbers: Iterable[int]) -> float:
        """When the last of these messages came to its program (`text`), or its Enter (`enter`)."""
        wanted = [(what, str(number)) for number in numbers]
        self._wait(lambda: all(key in self._times for key in wanted))
        return max(self._times[key] for key in wanted)

    def first(self, what: str, numbers: Iterable[int]) -> None:
        """Wait until one of these messages came to its program."""
        self._wait(lambda: any((what, str(number)) in self._times for number in numbers))

    def came(self, what: str, number: int, patience: float) -> bool:
        """Whether a message, or its Enter, comes to a program within so many seconds."""
        with self._news:
            return self._news.wait_for(lambda: (what, str(number)) in self._times, patience)

    def restarts(self, count: int, patience: float) -> int:
        """How many of `count` programs say within so many seconds that they run."""
        with self._news:
            self._news.wait_for(lambda: len(self._ready) >= count, patience)
        found = len(self._ready)
        self._ready.clear()
        return found

    def close(self) -> None:
        os.write(self._fd, b"over - 0\n")
        self._thread.join()
        os.close(self._fd)

    def _wait(self, enough: Callable[[], bool]) -> None:
        with self._news:
            if not self._news.wait_for(enough, _PATIENCE):
                raise TimeoutError(f"agents did not say within {_PATIENCE:.0f} s what they should have")

    def _read(self) -> None:
        rest = b""
        while True:
            *lines, rest = (rest + os.read(self._fd, 1 << 16)).split(b"\n")
            # A program without a clock says 0: it spoke just now.
            now = time.monotonic()
            with self._news:
                for what, number, at in (line.decode().split() for line in lines):
                    if what == "over":
                        return
                    self._note(what, number, int(at) / 1e9 or now)
                self._news.notify_all()

    def _note(self, what: str, number: str, when: float) -> None:
        if what == "ready":
            self._ready.append(when)
        else:
            self._times.setdefault((what, number), when)
