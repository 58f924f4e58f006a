"""`python -m benchmarks`: measure, print, write RESULTS.md and all figures in the docs; fails if a bound is broken."""

from __future__ import annotations

import argparse
import sys
import time

from benchmarks import (
    broadcast,
    commands,
    copying,
    crowded,
    document,
    isolating,
    launching,
    lifecycle,
    listing,
    messages,
    networking,
    page,
    registry,
    report,
    serving,
    starting,
    terminals,
)
from benchmarks.measure import QUICK, USUAL

_GROUPS = {
    "start": starting.measure,
    "isolation": isolating.measure,
    "network": networking.measure,
    "crowd": crowded.measure,
    "copy": copying.measure,
    "list": listing.measure,
    "commands": commands.measure,
    "message": messages.measure,
    "broadcast": broadcast.measure,
    "registry": registry.measure,
    "lifecycle": lifecycle.measure,
    "launcher": launching.measure,
    "serve": serving.measure,
    "terminal": terminals.measure,
    "page": page.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test: few repeats, small crowds; writes nothing")
    parser.add_argument("--only", choices=_GROUPS, action="append", help="only this group; writes nothing")
    args = parser.parse_args()
    effort = QUICK if args.quick else USUAL
    begun = time.monotonic()
    where = report.machine()
    groups = []
    for name in args.only or _GROUPS:
        since = time.monotonic()
        groups.append(_GROUPS[name](effort))
        print(f"{report.text(groups[-1])}  [{name}: {time.monotonic() - since:.0f} s]\n", flush=True)
    broken = [row.work for group in groups for row in group.rows if row.held is False]
    print(f"{time.monotonic() - begun:.0f} s; bounds not held: {', '.join(broken) or 'none'}")
    if not args.only and not args.quick:
        with open(document.RESULTS, "w", encoding="utf-8") as file:
            file.write(report.markdown(groups, where))
        document.write()
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
