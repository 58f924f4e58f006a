"""An agent that looks for the servers of workspaces: `targets.json` names their directories and stolen tokens.

Writes `report.json`: for every workspace and file of its server what it could do with it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import time
from typing import Any

_FILES = ("token", "key", "api.sock", "agents.sock")


def found(path: str) -> str:
    """How far it gets: `absent`, `seen`, `read`."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return "absent"
    except OSError:
        return "hidden"
    if stat.S_ISSOCK(mode):
        return "seen"
    try:
        with open(path, "rb") as file:
            return "read" if file.read() else "empty"
    except OSError:
        return "seen"


def asked(path: str, token: str) -> str:
    """The status with which a server at a socket file answers a list of sessions; why there is none."""
    proof = f"Authorization: Bearer {token}\r\n" if token else ""
    try:
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(20)
            wire.connect(path)
            wire.sendall(f"GET /sessions HTTP/1.1\r\nHost: localhost\r\n{proof}Connection: close\r\n\r\n".encode())
            return wire.recv(100).decode().split(" ")[1]
    except (OSError, IndexError) as error:
        return type(error).__name__


def look(place: dict[str, str]) -> dict[str, Any]:
    at = {name: os.path.join(place["server"], name) for name in _FILES}
    return {
        "files": {name: found(path) for name, path in at.items()},
        "asked": {
            "with": asked(at["api.sock"], place["token"]),
            "without": asked(at["api.sock"], ""),
            "as an agent": asked(at["agents.sock"], place["token"]),
        },
    }


def main() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    while not os.path.exists("targets.json"):
        time.sleep(0.05)
    with open("targets.json", encoding="utf-8") as file:
        targets = json.load(file)
    with open("report.tmp", "w", encoding="utf-8") as file:
        json.dump({name: look(place) for name, place in targets.items()}, file)
    os.rename("report.tmp", "report.json")
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
