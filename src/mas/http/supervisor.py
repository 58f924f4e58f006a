"""The supervisor of the server's background tasks: none of them can die unseen.

An error of a task is logged with its traceback and counted, `/health` shows that the task is failing, and
after a pause, which grows while it keeps failing, it starts again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from threading import ExceptHookArgs

from mas.http.threads import in_thread

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
# A task that has run for this long since it failed is well again.
WELL_AFTER = 10.0

Work = Callable[[], Awaitable[None]]
_log = logging.getLogger("mas.http")


class Supervisor:
    """Starts tasks and keeps them running. Used on the event loop, except `failing`, which any thread may read."""

    def __init__(self, started: Callable[[str], None], failed: Callable[[str], None]) -> None:
        """`started` is called with the name of each task, `failed` every time one raises something."""
        self._started = started
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()
        self._failing: frozenset[str] = frozenset()

    @property
    def failing(self) -> tuple[str, ...]:
        """The names of the tasks that failed and have not run well since."""
        return tuple(sorted(self._failing))

    def start(self, name: str, work: Work) -> asyncio.Task[None]:
        """Run `work` until it returns, again and again if it raises; to end it early, cancel what this returns."""
        self._started(name)
        task = asyncio.create_task(self._keep_running(name, work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def start_every(self, seconds: float, name: str, work: Callable[[], None]) -> None:
        """Call `work` in a thread, now and again `seconds` after it has returned, until the server ends."""
        self.start(name, partial(_every, seconds, work))

    def thread_failed(self, failure: ExceptHookArgs) -> None:
        """Log and count what ended a thread, under the first word of its name; its owner may start another."""
        name = failure.thread.name.split()[0] if failure.thread else "thread"
        _log.error("the server's thread %r failed", name, exc_info=failure.exc_value)
        self._failed(name)

    async def stop(self) -> None:
        """End all tasks. Stopping twice is fine."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_running(self, name: str, work: Work) -> None:
        pause = FIRST_PAUSE
        try:
            while True:
                began = time.monotonic()
                if await self._run_once(name, work):
                    return
                ran_well = time.monotonic() - began >= WELL_AFTER
                pause = FIRST_PAUSE if ran_well else pause
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            self._failing -= {name}

    async def _run_once(self, name: str, work: Work) -> bool:
        """Whether the task has returned, rather than raised something."""
        well = asyncio.get_running_loop().call_later(WELL_AFTER, self._is_well, name)
        try:
            await work()
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            # This also catches a cancellation that came from inside the task, not from us.
            _log.exception("the server's task %r failed; it starts again", name)
            self._failing |= {name}
            self._failed(name)
            return False
        finally:
            well.cancel()
        return True

    def _is_well(self, name: str) -> None:
        self._failing -= {name}


async def _every(seconds: float, work: Callable[[], None]) -> None:
    while True:
        await in_thread(work)
        await asyncio.sleep(seconds)
