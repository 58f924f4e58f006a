"""The machine: what it allows MAS to run."""

from __future__ import annotations

import os
import resource
import subprocess

from mas.runtime.tmux import not_installed


def tmux_version() -> str:
    """What tmux calls itself; `NoTmux` if there is none."""
    try:
        done = subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=False, timeout=10)
    except FileNotFoundError:
        raise not_installed() from None
    return done.stdout.strip()


def descriptor_limit() -> int:
    """How many files a server started by us may open."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return hard if hard != resource.RLIM_INFINITY else 1 << 20


def terminals() -> tuple[int, int]:
    """Pseudo-terminals in use and at most; zeros where the system does not tell."""
    numbers = []
    for name in ("nr", "max"):
        try:
            with open(f"/proc/sys/kernel/pty/{name}", encoding="ascii") as file:
                numbers.append(int(file.read()))
        except OSError:
            return 0, 0
    return numbers[0], numbers[1]


def follow(path: str, lines: int) -> None:
    """Hand the terminal over to a program that shows a growing file. Does not return."""
    argv = ["tail", "-n", str(lines), "-F", "--", path]
    os.execvp(argv[0], argv)  # noqa: S606 - no shell, on purpose
