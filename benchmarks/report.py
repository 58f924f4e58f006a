"""What a run found, as text for the terminal and as the result file."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from collections.abc import Sequence
from importlib.metadata import version

from benchmarks.measure import Group, Row

HEADINGS = ("work", "median", "floor", "ratio", "at most", "held")


def text(group: Group) -> str:
    """A group as a table with aligned columns."""
    cells = [HEADINGS, *(_cells(row) for row in group.rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    lines = [group.title]
    lines += [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    ]
    return "\n".join([*lines, *(f"  ({note})" for note in group.notes)]) + "\n"


def markdown(groups: Sequence[Group], where: Sequence[str]) -> str:
    """The whole result file, of a run at a place."""
    parts = [
        "# Results\n",
        "Written by `make bench`. Times are medians of work done in turns with its floor (A B A B …);"
        " the ratios are what counts, the times are this machine's.\n",
        "\n".join(f"- {line}" for line in where) + "\n",
        f"Bounds held: {sum(row.held is True for row in _bounded(groups))} of {len(_bounded(groups))}.\n",
    ]
    for group in groups:
        lines = [HEADINGS, tuple("---" for _ in HEADINGS), *(_cells(row) for row in group.rows)]
        parts.append(f"## {group.title}\n")
        if group.rows:
            parts.append("\n".join("| " + " | ".join(map(_escaped, line)) + " |" for line in lines) + "\n")
        if group.notes:
            parts.append("\n".join(f"- {note}" for note in group.notes) + "\n")
    return "\n".join(parts)


def read(results: str) -> list[tuple[str, ...]]:
    """The cells of every row of a result file."""
    found = []
    for line in results.splitlines():
        cells = tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line))[1:-1]
        if len(cells) == len(HEADINGS) and cells != HEADINGS and set(cells) != {"---"}:
            found.append(cells)
    return found


def machine() -> list[str]:
    """Where and with what something is about to be measured."""
    tmux = subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=True).stdout.strip()
    packages = ", ".join(f"{name} {version(name)}" for name in ("mas", "libtmux", "tmuxp", "psutil", "zstandard"))
    load = os.getloadavg()[1]
    busy = "; others were at work here, so measure again" if load > 1.5 * (os.cpu_count() or 1) else ""
    return [
        time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        f"{os.cpu_count()} × {_processor()}, {_memory()}, {platform.system()} {platform.release()},"
        f" {_file_system('/tmp')} at the place of work",
        f"{tmux}, Python {platform.python_version()}, {packages}",
        f"load average over the five minutes before: {load:.1f}{busy}",
    ]


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _bounded(groups: Sequence[Group]) -> list[Row]:
    return [row for group in groups for row in group.rows if row.limit is not None]


def _cells(row: Row) -> tuple[str, ...]:
    floor = f"{_number(row, row.floor)} ({row.floor_is})" if row.floor is not None else ""
    ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
    limit = f"{row.bound} = {_number(row, row.limit)}" if row.limit is not None else ""
    held = {None: "", True: "yes", False: "NO"}[row.held]
    return row.work, _number(row, row.took), floor, ratio, limit, held


def _number(row: Row, value: float) -> str:
    return f"{value:.1f} {row.unit}" if row.unit else _ms(value)


def _ms(seconds: float) -> str:
    number = seconds * 1000
    return f"{number:,.0f} ms" if number >= 100 else f"{number:.1f} ms" if number >= 1 else f"{number:.2f} ms"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = re.search(r"model name\s*: (.*)", file.read())
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GiB"


def _file_system(path: str) -> str:
    done = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown file system"
