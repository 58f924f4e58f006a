"""Prints what it is given, piece by piece, in raw mode; keeps what is typed to it in `typed`.

Each argument is a piece as hexadecimal digits; it waits a moment between two, so that they are likely to be read
apart. `@NAME` waits for that file instead. It lives until it reads `q`.
"""

import os
import sys
import time
import tty


def main(*pieces: str) -> None:
    tty.setraw(0)
    for piece in pieces:
        if piece.startswith("@"):
            while not os.path.exists(piece[1:]):
                time.sleep(0.01)
            continue
        data = bytes.fromhex(piece)
        while data:
            data = data[os.write(1, data) :]
        time.sleep(0.005)
    with open("typed", "ab", buffering=0) as file:
        while (data := os.read(0, 1 << 16)) and b"q" not in data:
            file.write(data)


main(*sys.argv[1:])
