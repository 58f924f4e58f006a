"""Gives back, in raw mode, as many bytes as its argument says; waits for a file first if it was named one."""

import os
import sys
import time
import tty


def main(count: str, gate: str = "") -> None:
    tty.setraw(0)
    os.write(1, b"<ready>")
    while gate and not os.path.exists(gate):
        time.sleep(0.01)
    left = int(count)
    while left:
        data = os.read(0, 1 << 16)
        left -= len(data)
        while data:
            data = data[os.write(1, data) :]
    os.write(1, b"<done>")


main(*sys.argv[1:])
