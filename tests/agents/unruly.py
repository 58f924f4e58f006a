"""A stand-in agent that misbehaves as its environment says, and writes the processes it started to `pids.json`.

IGNORE_SIGNALS=1    it and its children ignore SIGHUP, SIGTERM and SIGINT
CHILDREN=a,b        which children it starts: plain, setsid, daemon (twice forked, nothing in its environment)
EXIT_STATUS=n       it ends with that status once its children run
"""

import json
import os
import signal
import subprocess
import time

_SLEEP = ["sleep", "1000"]


def main() -> None:
    if os.environ.get("IGNORE_SIGNALS"):
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    wanted = [kind for kind in os.environ.get("CHILDREN", "").split(",") if kind]
    pids = {"agent": os.getpid(), **{kind: _CHILDREN[kind]() for kind in wanted}}
    with open("pids.tmp", "w", encoding="utf-8") as file:
        json.dump(pids, file)
    os.rename("pids.tmp", "pids.json")
    if status := os.environ.get("EXIT_STATUS"):
        os._exit(int(status))
    while True:
        time.sleep(1000)


def _plain() -> int:
    return subprocess.Popen(_SLEEP, restore_signals=False).pid


def _setsid() -> int:
    return subprocess.Popen(_SLEEP, restore_signals=False, start_new_session=True).pid


def _daemon() -> int:
    """The classic way out: fork twice, leave the session and the terminal, forget where one came from."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.chdir("/")
        pid = os.fork()
        if pid:
            os.write(writer, str(pid).encode())
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.execve("/bin/sleep", _SLEEP, {})
    os.wait()
    return int(os.read(reader, 16))


_CHILDREN = {"plain": _plain, "setsid": _setsid, "daemon": _daemon}


if __name__ == "__main__":
    main()
