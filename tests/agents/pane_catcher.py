"""Keeps every byte that is typed to it in the file it was given; `bracketed` asks for pastes in brackets."""

import os
import sys
import tty


def main(path: str, *modes: str) -> None:
    tty.setraw(0)
    if "bracketed" in modes:
        os.write(1, b"\x1b[?2004h")
    with open(path, "ab", buffering=0) as file:
        os.write(1, b"ready\r\n")
        while data := os.read(0, 1 << 16):
            file.write(data)


main(*sys.argv[1:])
