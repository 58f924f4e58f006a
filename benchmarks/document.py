"""`python -m benchmarks.document`: write docs/benchmarks.md, its plots and README's figures from the last results."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from benchmarks.peers.picture import picture
from benchmarks.peers.sides import CAO, MAS, RAW
from benchmarks.peers.table import Line, Table
from benchmarks.peers.words import HEADINGS, cells, grid
from benchmarks.report import HEADINGS as MEASURED
from benchmarks.report import read

_HERE = os.path.dirname(os.path.abspath(__file__))
_DOCS = os.path.join(os.path.dirname(_HERE), "docs")
RESULTS = os.path.join(_HERE, "RESULTS.md")
PEERS = os.path.join(_HERE, "PEERS.json")
PAGE = os.path.join(_DOCS, "benchmarks.md")
README = os.path.join(os.path.dirname(_HERE), "README.md")
_PICTURES = os.path.join(_DOCS, "pictures")
_WIDTH = 120

BOUNDS = (
    ("start 13 agents, isolation off, small templates", r"start 13 agents, isolation off"),
    ("the same with tier A", r"start 13 agents, tier A.*"),
    ("the same while 300 sessions are alive", r"start 13 agents beside \d+ sessions"),
    ("copy of 65 MB templates", r"copy of the templates"),
    ("`GET /sessions` with 1 / 50 / 300 sessions", r"GET /sessions with .*"),
    ("message to an idle agent, call → text at the program", r"send: call → text at the program"),
    ("13-agent broadcast, and other requests meanwhile", r"POST …/messages to all.*|GET /sessions meanwhile.*"),
    ("`mas list` with 100 sessions", r"`mas list` with 100 sessions"),
    ("server with 50 sessions of 13 idle agents", r"server with \d+ sessions of 13 idle agents.*"),
    ("registry change with 10,000 entries", r"with 10,000 entries"),
)
"""Every work that has a bound, and which measured rows show it."""

_FIGURES = re.compile(r"(<!-- figures: make bench writes them -->\n).*?(\n *<!-- end of figures -->)", re.DOTALL)
_STARTED = "start 13 agents, isolation off"
_COMMAND = "`mas start` as a command of its own"
_RUNNING = "start 13 agents until each program really runs"

_BEGINNING = """# Benchmarks

MAS compared with what people use instead, and with the limits that it sets itself. `make bench-peers` and `make bench`
write this page from their measurements; no figure in it is typed by hand. Run both to get the page and its plots for
your machine.

## Side by side

One run, one machine. Every side does the same work with the same program in its panes, with the same number of
repeats, in turns (A B C A B C …); the figures are medians. A turn at which a tool fails is left out, and the run
says so. Each has its own home, tmux server and ports. Less is better everywhere.

| | MAS | raw tmux | libtmux | tmuxp | CAO |
| --- | --- | --- | --- | --- | --- |
| what it is | this project | one `tmux` invocation for each thing | Python objects over tmux | sessions from a file | \
[cli-agent-orchestrator](https://github.com/awslabs/cli-agent-orchestrator) |
| called by | HTTP, its server | a process | calls in a running process | its command | HTTP, its server |
| between tmux and the program | a launcher that records it and its exit | nothing | nothing | nothing | a login shell |
| kept on disk, fsynced | session, registry, journal, messages | nothing | nothing | nothing | \
rows in SQLite |
| a directory per session | yes, copied from templates | no | no | no | no |
| knows whether an agent is idle | yes, reported by the program | no | no | no | yes, read from the screen |
| MCP server for the agents | started by the agent's own program: none here | – | – | – | the same: none here |

MAS runs without isolation here, since none of the others has any, except in the rows that say so. CAO runs its mock
provider, which types the name of a program into a shell: here that is the same program that all the others run.
"""


def main() -> int:
    write()
    print(f"wrote {os.path.relpath(PAGE)} and the figures of {os.path.relpath(README)}")
    return 0


def write() -> None:
    """Write README's figures, and where a comparison was run, the page and its plots."""
    with open(RESULTS, encoding="utf-8") as file:
        results = file.read()
    with open(README, encoding="utf-8") as file:
        text = readme(file.read(), results)
    with open(README, "w", encoding="utf-8") as file:
        file.write(text)
    if not os.path.exists(PEERS):
        return
    with open(PEERS, encoding="utf-8") as file:
        peers = json.load(file)
    os.makedirs(_PICTURES, exist_ok=True)
    for name, drawn in pictures(tables(peers)).items():
        with open(os.path.join(_PICTURES, name), "w", encoding="utf-8") as file:
            file.write(drawn)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page(results, peers))


