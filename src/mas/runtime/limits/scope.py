"""Scopes of the user's systemd: control groups for users who cannot create their own, and they survive a logout.

Everything goes through `systemd-run`, and only if a first scope worked: without systemd, a user bus or
a response, MAS works without scopes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from enum import StrEnum

from mas.model.isolation import Limits

_PATIENCE = 3.0
_SCOPE = ("systemd-run", "--user", "--scope", "--quiet", "--collect")


class Logout(StrEnum):
    """What becomes of a tmux server when the person who started it logs out."""

    STAYS = "stays"
    STAYS_IN_SCOPE = "stays in a scope of its own"
    ENDS = "ends"


class Scopes:
    """What the user's systemd offers; `environ` says where it is."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._given: bool | None = None

    def given(self) -> bool:
        """Whether a scope can be had; found out by trying, once."""
        if self._given is None:
            bus = "XDG_RUNTIME_DIR" in self._environ or "DBUS_SESSION_BUS_ADDRESS" in self._environ
            there = bus and shutil.which(_SCOPE[0], path=self._environ.get("PATH")) is not None
            self._given = there and self._does((*_SCOPE, "--", "true"))
        return self._given

    def at_logout(self) -> Logout | None:
        """What happens at logout to processes of the login; None if there is no login that ends, or it is unknown."""
        if "XDG_SESSION_ID" not in self._environ:
            return None
        kills = self._says(("loginctl", "show-user", "--property=KillUserProcesses", "--value"))
        if kills is None:
            return None
        if kills != "yes":
            return Logout.STAYS
        lingers = self._says(("loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"))
        return Logout.STAYS_IN_SCOPE if lingers == "yes" and self.given() else Logout.ENDS

    def limit_slice(self, session: str, limits: Limits) -> bool:
        """Give the slice of a session its limits, before anything runs in it; whether that was done."""
        values = list(properties(limits))
        return not values or self._does(
            ("systemctl", "--user", "set-property", "--runtime", slice_of(session), *values)
        )

    def end_slice(self, session: str) -> None:
        """Kill everything in the slice of a session and forget it."""
        self._does(("systemctl", "--user", "kill", "--signal=KILL", slice_of(session)))
        self._does(("systemctl", "--user", "stop", slice_of(session)))

    def _does(self, argv: tuple[str, ...]) -> bool:
        return self._says(argv) is not None

    def _says(self, argv: tuple[str, ...]) -> str | None:
        """What a command prints; None if it fails, or does not answer in time."""
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=dict(self._environ),
                timeout=_PATIENCE,
                check=False,
                text=True,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None


def slice_of(session: str) -> str:
    """The slice of a session; `mas.slice` is the one above all of them."""
    return f"mas-{session.replace('-', '')}.slice"


def agent_scope(session: str, agent: str, limits: Limits) -> tuple[str, ...]:
    """What to put before an agent's launcher to have it run with limits, below the session's slice."""
    asked = (word for value in properties(limits) for word in ("-p", value))
    unit = f"mas-{session.replace('-', '')}-{agent}"
    # Should the kernel kill what takes too much, its launcher must be there to say so.
    return (*_SCOPE, f"--slice={slice_of(session)}", f"--unit={unit}", "-p", "OOMPolicy=continue", *asked, "--")


def server_scope(name: str) -> tuple[str, ...]:
    """What to put before the start of a tmux server to have it outlive the login it is started from."""
    return (*_SCOPE, "--slice=mas.slice", f"--unit={name}-server", "--")


def properties(limits: Limits) -> Iterator[str]:
    """Limits in systemd's words."""
    if limits.memory:
        yield f"MemoryMax={limits.memory}"
        yield "MemorySwapMax=0"
    if limits.processes:
        yield f"TasksMax={limits.processes}"
    if limits.cpu:
        yield f"CPUQuota={max(1, round(limits.cpu * 100))}%"
