"""A stand-in agent that notes the first line of every message it gets, in their order, in `headers`.

It says that it has a message once its line is written: on a full disk it tries until there is room.
"""

import os
import re
import sys
import time
import tty

_START, _END = b"\x1b[200~", b"\x1b[201~"
_HEADER = re.compile(rb"\[MAS from=\S+ to=\S+ id=m-[0-9a-f]{16}\]\n")


def main() -> None:
    tty.setraw(0)
    _show("\x1b[?2004hready\r\n")
    _tell("idle")
    data = b""
    while block := os.read(0, 1 << 16):
        data += block
        while _END + b"\r" in data:
            message, _, data = data.partition(_START)[2].partition(_END + b"\r")
            header = _HEADER.match(message)
            _note(header[0] if header else b"none\n")
            _tell("working")
            _tell("idle")


def _note(line: bytes) -> None:
    while not _add("headers", line):
        time.sleep(0.02)


def _add(name: str, line: bytes) -> bool:
    """Add a line whole or not at all."""
    try:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644)
    except OSError:
        return False
    end = os.lseek(fd, 0, os.SEEK_END)
    try:
        if os.write(fd, line) == len(line):
            return True
    except OSError:
        pass
    finally:
        if os.lseek(fd, 0, os.SEEK_CUR) != end + len(line):
            os.ftruncate(fd, end)
        os.close(fd)
    return False


def _tell(state: str) -> None:
    _show(f"\x1b]7501;state={state}\x1b\\")


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
