"""Fuzzes a real server by its own description: no failure, no answer that is not described.

`python -m tests.fuzz --only api` runs until about ten thousand requests were made.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.served import Served
from tests.site import Site, short_directory

# What starts teams is tried less often: each time it is right, programs run.
_STARTING = ("/runs", "/sessions/{sessionId}/clone", "/sessions/{sessionId}/restore")
_CALLS = 35
# A description cannot say that a team must be one there is, or that a path must lead to a file.
_UNSAYABLE = "positive_data_acceptance"


def fuzz(served: Served, examples: int, starting: bool, seed: int) -> tuple[int, int, str]:
    """Exit code, number of cases and report of one run over the calls that start teams, or over all others."""
    which = [word for path in _STARTING for word in (("--include-path" if starting else "--exclude-path"), path)]
    done = subprocess.run(
        [
            os.path.join(os.path.dirname(sys.executable), "st"),
            *("run", f"{served.url}/openapi.json"),
            *("--header", f"Authorization: Bearer {served.token}"),
            *("--max-examples", str(examples), "--seed", str(seed)),
            # A stream never ends.
            *("--phases", "examples,coverage,fuzzing", "--exclude-path", "/events"),
            # Longer than the longest wait that can be asked for.
            *("--exclude-checks", _UNSAYABLE, "--request-timeout", "120", "--no-color"),
            *which,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=served.site.directory,
        env=served.site.env,
    )
    report = done.stdout + done.stderr
    cases = re.search(r"(\d+) generated", report)
    return done.returncode, int(cases[1]) if cases else 0, report


def main(wanted: int, seed: int) -> int:
    """Make about this many requests; returns 1 if a round failed."""
    with short_directory() as directory:
        site = Site(directory)
        site.env["MAS_TMUX_SERVER"] = "session"
        site.mas("init", site.root, "--provider", "shell")
        site.start()
        served = Served(site)
        try:
            results = [fuzz(served, 10, True, seed)]
            while (done := sum(cases for _, cases, _ in results)) < wanted and not any(code for code, _, _ in results):
                # Some calls can be made in few ways: what is missing is made up for in another round.
                results.append(fuzz(served, max(20, (wanted - done) // _CALLS), False, seed + len(results)))
        finally:
            site.mas("stop", "--all", code=None, timeout=600)
            served.close()
            site.close()
    for code, _, report in results:
        if code:
            sys.stdout.write(report)
    sys.stdout.write(f"{done} cases in {len(results)} rounds\n")
    return int(any(code for code, _, _ in results))
