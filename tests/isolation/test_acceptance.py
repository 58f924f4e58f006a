"""A hostile agent in a real pane of a real session: what each tier must refuse is refused, and what must work works.

The tables say what stays open in a lower tier as well: a hole that closes by itself would make them untrue.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psutil
import pytest

import mas
from tests.isolation.tiers import start_in
from tests.served import Served
from tests.site import AGENTS, Site, short_directory, until

SECRET = "the-secret-of-the-user"
# What takes long is tried where all of it must work.
THOROUGH = ("git_commit", "virtual_environment", "node", "npm", "mas_inside")
# What is open where Landlock and a filter are all there is, and what does not work there: `mas start` says so.
OPEN_IN_B = {
    "template_chmod", "template_utime", "sibling_stat", "sibling_chmod", "proc_names",
    "machine_loopback", "machine_loopback_by_name",
}  # fmt: skip
NOT_IN_B = {"tmp", "own_unix_sockets", "shared_memory", "terminals"}
# What no tier leaves open: the API knows its callers, and a launcher hands down nothing but a terminal.
NEVER_OPEN = {
    "api_other_session", "api_other_agent", "api_start", "api_stop", "api_without_token", "api_forged_token",
    "descriptors_left_open", "tmux_variable",
}  # fmt: skip
# What is open if file modes are all there is, for any user.
OPEN_IN_D = {
    "template_overwrite", "template_create", "template_mkdir", "template_unlink", "template_rename_into",
    "template_hard_link", "template_through_link", "template_through_proc", "template_truncate", "template_chmod",
    "template_utime", "template_rename_away", "sibling_read", "sibling_list", "sibling_write", "sibling_stat",
    "sibling_chmod", "sibling_named", "registry_read", "registry_write", "journal_write", "owner_token",
    "colleague_token", "own_record_write", "own_config_write", "own_log_write", "own_lock", "address_write",
    "workspace_config_write", "workspace_provider", "home_secret", "home_write", "home_list", "signals", "proc_environ",
    "proc_cwd", "proc_names", "other_terminal", "tmux_list", "tmux_run_shell", "tmux_default", "unix_stream",
    "unix_datagram", "unix_abstract", "server_socket", "machine_loopback", "machine_loopback_by_name",
}  # fmt: skip
MISSING_PROGRAMS = {"node": "node", "npm": "npm", "git_commit": "git", "shell_pipe": "bash"}


class Ground:
    """A workspace with a server, a session that has nothing to do with it, and all that an agent must not reach."""

    def __init__(self, site: Site, served: Served, stack: ExitStack) -> None:
        self.site = site
        self.served = served
        self.marker = os.path.join(site.directory, "marker")
        os.makedirs(os.path.join(site.home, ".ssh"))
        self.secret = os.path.join(site.home, ".ssh", "id_ed25519")
        with open(self.secret, "w", encoding="utf-8") as file:
            file.write(SECRET)
        for name in ("README.md", "lose.md"):
            with open(site.path("unit", "00", name), "w", encoding="utf-8") as file:
                file.write("a template\n" * 10)
        # As any person might have one, at the place where plain `tmux` looks.
        site.tmux("new-session", "-d", "-s", "foreign", "sh")
        self.foreign = os.path.join(site.directory, "foreign.sock")
        site.tmux("new-session", "-d", "-s", "foreign", "sh", socket=self.foreign)
        stack.callback(site.tmux, "kill-server", socket=self.foreign)
        self.sockets = {}
        for name, kind in (("stream", socket.SOCK_STREAM), ("datagram", socket.SOCK_DGRAM)):
            self.sockets[name] = os.path.join(site.directory, f"{name}.sock")
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            listener.bind(self.sockets[name])
            if kind is socket.SOCK_STREAM:
                listener.listen()
        self.abstract = f"mas-acceptance-{os.getpid()}"
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(f"\0{self.abstract}")
        listener.listen()
        self.loopback = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))

    def picture(self, root: str) -> dict[str, tuple[int, int, str]]:
        """The mode, time and content of everything below."""
        found = {}
        for directory, directories, files in os.walk(root):
            for name in [*directories, *files]:
                path = os.path.join(directory, name)
                info = os.lstat(path)
                data = b""
                if stat.S_ISREG(info.st_mode):
                    with open(path, "rb") as file:
                        data = file.read()
                found[path] = info.st_mode, info.st_mtime_ns, hashlib.sha256(data).hexdigest()
        return found


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with short_directory() as directory, ExitStack() as stack:
        site = Site(directory)
        site.mas("init", site.root, "--provider", "shell")
        stack.callback(lambda: _expect([], site.leftovers()))
        stack.callback(site.close)
        served = Served(site)
        stack.callback(served.close)
        yield Ground(site, served, stack)


def _expect(wanted: object, found: object) -> None:
    assert found == wanted


class Trial:
    """A hostile session beside an innocent one, both in one tier."""

    def __init__(self, ground: Ground, tier: str) -> None:
        self.ground = ground
        self.tier = tier
        self.site = ground.site
        self.sibling = self._start("pair", "-c", "import time; time.sleep(1000)")
        self.own = self._start("pair", os.path.join(AGENTS, "hostile.py"))
        self.show = self.site.json("show", self.own)
        with open(self.site.session(self.sibling, "unit", "21", "file"), "w", encoding="utf-8") as file:
            file.write(SECRET)
        self.agent = "21"

    def _start(self, team: str, *program: str) -> str:
        return start_in(self.site, self.tier, list(program), {"team": team})

    def unit(self, *names: str) -> str:
        return self.site.session(self.own, "unit", self.agent, *names)

    def pids(self, session: str) -> tuple[int, int]:
        """The program of an agent and its launcher."""
        path = self.site.session(session, "logs", f"agent-{self.agent}.events.jsonl")

        def begun() -> Any:
            with open(path, encoding="utf-8") as file:
                return next((line for line in map(json.loads, file) if line["event"] == "start"), None)

        start = until(lambda: os.path.exists(path) and begun(), f"the start of {session}")
        return start["pid"], start["launcher"]

    def targets(self) -> dict[str, Any]:
        site, ground = self.site, self.ground
        sibling, launcher = self.pids(self.sibling)
        socket_path = self.show["tmuxSocket"]
        there = site.json("show", self.sibling)
        pane = next(agent["pane"] for agent in there["agents"] if agent["id"] == self.agent)
        tmux_pid = site.tmux("display-message", "-p", "-t", pane, "#{pid}", socket=there["tmuxSocket"])
        terminal = site.tmux("display-message", "-p", "-t", pane, "#{pane_tty}", socket=there["tmuxSocket"])
        missing = [name for name, program in MISSING_PROGRAMS.items() if not shutil.which(program)]
        return {
            "tier": self.tier,
            "skip": [*missing, *(THOROUGH if self.tier != "A" else ())],
            "workspace": site.root,
            "templates": site.path("unit", "00"),
            "template": site.path("unit", "00", "README.md"),
            "template_to_lose": site.path("unit", "00", "lose.md"),
            "sessions": site.path("sessions"),
            "own": site.session(self.own),
            "own_id": self.own,
            "sibling": site.session(self.sibling),
            "sibling_id": self.sibling,
            "sibling_file": site.session(self.sibling, "unit", "21", "file"),
            "registry": site.path("sessions", ".sessions.index"),
            "journal": site.path("sessions", ".index"),
            "token_file": site.path("sessions", ".mas", "server", "token"),
            "colleague_launch": site.session(self.own, ".mas", "launch", "23"),
            "colleague_state": site.session(self.own, ".mas", "agents", "23"),
            "address": site.path("sessions", ".mas", "address", "url"),
            "package": os.path.join(os.path.dirname(mas.__file__), "__init__.py"),
            "home": site.home,
            "secret": ground.secret,
            "pids": {
                "sibling": sibling,
                "sibling's launcher": launcher,
                "own launcher": self.pids(self.own)[1],
                "server": ground.served.pid,
                "tmux": int(tmux_pid),
                "outside": os.getpid(),
            },
            "terminal": terminal,
            "tmux": shutil.which("tmux"),
            "tmux_sockets": [socket_path, ground.foreign, site.user_socket],
            "tmux_directory": site.directory,
            "marker": ground.marker,
            "unix_stream": ground.sockets["stream"],
            "unix_datagram": ground.sockets["datagram"],
            "unix_abstract": ground.abstract,
            "server_socket": ground.served.socket,
            "url": ground.served.url,
            "loopback_port": ground.loopback.getsockname()[1],
            "machine": "localhost",
        }

    def report(self) -> dict[str, dict[str, Any]]:
        with open(self.unit("targets.tmp"), "w", encoding="utf-8") as file:
            json.dump(self.targets(), file)
        os.chmod(self.unit("targets.tmp"), 0o644)
        os.rename(self.unit("targets.tmp"), self.unit("targets.json"))
        until(lambda: os.path.exists(self.unit("report.json")), "the report", 120)
        with open(self.unit("report.json"), encoding="utf-8") as file:
            found: dict[str, dict[str, Any]] = json.load(file)
        return found

    def pane(self, *words: str) -> str:
        pane = next(agent["pane"] for agent in self.show["agents"] if agent["id"] == self.agent)
        return self.site.tmux(*words[:1], "-t", pane, *words[1:], socket=self.show["tmuxSocket"])

    def signals(self) -> str:
        try:
            with open(self.unit("signals"), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def processes(self) -> list[psutil.Process]:
        """Every living process that was started in the hostile session."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("MAS_SESSION_ID") == self.own and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found


