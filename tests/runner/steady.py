"""`python -m tests.runner.steady`: the tests several times beside other work; names those that did not always pass.

Nothing is run again alone here. Arguments it does not know are for pytest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter

from tests.runner.run import IN_PARALLEL, run

_KEPT = os.path.join("artefacts", "steady.txt")
# Keeps a processor busy until the process that started it exits, even if that is killed.
_BUSY = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
while os.getppid() == int(sys.argv[1]):
    sum(range(100_000))
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.runner.steady", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--load", type=int, default=0, help="how many processors are kept busy meanwhile")
    args, tests = parser.parse_known_args()
    began = time.monotonic()
    times, texts, ran, stopped = Counter[str](), dict[str, str](), 0, None
    _keep_busy(args.load)
    try:
        while ran < args.runs and not stopped:
            print(f"steady: run {ran + 1} of {args.runs}", flush=True)
            done = run(*IN_PARALLEL, *tests)
            ran += 1
            times.update(done.failed.keys())
            texts = {**done.failed, **texts}
            stopped = done.broken
    except KeyboardInterrupt:
        stopped = "interrupted"
    lines = [f"\n=== {test}: failed in {count} of {ran} ===\n{texts[test]}" for test, count in times.most_common()]
    lines += [f"failed in {count} of {ran}: {test}" for test, count in times.most_common()]
    lines += [f"run {ran + (stopped == 'interrupted')}: {stopped}"] if stopped else []
    took = time.monotonic() - began
    lines += [f"tests that did not always pass: {len(times)}; runs: {ran}, load: {args.load}, {took:.0f} s"]
    os.makedirs(os.path.dirname(_KEPT), exist_ok=True)
    with open(_KEPT, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines), flush=True)
    return 1 if times or stopped else 0


def _keep_busy(processors: int) -> None:
    for _ in range(processors):
        subprocess.Popen([sys.executable, "-c", _BUSY, str(os.getpid())])


if __name__ == "__main__":
    sys.exit(main())
