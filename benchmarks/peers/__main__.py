"""`python -m benchmarks.peers`: do the same work with MAS and with what people use instead, and write the page."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks import document
from benchmarks.peers import beginning, cao, crowd, opening, surviving, talking
from benchmarks.peers.machine import machine
from benchmarks.peers.surviving import Facts
from benchmarks.peers.table import FAILURES, QUICK, USUAL, Effort, Table
from benchmarks.peers.words import text

_GROUPS: dict[str, Callable[[Effort], Any]] = {
    "up": opening.measure,
    "crowd": crowd.measure,
    "message": talking.measure,
    "begin": beginning.measure,
    "survive": surviving.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test: few repeats, small crowds; writes nothing")
    parser.add_argument("--only", choices=_GROUPS, action="append", help="only this group; writes nothing")
    args = parser.parse_args()
    if not os.path.exists(os.path.join(cao.BIN, "cao-server")):
        print("cli-agent-orchestrator is not in .peers; run: make bench-peers", file=sys.stderr)
        return 1
    begun = time.monotonic()
    tables: list[Table] = []
    facts: list[Facts] = []
    where = machine()
    for name in args.only or _GROUPS:
        since = time.monotonic()
        found = _measured(_GROUPS[name], QUICK if args.quick else USUAL)
        for part in (found,) if isinstance(found, Table) else found:
            if isinstance(part, Table):
                tables.append(part)
                print(text(part), flush=True)
            else:
                facts.append(part)
                print(f"{part.title}\n{json.dumps(part.seen, indent=2, ensure_ascii=False)}\n", flush=True)
        print(f"  [{name}: {time.monotonic() - since:.0f} s]\n", file=sys.stderr, flush=True)
    print(f"{time.monotonic() - begun:.0f} s in all", file=sys.stderr)
    if not args.only and not args.quick:
        with open(document.PEERS, "w", encoding="utf-8") as file:
            json.dump(_body(where, tables, facts), file, indent=1, ensure_ascii=False)
            file.write("\n")
        document.write()
        print(f"wrote {document.PEERS}, {document.PAGE} and its plots", file=sys.stderr)
    return 0


def _measured(measure: Callable[[Effort], Any], effort: Effort) -> Any:
    """What a group finds; one that fails is tried once more, so that one bad moment does not cost the whole run."""
    try:
        return measure(effort)
    except FAILURES as error:
        print(f"  once more, after: {error}", file=sys.stderr, flush=True)
        return measure(effort)


def _body(where: list[str], tables: list[Table], facts: list[Facts]) -> dict[str, Any]:
    return {
        "machine": where,
        "tables": [table._asdict() | {"lines": [line._asdict() for line in table.lines]} for table in tables],
        "facts": [seen._asdict() for seen in facts],
    }


if __name__ == "__main__":
    sys.exit(main())
