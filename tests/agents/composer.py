"""A stand-in agent with an input line between two rules, as full-screen programs have; it calls itself idle throughout.

Messages that it took are lines of `took`. While there is a file `dialog` it shows a dialog in place of the input line:
Enter there grants a permission nobody saw (`granted`), and what is pasted is lost. Its arguments say how it is unlucky:
`deaf=N` drops the first N pastes, `paste` opens the dialog once a text was pasted, `enter` once one was submitted,
which it takes when the dialog is closed, `folds` shows a long paste as a label, `miscounts` shows a wrong one, `stuck`
takes no first Enter, `silent` reports nothing, `fails` reports an error after its first message.
"""

import os
import select
import sys
import tty

START, END = b"\x1b[200~", b"\x1b[201~"
RULE = "─" * 40
WIDE = 60


class Program:
    def __init__(self, *words: str) -> None:
        self.words = set(words)
        self.deaf = next((int(word[5:]) for word in words if word.startswith("deaf=")), 0)
        self.text = ""
        self.held = ""
        self.log: list[str] = ["ready"]
        self.drawn: tuple[object, ...] = ()

    def draw(self) -> None:
        now = (self.text, tuple(self.log), self.asks)
        if now == self.drawn:
            return
        self.drawn = now
        lines = self.text.split("\n")
        shown = [line[start : start + WIDE] for line in lines for start in range(0, len(line) or 1, WIDE)]
        if len(lines) > 3 and self.words & {"folds", "miscounts"}:
            shown = [f"[Pasted text #1 +{len(lines) - ('folds' in self.words)} lines]"]
        if self.asks:
            rows = [*self.log, "The following files are outside:", "Do you want to allow this?", "> 1. Yes", "  2. No"]
            end = "\x1b[H"
        else:
            rows = [*self.log, RULE, f"> {shown[0]}", *(f"  {line}" for line in shown[1:]), RULE, "  hints"]
            end = f"\x1b[{len(rows) - 2};{len(shown[-1]) + 3}H"
        if not self.asks and not self.text:
            rows[-3] = "> \x1b[2mask me anything\x1b[22m"
        os.write(1, ("\x1b[H\x1b[2J" + "\r\n".join(rows) + end).encode())

    @property
    def asks(self) -> bool:
        return os.path.exists("dialog")

    def pasted(self, text: str) -> None:
        keep("pasted", text)
        if self.asks or self.deaf:
            self.deaf = max(0, self.deaf - 1)
            return
        self.text += text
        self.ask_after("paste")

    def enter(self) -> None:
        if self.asks:
            keep("granted", "by Enter")
            os.remove("dialog")
        elif "stuck" in self.words:
            self.words.discard("stuck")
        else:
            self.held, self.text = self.text, ""
            self.ask_after("enter")

    def ask_after(self, event: str) -> None:
        if event in self.words:
            self.words.discard(event)
            keep("dialog", "")

    def take(self) -> None:
        if self.held and not self.asks:
            keep("took", self.held)
            self.log = [*self.log[-3:], f"took {len(self.held)}"]
            self.held = ""
            self.report("working")
            self.report("error" if "fails" in self.words else "idle")
            self.words.discard("fails")

    def report(self, state: str) -> None:
        if "silent" not in self.words:
            os.write(1, f"\x1b]7501;state={state}\x1b\\".encode())

    def run(self) -> None:
        tty.setraw(0)
        os.write(1, b"\x1b[?1049h\x1b[?2004h")
        self.draw()
        self.report("idle")
        data = b""
        while True:
            if select.select([0], [], [], 0.02)[0]:
                data += os.read(0, 1 << 16)
            while data and not (data.startswith(START) and END not in data):
                if data.startswith(START):
                    text, _, data = data[len(START) :].partition(END)
                    self.pasted(text.decode())
                elif data.startswith(b"\r"):
                    data = data[1:]
                    self.enter()
                else:
                    self.text += data[:1].decode("ascii", "ignore")
                    data = data[1:]
            self.take()
            self.draw()


def keep(name: str, text: str) -> None:
    with open(name, "a", encoding="utf-8") as file:
        file.write(repr(text) + "\n")


Program(*sys.argv[1:]).run()
