"""A stand-in agent that saves its work on its own quit key, Ctrl-Q, and loses it to any signal.

Every key is noted in `keys` before anything else is done with it. `ASKING=1`: it asks for a permission, and any key is
a yes. `DEAF=1`: it takes no notice of its quit key. `FOREIGN=1`: another program, which notes what it gets in
`foreign`, has its terminal.
"""

import os
import signal
import sys
import tty

_QUIT = b"\x11"


def main() -> None:
    tty.setraw(0)
    if os.environ.get("FOREIGN") == "1":
        _give_away()
    asks = os.environ.get("ASKING") == "1"
    sys.stdout.write(f"\x1b]7501;state={'blocked:kind=permission' if asks else 'idle'}\x1b\\ready")
    sys.stdout.flush()
    while key := os.read(0, 1):
        _note("keys", key)
        if asks:
            _note("approved", key)
        elif key == _QUIT and os.environ.get("DEAF") != "1":
            _note("saved", b"all of it")
            return


def _give_away() -> None:
    """Have another program in the foreground, as an agent that opened an editor."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        _note("foreign", b"")
        while key := os.read(0, 1):
            _note("foreign", key)
        os._exit(0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.setpgid(child, child)
    os.tcsetpgrp(0, child)
    sys.stdout.write("\x1b]7501;state=working\x1b\\ready")
    sys.stdout.flush()
    while True:
        signal.pause()


def _note(name: str, data: bytes) -> None:
    with open(name, "ab") as file:
        file.write(data)


if __name__ == "__main__":
    main()