def readme(text: str, results: str) -> str:
    """README with the figures of a result file of `make bench`."""
    rows = {row[0]: row for row in read(results)}
    started, command, running = rows[_STARTED], rows[_COMMAND], rows[_RUNNING]
    sentence = (
        f"Starting thirteen agents, durably recorded, takes {started[1]}: {_short(started[3])} times what tmux alone"
        f" needs to open thirteen panes (`mas start` as a command, Python's own start included: {command[1]})."
        f" Their programs run {running[1]} after the call, {_short(running[3])} times tmux alone, because each has a"
        " launcher of its own."
    )
    written = fill(sentence, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return _FIGURES.sub(lambda match: f"{match[1]}{written}{match[2]}", text)


def _short(ratio: str) -> str:
    return f"{float(ratio):.1f}"


def page(results: str, peers: Mapping[str, Any]) -> str:
    """The whole page, of a result file of `make bench` and the results of `make bench-peers`."""
    parts = [_BEGINNING, _list(peers["machine"])]
    for table in tables(peers):
        parts += [f"### {table.title}\n", grid(HEADINGS, [cells(line) for line in table.lines])]
        parts += [f"![{table.title}]({_file(table, unit)})\n".replace("](", "](pictures/") for unit in _units(table)]
        parts.append(_list(table.notes))
    parts.append("### What survives\n")
    parts.append("Observed in the run, not assumed.\n")
    for facts in peers["facts"]:
        parts += [f"#### {facts['title']}\n", _facts(facts["seen"]), _list(facts["notes"])]
    return "\n".join([*parts, _bounds(results)])


def tables(peers: Mapping[str, Any]) -> list[Table]:
    return [
        Table(table["title"], tuple(Line(**line) for line in table["lines"]), tuple(table["notes"]))
        for table in peers["tables"]
    ]


def pictures(found: Sequence[Table]) -> dict[str, str]:
    """One plot for each unit of each table, by file name."""
    drawn = {}
    for table in found:
        for unit in _units(table):
            lines = [line for line in table.lines if line.unit == unit and _compared(line)]
            drawn[_file(table, unit)] = picture(table.title, lines)
    return drawn


def _units(table: Table) -> list[str]:
    return list(dict.fromkeys(line.unit for line in table.lines if _compared(line)))


def _compared(line: Line) -> bool:
    return sum(not isinstance(cell, str) for cell in line.cells.values()) > 1


def _file(table: Table, unit: str) -> str:
    words = re.sub(r"[^a-z]+", "-", table.title.lower()).strip("-")
    return f"peers-{words}{'' if unit == 's' else '-percent' if unit == '%' else f'-{unit.lower()}'}.svg"


def _facts(seen: Mapping[str, Mapping[str, str]]) -> str:
    questions = dict.fromkeys(question for answers in seen.values() for question in answers)
    sides = [side for side in (MAS, RAW, CAO) if seen.get(side)]
    rows = [[question, *(seen[side].get(question, "–") for side in sides)] for question in questions]
    return grid(["", *sides], rows)


def _bounds(results: str) -> str:
    measured = read(results)
    rows = []
    for work, pattern in BOUNDS:
        found = [row for row in measured if re.fullmatch(pattern, row[0])]
        rows += [[work if not position else "", *row] for position, row in enumerate(found)]
        if not found:
            rows.append([work, "not measured", *[""] * (len(MEASURED) - 1)])
    head = results.partition("\n## ")[0].partition("\n- ")[2]
    return "\n".join(
        [
            "## Bounds\n",
            "What MAS promises about its own speed, each beside its floor (what tmux, `cp` or Python alone need for the"
            " same work), as the last `make bench` measured it.\n",
            f"- {head.strip()}\n",
            grid(["promise", "row", *MEASURED[1:]], rows),
            "Everything that `make bench` measures: `benchmarks/RESULTS.md`.\n",
        ]
    )


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
