"""Metrics for Prometheus: sessions, agents and what they use, messages, requests, the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from mas.model.state import State
from mas.model.stats import SessionStats
from mas.service.mas import Mas

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LAG_EVERY = 1.0
# Counting files and processes costs more than a scrape should.
_KEEP = 10.0
_OF_SESSIONS = (
    ("mas_session_cpu_cores", "Processor cores used by a session", "cpu"),
    ("mas_session_cpu_seconds", "Processor time of the running processes of a session", "cpu_seconds"),
    ("mas_session_memory_bytes", "Memory used by a session", "memory"),
    ("mas_session_processes", "Processes of a session", "processes"),
    ("mas_session_disk_bytes", "Disk space used by a session", "disk"),
)


class Metrics:
    """Counts as requests pass; looks at the workspace when it is scraped."""

    def __init__(self, mas: Mas) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "mas_request_seconds",
            "Time to answer a request",
            ["method", "route", "status"],
            registry=self._registry,
            buckets=_BUCKETS,
        )
        self._lag = Gauge("mas_event_loop_lag_seconds", "Last delay of the event loop", registry=self._registry)
        self._worst = Gauge(
            "mas_event_loop_lag_max_seconds", "Longest delay of the event loop", registry=self._registry
        )
        self._streams = Gauge(
            "mas_streams", "Open streams of events, terminals and tools", ["kind"], registry=self._registry
        )
        self._failures = Counter(
            "mas_task_failures",
            "Failures of the server's background tasks",
            ["task"],
            registry=self._registry,
        )
        self._registry.register(_Workspace(mas))

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._seconds.labels(method, route, str(status)).observe(seconds)

    @contextmanager
    def open_stream(self, kind: str) -> Iterator[None]:
        """Count what is open for long, while it is."""
        with self._streams.labels(kind).track_inprogress():
            yield

    def task_started(self, name: str) -> None:
        # Shown before it fails for the first time, so that a first failure is seen as a step.
        self._failures.labels(name)

    def task_failed(self, name: str) -> None:
        self._failures.labels(name).inc()

    async def watch_loop(self) -> None:
        """Measure, for ever, how late the event loop is."""
        worst = 0.0
        while True:
            wanted = time.monotonic() + _LAG_EVERY
            await asyncio.sleep(_LAG_EVERY)
            lag = max(0.0, time.monotonic() - wanted)
            worst = max(worst, lag)
            self._lag.set(lag)
            self._worst.set(worst)

    def families(self) -> Iterable[Metric]:
        """All current metrics."""
        return self._registry.collect()

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Workspace:
    """What is in the workspace, kept for some seconds."""

    def __init__(self, mas: Mas) -> None:
        self._mas = mas
        self._lock = Lock()
        self._families: list[Metric] = []
        self._until = 0.0

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            if time.monotonic() >= self._until:
                self._families = self._look()
                self._until = time.monotonic() + _KEEP
            return self._families

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering does not look at the workspace."""
        return []

    def _look(self) -> list[Metric]:
        stats = self._mas.stats()
        by_status = {
            "active": stats.active,
            "stopped": stats.stopped,
            "error": stats.error,
            "archived": stats.archived,
            "deleted": stats.deleted,
        }
        states = dict.fromkeys(map(str, State), 0)
        for session in stats.sessions:
            for state, number in session.states.items():
                states[state] += number
        return [
            _family("mas_sessions", "Sessions by status", "status", by_status),
            _family("mas_agents", "Agents of active sessions by state", "state", states),
            _family("mas_messages", "Messages by delivery state", "state", self._mas.message_counts()),
            GaugeMetricFamily("mas_disk_bytes", "Disk space used by all sessions", stats.disk),
            GaugeMetricFamily("mas_processes", "Processes of all sessions", stats.processes),
            GaugeMetricFamily("mas_cpu_cores", "Processor cores used by all sessions", stats.cpu),
            GaugeMetricFamily("mas_memory_bytes", "Memory used by all sessions", stats.memory),
            *(_by_session(stats.sessions, *metric) for metric in _OF_SESSIONS),
        ]


def _by_session(sessions: tuple[SessionStats, ...], name: str, text: str, field: str) -> Metric:
    """What each running session takes; those that do not run take nothing but disk."""
    running = {one.session_id: getattr(one, field) for one in sessions if one.live_agents}
    return _family(name, text, "session", running)


def _family(name: str, text: str, label: str, values: dict[str, Any]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
