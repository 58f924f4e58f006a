"""The README's tour is true: every command is run, and prints what is written there."""

from __future__ import annotations

import os
import re
import sys
from functools import partial

from tests.site import REPOSITORY, Site, until

_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def tour() -> list[tuple[str, str]]:
    """The commands of the tour, each with the output that the README shows."""
    with open(os.path.join(REPOSITORY, "README.md"), encoding="utf-8") as file:
        text = "".join(_BLOCK.findall(file.read()))
    steps = [step.split("\n", 1) for step in text.split("$ ")[1:]]
    return [(command, output) for command, output in steps]


def plain(text: str, home: str) -> str:
    """Output without what differs from run to run."""
    text = text.replace(home, "/home/you")
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
    text = re.sub(r"(?<=mas-)[0-9a-f]{8}|\b[0-9a-f]{8}\b", "ID8", text)
    # The page shows what a terminal does; here nothing is one, so times are in UTC.
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d+ (?:s|min) ago", "TIME", text)
    text = re.sub(r"(?<=[A-Z]) \(UTC\)", "", text)
    text = re.sub(r"\b(lost|stopped) TIME", r"\1", text)
    # Columns are as wide as what is in them.
    text = re.sub(r"(?<=\S) {2,}", "  ", text)
    text = re.sub(r"\bm-[0-9a-f]{16}\b", "MESSAGE", text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def test_the_tour_prints_what_the_readme_shows(bare: Site) -> None:
    del bare.env["MAS_WORKSPACE_ROOT"]
    bare.env["PATH"] = f"{os.path.dirname(sys.executable)}:{bare.env['PATH']}"
    directory, session = bare.home, "9ca3f421"

    def said(command: str) -> str:
        return bare.run(["bash", "-c", f"{command} 2>&1"], cwd=directory).stdout

    def prints(command: str, wanted: str) -> bool:
        return plain(said(command), bare.home) == wanted

    for written, shown in tour():
        command = written.replace("9ca3f421", session)
        wanted = plain(shown, bare.home)
        if command.startswith("cd "):
            directory = os.path.join(directory, command[3:])
        elif command.startswith(("mas output", "mas list")):
            # Looking may be repeated: an agent answers in its own time.
            until(partial(prints, command, wanted), command)
        else:
            printed = said(command)
            assert plain(printed, bare.home) == wanted
            session = printed.splitlines()[-1][:8] if command.startswith("mas start") else session
