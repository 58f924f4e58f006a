"""Asks one question after the other by reports (OSC 7501), and keeps every key it gets in `keys`.

Arguments: how many keys it takes to answer a question, the kind of question, and the questions. The file `next` makes
it go on to the next question by itself, `die` makes it end. When all are answered it is idle.
"""

import base64
import os
import select
import sys
import tty


def report(fields: str) -> None:
    os.write(1, f"\x1b]7501;{fields}\x1b\\".encode())


def answered(keys: int) -> None:
    got = 0
    while got < keys:
        if os.path.exists("die"):
            sys.exit(3)
        if os.path.exists("next"):
            os.unlink("next")
            return
        if select.select([0], [], [], 0.01)[0]:
            data = os.read(0, 1 << 16)
            with open("keys", "ab") as file:
                file.write(data)
            got += len(data)


def main(keys: str, kind: str, *questions: str) -> None:
    tty.setraw(0)
    open("keys", "ab").close()
    for question in questions:
        os.write(1, f"may it {question}?\r\n".encode())
        report(f"state=blocked:kind={kind}:msg={base64.b64encode(question.encode()).decode()}")
        answered(int(keys))
        report("state=working")
    report("state=idle")
    answered(1 << 30)


main(*sys.argv[1:])
