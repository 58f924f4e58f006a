"""One round: a fresh workspace, many clients at once, things that go wrong; then a look at everything."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import NamedTuple

import psutil

from mas.model.errors import NotIsolated
from mas.model.isolation import Mode, Policy
from mas.service.isolation.network import choose_network
from tests.checker import World, processes_of_sessions
from tests.served import Served
from tests.site import AGENTS, REPOSITORY, Site, short_directory
from tests.torture import ledger
from tests.torture.client import Order
from tests.torture.doors import PATIENCE, CommandLine, Wish
from tests.torture.faults import Fault, Shared, Trouble, disk_of, group, small_disk, table_of
from tests.torture.ledger import MAKING, Entry
from tests.torture.mail import Unreadable, mail_problems, unsettled

DOORS = ("command", "http", "client")
_MEGABYTES = 48
_MOST_SESSIONS = 6
# Dying processes and messages on their way take their time; nothing is called wrong before.
_SETTLING = 90.0
_LOOK_AGAIN = 0.1
INJECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "injected")
# What may be reported to a client besides that a session is gone or busy, and because of what.
_EXCUSES = {
    "disk": {Fault.DISK},
    # A person may rename the very tmux session that is being opened.
    "unavailable": {Fault.TMUX, Fault.PROCESSES, Fault.AGENTS, Fault.SERVER, Fault.PERSON},
    "not begun": {Fault.PROCESSES},
    "killed": {Fault.CLIENTS, Fault.DISK, Fault.PROCESSES, Fault.SLOW},
    "silence": {Fault.SERVER},
}
_DEADLY = {Fault.TMUX, Fault.AGENTS, Fault.PROCESSES}


class Size(NamedTuple):
    """How many clients there are through each door, how much each asks for, and how long the round may last."""

    clients: int = 2
    wishes: int = 8
    seconds: float = 60.0


class Result(NamedTuple):
    """What happened in a round, and what is wrong after it."""

    seed: int
    faults: Counter[Fault]
    entries: list[Entry]
    problems: list[str]
    seconds: float
    means: dict[Fault, str]
    kept: str | None = None


def faults_of(seed: int) -> tuple[Fault, ...]:
    """What goes wrong in the round of a seed: rounds in a row have each fault in turn, and up to two others."""
    kinds = list(Fault)
    dice = random.Random(seed)
    return tuple(dict.fromkeys([kinds[seed % len(kinds)], *dice.sample(kinds, dice.randint(0, 2))]))


def play(seed: int, size: Size, faults: tuple[Fault, ...], keep_in: str) -> Result:
    """Play a round. Where something is wrong, its workspace and ledgers are kept below `keep_in`."""
    began = time.monotonic()
    with ExitStack() as undo:
        directory = undo.enter_context(short_directory())
        disk = os.path.join(directory, "disk")
        os.mkdir(disk)
        mounted = undo.enter_context(small_disk(disk, _MEGABYTES))
        pids = undo.enter_context(group()) if Fault.PROCESSES in faults else None
        site = _site(directory, disk)
        undo.callback(_gone, site)
        served = Served(site)
        undo.callback(served.close)
        shared = Shared(site.env["MAS_TORTURE"])
        table = table_of(site, pids) if Fault.PROCESSES in faults else None
        dice = random.Random(seed)
        squeeze = disk_of(site, disk if mounted else None)
        trouble = Trouble(served, shared, squeeze, table, dice)
        means = {Fault.DISK: squeeze.words, **({Fault.PROCESSES: table.words} if table else {})}
        round_ = Round(served, trouble, dice, size, faults, pids.path if pids else None)
        if table:
            table.take_in(served.pid)
        try:
            round_.run()
            trouble.heal()
            problems = round_.problems()
        except Exception as error:  # noqa: BLE001 - a round that cannot go on is a finding
            trouble.heal()
            problems = [f"the round ended with {type(error).__name__}: {error}"]
        entries = ledger.read(round_.ledgers)
        kept = _keep(directory, disk, keep_in, seed) if problems else None
    return Result(seed, round_.happened, entries, problems, time.monotonic() - began, means, kept)


def _site(directory: str, disk: str) -> Site:
    site = Site(directory)
    site.root = site.env["MAS_WORKSPACE_ROOT"] = os.path.join(disk, "ws")
    site.env |= {"MAS_TORTURE": os.path.join(directory, "shared"), "PYTHONPATH": INJECTED}
    Shared(site.env["MAS_TORTURE"])
    os.mkdir(os.path.join(directory, "ledgers"))
    prepare(site)
    return site


def prepare(site: Site) -> None:
    """Make the workspace, with a provider of agents that note what they get."""
    site.mas("init", site.root, "--provider", "shell")
    os.makedirs(site.path("providers"), exist_ok=True)
    with open(site.path("providers", "keeper.toml"), "w", encoding="utf-8") as file:
        path = json.dumps(os.path.join(AGENTS, "keeper.py"))
        file.write(
            'provider = { id = "keeper" }\n[input]\nack = "osc:working"\n[launch]\n'
            f'argv = ["{{python}}", {path}]\n[status]\nsources = ["osc7501"]\n'
        )


def isolates(site: Site) -> bool:
    """Whether agents can be isolated on this machine, with a network of their session's own."""
    tiers = site.world().tiers()
    try:
        choose_network(tiers.choose(Policy(Mode.REQUIRE)), tiers)
    except NotIsolated:
        return False
    return True


