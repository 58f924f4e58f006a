"""The server's log: one JSON line per request, in `api.log` and in the logs of the sessions it was about or made."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, Full, Queue
from threading import Thread
from typing import Any

_SESSION = re.compile(r"/sessions/([0-9a-f-]{36})(?:/|$)")
_MOST_WAITING = 10_000
# Requests that come every few seconds and are of no interest.
_QUIET = {"/health", "/metrics"}

Write = Callable[[str | None, str], None]


class RequestLog:
    """Writes in a thread of its own, so that a slow disk delays no request; what it cannot keep up with is counted."""

    def __init__(self, write: Write, now: Callable[[], str]) -> None:
        self._write = write
        self._now = now
        self._waiting: Queue[tuple[frozenset[str], dict[str, Any]] | None] = Queue(_MOST_WAITING)
        self._lost = 0
        self._failure: BaseException | None = None
        self._thread = self._started()

    def request(self, record: dict[str, Any]) -> None:
        """Keep one request."""
        if record["path"] in _QUIET and record["status"] == 200:
            return
        about = _SESSION.match(record["path"])
        named = record.pop("named") or (about and about[1])
        # Only of sessions that were found: a guessed id must not make a file.
        found = {named} if named and 200 <= record["status"] < 400 else set()
        made = {record["sessionId"]} if "sessionId" in record else set()
        self.line({"at": self._now(), "level": "info", "event": "request", **record}, found | made)

    def line(self, record: dict[str, Any], sessions: Iterable[str] = ()) -> None:
        """Keep one line, in the server's log and in those of `sessions`."""
        try:
            self._waiting.put_nowait((frozenset(sessions), record))
        except Full:
            self._lost += 1

    def close(self) -> None:
        """Write what is waiting, and end."""
        # If the thread failed, nothing makes room.
        with suppress(Full):
            self._waiting.put(None, timeout=5)
        self._thread.join(timeout=5)

    def check(self) -> None:
        """If the thread that writes has failed, have another go on, and raise what ended it."""
        failure, self._failure = self._failure, None
        if failure is not None:
            self._thread = self._started()
            raise failure

    def _started(self) -> Thread:
        thread = Thread(target=self._run, name="request-log", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        try:
            self._write_all()
        except BaseException as error:
            self._failure = error
            raise

    def _write_all(self) -> None:
        while (item := self._waiting.get()) is not None:
            sessions, record = item
            if self._lost:
                record["lost"], self._lost = self._lost, 0
            text = json.dumps(record, ensure_ascii=False)
            self._write(None, text)
            for session_id in sessions:
                self._write(session_id, text)
        while True:
            try:
                self._waiting.get_nowait()
            except Empty:
                return


class LogHandler(logging.Handler):
    """Carries what libraries and our own code log into the same file."""

    def __init__(self, log: RequestLog, now: Callable[[], str]) -> None:
        super().__init__(logging.INFO)
        self._log = log
        self._now = now

    def emit(self, record: logging.LogRecord) -> None:
        body = {
            "at": self._now(),
            "level": record.levelname.lower(),
            "event": "log",
            "logger": record.name,
            "text": record.getMessage(),
        }
        if record.exc_info:
            body["trace"] = logging.Formatter().formatException(record.exc_info)
        self._log.line(body)


@contextmanager
def open_log(write: Write, now: Callable[[], str]) -> Iterator[RequestLog]:
    """A log that holds what this process logs, too, while it is open."""
    log = RequestLog(write, now)
    logger, handler = logging.getLogger(), LogHandler(log, now)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield log
    finally:
        logger.removeHandler(handler)
        log.close()
