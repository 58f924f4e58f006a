"""The demo agent: a small program that takes messages like a real agent CLI, with no model behind it.

Run by path with `python -ISE`, so it imports the standard library only.
"""

import os
import re
import select
import sys
import termios
import tty

_PASTE_START, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
# Arrows and the like: it has no use for them, and their letters are no text.
_OTHER_KEYS = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]")
_SHOWN = 200
_HELP = "Type a message and press Enter. /help shows this, /env the session, /quit ends the agent."


class Editor:
    """Turns what is typed into messages: Enter submits, a bracketed paste may hold any number of lines."""

    def __init__(self) -> None:
        self._raw = b""
        self._line = b""
        self._pasting = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take what was typed; answers the messages that were submitted by it."""
        self._raw += data
        done = []
        while self._raw:
            if self._pasting:
                text, end, rest = self._raw.partition(_PASTE_END)
                if not end:
                    # Keep back what may be the beginning of the end mark.
                    keep = len(_PASTE_END) - 1
                    self._line += self._raw[:-keep]
                    self._raw = self._raw[-keep:]
                    break
                self._line += text
                self._raw, self._pasting = rest, False
            elif self._raw.startswith(_PASTE_START):
                self._raw, self._pasting = self._raw[len(_PASTE_START) :], True
            elif _PASTE_START.startswith(self._raw):
                break
            elif arrow := _OTHER_KEYS.match(self._raw):
                self._raw = self._raw[arrow.end() :]
            else:
                done += self._key(self._raw[:1])
                self._raw = self._raw[1:]
        return done

    def _key(self, key: bytes) -> list[bytes]:
        if key in (b"\r", b"\n"):
            line, self._line = self._line, b""
            return [line]
        if key in (b"\x7f", b"\x08"):
            self._line = self._line.decode("utf-8", "ignore")[:-1].encode()
        elif key == b"\x15":
            self._line = b""
        elif key == b"\x03":
            raise KeyboardInterrupt
        elif key == b"\x04" and not self._line:
            raise EOFError
        elif key >= b" ":
            self._line += key
        return []

    def tail(self) -> str:
        """The end of what is being typed, as much as one looks at."""
        return self._line[-_SHOWN:].decode("utf-8", "ignore").split("\n")[-1]


def answer(message: str) -> str:
    """What the demo agent says to a message."""
    if message == "/help":
        return _HELP
    if message == "/env":
        names = ("MAS_SESSION_ID", "MAS_AGENT_ID", "MAS_SESSION_DIR", "UNIT_DIR", "WORKFLOWS_DIR")
        return "\n".join(f"{name}={os.environ.get(name, '')}" for name in names)
    lines = message.count("\n") + 1
    return f"(demo) got {lines} line{'s' * (lines > 1)}, {len(message.encode())} bytes; kept in inbox.md"


def show(text: str) -> None:
    sys.stdout.write(text.replace("\n", "\r\n"))
    sys.stdout.flush()


def keep(message: str) -> None:
    with open("inbox.md", "a", encoding="utf-8") as file:
        file.write(message + "\n\n")


def handle(message: str) -> None:
    if message in ("/quit", "/exit"):
        raise EOFError
    if message.strip():
        if not message.startswith("/"):
            keep(message)
        show(f"{answer(message)}\n")


def main() -> None:
    agent = os.environ.get("MAS_AGENT_ID", "??")
    show(f"\x1b]2;demo {agent}\x07Demo agent {agent}: it has no model behind it and answers by rule.\n{_HELP}\n")
    saved = termios.tcgetattr(0)
    tty.setraw(0)
    editor = Editor()
    prompt = f"{agent}> "
    show(f"\x1b[?2004h{prompt}")
    try:
        while True:
            select.select([0], [], [])
            data = os.read(0, 65536)
            if not data:
                break
            for message in editor.feed(data):
                text = message.decode("utf-8", "replace")
                show(f"\r\x1b[K{prompt}{text}\n")
                handle(text)
            show(f"\r\x1b[K{prompt}{editor.tail()}")
    except (EOFError, KeyboardInterrupt):
        show("\n")
    finally:
        sys.stdout.write("\x1b[?2004l")
        sys.stdout.flush()
        termios.tcsetattr(0, termios.TCSANOW, saved)


if __name__ == "__main__":
    main()
