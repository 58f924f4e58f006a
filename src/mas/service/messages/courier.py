"""The courier: delivers messages, with one thread per agent, so that no agent waits for another."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread

from mas.model.errors import MasError
from mas.model.event import Event as Happening
from mas.model.ids import SessionId
from mas.model.message import DeliveryState
from mas.model.session import Status
from mas.model.state import State
from mas.runtime.threads import started
from mas.service.messages.deliver import BUSY, OpenSession, Waiting, deliver, why_waiting
from mas.service.upkeep.reconcile import entries_of
from mas.service.world import World

# How often to check whether another process has finished with an agent.
_LOOK_AGAIN = 0.05
_GLANCE = 0.005
_NO_THREAD = Waiting("this machine cannot start another thread right now", passing=True)
_Key = tuple[str, str]


class Courier:
    """All messages of a workspace that this process takes care of. Safe to use from many threads.

    With `here` the caller itself delivers to one agent: a process that sends one message needs no thread.
    """

    def __init__(self, world: World, here: bool = False) -> None:
        self._world = world
        self.here = here
        self._lock = Lock()
        self._running: dict[_Key, Thread | None] = {}
        self._again: set[_Key] = set()
        self._waiting: dict[_Key, Waiting] = {}
        self._unseen: set[str] = set()
        self._closed = Event()

    def start(
        self,
        session_id: str,
        agents: Iterable[str],
        patience: float | None = None,
        opened: OpenSession | None = None,
    ) -> None:
        """Start to deliver what waits for these agents; wait up to `patience` seconds for an agent's acknowledgement.

        `opened` is what this thread has read of the session just now.
        """
        deadline = None if patience is None else time.monotonic() + patience
        begun = [key for key in ((session_id, agent) for agent in agents) if self._begin(key)]
        mine = begun.pop() if begun and self.here else None
        for key in begun:
            thread = Thread(target=self._run, args=(key, deadline), name=f"courier {key[1]}", daemon=True)
            # In one step: `close` waits for threads that have been started.
            with self._lock:
                if started(thread):
                    self._running[key] = thread
                else:
                    del self._running[key]
                    self._waiting[key] = _NO_THREAD
        if mine:
            self._run(mine, deadline, opened)

    def _begin(self, key: _Key) -> bool:
        """Whether to begin with an agent's queue; if that is being processed already, it is processed once more."""
        with self._lock:
            if self._closed.is_set() or key in self._running:
                self._again.add(key)
                return False
            self._running[key] = None
            return True

    def is_under_way(self, session_id: str, agent: str) -> bool:
        """Whether a message is being delivered to the agent now, or waits only until the agent is ready by itself."""
        with self._lock:
            waiting = self._waiting.get((session_id, agent))
            return (session_id, agent) in self._running or (waiting is not None and waiting.passing)

    def why_waiting(self, session_id: str, agent: str) -> Waiting | None:
        """Why an agent's next message waits, as it was found last."""
        return self._waiting.get((session_id, agent))

    def look_around(self) -> None:
        """Start to deliver all waiting messages of active sessions, also those that another process left."""
        store = self._world.messages()
        for entry in entries_of(self._world):
            if entry.status is Status.ACTIVE and store.exists(entry.session_id):
                self._look_at(entry.session_id)

    def look_again(self) -> None:
        """Try again with agents that may be ready by now without having reported it."""
        for session_id in list(self._unseen):
            self._unseen.discard(session_id)
            self._look_at(session_id)
        for session_id, agent in list(self._waiting):
            waiting = why_waiting(self._world, SessionId(session_id), agent)
            if waiting is None or waiting.by_screen:
                self.start(session_id, (agent,))

    def deliver_waiting(self, session_id: str, patience: float) -> None:
        """Start with what waits in a session, and give it `patience` seconds to arrive."""
        if not self._world.messages().exists(session_id):
            return
        self._look_at(session_id, patience)
        deadline = time.monotonic() + patience
        while any(key[0] == session_id for key in list(self._running)) and time.monotonic() < deadline:
            time.sleep(_GLANCE)

    @contextmanager
    def attending(self, session_id: str) -> Iterator[None]:
        """Go on with what waits in a session for as long as this lasts: there may be no server that does."""
        over = Event()

        def attend() -> None:
            while not over.wait(_LOOK_AGAIN):
                if self._world.messages().exists(session_id):
                    self._look_at(session_id)

        # Not waited for at the end: it may be waiting for an acknowledgement, and the next process goes on with that.
        started(Thread(target=attend, name="courier", daemon=True))
        try:
            yield
        finally:
            over.set()

    def hear(self, event: Happening) -> None:
        """Something happened: an agent may be ready for its next message, or there may be a new one."""
        if event.session_id is None:
            return
        if event.event == "message" and event.details.get("state") == DeliveryState.QUEUED:
            if not started(Thread(target=self._look_at, args=(event.session_id,), name="courier", daemon=True)):
                self._unseen.add(event.session_id)
        elif event.event == "agent" and event.agent is not None and event.details.get("state") == State.IDLE:
            key = (event.session_id, event.agent)
            if key in self._waiting or key in self._running:
                self.start(event.session_id, (event.agent,))

    def close(self) -> None:
        """Begin nothing more, and wait for what is being typed; waiting for acknowledgements is left to others."""
        with self._lock:
            self._closed.set()
            running = [thread for thread in self._running.values() if thread is not None]
        for thread in running:
            thread.join()

    def _look_at(self, session_id: str, patience: float | None = None) -> None:
        try:
            with self._world.messages().open(session_id) as mailbox:
                waiting = mailbox.waiting()
        except MasError:
            # Reported when the session is looked at; the next one may be sound.
            return
        self.start(session_id, waiting, patience)

    def _run(self, key: _Key, deadline: float | None, opened: OpenSession | None = None) -> None:
        try:
            while not self._is_done(key, self._deliver(key, deadline, opened)):
                opened = None
        except BaseException:
            # Only here: when it is done, `_is_done` has removed the key, and by now another thread may have begun.
            with self._lock:
                self._running.pop(key, None)
            raise

    def _is_done(self, key: _Key, waiting: Waiting | None) -> bool:
        """Note the result; False if the agent's queue must be processed once more."""
        with self._lock:
            if key in self._again and not self._closed.is_set():
                self._again.discard(key)
                return False
            if waiting is None:
                self._waiting.pop(key, None)
            else:
                self._waiting[key] = waiting
            # In one step with the check of `_again`: a caller that comes after this begins again.
            self._running.pop(key, None)
            return True

    def _deliver(self, key: _Key, deadline: float | None, opened: OpenSession | None) -> Waiting | None:
        session_id, agent = key

        def patient() -> bool:
            return not self._closed.is_set() and (deadline is None or time.monotonic() < deadline)

        while True:
            try:
                waiting = deliver(self._world, SessionId(session_id), agent, patient, opened)
            except MasError as error:
                return Waiting(error.message)
            except OSError as error:
                return Waiting(error.strerror or str(error))
            if waiting != BUSY or not patient():
                return waiting
            # Read again from here on: much may change while others type.
            opened = None
            time.sleep(_LOOK_AGAIN)
