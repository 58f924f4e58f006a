"""A prompt that reports nothing about its state: echoes what is typed, thinks in silence after Enter, answers.

Each message it takes is a line of `took`; what is typed while it thinks goes to `early`.
"""

import os
import select
import time
import tty

RULE = "─" * 20


def main() -> None:
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h")
    while True:
        os.write(1, f"{RULE}\r\n> ".encode())
        message = b""
        while not message.endswith(b"\r"):
            data = os.read(0, 1 << 16)
            message += data
            os.write(1, data.replace(b"\x1b[200~", b"").replace(b"\x1b[201~", b"").replace(b"\n", b"\r\n> "))
        with open("took", "ab") as file:
            file.write(repr(message).encode() + b"\n")
        os.write(1, b"\r\n")
        time.sleep(1.5)
        if select.select([0], [], [], 0)[0]:
            with open("early", "ab") as file:
                file.write(os.read(0, 1 << 16))
        os.write(1, b"an answer\r\n")


main()
