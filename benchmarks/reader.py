"""A stand-in agent that tells, through a pipe, when it has read a pasted message and when its Enter.

Run as `python -ISE reader.py FIFO`, on a terminal. Standard library only: it also runs outside of the package.
"""

from __future__ import annotations

import os
import sys
import termios
import time
import tty

_PASTED = b"\x1b[201~"
_WORKING, _IDLE = b"\x1b]7501;state=working\x1b\\", b"\x1b]7501;state=idle\x1b\\"


def main(fifo: str) -> None:
    tty.setraw(0, termios.TCSANOW)
    reports = os.open(fifo, os.O_WRONLY)
    # Ask for bracketed paste, as agents do.
    os.write(1, b"\x1b[?2004h" + _IDLE)
    os.write(reports, b"ready 0\n")
    seen = b""
    while data := os.read(0, 1 << 16):
        now = time.monotonic_ns()
        seen += data
        if _PASTED in seen:
            os.write(reports, b"text %d\n" % now)
            seen = seen.partition(_PASTED)[2]
        if b"\r" in seen:
            os.write(reports, b"enter %d\n" % now)
            os.write(1, _WORKING + _IDLE)
            seen = b""


if __name__ == "__main__":
    main(sys.argv[1])
