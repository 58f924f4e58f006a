"""Looks at a workspace from outside and says everything that is wrong with it.

Shares nothing with the product: what the files must say is written here once more, from the specification.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import psutil
import zstandard

from tests.site import Site

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
MARKER = "unit/00/marker.txt"
_LINE = re.compile(r"([^:]+):(active|stopped|error|deleted|archived):\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ENTRY = {"sessionId", "tmuxSession", "status", "createdAt", "lastActivity", "workingDir"}
_MODES = {
    "": 0o700, ".session": 0o600, "metadata.json": 0o600, "config.json": 0o600, ".session.lock": 0o600,
    "unit": 0o755, "workflows": 0o755, "logs": 0o755,
}  # fmt: skip
# What only some sessions have: isolated agents have a home and temporary files of their own.
_PRIVATE = {".mas": 0o700, ".home": 0o700, ".tmp": 0o700}
_ON_ITS_WAY, _LOOK_AGAIN = 10.0, 0.02
# Where the egress process of a session is reached by launchers.
_NETWORK, _EGRESS = os.path.join(".mas", "network"), "egress.sock"


class Pane(NamedTuple):
    """A pane of a team, wherever a person has put it; `tmux_session` is what MAS calls the team."""

    tmux_session: str
    pid: int
    dead: bool


def tree_hash(*roots: str) -> str:
    """A digest of names, modes and contents below `roots`."""
    found = hashlib.sha256()
    for root in roots:
        for directory, names, files in os.walk(root):
            names.sort()
            for name in sorted([*names, *files]):
                path = os.path.join(directory, name)
                found.update(f"{path} {os.lstat(path).st_mode:o}\n".encode())
                if name in files and not os.path.islink(path):
                    with open(path, "rb") as file:
                        found.update(file.read())
    return found.hexdigest()


class World:
    """One look at everything: the files, the archives, the trash, tmux and the processes."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.sessions = site.path("sessions")
        self.directories = {name for name in os.listdir(self.sessions) if UUID4.fullmatch(name)}
        self.entries = self._index()
        self.journal = self._journal()
        self.archived = {name.partition(".")[0] for name in self._private("archive") if name.endswith(".tar.zst")}
        self.trashed = {name.partition("@")[0]: name for name in self._private("trash")}
        self.panes, self.people = _panes(site)
        self._unpacked: dict[str, dict[str, bytes]] = {}

    def problems(self) -> Iterator[str]:
        """Everything that is wrong, in sentences."""
        yield from self._registry_problems()
        for session_id in sorted(self.directories & set(self.entries)):
            yield from self._session_problems(session_id)
        yield from self.litter()
        yield from self._life_problems()

    @property
    def kept(self) -> set[str]:
        """Every session, wherever it is: in its directory, in an archive or in the trash."""
        return self.directories | self.archived | set(self.trashed)

    def marker(self, session_id: str) -> str | None:
        """The content of a session's marker file; None if there is none."""
        found = self.file(session_id, MARKER)
        return None if found is None else found.decode()

    def file(self, session_id: str, name: str) -> bytes | None:
        """A file of a session, wherever the session is kept; None if there is none."""
        if session_id in self.archived:
            return self._packed(session_id).get(name)
        try:
            with open(self._path(session_id, name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _path(self, session_id: str, *names: str) -> str:
        """A path of a session that is in its directory or in the trash."""
        if session_id in self.trashed:
            return os.path.join(self.sessions, ".mas", "trash", self.trashed[session_id], *names)
        return os.path.join(self.sessions, session_id, *names)

    def _packed(self, session_id: str) -> dict[str, bytes]:
        """The files of an archive; read once."""
        if session_id not in self._unpacked:
            path = os.path.join(self.sessions, ".mas", "archive", f"{session_id}.tar.zst")
            with open(path, "rb") as file:
                plain = zstandard.ZstdDecompressor().stream_reader(file).read()
            with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
                opened = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
                self._unpacked[session_id] = {name: file.read() for name, file in opened.items() if file}
        return self._unpacked[session_id]

    def pane_of(self, session_id: str) -> int | None:
        """The process in the (only) pane of a session."""
        return next((pane.pid for pane in self.panes if pane.tmux_session == f"mas-{session_id[:8]}"), None)

    def _private(self, name: str) -> list[str]:
        return sorted(os.listdir(os.path.join(self.sessions, ".mas", name)))

    def _index(self) -> dict[str, dict[str, Any]]:
        with open(os.path.join(self.sessions, ".sessions.index"), encoding="utf-8") as file:
            body = json.load(file)
        assert body["version"] == "1.0"
        assert body["lastUpdated"].endswith("Z")
        found = {entry["sessionId"]: entry for entry in body["sessions"]}
        assert len(found) == len(body["sessions"]), "a session is listed twice"
        return found

    def _journal(self) -> dict[str, str]:
        """The last word on every session."""
        with open(os.path.join(self.sessions, ".index"), encoding="utf-8") as file:
            text = file.read()
        assert not text or text.endswith("\n"), "the journal's last line is cut off"
        lines = [_LINE.fullmatch(line) for line in text.splitlines()]
        assert all(lines), f"a line of the journal is none: {text}"
        return {match[1]: match[2] for match in lines if match}

    def _registry_problems(self) -> Iterator[str]:
        for session_id in self.directories ^ set(self.entries):
            yield f"{session_id} is {'only' if session_id in self.entries else 'not'} in the index"
        for session_id, entry in self.entries.items():
            if missing := _ENTRY - set(entry):
                yield f"{session_id} lacks {missing} in the index"
            if self.journal.get(session_id) != entry["status"]:
                yield f"{session_id} is {entry['status']}, its last word is {self.journal.get(session_id)}"
        for session_id, word in self.journal.items():
            if session_id not in self.entries:
                wanted = "archived" if session_id in self.archived else "deleted"
                if word != wanted and not (word == "archived" and session_id not in self.trashed):
                    yield f"{session_id} is gone ({wanted}), its last word is {word}"
        for session_id in self.archived | set(self.trashed):
            places = [session_id in place for place in (self.directories, self.archived, self.trashed)]
            if sum(places) != 1:
                yield f"{session_id} is in several places: directory, archive, trash = {places}"
        for name, mode in ((".sessions.index", 0o600), (".index", 0o600), ("", 0o755), (".mas", 0o700)):
            yield from _wrong_mode(os.path.join(self.sessions, name), mode)

    def _session_problems(self, session_id: str) -> Iterator[str]:
        where = os.path.join(self.sessions, session_id)
        for name, mode in _MODES.items():
            yield from _wrong_mode(os.path.join(where, name), mode)
        with open(os.path.join(where, "config.json"), encoding="utf-8") as file:
            json.load(file)
        with open(os.path.join(where, "metadata.json"), encoding="utf-8") as file:
            metadata = json.load(file)
        with open(os.path.join(where, ".session"), encoding="utf-8") as file:
            record = dict(line.rstrip("\n").split("=", 1) for line in file)
        status = self.entries[session_id]["status"]
        if {metadata["status"], record["STATUS"], status} != {status}:
            yield f"{session_id} is {status}, metadata.json {metadata['status']}, .session {record['STATUS']}"
        if (metadata["sessionId"], record["SESSION_ID"]) != (session_id, session_id):
            yield f"{session_id} has the files of another session"
        if record["TMUX_SOCKET"] != (metadata["tmuxSocket"] or ""):
            yield f"{session_id} names two tmux servers"
        for name, mode in _PRIVATE.items():
            if os.path.lexists(os.path.join(where, name)):
                yield from _wrong_mode(os.path.join(where, name), mode)
        for name in os.listdir(where):
            if name not in _MODES and name not in _PRIVATE and ".corrupt-" not in name:
                yield f"{session_id} holds {name}"

    def litter(self) -> Iterator[str]:
        """What work cut short left lying about."""
        for name in ("intents", "doomed"):
            if left := self._private(name):
                yield f".mas/{name} holds {left}"
        notes = {name.partition(".")[0] for name in self._private("archive") if name.endswith(".json")}
        if notes != self.archived:
            yield f"archives without a note, or the other way round: {notes ^ self.archived}"
        for directory, names, files in os.walk(self.sessions):
            for name in [*names, *files]:
                if (name.endswith(".tmp") and name not in _PRIVATE) or ".deep-" in name:
                    yield f"{os.path.join(directory, name)} was left"
        known = {".mas", ".sessions.index", ".index"} | self.directories
        for name in set(os.listdir(self.sessions)) - known:
            if ".corrupt-" not in name:
                yield f"sessions/{name} does not belong there"

    def _life_problems(self) -> Iterator[str]:
        active = {session_id for session_id, entry in self.entries.items() if entry["status"] == "active"}
        wanted = {f"mas-{session_id[:8]}" for session_id in active}
        there = {pane.tmux_session for pane in self.panes}
        for path in self.site.sockets():
            if path.endswith(".sock") and not self.site.tmux("display-message", "-p", "#{pid}", socket=path):
                yield f"{path} belongs to no server"
        if wanted != there:
            yield f"active without tmux session: {wanted - there}; tmux session without active: {there - wanted}"
        for pane in self.panes:
            if pane.dead:
                yield f"the agent of {pane.tmux_session} is dead"
        processes: dict[str, list[psutil.Process]] = {}
        for process, session_id in processes_of_sessions(self.sessions):
            processes.setdefault(session_id, []).append(process)
            # What a person runs in a pane of their own has the environment of the tmux session, and stays after it.
            if session_id not in active and process.pid not in self.people:
                yield f"{process.pid} is a process of {session_id}, which is not active"
        for session_id in sorted(self.directories | set(self.trashed)):
            if session_id in active:
                yield from self._network_problems(session_id, processes.get(session_id, []))
            elif os.path.lexists(self._path(session_id, _NETWORK, _EGRESS)):
                yield f"the egress socket of {session_id} was left"

    def _network_problems(self, session_id: str, processes: list[psutil.Process]) -> Iterator[str]:
        """What is wrong with the network of an active session: it has one egress process while a launcher lives."""
        with open(self._path(session_id, "metadata.json"), encoding="utf-8") as file:
            network = json.load(file)["isolation"].get("network", "shared")
        directory = self._path(session_id)
        launchers, egresses, inside = 0, [], set()
        for process in processes:
            with suppress(psutil.Error, OSError):
                words = process.cmdline()
                launchers += directory in words
                egresses += [process.pid] * (os.path.join(directory, _NETWORK) in words)
                if _is_elsewhere(process.pid, "mnt"):
                    inside.add(os.readlink(f"/proc/{process.pid}/ns/net"))
        wanted = 1 if launchers and network != "shared" else 0
        if len(egresses) != wanted:
            yield f"{session_id} has {len(egresses)} egress processes instead of {wanted}: {egresses}"
        if network != "shared" and (len(inside) > 1 or os.readlink("/proc/self/ns/net") in inside):
            yield f"the agents of {session_id} are in several networks, or in that of the machine: {inside}"


def processes_of_sessions(sessions: str) -> Iterator[tuple[psutil.Process, str]]:
    """Every living process that belongs to a session, by its environment, its arguments or what it has mounted."""
    with open(os.path.join(sessions, ".index"), encoding="utf-8", errors="replace") as file:
        known = set(UUID4.findall(file.read()))
    for process in psutil.process_iter():
        try:
            session_id = _by_words(process, f"{sessions}/") or _by_mounts(process.pid, known)
            # A server keeps the arguments of the client that started it.
            if session_id and process.status() != psutil.STATUS_ZOMBIE and process.name() != "tmux: server":
                yield process, session_id
        except (psutil.Error, OSError):
            continue


def _by_words(process: psutil.Process, below: str) -> str:
    environ = process.environ()
    words = [environ.get("MAS_SESSION_DIR", ""), *process.cmdline()]
    word = next((word for word in words if word.startswith(below)), below)
    # A launcher has the environment of its pane's tmux session, maybe another team's; its mark is its own.
    session_id = environ.get("MAS_PANE", word[len(below) :])[:36] if word != below else ""
    return session_id if UUID4.fullmatch(session_id) else ""


def _by_mounts(pid: int, known: set[str]) -> str:
    """The session of a process that sees files as its agents do, whatever its environment: ids are no other site's."""
    if not _is_elsewhere(pid, "mnt"):
        return ""
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="replace") as file:
        return next((found for found in UUID4.findall(file.read()) if found in known), "")


def _is_elsewhere(pid: int, kind: str) -> bool:
    """Whether a process is in another namespace than this one."""
    return os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")


def check_world(site: Site, kept: Mapping[str, str] = {}) -> World:
    """Fail with everything that is wrong. `kept` are markers of sessions that must still be somewhere.

    A launcher that lives may be met with a file or socket on its way to its name: such a thing is wrong if it stays.
    """
    deadline = time.monotonic() + _ON_ITS_WAY
    while True:
        world = World(site)
        problems = list(world.problems())
        if not any(problem.endswith(" was left") for problem in problems) or time.monotonic() > deadline:
            break
        time.sleep(_LOOK_AGAIN)
    for session_id, text in kept.items():
        if (found := world.marker(session_id)) != text:
            problems.append(f"the work of {session_id} is lost: {found!r}")
    assert not problems, "\n".join(problems)
    return world


def _panes(site: Site) -> tuple[list[Pane], set[int]]:
    """Every pane of ours, and the processes in panes of a person's own."""
    found: dict[tuple[str, str], Pane] = {}
    people = set()
    shape = "#{pane_id} #{pane_pid} #{pane_dead} #{?@mas_agent,1,-} #{?@mas_team,#{@mas_team},-} #{session_name}"
    for socket in site.sockets():
        for line in site.tmux("list-panes", "-a", "-F", shape, socket=socket).splitlines():
            pane, pid, dead, agent, team, name = line.split(" ", 5)
            if agent != "-":
                # A window may be in several tmux sessions.
                found[socket, pane] = Pane(name if team == "-" else team.partition("/")[0], int(pid), dead == "1")
                continue
            people.add(int(pid))
            if re.fullmatch("mas-[0-9a-f]{8}", name):
                found[socket, pane] = Pane(name, int(pid), dead == "1")
    return list(found.values()), people


def _wrong_mode(path: str, mode: int) -> Iterator[str]:
    try:
        found = stat.S_IMODE(os.stat(path, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        yield f"{path} is missing"
        return
    if found != mode:
        yield f"{path} has mode {found:o} instead of {mode:o}"
