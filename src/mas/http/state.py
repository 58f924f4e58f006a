"""What all requests and background tasks of one server share."""

from __future__ import annotations

from functools import partial
from threading import ExceptHookArgs

from mas.bootstrap import ServerParts
from mas.http.crowd import Crowd
from mas.http.feed import EventFeed
from mas.http.limits import ServerLimits
from mas.http.metrics import Metrics
from mas.http.page import Page
from mas.http.periodic import Rounds
from mas.http.supervisor import Supervisor
from mas.http.threads import CallerThreads
from mas.http.turns import TurnTeller
from mas.http.viewer import Hall
from mas.http.watch import Watches
from mas.model.event import Event
from mas.service.shares import Shares

# How often to look for events if the kernel does not report them.
_LOOK = 0.25


class ServerState:
    """Made once, before the server listens; routes have it as `Server`. It is called `url` and by any of `hosts`."""

    def __init__(
        self, workspace: ServerParts, url: str = "", hosts: tuple[str, ...] = (), limits: ServerLimits | None = None
    ) -> None:
        self.workspace = workspace
        self.mas = workspace.mas
        self.access = workspace.access
        self.browsers = workspace.browsers
        self.url = url
        self.hosts = hosts
        self.limits = limits or ServerLimits()
        self.metrics = Metrics(self.mas)
        self.supervisor = Supervisor(self.metrics.task_started, self.metrics.task_failed)
        self.rounds = Rounds(workspace.courier)
        self.waiters = Shares(
            self.limits.waiters, "calls are waiting", "nothing was done; try again later, or without wait"
        )
        self.streams = Shares(self.limits.streams, "streams are open", "close some; try again later")
        self.crowd = Crowd(self.limits)
        self.threads = CallerThreads(self.limits.threads_of_session, self.limits.threads_of_agents)
        self.page = Page()
        watches = Watches(self.supervisor)
        self.hall = Hall(watches)
        self.turns = TurnTeller(self.mas, workspace.tell_turns)
        self.feed = EventFeed(
            self.mas, partial(watches.watching, workspace.events, look=_LOOK), self._hear, self._look_again
        )

    def _hear(self, event: Event) -> None:
        self.workspace.courier.hear(event)
        self.turns.hear(event)

    def _look_again(self) -> None:
        """Events were missed."""
        self.rounds.begin_again()
        self.turns.look_around()

    def thread_failed(self, failure: ExceptHookArgs) -> None:
        """A thread of the server has raised something."""
        self.supervisor.thread_failed(failure)
        # It may have been one that delivered messages: they are looked for again.
        self.rounds.begin_again()
