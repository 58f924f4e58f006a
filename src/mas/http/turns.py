"""Tells of turns that agents have finished: looks at an agent's transcript once the agent reports that it is idle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from mas.http.threads import in_thread
from mas.model.errors import MasError
from mas.model.event import Event
from mas.model.ids import SessionId
from mas.model.state import State
from mas.service.mas import Mas

# A program may write the end of a turn a moment after it has reported that it is idle.
_AGAIN = (0.1, 0.4, 1.0, 2.0, 5.0)
_LATER = 5.0
_AT_REST = (State.IDLE, State.ERROR, State.EXITED)

_Agent = tuple[str, str]


class TurnTeller:
    """Looks at agents when something says that they may have finished a turn; never at all of them on time."""

    def __init__(self, mas: Mas, tell: Callable[[SessionId, str], bool]) -> None:
        """`tell` adds the events of one agent; it returns whether nothing more is expected."""
        self._mas = mas
        self._tell = tell
        # When to look at each agent, and for the how many-th time.
        self._due: dict[_Agent, tuple[float, int]] = {}
        self._woken = asyncio.Event()
        self._around = True

    def hear(self, event: Event) -> None:
        """Something happened. Called on the event loop, and does not wait."""
        if event.event == "agent" and event.session_id and event.agent and event.details.get("state") in _AT_REST:
            self._due[event.session_id, event.agent] = time.monotonic(), 0
            self._woken.set()

    def look_around(self) -> None:
        """Look at all agents once: nothing may have said what happened to them."""
        self._around = True
        self._woken.set()

    async def run(self) -> None:
        """Look at what is due, until cancelled."""
        while True:
            self._woken.clear()
            if self._around:
                await self._find_all()
            now = time.monotonic()
            for agent in [agent for agent, (at, _) in self._due.items() if at <= now]:
                await self._look(agent)
            await self._rest()

    async def _find_all(self) -> None:
        self._around = False
        try:
            found = await in_thread(lambda: self._mas.list("active", agents=True))
        except MasError:
            # tmux does not respond; once more in a while.
            asyncio.get_running_loop().call_later(_LATER, self.look_around)
            return
        for session in found.sessions:
            for agent in session.agents:
                self._due.setdefault((session.session_id, agent.id), (time.monotonic(), len(_AGAIN)))

    async def _look(self, agent: _Agent) -> None:
        _, looks = self._due.pop(agent)
        is_done = await in_thread(self._tell, SessionId(agent[0]), agent[1])
        # It may have become due again meanwhile, from the beginning.
        if not is_done and looks < len(_AGAIN) and agent not in self._due:
            self._due[agent] = time.monotonic() + _AGAIN[looks], looks + 1

    async def _rest(self) -> None:
        first = min((at for at, _ in self._due.values()), default=None)
        try:
            async with asyncio.timeout(None if first is None else max(0.0, first - time.monotonic())):
                await self._woken.wait()
        except TimeoutError:
            return
