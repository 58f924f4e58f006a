"""What `docs/torture.md` says: a part for the torture and a part for the soak, each written by its own run."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.torture.faults import Fault
    from tests.torture.ledger import Entry
    from tests.torture.round import Result

_HEAD = """# Torture and soak

Written by `make torture TORTURE="--report docs/torture.md"` and `make soak SOAK="--report docs/torture.md"`; each
replaces its own part.
"""


def put(path: str, part: str, text: str) -> None:
    """Write one part of the document and leave the other as it is."""
    before = _HEAD
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            before = file.read()
    begin, end = f"<!-- {part} -->\n", f"<!-- end of {part} -->\n"
    whole = f"{begin}\n{text.strip()}\n\n{end}"
    place = re.compile(re.escape(begin) + ".*" + re.escape(end), re.DOTALL)
    after = place.sub(lambda _: whole, before) if place.search(before) else f"{before}\n{whole}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(after)


def machine() -> str:
    """What it was run on."""
    tmux = subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=True).stdout.strip()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    return (
        f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, Linux {platform.release()},"
        f" {tmux}, Python {platform.python_version()}, commit {commit.strip() or 'unknown'},"
        f" as {'root' if os.getuid() == 0 else 'an ordinary user'}"
    )


def table(head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    are_numbers = [all(re.match(r"\d", str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    lines = [head, tuple("---:" if so else "---" for so in are_numbers), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def torture_text(results: list[Result]) -> str:
    """The part of the torture."""
    entries = [entry for result in results for entry in result.entries]
    faults: Counter[Fault] = sum((result.faults for result in results), Counter())
    means = {fault: words for result in results for fault, words in result.means.items()}
    wrong = [(result.seed, problem) for result in results for problem in result.problems]
    rounds = [
        (
            result.seed,
            ", ".join(f"{fault.name.lower()} ×{count}" for fault, count in sorted(result.faults.items())) or "none",
            len(result.entries),
            len(result.problems),
            f"{result.seconds:.0f}",
        )
        for result in results
    ]
    verbs = [(verb, *_ends(entry.end for entry in entries if entry.verb == verb)) for verb in _names(entries, "verb")]
    doors = [(door, *_ends(entry.end for entry in entries if entry.door == door)) for door in _names(entries, "door")]
    happened = [(fault.value, faults[fault], _how(fault, means)) for fault in sorted(faults)]
    isolated = sum(entry.isolated and entry.verb == "start" and entry.end == "done" for entry in entries)
    took = sum(result.seconds for result in results)
    ends = ("done", "refused", "interrupted")
    findings = "\n".join(f"- seed {seed}: {problem}" for seed, problem in wrong) or "None."
    return f"""## Torture

{machine()}.

{len(results)} rounds, seeds {results[0].seed} to {results[-1].seed}, {len(entries)} requests,
{sum(faults.values())} faults, {took:.0f} seconds. A seed decides every request, which client sends it, and which fault
happens when; how far each process is at that moment depends on the machine. To repeat one round:
`make torture TORTURE="--seed {results[0].seed} --rounds 1"`.

In a round, clients of the command line, of HTTP and of the Python API, each a separate process, send one random
request after the other to one fresh workspace with a server, while the faults of the round happen again and again.
Of the sessions {isolated} were started isolated in tier A, with a network of their own.

{table(("what went wrong", "times", "how"), happened)}

{table(("request", *ends), verbs)}

{table(("through", *ends), doors)}

After the round the faults end, `mas list` is run once, and a checker that shares no code with the product must find:

- every session that was reported to a client is in its directory, an archive or the trash, with the agents' work in
  it; there is no other session, except from an interrupted start; no session was moved without a request;
- directories, registry, the journal's last line, `.session`, `metadata.json` and tmux agree on each session;
- modes are right, and no intent, half-written file, damaged file or socket without a server is left;
- every message that was reported to a client is there, unchanged, in a legal state; an acknowledged message was noted
  by its agent; none came twice, none out of order; none is still on its way to a running agent;
- no process and no lock is left without an owner;
- an isolated session has one egress process as long as it has a launcher, and its agents share one network; when it is
  stopped or deleted, no egress process, no process in its namespaces and no socket is left;
- no client was refused without a reason in the round, or left without a response;
- `mas repair` finds nothing to repair, `mas doctor` finds no problem.

Then every interrupted request is sent again. Each must succeed, or be refused because it was done already, and
everything is checked again.

{table(("seed", "faults", "requests", "problems", "seconds"), rounds)}

**Problems**

{findings}
"""


def _how(fault: Fault, means: dict[Fault, str]) -> str:
    usual = {
        "CLOCK": "by up to ten years, for the command, the server and the clients; not for launchers and tmux",
        "SLOW": "opening, making, renaming, removing and syncing files waits, for the same",
        "PERSON": "`new-session -t`, `link-window`, `rename-session`, `join-pane`, `swap-window` and the like",
    }
    return means.get(fault) or usual.get(fault.name, "`kill -9`")


def _names(entries: list[Entry], field: str) -> list[str]:
    return sorted({getattr(entry, field) for entry in entries})


def _ends(ends: Iterable[str | None]) -> tuple[int, int, int]:
    counted = Counter("cut short" if end in (None, "lost") else end for end in ends)
    return counted["done"], counted["refused"], counted["cut short"]
