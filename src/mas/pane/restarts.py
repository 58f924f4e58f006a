"""Whether and when an exited agent is started again; decided by its launcher, which outlives every server."""

from __future__ import annotations

import time

# So many seconds count: what happened before that is forgotten.
_WINDOW = 600.0
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0


class Restarts:
    """The restarts of one agent by a policy: `on-failure` or `always`, at most `limit` within ten minutes."""

    def __init__(self, policy: str, limit: int) -> None:
        self.count = 0
        """How often the agent was started again, in all."""
        self._policy = policy
        self._limit = limit
        self._times: list[float] = []

    def covers(self, code: int) -> bool:
        """Whether the policy is for an agent that ended so."""
        return self._policy == "always" or (self._policy == "on-failure" and code != 0)

    def pause(self) -> float | None:
        """The seconds until the next start, which counts from now on; None if there have been too many."""
        now = time.monotonic()
        self._times = [at for at in self._times if now - at < _WINDOW]
        if len(self._times) >= self._limit:
            return None
        self._times.append(now)
        self.count += 1
        return float(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (len(self._times) - 1)))
