"""A viewer that acknowledges at once: before the call that sent it the bytes has returned."""

from __future__ import annotations

import asyncio
import shlex
import sys
from typing import Any

from mas.http.supervisor import Supervisor
from mas.http.viewer import Hall, Viewer
from mas.http.watch import Watches
from mas.model.ids import SessionId
from tests.site import Site, until

# Each letter in two colours of its own: a screen of more bytes than a viewer may be sent ahead.
_COLOURED = """
cell = "\\x1b[38;2;%d;100;200m\\x1b[48;2;200;%d;100mx"
for line in range(600):
    print("".join(cell % (100 + column, 101 + column) for column in range(99)))
print("\\x1b[0mready")
while True:
    print("got", input())
"""
_AHEAD = 1 << 20
_PATIENCE = 60.0


class _Quick:
    """Draws everything as soon as it is on its way."""

    def __init__(self) -> None:
        self.viewer: Viewer | None = None
        self.drawn = b""
        self.more = asyncio.Event()

    async def send(self, _: dict[str, Any] | None, data: bytes | None = None) -> None:
        if data and self.viewer:
            self.viewer.ack(len(data))
            self.drawn += data
            self.more.set()

    async def wait_for(self, text: bytes) -> None:
        async with asyncio.timeout(_PATIENCE):
            while text not in self.drawn:
                self.more.clear()
                await self.more.wait()


def test_what_is_drawn_before_its_sender_knows_counts_too(site: Site) -> None:
    session = site.start("--team", "solo", "--command", shlex.join([sys.executable, "-c", _COLOURED]))
    until(lambda: "ready" in site.mas("output", session, "00").stdout, "the agent")
    mas = site.local()

    async def watch() -> None:
        outlet = _Quick()
        hall = Hall(Watches(Supervisor(lambda _: None, lambda _: None)))
        viewer = outlet.viewer = Viewer(hall, lambda: mas.terminal(SessionId(session), "00"), outlet)
        running = asyncio.create_task(viewer.run())
        try:
            await outlet.wait_for(b"ready")
            assert len(outlet.drawn) > _AHEAD
            await viewer.put(b"this\r")
            await outlet.wait_for(b"got this")
        finally:
            running.cancel()
            await asyncio.wait([running])

    asyncio.run(watch())
