"""Draws the screens it is given over and over, as full-screen programs do: words apart by cursor moves, in colours.

Each argument is a screen, its lines apart by `|`. It goes on to the next one, and at last to its end, when a file
`next` appears, which it removes. `still=` in front of a screen draws it once, `rest=` does and goes on by itself after
a second. Reports what `report=` has behind it, and gives its terminal the title behind `title=`.
Keeps what is typed to it in `typed`.
"""

import os
import select
import sys
import time
import tty


def paint(lines: list[str], turn: int) -> None:
    drawn = [
        f"\x1b[{row};3H\x1b[3{row % 7 + 1}m" + "\x1b[1C".join(f"\x1b[1m{word}\x1b[22m" for word in line.split(" "))
        for row, line in enumerate(lines, 2)
    ]
    os.write(1, ("\x1b[?25l\x1b[2J" + "".join(drawn) + f"\x1b[0m\x1b[1;1H{'|/-x'[turn % 4]}").encode())


def main(*screens: str) -> None:
    tty.setraw(0)
    os.write(1, b"\x1b[?1049h")
    for screen in screens:
        if screen.startswith("report="):
            os.write(1, f"\x1b]7501;{screen[7:]}\x1b\\".encode())
            continue
        if screen.startswith("title="):
            os.write(1, f"\x1b]2;{screen[6:]}\x07".encode())
            continue
        if screen.startswith("rest="):
            paint(screen[5:].split("|"), 0)
            time.sleep(1)
            continue
        still = screen.startswith("still=")
        turn = 0
        while not os.path.exists("next"):
            if not (still and turn):
                paint(screen.removeprefix("still=").split("|"), turn)
            turn += 1
            if select.select([0], [], [], 0.03)[0]:
                with open("typed", "ab") as file:
                    file.write(os.read(0, 1 << 16))
        os.remove("next")


main(*sys.argv[1:])
