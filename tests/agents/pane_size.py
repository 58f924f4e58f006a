"""Says how large its terminal is, at its start and whenever that changes."""

import os
import signal


def say(*_: object) -> None:
    size = os.get_terminal_size(0)
    os.write(1, b"[%dx%d]" % (size.columns, size.lines))


signal.signal(signal.SIGWINCH, say)
say()
while True:
    signal.pause()
