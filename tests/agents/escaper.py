"""Starts daemons that shed all that shows where they are from: parents, session, terminal, variables, directory.

With `shed` it first tries to change the limit that marks it. With `storm` they never stay the same process: each
forks another and exits, again and again.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import random
import resource
import sys
import time

LIMIT = 10
STORM = 60.0
LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"


def daemon(seconds: str, until_then: int) -> None:
    """Fork twice, each time into a new session, and become a program with an empty environment."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    os.closerange(0, until_then)
    os.closerange(until_then + 1, 100)
    if "storm" in sys.argv:
        os.close(until_then)
        storm()
    os.execve("/bin/sleep", ["sleep", seconds], {})


def storm() -> None:
    """Be another process every few milliseconds. It blows over by itself, should no test be left to end it."""
    os.environ.clear()
    over = time.monotonic() + STORM
    while time.monotonic() < over:
        time.sleep(random.random() * 0.004)
        try:
            if os.fork():
                os._exit(0)
        except OSError:
            continue
        os.setsid()
    os._exit(0)


def result(answer: int) -> str:
    return "ok" if answer == 0 else errno.errorcode[ctypes.get_errno()]


def shed() -> list[str]:
    """How three ways to lower the limit went."""
    limits = (ctypes.c_uint64 * 2)(5, 5)
    try:
        resource.setrlimit(LIMIT, (5, 5))
        first = "ok"
    except (OSError, ValueError) as error:
        first = "EPERM" if isinstance(error, PermissionError) or "not allowed" in str(error) else str(error)
    second = result(LIBC.syscall(302 if X86 else 261, 0, LIMIT, limits, None))
    return [first, second, result(LIBC.syscall(160 if X86 else 164, LIMIT, limits))]


def write(name: str, value: object) -> None:
    with open(f"{name}.tmp", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.rename(f"{name}.tmp", name)


if "shed" in sys.argv:
    write("shed.json", shed())
seconds = f"{random.randrange(10**6, 10**9)}"
ready, open_ = os.pipe()
for _ in range(3):
    daemon(seconds, open_)
os.close(open_)
# It closes when each has become the program.
os.read(ready, 1)
write("daemons.json", seconds)
while True:
    time.sleep(1000)
