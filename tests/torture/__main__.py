"""`python -m tests.torture`: rounds of random work with things going wrong, each followed by a look at everything."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import Counter

from tests.torture.faults import Fault
from tests.torture.report import put, torture_text
from tests.torture.round import Result, Size, faults_of, play

_KEPT = os.path.join("artefacts", "torture")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="of the first round")
    parser.add_argument("--rounds", type=int, default=16, help="each has the seed after that of the one before")
    parser.add_argument("--minutes", type=float, default=5.0, help="begin no round after so long")
    parser.add_argument("--clients", type=int, default=Size().clients, help="through each of the three doors")
    parser.add_argument("--wishes", type=int, default=Size().wishes, help="what each client asks for in a round")
    parser.add_argument("--faults", help="instead of those of the seed: " + ",".join(one.name.lower() for one in Fault))
    parser.add_argument("--report", metavar="FILE", help="write what happened into this document")
    args = parser.parse_args()
    # Told to end, it still puts everything away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    given = None if args.faults is None else tuple(Fault[name.upper()] for name in args.faults.split(",") if name)
    size = Size(args.clients, args.wishes)
    began = time.monotonic()
    results: list[Result] = []
    for seed in range(args.seed, args.seed + args.rounds):
        if results and time.monotonic() - began > args.minutes * 60:
            break
        result = play(seed, size, faults_of(seed) if given is None else given, _KEPT)
        results.append(result)
        _tell(result)
        if result.problems:
            again = "" if given is None else f" --faults {args.faults}"
            words = f"--seed {seed} --rounds 1 --clients {size.clients} --wishes {size.wishes}{again}"
            print(f'  kept in {result.kept}\n  again: make torture TORTURE="{words}"', flush=True)
    wrong = sum(bool(result.problems) for result in results)
    took = time.monotonic() - began
    print(f"{len(results)} rounds in {took:.0f} s from seed {args.seed}; rounds with problems: {wrong}")
    if args.report:
        put(args.report, "torture", torture_text(results))
    return 1 if wrong else 0


def _tell(result: Result) -> None:
    ends = Counter("cut short" if entry.cut_short else entry.end for entry in result.entries)
    asked = ", ".join(f"{count} {end}" for end, count in sorted(ends.items(), key=str))
    faults = ", ".join(f"{fault.name.lower()} ×{count}" for fault, count in sorted(result.faults.items()))
    print(
        f"seed {result.seed}: {len(result.entries)} wishes ({asked}); {faults or 'no faults'};"
        f" {len(result.problems)} problems, {result.seconds:.0f} s",
        flush=True,
    )
    for problem in result.problems[:20]:
        print(f"    {problem}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
