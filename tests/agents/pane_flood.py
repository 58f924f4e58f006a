"""Writes that many bytes as fast as it can, each block different from the last, in raw mode."""

import hashlib
import os
import sys
import tty


def blocks(count: int) -> bytes:
    """The bytes that are written: of every value, in an order that shows where they belong."""
    made = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(1 << 12))
    whole, rest = divmod(count, len(made) + 8)
    return b"".join(b"%08d" % number + made for number in range(whole)) + made[:rest]


def main(count: str) -> None:
    tty.setraw(1)
    data = memoryview(blocks(int(count)))
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(*sys.argv[1:])