def results(report: dict[str, dict[str, Any]], result: str) -> set[str]:
    return {name for name, found in report.items() if found["result"] == result}


def told(report: dict[str, dict[str, Any]], names: set[str]) -> str:
    return "\n".join(f"{name}: {report.get(name)}" for name in sorted(names))


@pytest.mark.parametrize("tier", ["A", "B"])
def test_a_hostile_agent_gets_nowhere_and_can_work(ground: Ground, tier: str) -> None:
    templates = ground.picture(ground.site.path("unit"))
    trial = Trial(ground, tier)
    site = ground.site
    report = trial.report()
    needs = {name for name in report if name in _needs()}
    open_ = results(report, "hole")
    expected = OPEN_IN_B if tier == "B" else set()
    if os.getuid() == 0:
        # The account that agents have instead of root owns none of them.
        expected = expected - {"template_chmod", "template_utime", "sibling_chmod"}
    assert open_ == expected & set(report), told(report, open_ ^ expected)
    off = needs - results(report, "ok")
    if os.getuid() == 0 and tier == "B":
        # The session's files are root's, and its agents are not root.
        off -= {"own_session_is_seen"}
    assert off == (NOT_IN_B & needs if tier == "B" else set()), told(report, off)
    after = ground.picture(site.path("unit"))
    if tier == "B":
        # Modes and times are what it says it leaves open.
        templates, after = ({path: (0, 0, one[2]) for path, one in tree.items()} for tree in (templates, after))
    assert after == templates
    assert not [name for name in os.listdir(site.directory) if name.startswith("marker")]
    for name in (".home", ".tmp"):
        assert stat.S_IMODE(os.stat(site.session(trial.own, name)).st_mode) == 0o700
    text = json.dumps({name: found for name, found in report.items() if name not in open_})
    assert SECRET not in text
    trial.pane("send-keys", "C-c")
    until(lambda: "SIGINT" in trial.signals(), "the interrupt")
    site.tmux("resize-window", "-t", f"={trial.show['tmuxSession']}:", "-x", "91", "-y", "31",
              socket=trial.show["tmuxSocket"])  # fmt: skip
    until(lambda: "SIGWINCH" in trial.signals(), "the change of size")
    assert len(trial.processes()) >= 4
    site.mas("stop", trial.own)
    assert trial.processes() == []
    assert site.json("show", trial.sibling)["status"] == "active"
    site.mas("stop", trial.sibling)
    for session in (trial.own, trial.sibling):
        site.mas("delete", session, "--yes")


