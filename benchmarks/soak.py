"""`python -m benchmarks.soak`: hundreds of `mas` processes at once, then proof that nothing was lost.

Each process is the real command: start, clone, stop, restore or delete, many at a time and often on the same
session. Afterwards the files, the journal and tmux are read without the product's help and must agree.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import psutil
from tests.site import Site

from benchmarks.arena import BIN, arena

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LINE = re.compile(rf"({_UUID.pattern}):(active|stopped|error|archived|deleted):[0-9TZ:.-]+")
# What a command may answer when another one works on the same session: it is gone, or it is busy.
_MAY_REFUSE = {3, 4}
_PATIENCE = 60.0


class Outcome(NamedTuple):
    """One process and how it ended."""

    verb: str
    session: str | None
    code: int
    said: str


class Crowd:
    """The sessions known to exist, picked from by many threads."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._lock = threading.Lock()
        self._known: list[str] = []

    def next(self) -> tuple[str, str | None]:
        """What to do next, and to which session."""
        with self._lock:
            if len(self._known) < 4 or self._dice.random() < 0.4:
                return "start", None
            verb = self._dice.choices(("clone", "stop", "restore", "delete"), (3, 4, 3, 3))[0]
            return verb, self._dice.choice(self._known)

    def made(self, session: str) -> None:
        with self._lock:
            self._known.append(session)

    def gone(self, session: str) -> None:
        with self._lock:
            if session in self._known:
                self._known.remove(session)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--seconds", type=float, default=300, help="start no new process after so long")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    begun = time.monotonic()
    with arena() as site:
        crowd = Crowd(random.Random(args.seed))

        def one(_: int) -> Outcome | None:
            return _run(site, crowd) if time.monotonic() - begun < args.seconds else None

        with ThreadPoolExecutor(args.at_once) as pool:
            outcomes = [outcome for outcome in pool.map(one, range(args.processes)) if outcome]
        took = time.monotonic() - begun
        problems = [*_answers(outcomes), *_disagreements(site, outcomes)]
    for verb, count in sorted(Counter(outcome.verb for outcome in outcomes).items()):
        refused = sum(1 for outcome in outcomes if outcome.verb == verb and outcome.code)
        print(f"{verb:8} {count:4}  refused as busy, gone or in another state: {refused}")
    print(f"{len(outcomes)} processes, {args.at_once} at once, {took:.0f} s; problems: {len(problems)}")
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


def _run(site: Site, crowd: Crowd) -> Outcome:
    """One real command, and what it made or took away."""
    verb, session = crowd.next()
    words = {
        "start": ["--team", "solo", "--command", "sleep 1000"],
        "clone": [session or ""],
        "delete": ["--yes", session or ""],
    }.get(verb, [session or ""])
    if verb == "delete":
        # Nobody is sent to it from now on; whoever already was may find it gone.
        crowd.gone(session or "")
    try:
        done = site.run([os.path.join(BIN, "mas"), verb, *words], timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return Outcome(verb, session, -1, f"no answer in {_PATIENCE:.0f} s")
    if done.returncode == 0 and verb in ("start", "clone"):
        session = done.stdout.strip()
        crowd.made(session)
    return Outcome(verb, session, done.returncode, done.stderr.strip())


def _answers(outcomes: list[Outcome]) -> Iterator[str]:
    """Commands that failed, other than by a refusal that concurrency explains."""
    for outcome in outcomes:
        if outcome.code and (outcome.verb == "start" or outcome.code not in _MAY_REFUSE):
            yield f"{outcome.verb} {outcome.session or ''} ended with {outcome.code}: {outcome.said}"


def _disagreements(site: Site, outcomes: list[Outcome]) -> Iterator[str]:
    """Where the directories, the registry, the journal and tmux do not tell the same story."""
    worked = [outcome for outcome in outcomes if outcome.code == 0 and outcome.session]
    made = {outcome.session for outcome in worked if outcome.verb in ("start", "clone")}
    deleted = {outcome.session for outcome in worked if outcome.verb == "delete"}
    unsure = {outcome.session for outcome in outcomes if outcome.verb == "delete" and outcome.code == -1}
    directories = {name for name in os.listdir(site.path("sessions")) if _UUID.fullmatch(name)}
    trashed = {name.partition("@")[0] for name in os.listdir(site.path("sessions", ".mas", "trash"))}
    index = _index(site)
    journal, torn = _journal(site)
    yield from (f"journal: not a line: {line!r}" for line in torn)
    yield from _same("directories", directories - unsure, "started and not deleted", made - deleted - unsure)
    yield from _same("trash", trashed - unsure, "deleted", deleted)
    yield from _same("registry", set(index), "directories", directories)
    yield from _same("journal", {key for key, word in journal.items() if word != "deleted"}, "directories", directories)
    for session in directories:
        words = {index.get(session, "absent"), journal.get(session, "absent"), *_own_words(site, session)}
        if len(words) > 1:
            yield f"{session}: four places say {sorted(words)}"
    active = {f"mas-{session[:8]}" for session, status in index.items() if status == "active"}
    yield from _same("tmux", site.tmux_sessions(), "active", active)
    yield from _leftovers(site, index)


def _same(name: str, found: set[str], other: str, wanted: set[str | None] | set[str]) -> Iterator[str]:
    for session in sorted(found - wanted):
        yield f"{session}: in {name}, but not in {other}"
    for session in sorted(str(lost) for lost in wanted - found):
        yield f"{session}: in {other}, but not in {name}"


def _index(site: Site) -> dict[str, str]:
    with open(site.path("sessions", ".sessions.index"), encoding="utf-8") as file:
        return {entry["sessionId"]: entry["status"] for entry in json.load(file)["sessions"]}


def _journal(site: Site) -> tuple[dict[str, str], list[str]]:
    """The last word on every session, and what is not a line of a journal."""
    last: dict[str, str] = {}
    torn = []
    with open(site.path("sessions", ".index"), encoding="utf-8") as file:
        for line in file.read().removesuffix("\n").split("\n"):
            if match := _LINE.fullmatch(line):
                last[match[1]] = match[3]
            else:
                torn.append(line)
    return last, torn


def _own_words(site: Site, session: str) -> set[str]:
    """What the two files of the session itself say of its status."""
    with open(site.session(session, "metadata.json"), encoding="utf-8") as file:
        metadata = json.load(file)["status"]
    with open(site.session(session, ".session"), encoding="utf-8") as file:
        record = dict(line.rstrip("\n").split("=", 1) for line in file)["STATUS"]
    return {metadata, record}


def _leftovers(site: Site, index: dict[str, str]) -> Iterator[str]:
    """Unfinished work, half-written files, and programs of sessions that are not active."""
    private = site.path("sessions", ".mas")
    for room in ("intents", "doomed"):
        for name in os.listdir(os.path.join(private, room)):
            yield f"{room}: {name} is still there"
    for directory in (site.path("sessions"), *(site.session(session) for session in index)):
        for name in os.listdir(directory):
            if name.endswith(".tmp") or ".corrupt-" in name:
                yield f"{os.path.join(directory, name)} is still there"
    for process in site.processes():
        try:
            session = process.environ().get("MAS_SESSION_ID")
        except psutil.Error:
            continue
        if session and index.get(session) != "active":
            yield f"process {process.pid} of {session} runs, but the session does not"


if __name__ == "__main__":
    sys.exit(main())
