"""A stand-in agent that takes bracketed pastes and keeps every message, byte for byte, as `got-1`, `got-2`, …

A message is what was pasted before Enter; keys outside a paste are kept in `keys`.
"""

import os
import sys
import tty

_START, _END = b"\x1b[200~", b"\x1b[201~"


def main() -> None:
    tty.setraw(0)
    sys.stdout.write("\x1b[?2004hready\r\n")
    sys.stdout.flush()
    data, count = b"", 0
    while block := os.read(0, 1 << 16):
        data += block
        while _END + b"\r" in data:
            before, _, rest = data.partition(_START)
            message, _, data = rest.partition(_END + b"\r")
            count += 1
            _keep("keys", before)
            _keep(f"got-{count}", message)


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
