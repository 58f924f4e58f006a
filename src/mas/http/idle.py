"""When a server exits by itself: it was started automatically and is idle, or its workspace is gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from mas.http.threads import in_thread
from mas.model.errors import Unavailable
from mas.service.mas import Mas

# How often to look, as a part of the time to stay, and at most and at least in seconds.
_PART = 20
_SELDOM = 30.0
_OFTEN = 0.05
# How often to see whether there still is a workspace.
_BETWEEN_LOOKS = 0.5


async def until_idle(mas: Mas, has_clients: Callable[[], bool], seconds: float) -> None:
    """Return `seconds` after the last session stopped and the last client left."""
    needed_at = time.monotonic()
    while True:
        await asyncio.sleep(min(max(seconds / _PART, _OFTEN), _SELDOM))
        if has_clients() or await _is_needed(mas):
            needed_at = time.monotonic()
        elif time.monotonic() - needed_at >= seconds:
            return


async def until_gone(is_ours: Callable[[], bool]) -> None:
    """Return when the server has no workspace any more: it was removed, moved away, or made again."""
    while await in_thread(is_ours):
        await asyncio.sleep(_BETWEEN_LOOKS)


async def _is_needed(mas: Mas) -> bool:
    """Whether a session runs; where tmux does not answer, one may."""
    try:
        return (await in_thread(partial(mas.list, status="active", limit=1))).total > 0
    except Unavailable:
        return True
