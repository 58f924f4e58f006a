"""Idleness: a server that came by itself goes by itself, once no session runs and no client is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from mas.http.threads import in_thread
from mas.model.errors import MasError
from mas.service.mas import Mas

# How often to look, as a part of the time to stay, and at most and at least in seconds.
_PART = 20
_SELDOM = 30.0
_OFTEN = 0.05


async def until_idle(mas: Mas, has_clients: Callable[[], bool], seconds: float) -> None:
    """Return `seconds` after the last session stopped and the last client went."""
    needed_at = time.monotonic()
    while True:
        await asyncio.sleep(min(max(seconds / _PART, _OFTEN), _SELDOM))
        if has_clients() or await _is_needed(mas):
            needed_at = time.monotonic()
        elif time.monotonic() - needed_at >= seconds:
            return


async def _is_needed(mas: Mas) -> bool:
    """Whether a session runs; where that cannot be told, it may."""
    try:
        return (await in_thread(partial(mas.list, status="active", limit=1))).total > 0
    except MasError:
        return True
