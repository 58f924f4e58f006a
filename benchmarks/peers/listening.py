"""A stand-in agent that tells through a pipe when it has read a numbered message, and when the Enter after it.

Run as `python -ISE listening.py FIFO`, on a terminal. It shows what each orchestrator looks for to know that it is
idle: the state of OSC 7501, and the prompt and answers of a mock agent. Standard library only.
"""

from __future__ import annotations

import os
import re
import sys
import termios
import time
import tty

_NUMBER = re.compile(rb"\[(\d+)\]")
_WORKING, _IDLE = b"\x1b]7501;state=working\x1b\\", b"\x1b]7501;state=idle\x1b\\"
_PROMPT = b"\xe2\x9d\xaf "


def main(fifo: str) -> None:
    tty.setraw(0, termios.TCSANOW)
    reports = os.open(fifo, os.O_WRONLY)
    # Ask for bracketed paste, as agents do.
    os.write(1, b"\x1b[?2004h" + _IDLE + _PROMPT)
    os.write(reports, b"ready - %d\n" % time.monotonic_ns())
    seen, number = b"", b""
    while data := os.read(0, 1 << 16):
        now = time.monotonic_ns()
        seen += data
        if found := _NUMBER.search(seen):
            number, seen = found[1], seen[found.end() :]
            os.write(reports, b"text %s %d\n" % (number, now))
        if b"\r" in seen:
            # An Enter with nothing before it is none of ours: some send two.
            if number:
                os.write(reports, b"enter %s %d\n" % (number, now))
                os.write(1, _WORKING + b"\r\n> MOCK: " + number + b"\r\n" + _IDLE + _PROMPT)
            seen, number = b"", b""


if __name__ == "__main__":
    main(sys.argv[1])