def test_if_only_file_modes_protect_the_gaps_are_the_documented_ones(ground: Ground) -> None:
    trial = Trial(ground, "D")
    report = trial.report()
    open_ = results(report, "hole")
    assert not OPEN_IN_D - open_, told(report, OPEN_IN_D - open_)
    assert not NEVER_OPEN & open_, told(report, NEVER_OPEN & open_)
    assert _needs() & set(report) <= results(report, "ok"), told(report, _needs() - results(report, "ok"))
    assert os.path.exists(ground.marker)
    ground.site.mas("stop", trial.own)
    assert trial.processes() == []


def _needs() -> set[str]:
    """The probes of what must work."""
    sys.path.insert(0, AGENTS)
    try:
        import hostile  # type: ignore[import-not-found]
    finally:
        sys.path.remove(AGENTS)
    return {name for name, (_, good) in hostile.PROBES.items() if good == "ok"}


def test_an_isolated_agent_that_ends_leaves_a_dead_pane_and_what_is_sent_is_not_executed(ground: Ground) -> None:
    site = ground.site
    words = ("start", "--team", "solo", "--command", "true")
    done = site.mas(*words, env={"MAS_ISOLATION": "A"}, code=None)
    if done.returncode == 7:
        pytest.skip(f"this machine has no tier A: {done.stderr.strip().splitlines()[0]}")
    session = done.stdout.strip()
    until(lambda: site.json("show", session)["agents"][0]["state"] == "exited", "its end")
    site.mas("send", "--session", session, "00", f"touch {ground.marker}-sent", code=None)
    show = site.json("show", session)
    pane = show["agents"][0]["pane"]
    dead = ("display-message", "-p", "-t", pane, "#{pane_dead}")
    until(lambda: site.tmux(*dead, socket=show["tmuxSocket"]) == "1", "the end of its pane")
    assert not os.path.exists(f"{ground.marker}-sent")
    site.mas("delete", session, "--yes")