def _gone(site: Site) -> None:
    """End everything, also what a failed round left."""
    with suppress(AssertionError, subprocess.TimeoutExpired):
        site.mas("stop", "--all", code=None)
        site.close()
    left = site.leftovers()
    assert left == [], left


def _keep(directory: str, disk: str, keep_in: str, seed: int) -> str:
    """Copy what there is of a round to where it stays."""
    kept = os.path.join(keep_in, f"round-{seed}")
    shutil.rmtree(kept, ignore_errors=True)
    for name in ("ledgers", "serve.txt", os.path.relpath(disk, directory)):
        # Sockets cannot be copied, and need not be.
        subprocess.run(
            ["cp", "-a", "--parents", name, os.path.join(os.path.abspath(_made(kept)), "")],
            cwd=directory, check=False, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    return kept


def _made(directory: str) -> str:
    os.makedirs(directory, exist_ok=True)
    return directory


class Round:
    """A round under way."""

    def __init__(
        self,
        served: Served,
        trouble: Trouble,
        dice: random.Random,
        size: Size,
        faults: tuple[Fault, ...],
        pids: str | None,
    ) -> None:
        self._served = served
        self._site = served.site
        self._trouble = trouble
        self._dice = dice
        self._size = size
        self._faults = faults
        self._pids = pids
        self.ledgers = os.path.join(self._site.directory, "ledgers")
        self.happened: Counter[Fault] = Counter()
        self._hung: list[str] = []
        self._isolates = isolates(self._site)

    def run(self) -> None:
        """Let all clients make their requests, while things go wrong."""
        deadline = time.monotonic() + self._size.seconds
        orders = [
            Order(f"{door}{number}", door, self._site.root, self.ledgers, self._served.url, self._served.token,
                  self._dice.getrandbits(32), self._size.wishes, _MOST_SESSIONS, self._isolates)
            for door in DOORS for number in range(self._size.clients)
        ]  # fmt: skip
        clients = {order.name: (order, self._begin(order)) for order in orders}
        try:
            self._trouble_while(clients, deadline)
            for name, (_, process) in clients.items():
                try:
                    # Not longer than the longest answer may take, once nothing goes wrong any more.
                    process.wait(max(0.1, deadline + PATIENCE - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self._hung.append(f"client {name} does not end")
        finally:
            for _, process in clients.values():
                process.kill()
                process.wait()

    def _trouble_while(self, clients: dict[str, tuple[Order, subprocess.Popen[bytes]]], deadline: float) -> None:
        while any(process.poll() is None for _, process in clients.values()) and time.monotonic() < deadline:
            time.sleep(self._dice.uniform(0.2, 2.0))
            if self._faults:
                fault = self._dice.choice(self._faults)
                living = [process.pid for _, process in clients.values() if process.poll() is None]
                if self._trouble.cause(fault, living):
                    self.happened[fault] += 1
            # Only now: a new client has until the next trouble to get something done.
            for name, (order, process) in clients.items():
                if process.poll() not in (None, 0) and (rest := self._rest(order)).wishes:
                    clients[name] = rest, self._begin(rest)
        self._trouble.heal()

    def _begin(self, order: Order) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "tests.torture.client", json.dumps(order._asdict())]
        with open(self._served.said, "ab") as said:
            process = subprocess.Popen(
                argv, cwd=REPOSITORY, env=self._site.env, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
        if self._pids:
            with open(os.path.join(self._pids, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(process.pid))
        return process

    def _rest(self, order: Order) -> Order:
        """What is left of a killed client's order, for another one with a ledger of its own."""
        path = os.path.join(self.ledgers, f"{order.name}.jsonl")
        asked = 0
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                asked = sum('"verb"' in line for line in file)
        return order._replace(name=f"{order.name}+", seed=order.seed + 1, wishes=max(0, order.wishes - max(1, asked)))

    def problems(self) -> list[str]:
        """Everything that is wrong once all has settled, and again once what was cut short has been finished."""
        entries = ledger.read(self.ledgers)
        found = [*self._hung, *self._bad_answers(entries)]
        found += self._settled(entries)
        if not found:
            found += self._finish(entries)
            found += self._settled(ledger.read(self.ledgers))
        return found

    def _bad_answers(self, entries: list[Entry]) -> Iterator[str]:
        """Answers that nothing explains."""
        for entry in entries:
            excused = set(self.happened) & _EXCUSES.get(entry.why, set())
            fits = entry.why in ("gone", "state") and entry.verb not in ("start", "list")
            if entry.end in ("refused", "lost") and not fits and not excused:
                yield f"{entry.client}: {entry.verb} {entry.session} was {entry.end} ({entry.why}): {entry.said}"
        with open(self._served.said, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if "Traceback" in text:
            yield f"a program ended in words that nobody can read: {text[text.index('Traceback') :][:2000]}"

    def _settled(self, entries: list[Entry]) -> list[str]:
        """What is wrong and stays wrong. Ordinary commands are run first, as a person would."""
        done = self._site.mas("list", "--json", code=None)
        if done.returncode:
            return [f"mas list ends with {done.returncode}: {done.stderr}"]
        deadline = time.monotonic() + _SETTLING
        while (found := self._look(entries)) and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN)
        return found or [*self._content(), *(f"mas list warns: {one}" for one in json.loads(done.stdout)["warnings"])]

    def _look(self, entries: list[Entry]) -> list[str]:
        try:
            world = World(self._site)
            return list(self._all_problems(world, entries))
        except (AssertionError, OSError, ValueError, KeyError, Unreadable) as error:
            return [f"a file cannot be read: {type(error).__name__}: {error}"]

    def _all_problems(self, world: World, entries: list[Entry]) -> Iterator[str]:
        deadly = bool(_DEADLY & set(self.happened))
        for problem in world.problems():
            # Half a note of a key is written over when its request is made again, and forgotten after a day.
            if "/server/keys/." not in problem and not (deadly and problem.endswith(" is dead")):
                yield problem
        yield from ledger.broken_promises(world, entries, untouched_live=not deadly)
        native = {entry.made for entry in entries if entry.verb == "start"}
        for session_id in sorted(world.kept):
            yield from mail_problems(world, session_id, copied=session_id not in native)
        dead = {pane.tmux_session for pane in world.panes if pane.dead}
        for session_id, entry in world.entries.items():
            if entry["status"] == "active" and entry["tmuxSession"] not in dead:
                yield from unsettled(world, session_id)
        yield from strays(world, {self._served.pid})
        yield from held_locks(world)
        for directory, _, files in os.walk(world.sessions):
            yield from (f"{directory}/{name} was called damaged" for name in files if ".corrupt-" in name)

    def _content(self) -> Iterator[str]:
        """What `mas repair` would mend and `mas doctor` complains about; that the disk is small is on purpose."""
        for finding in self._site.json("repair", "--dry-run")["findings"]:
            yield f"mas repair would mend: {finding}"
        for check in self._site.json("doctor", code=None)["checks"]:
            if not check["ok"] and check["name"] != "disk":
                yield f"mas doctor: {check}"

    def _finish(self, entries: list[Entry]) -> Iterator[str]:
        """Ask again for everything that was cut short: it is done now, or refused because it has been."""
        pen = ledger.Pen(os.path.join(self.ledgers, "finisher.jsonl"))
        door = CommandLine(self._site.root, self._site.env)
        for entry in entries:
            if not entry.cut_short or entry.verb in (*MAKING, "list", "show", "inbox", "prune"):
                continue
            wish = Wish(entry.verb, entry.session, entry.flag, entry.target, entry.message, entry.text, entry.isolated)
            pen.ask(Entry("finisher", "command", *wish))
            outcome = door.ask(wish)
            pen.tell(**outcome._asdict())
            if outcome.end != "done" and outcome.why not in ("gone", "state"):
                yield f"{entry.verb} of {entry.session} cannot be finished: {outcome}"


def held_locks(world: World) -> Iterator[str]:
    """Locks that a process holds though nothing is being done."""
    paths = [os.path.join(world.sessions, ".mas", "registry.lock")]
    for session_id in world.directories:
        paths += [os.path.join(world.sessions, session_id, name) for name in (".session.lock", ".mas/messages.lock")]
    for path in paths:
        with suppress(FileNotFoundError), open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield f"{path} is locked"


def strays(world: World, servers: set[int]) -> Iterator[str]:
    """Processes of the site that belong to nothing: no session, none of the `servers`, no tmux server."""
    known = set(servers)
    for pid in servers:
        with suppress(psutil.Error):
            known |= {child.pid for child in psutil.Process(pid).children(recursive=True)}
    for socket in world.site.sockets():
        with suppress(ValueError):
            known.add(int(world.site.tmux("display-message", "-p", "#{pid}", socket=socket)))
    known |= {process.pid for process, _ in processes_of_sessions(world.sessions)} | world.people
    for process in world.site.processes():
        with suppress(psutil.Error):
            if process.pid not in known:
                yield f"process {process.pid} belongs to nobody: {process.cmdline()}"
