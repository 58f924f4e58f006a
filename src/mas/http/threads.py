"""Threads of the server. If the machine cannot start one, the request is refused, and a later one may work."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread

from mas.model.errors import Unavailable
from mas.model.principal import Principal

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


class CallerThreads:
    """Threads for requests that agents make, too: theirs are others than the owner's, and a session has only some."""

    def __init__(self, of_session: int, of_agents: int) -> None:
        self._of_session = of_session
        self._agents = CapacityLimiter(of_agents)
        # A session's turns are here for as long as a request of it is.
        self._turns: WeakValueDictionary[str | None, Semaphore] = WeakValueDictionary()

    async def run(self, caller: Principal, work: Callable[[], _T]) -> _T:
        """What `work` returns; an agent's waits until it is its session's turn."""
        if caller.is_owner:
            return await in_thread(work)
        turns = self._turns.setdefault(caller.session_id, Semaphore(self._of_session))
        async with turns:
            return await in_thread(work, limiter=self._agents)


def is_for_want_of_threads(error: Exception) -> bool:
    # Python has no kind of its own for it.
    return isinstance(error, RuntimeError) and "can't start new thread" in str(error)


def no_thread() -> Unavailable:
    return Unavailable("This machine cannot start another process or thread right now", "try again; ulimit -u")
