"""Fuzzing at length: `python -m tests.fuzz [--only api|heads|parsers|guided] [--parser NAME] [--examples N] [--seed S]`

Each part says its seed, and with that seed does the same again. What a guided run fails on is kept in `artefacts/fuzz`.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import time

from tests.fuzz.ground import PARSERS, Parser
from tests.fuzz.properties import try_many
from tests.http import fuzz as api
from tests.site import REPOSITORY, short_directory

PARTS = ("api", "heads", "parsers", "guided")
_EXAMPLES = {"api": 10_000, "heads": 5_000, "parsers": 2_000, "guided": 5_000}
# No parser may need more, whatever it is given.
_MEMORY = 2 << 30
_GUIDE = os.path.join(REPOSITORY, ".fuzz")
_KEPT = os.path.join(REPOSITORY, "artefacts", "fuzz")


def fuzz_parsers(parsers: list[Parser], examples: int, seed: int) -> list[str]:
    """Try this many inputs on each; returns which failed."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.RLIM_INFINITY))
    failed = []
    for parser in parsers:
        begun = time.process_time()
        try:
            try_many(parser, examples, seed)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failed.append(parser.name)
            sys.excepthook(type(error), error, error.__traceback__)
        _say(f"{parser.name}: {examples} inputs in {time.process_time() - begun:.0f} s")
    return failed


def fuzz_guided(parsers: list[Parser], examples: int, seed: int) -> list[str]:
    """The same, each in a process of its own that learns from what it covers; answers which failed."""
    if not os.path.isdir(os.path.join(_GUIDE, "atheris")):
        _say("left out: there is no atheris here (make fuzz would have installed it)")
        return []
    os.makedirs(_KEPT, exist_ok=True)
    return [parser.name for parser in parsers if not _guided(parser, examples, seed)]


def _guided(parser: Parser, examples: int, seed: int) -> bool:
    with short_directory() as corpus:
        for number, sample in enumerate(parser.samples):
            with open(os.path.join(corpus, str(number)), "wb") as file:
                file.write(sample)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.fuzz.guided", parser.name),
                *(f"-runs={examples}", f"-seed={seed % (1 << 31)}", f"-rss_limit_mb={_MEMORY >> 20}", "-timeout=60"),
                *(f"-artifact_prefix={_KEPT}/{parser.name}-", corpus),
            ],
            env={**os.environ, "PYTHONPATH": _GUIDE},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    last = [line for line in done.stderr.splitlines() if re.match(r"#\d", line)][-1:]
    _say(f"{parser.name}: {' '.join(''.join(last).split()) or 'did not begin'}")
    if done.returncode:
        sys.stdout.write(done.stdout + done.stderr)
    return done.returncode == 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    known = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the API, its door and every parser.")
    known.add_argument("--only", choices=PARTS, action="append", help="one part alone (can be said again)")
    known.add_argument("--parser", choices=list(PARSERS), action="append", help="one parser alone (can be said again)")
    known.add_argument("--examples", type=int, help="how many inputs, for each parser")
    known.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    asked = known.parse_args()
    parsers = [PARSERS[name] for name in asked.parser or PARSERS]
    failed = []
    for part in asked.only or PARTS:
        examples = asked.examples or _EXAMPLES[part]
        _say(f"{part}: seed {asked.seed}")
        if part == "api":
            failed += ["api"] if api.main(examples, asked.seed) else []
        elif part == "heads":
            failed += ["heads"] if api.main_heads(examples, asked.seed) else []
        elif part == "parsers":
            failed += fuzz_parsers(parsers, examples, asked.seed)
        else:
            failed += fuzz_guided(parsers, examples, asked.seed)
    _say(f"failed: {', '.join(failed)}" if failed else "nothing found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
