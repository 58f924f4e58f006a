"""The server's rounds: messages that wait from before or nobody has told of, and sessions that fill the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mas.http.threads import in_thread
from mas.model.errors import MasError
from mas.service.courier import Courier

# Whatever is worth a message's going on is told as an event; this is for what was missed.
_BETWEEN = 5.0


class Rounds:
    """Sends the courier round, now and then and after events were missed, and looks at the disk."""

    def __init__(self, courier: Courier, watch_disk: Callable[[], None]) -> None:
        self._courier = courier
        self._watch_disk = watch_disk
        self._whole = True

    def begin_anew(self) -> None:
        """The next round is one through all sessions."""
        self._whole = True

    async def run(self) -> None:
        """Go round until cancelled."""
        while True:
            around, self._whole = self._whole, False
            try:
                await in_thread(self._courier.look_around if around else self._courier.look_again)
            except (MasError, OSError):
                # The next round may do better.
                self._whole = self._whole or around
            try:
                await in_thread(self._watch_disk)
            except (MasError, OSError):
                # What is wrong shows wherever that session is looked at.
                pass
            await asyncio.sleep(_BETWEEN)
