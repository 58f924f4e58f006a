"""A stand-in agent that records its conversation as Claude Code does, in the directory it is given.

Words in a message change what it does: `tool` uses one, `late` writes its answer only after it has reported that it is
idle, `clear` begins another conversation, which it names with a hook, `child` records a conversation of another
program beside its own, `huge` writes a line that nobody should read, `block` ends in a question on its screen.
"""

import json
import os
import re
import subprocess
import sys
import time
import tty
import uuid

_START, _END = b"\x1b[200~", b"\x1b[201~"


class Talker:
    def __init__(self, directory: str, name: str) -> None:
        self.place = os.path.join(directory, "projects", "-here")
        os.makedirs(self.place, exist_ok=True)
        self.name = name
        self.number = 0

    def write(self, record: dict[str, object], name: str = "") -> None:
        self.number += 1
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{self.number % 1000:03d}Z"
        own = {"uuid": str(uuid.uuid4()), "timestamp": stamp, "sessionId": name or self.name, "isSidechain": False}
        with open(os.path.join(self.place, f"{name or self.name}.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(own | record, separators=(",", ":")) + "\n")

    def heard(self, content: object, name: str = "") -> None:
        self.write({"type": "user", "message": {"role": "user", "content": content}}, name)

    def said(self, block: dict[str, object], end: bool = True, name: str = "") -> None:
        usage = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 2}
        message = {"id": f"msg_{self.number}", "model": "stand-in", "content": [block], "usage": usage}
        ending = {"stop_reason": "end_turn" if end else "tool_use"}
        self.write({"type": "assistant", "message": message | ending}, name)

    def answer(self, text: str) -> None:
        body = text.split("\n", 1)[-1]
        if "clear" in body:
            self.name = str(uuid.uuid4())
            payload = json.dumps({"session_id": self.name, "source": "clear"}).encode()
            subprocess.run(["mas", "hook", "SessionStart"], input=payload, check=False)
        if "child" in body:
            other = str(uuid.uuid4())
            self.heard("of another program", other)
            self.said({"type": "text", "text": "not the agent's answer"}, name=other)
        if "huge" in body:
            with open(os.path.join(self.place, f"{self.name}.jsonl"), "ab") as file:
                file.write(b"x" * (3 << 20) + b"\n")
        self.heard(text)
        if "tool" in body:
            self.said({"type": "tool_use", "id": "call_1", "name": "Bash", "input": {"command": "date"}}, end=False)
            self.heard([{"type": "tool_result", "tool_use_id": "call_1", "content": "Tuesday"}])
        if "late" in body:
            _tell("idle")
            time.sleep(0.5)
        self.said({"type": "text", "text": f"You said: {body}"})


def main() -> None:
    tty.setraw(0)
    talker = Talker(sys.argv[1], sys.argv[2])
    _show("\x1b[?1049h\x1b[2J\x1b[H\x1b[?2004hready\r\n")
    _tell("idle")
    data = b""
    while block := os.read(0, 1 << 16):
        data += block
        while _END + b"\r" in data:
            message, _, data = data.partition(_START)[2].partition(_END + b"\r")
            _tell("working")
            talker.answer(re.sub(r"\r\n?", "\n", message.decode()))
            _show("\x1b[H\x1b[2JTHE SCREEN\r\n")
            _tell("blocked:kind=question" if b"block" in message else "idle")


def _tell(state: str) -> None:
    _show(f"\x1b]7501;state={state}\x1b\\")


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
