"""Starts the process of a forward, which exits with the process that started it."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from contextlib import suppress
from typing import NamedTuple

from mas.model.errors import Conflict, Unavailable
from mas.runtime.panes import MARK

_MAIN = os.path.join(os.path.dirname(__file__), "__main__.py")
_LONGEST_ERROR = 500


class ForwardPlan(NamedTuple):
    """Where a forward leads: `directory` is that of the session's network, `local` 0 stands for any free port."""

    directory: str
    port: int
    local: int
    name: str
    any_user: bool = False


class ForwardProcess:
    """A forward that runs. `local` is the port on loopback where it listens."""

    def __init__(self, plan: ForwardPlan, mark: str) -> None:
        """Returns once it listens; `Conflict` if the port is taken. With its `mark` it ends with the session."""
        argv = [sys.executable, "-ISE", _MAIN, json.dumps(plan._asdict())]
        pipe = subprocess.PIPE
        # Ctrl-C is for the process that started it, which closes its input then.
        self._process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, env={MARK: mark}, cwd="/", start_new_session=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            words = json.loads(line)
            self.local = int(words["local"])
        except (ValueError, LookupError):
            raise self._why_not(plan, line) from None

    def _why_not(self, plan: ForwardPlan, line: bytes) -> Conflict | Unavailable:
        errors = self._process.communicate()[1].decode("utf-8", "replace").strip()[-_LONGEST_ERROR:]
        try:
            words = json.loads(line)
        except ValueError:
            return Unavailable(f"The process of the forward did not start: {errors}", "mas doctor")
        if words["errno"] in (errno.EADDRINUSE, errno.EACCES):
            return Conflict(f"Port {plan.local} of this machine cannot be used: {words['problem']}")
        return Conflict(f"The session's network cannot be reached: {words['problem']}")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        """Return when it has ended."""
        self._process.wait()

    def end(self) -> None:
        """End it, and all its connections. Ending twice is fine."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._process.kill()
        self._process.wait()
