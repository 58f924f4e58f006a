"""The machine: what it allows MAS to run."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

from mas.runtime.tmux import NOT_OURS, not_installed

# A program that does not say its version within this does not say it at all.
_VERSION_PATIENCE = 10.0


def tmux_version() -> str:
    """tmux's version text; `NoTmux` if it is not installed."""
    try:
        done = subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=False, timeout=10)
    except FileNotFoundError:
        raise not_installed() from None
    return done.stdout.strip()


def version_text(argv: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    """A program's version output; None if it gives none. A program is run again only if its file changed."""
    status = os.stat(argv[0])
    return _version_text(argv, tuple(environ.items()), (status.st_ino, status.st_mtime_ns))


@cache
def _version_text(argv: tuple[str, ...], environ: tuple[tuple[str, str], ...], stamp: tuple[int, int]) -> str | None:
    try:
        process = subprocess.Popen(
            argv,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    except OSError:
        return None
    with process:
        try:
            output = process.communicate(timeout=_VERSION_PATIENCE)[0]
        except subprocess.TimeoutExpired:
            # What it started may hold the pipe, and would be waited for as well.
            os.killpg(process.pid, signal.SIGKILL)
            return None
    return output.decode("utf-8", "replace") if process.returncode == 0 else None


def descriptor_limit() -> int:
    """How many files a server started by us may open."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return hard if hard != resource.RLIM_INFINITY else 1 << 20


def terminals() -> tuple[int, int]:
    """Pseudo-terminals in use and their maximum; zeros if the system does not say."""
    numbers = []
    for name in ("nr", "max"):
        try:
            with open(f"/proc/sys/kernel/pty/{name}", encoding="ascii") as file:
                numbers.append(int(file.read()))
        except OSError:
            return 0, 0
    return numbers[0], numbers[1]


def start_detached(
    argv: Sequence[str], log: str, environ: Mapping[str, str], *inherited: int
) -> subprocess.Popen[bytes]:
    """Start a program that outlives this one and its terminal; its output is appended to `log`.

    The open files in `inherited` stay open for as long as it runs.
    """
    environ = {key: value for key, value in environ.items() if key not in NOT_OURS}
    with open(log, "ab") as file:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd="/",
            env=environ,
            start_new_session=True,
            pass_fds=inherited,
        )


def follow(path: str, lines: int) -> None:
    """Hand the terminal over to a program that shows a growing file. Does not return."""
    argv = ["tail", "-n", str(lines), "-F", "--", path]
    os.execvp(argv[0], argv)  # noqa: S606 - no shell, on purpose
