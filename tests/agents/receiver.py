"""A stand-in agent that takes bracketed pastes and keeps every message, byte for byte, as `got-1`, `got-2`, …

A message is what was pasted before Enter, without its first line, which goes to `headers`; keys outside a paste are
kept in `keys`. It tells its states as a real one does (OSC 7501), unless `SILENT=1` says that it does not take notice.
"""

import os
import re
import sys
import tty

_START, _END = b"\x1b[200~", b"\x1b[201~"
_HEADER = re.compile(rb"\[MAS from=\S+ to=\S+ id=m-[0-9a-f]{16}\]\n")
_SILENT = os.environ.get("SILENT") == "1"


def main() -> None:
    tty.setraw(0)
    _show("\x1b[?2004hready\r\n")
    _tell("idle")
    data, count = b"", 0
    while block := os.read(0, 1 << 16):
        data += block
        while _END + b"\r" in data:
            before, _, rest = data.partition(_START)
            message, _, data = rest.partition(_END + b"\r")
            header = _HEADER.match(message)
            count += 1
            _keep("keys", before)
            _keep("headers", header[0] if header else b"none\n")
            _keep(f"got-{count}", message[header.end() :] if header else message)
            if not _SILENT:
                _tell("working")
                _tell("idle")


def _tell(state: str) -> None:
    _show(f"\x1b]7501;state={state}\x1b\\")


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _keep(name: str, data: bytes) -> None:
    """Add to a file that appears whole, so that a reader never sees half a message."""
    if os.path.exists(name):
        with open(name, "rb") as file:
            data = file.read() + data
    with open(f"{name}.tmp", "wb") as file:
        file.write(data)
    os.rename(f"{name}.tmp", name)


if __name__ == "__main__":
    main()
