"""Threads of the server. If the machine cannot start one, the request is refused, and a later one may work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from anyio import CapacityLimiter, to_thread

from mas.model.errors import Unavailable

_T = TypeVar("_T")
_Args = TypeVarTuple("_Args")


async def in_thread(
    work: Callable[[*_Args], _T],
    *args: *_Args,
    limiter: CapacityLimiter | None = None,
    abandon_on_cancel: bool = False,
) -> _T:
    """What `work` returns, run in a thread; `Unavailable` if no thread can be started."""
    try:
        return await to_thread.run_sync(work, *args, limiter=limiter, abandon_on_cancel=abandon_on_cancel)
    except RuntimeError as error:
        if not is_for_want_of_threads(error):
            raise
        raise no_thread() from None


def is_for_want_of_threads(error: Exception) -> bool:
    # Python has no kind of its own for it.
    return isinstance(error, RuntimeError) and "can't start new thread" in str(error)


def no_thread() -> Unavailable:
    return Unavailable("This machine cannot start another process or thread right now", "try again; ulimit -u")
