"""The checker is shown every kind of damage there is, and says so each time."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple
from uuid import uuid4

import psutil
import pytest

from tests.checker import MARKER, World, processes_of_sessions
from tests.site import Site, short_directory, until
from tests.torture.ledger import Entry, broken_promises, marker_of
from tests.torture.mail import mail_of, mail_problems, unsettled
from tests.torture.round import held_locks, isolates, prepare, strays

MESSAGE = "m-0000000000000001"
SECOND = "m-0000000000000002"


class Scene(NamedTuple):
    """A workspace with an active, a stopped, an archived and a deleted session, and what their makers saw."""

    site: Site
    active: str
    stopped: str
    archived: str
    deleted: str

    @property
    def entries(self) -> list[Entry]:
        made = [_entry("start", made=session, marked=session == self.stopped) for session in self[1:]]
        moves = [_entry(verb, session) for verb, session in zip(("stop", "archive", "delete"), self[2:], strict=True)]
        sent = [_entry("send", self.active, message=message, text="hello") for message in (MESSAGE, SECOND)]
        return [*made, *moves, *sent]

    def problems(self, entries: list[Entry] | None = None) -> list[str]:
        try:
            world = World(self.site)
        except (AssertionError, ValueError, KeyError) as error:
            return [str(error)]
        found = [*world.problems(), *broken_promises(world, entries or self.entries, untouched_live=True)]
        for session_id in world.kept:
            found += mail_problems(world, session_id, copied=False)
        return [*found, *held_locks(world), *strays(world, set())]

    def path(self, session: str, *names: str) -> str:
        return self.site.session(session, *names)

    def private(self, *names: str) -> str:
        return self.site.path("sessions", ".mas", *names)


def _entry(verb: str, session: str = "", message: str = "", text: str = "", **told: object) -> Entry:
    entry = Entry("client", "command", verb, session, False, "00", message, text, end="done")
    return entry._replace(**told)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made() -> Iterator[Scene]:
    with short_directory() as directory:
        site = Site(directory)
        prepare(site)
        try:
            words = ("--team", "solo", "--provider", "keeper")
            active, *others = [site.start(*words) for _ in range(4)]
            scene = Scene(site, active, *others)
            with open(scene.path(scene.stopped, MARKER), "w", encoding="utf-8") as file:
                file.write(marker_of(scene.stopped))
            for message in (MESSAGE, SECOND):
                site.mas("send", "--session", active, "--id", message, "--wait", "30", "00", "hello")
            site.mas("stop", *others)
            site.mas("archive", scene.archived)
            site.mas("delete", scene.deleted, "--yes")
            assert scene.problems() == []
            yield scene
        finally:
            site.close()
        assert site.leftovers() == []


@pytest.fixture
def scene(made: Scene) -> Iterator[Scene]:
    """The same for every test: what one damages is put back."""
    sessions = made.site.path("sessions")
    aside = os.path.join(made.site.directory, "aside")
    subprocess.run(["cp", "-a", sessions, aside], check=True)
    yield made
    # Not removed: an agent ends with the directory of its session.
    os.rename(sessions, os.path.join(made.site.directory, f"damaged-{uuid4()}"))
    os.rename(aside, sessions)


def _edit(path: str, change: Callable[[str], str]) -> None:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(change(text))


def _index(scene: Scene, change: Callable[[dict[str, dict[str, str]]], object]) -> None:
    def changed(text: str) -> str:
        body = json.loads(text)
        entries = {entry["sessionId"]: entry for entry in body["sessions"]}
        change(entries)
        return json.dumps(body | {"sessions": list(entries.values())})

    _edit(scene.site.path("sessions", ".sessions.index"), changed)


def _sql(scene: Scene, *statements: str) -> None:
    with closing(sqlite3.connect(scene.path(scene.active, ".mas", "messages.db"), isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def _headers(scene: Scene, change: Callable[[list[str]], list[str]]) -> None:
    path = scene.path(scene.active, "unit", "00", "headers")
    _edit(path, lambda text: "".join(change(text.splitlines(keepends=True))))


def _call_stopped(scene: Scene) -> None:
    _index(scene, lambda entries: entries[scene.active].update(status="stopped"))
    line = f"{scene.active}:stopped:2026-01-01T00:00:00Z\n"
    _edit(scene.site.path("sessions", ".index"), lambda text: text + line)


def _empty_trash(scene: Scene) -> None:
    shutil.rmtree(scene.private("trash"))
    os.mkdir(scene.private("trash"))


def _overwrite_database(scene: Scene) -> None:
    path = scene.path(scene.active, ".mas", "messages.db")
    for side in ("", "-wal", "-shm"):
        if os.path.exists(path + side):
            os.unlink(path + side)
    with open(path, "wb") as file:
        file.write(b"nothing of SQLite's" * 1000)


def _touch(path: str) -> None:
    with open(path, "wb"):
        pass


DAMAGE: dict[str, tuple[Callable[[Scene], object], str]] = {
    "a directory is gone": (lambda one: shutil.rmtree(one.path(one.stopped)), "is only in the index"),
    "an entry is gone": (lambda one: _index(one, lambda entries: entries.pop(one.stopped)), "is not in the index"),
    "the index is torn": (
        lambda one: _edit(one.site.path("sessions", ".sessions.index"), lambda text: text[: len(text) // 2]),
        "char ",
    ),
    "the index says something else": (
        lambda one: _index(one, lambda entries: entries[one.stopped].update(status="error")),
        "its last word is stopped",
    ),
    "the journal says something else": (
        lambda one: _edit(one.site.path("sessions", ".index"), lambda text: text.replace(":deleted:", ":stopped:")),
        "is gone (deleted)",
    ),
    "the journal is cut off": (
        lambda one: _edit(one.site.path("sessions", ".index"), lambda text: text[:-3]),
        "cut off",
    ),
    "metadata.json says something else": (
        lambda one: _edit(one.path(one.stopped, "metadata.json"), lambda text: text.replace("stopped", "active")),
        "metadata.json active",
    ),
    "a session is in two places": (
        lambda one: shutil.copytree(one.path(one.stopped), one.private("trash", f"{one.stopped}@now")),
        "in several places",
    ),
    "a mode is wrong": (lambda one: os.chmod(one.path(one.stopped), 0o755), "has mode 755"),
    "an intent is left": (lambda one: _touch(one.private("intents", one.stopped)), "intents holds"),
    "half a file is left": (lambda one: _touch(one.path(one.stopped, "unit", "x.tmp")), "was left"),
    "an archive has no note": (
        lambda one: os.unlink(one.private("archive", f"{one.archived}.json")),
        "without a note",
    ),
    "a session that runs is called stopped": (
        _call_stopped,
        "tmux session without active: {'mas-",
    ),
    "a session somebody was told of is gone": (
        _empty_trash,
        "was told of (start of client) and is gone",
    ),
    "work is lost": (lambda one: os.unlink(one.path(one.stopped, MARKER)), "the work of"),
    "a message is lost": (
        lambda one: _sql(one, "DELETE FROM deliveries WHERE message = 2", "DELETE FROM messages WHERE number = 2"),
        f"{SECOND} to",
    ),
    "a message says something else": (lambda one: _sql(one, "UPDATE messages SET message = 'bye'"), "says 'bye'"),
    "a state there is none of": (lambda one: _sql(one, "UPDATE deliveries SET state = 'on its way'"), "is on its way"),
    "undelivered for no reason": (
        lambda one: _sql(one, "UPDATE deliveries SET state = 'undelivered'"),
        "undelivered for no reason",
    ),
    "a message for nobody": (lambda one: _sql(one, "DELETE FROM deliveries WHERE message = 2"), "is for nobody"),
    "a message came twice": (lambda one: _headers(one, lambda lines: [*lines, lines[0]]), "2 times"),
    "messages came out of order": (lambda one: _headers(one, lambda lines: lines[::-1]), "out of their order"),
    "an acknowledged message never came": (lambda one: _headers(one, lambda lines: lines[:1]), "never got it"),
    "a message that nobody sent": (
        lambda one: _headers(one, lambda lines: [*lines, "[MAS from=person to=00 id=m-00000000000000ff]\n"]),
        "what nobody sent",
    ),
    "the database is damaged": (
        _overwrite_database,
        "cannot be read",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_seen(scene: Scene, kind: str) -> None:
    damage, words = DAMAGE[kind]
    damage(scene)
    found = scene.problems()
    assert any(words in problem for problem in found), found


def test_a_session_that_no_operation_started_is_seen(scene: Scene) -> None:
    entries = [entry for entry in scene.entries if entry.made != scene.stopped]
    assert any("of which nobody was told" in problem for problem in scene.problems(entries))
    cut = _entry("start", end="lost")
    assert not any("of which nobody was told" in problem for problem in scene.problems([*entries, cut]))


@pytest.mark.parametrize(
    ("verb", "words"), [("archive", "is archived, and nobody"), ("delete", "is deleted, and nobody")]
)
def test_a_session_that_no_operation_moved_is_seen(scene: Scene, verb: str, words: str) -> None:
    entries = [entry for entry in scene.entries if entry.verb != verb]
    assert any(words in problem for problem in scene.problems(entries))


def test_a_session_that_ended_by_itself_is_seen(scene: Scene) -> None:
    entries = [entry for entry in scene.entries if entry.verb != "stop"]
    assert any("though nobody touched it" in problem for problem in scene.problems(entries))


def test_a_copy_that_a_refused_clone_named_is_expected_stopped(scene: Scene) -> None:
    entries = [entry for entry in scene.entries if entry.verb != "stop" and entry.made != scene.stopped]
    clone = _entry("clone", scene.active, flag=True, made=scene.stopped)
    assert any("though nobody touched it" in problem for problem in scene.problems([*entries, clone]))
    assert scene.problems([*entries, clone._replace(end="refused")]) == []


def test_a_deleted_session_may_be_gone_after_a_prune(scene: Scene) -> None:
    _empty_trash(scene)
    assert scene.problems([*scene.entries, _entry("prune")]) == []


def test_a_message_that_stays_on_its_way_is_seen(scene: Scene) -> None:
    assert list(unsettled(World(scene.site), scene.active)) == []
    _sql(scene, "UPDATE deliveries SET state = 'queued' WHERE message = 2")
    assert [SECOND in problem for problem in unsettled(World(scene.site), scene.active)] == [True]


def test_mail_is_read_from_archives_and_the_trash_too(scene: Scene) -> None:
    scene.site.mas("clone", scene.active)
    (copied,) = World(scene.site).directories - {scene.active, scene.stopped}
    for verb in (["archive", copied], ["unarchive", copied], ["delete", copied, "--yes"]):
        scene.site.mas(*verb)
        world = World(scene.site)
        assert set(mail_of(world, copied).letters) == {MESSAGE, SECOND}
        assert mail_of(world, copied).noted == {"00": [MESSAGE, SECOND]}


def test_a_lock_that_is_held_is_seen(scene: Scene) -> None:
    with open(scene.path(scene.stopped, ".session.lock"), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert any("is locked" in problem for problem in scene.problems())


def test_a_process_that_belongs_to_no_session_is_seen(scene: Scene) -> None:
    argv = [sys.executable, "-c", f"import time  # {uuid4()}\ntime.sleep(1000)"]
    with subprocess.Popen(argv, env=scene.site.env) as process:
        try:
            until(
                lambda: any(f"process {process.pid} belongs to nobody" in one for one in scene.problems()), "it is seen"
            )
        finally:
            process.kill()


def test_a_process_that_an_agent_left_is_seen_and_what_a_person_runs_in_a_pane_stays(bare: Site) -> None:
    prepare(bare)
    session = bare.start("--team", "solo", "--provider", "keeper")
    bare.tmux("new-window", "-d", "-t", f"=mas-{session[:8]}:", "cat", "-")
    bare.mas("stop", session)
    assert list(World(bare).problems()) == []
    (person,) = World(bare).people
    environ = psutil.Process(person).environ()
    assert environ["MAS_SESSION_DIR"] == bare.session(session)
    with subprocess.Popen(["cat", "-"], env=environ, stdin=subprocess.PIPE) as left:
        until(lambda: psutil.Process(left.pid).name() == "cat", "it runs")
        assert list(World(bare).problems()) == [f"{left.pid} is a process of {session}, which is not active"]
        left.kill()


def test_an_agent_that_was_restarted_in_the_window_of_another_team_is_not_one_of_that_team(bare: Site) -> None:
    prepare(bare)
    guest, host = (bare.start("--team", "solo", "--provider", "keeper") for _ in range(2))
    panes = [bare.json("show", session)["agents"][0]["pane"] for session in (guest, host)]
    bare.tmux("join-pane", "-d", "-s", panes[0], "-t", panes[1])
    bare.mas("restart-agent", guest, "00", "--force")
    bare.mas("stop", host)
    until(lambda: list(World(bare).problems()) == [], "nothing is wrong")


@pytest.fixture
def isolated(bare: Site) -> Scene:
    """A workspace with one session, whose agent is isolated and has a network of its own."""
    prepare(bare)
    if not isolates(bare):
        pytest.skip("this machine cannot isolate agents")
    scene = Scene(bare, bare.start("--team", "solo", "--provider", "keeper", "--isolation", "require"), "", "", "")
    # It is a launcher at first.
    until(lambda: _egress(scene) and list(World(bare).problems()) == [], "nothing is wrong")
    return scene


def _egress(scene: Scene) -> psutil.Process | None:
    found = processes_of_sessions(scene.site.path("sessions"))
    directory = scene.path(scene.active, ".mas", "network")
    return next((process for process, _ in found if directory in process.cmdline()), None)


def test_all_that_is_left_of_an_isolated_session_is_seen(isolated: Scene) -> None:
    egress = _egress(isolated)
    assert egress
    inside = {
        process.pid
        for process, _ in processes_of_sessions(isolated.site.path("sessions"))
        if os.readlink(f"/proc/{process.pid}/ns/net") != os.readlink("/proc/self/ns/net")
    }
    _call_stopped(isolated)
    found = "\n".join(World(isolated.site).problems())
    # What holds its namespaces has nothing of its environment.
    assert len(inside) == 2
    for pid in (egress.pid, *inside):
        assert f"{pid} is a process of {isolated.active}, which is not active" in found
    assert f"the egress socket of {isolated.active} was left" in found


def test_a_session_without_its_egress_process_or_with_two_is_seen(isolated: Scene) -> None:
    egress = _egress(isolated)
    assert egress
    words = f"{isolated.active} has %s egress processes instead of 1"
    argv = [sys.executable, "-c", "import time; time.sleep(1000)", isolated.path(isolated.active, ".mas", "network")]
    with subprocess.Popen(argv, env=isolated.site.env) as second:
        until(lambda: any(words % 2 in problem for problem in World(isolated.site).problems()), "two are seen")
        second.kill()
    with open(isolated.path(isolated.active, ".mas", "network", "lock"), "rb") as file:
        # Its launcher cannot start it again.
        fcntl.flock(file, fcntl.LOCK_EX)
        egress.kill()
        until(lambda: any(words % 0 in problem for problem in World(isolated.site).problems()), "none is seen")
    until(lambda: list(World(isolated.site).problems()) == [], "it is there again")
