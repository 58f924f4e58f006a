"""A stand-in agent that takes much of the machine, as its arguments say, and then waits; `up` is there once it has.

memory BYTES [CHILDREN]   so much memory, shared with so many children that were forked after
shared BYTES              so much shared memory
slowly BYTES              memory, some MiB at a time
forks NUMBER              as many processes as it gets; how many is written to `forks`
file BYTES                a file of that size
spin                      a processor
"""

import mmap
import os
import signal
import sys
import time

_STEP = 4 << 20


def main(what: str, number: int = 0, children: int = 0) -> None:
    kept: list[object] = []
    if what == "memory":
        kept.append(b"x" * number)
        for _ in range(children):
            _child()
    elif what == "shared":
        shared = mmap.mmap(-1, number)
        shared.write(b"x" * number)
        kept.append(shared)
    elif what == "slowly":
        for _ in range(number // _STEP):
            kept.append(b"x" * _STEP)
            time.sleep(0.01)
    elif what == "forks":
        _write("forks", str(_forked(number)))
    elif what == "file":
        with open("large", "wb") as file:
            for _ in range(number // _STEP):
                file.write(b"x" * _STEP)
    _write("up", "")
    while what == "spin":
        pass
    while True:
        time.sleep(1000)


def _forked(most: int) -> int:
    for done in range(most):
        try:
            _child()
        except BlockingIOError:
            return done
    return most


def _child() -> None:
    if os.fork() == 0:
        signal.pause()


def _write(name: str, text: str) -> None:
    with open(f"{name}.tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(f"{name}.tmp", name)


if __name__ == "__main__":
    # Python ignores it, and most other programs do not.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    main(sys.argv[1], *map(int, sys.argv[2:]))
