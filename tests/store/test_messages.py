"""Messages on disk: kept whole through anything, and never silently gone."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.model.errors import AlreadyThere, Busy, Conflict, Corrupt, DiskFull, DiskRefused, NoSession
from mas.model.ids import SessionId
from mas.model.message import Box, Delivery, DeliveryState, Message, parse_message
from mas.store.layout import Layout
from mas.store.session import messages as module
from mas.store.session.mailbox import MIGRATIONS, VERSION, Pending
from mas.store.session.messages import Messages
from mas.store.workspace.workspace import Workspace
from tests.site import short_directory
from tests.store.samples import NOW, mode, new_id, next_line, ordinary_user, program, read, rest_of

QUEUED, TYPED, ACKNOWLEDGED, UNDELIVERED = DeliveryState
_NUMBERS = count(1)


def a_message(text: str = "hello", *agents: str, sender: str | None = None, message_id: str = "") -> Message:
    name = message_id or f"m-{next(_NUMBERS):016x}"
    deliveries = tuple(Delivery(agent, QUEUED, NOW) for agent in agents or ("00",))
    return Message(name, sender, "all" if len(agents) > 1 else (agents or ("00",))[0], text, NOW, deliveries)


def a_store(layout: Layout) -> tuple[Messages, list[str]]:
    """The messages of a workspace, and what they warned of."""
    warned: list[str] = []
    return Messages(layout, lambda: NOW, lambda _, text: warned.append(text)), warned


@pytest.fixture
def store(layout: Layout) -> Messages:
    return a_store(layout)[0]


@pytest.fixture
def session(layout: Layout) -> SessionId:
    return a_session(layout)


def a_session(layout: Layout) -> SessionId:
    session_id = new_id()
    Workspace(layout).create(session_id)
    Workspace(layout).furnish(session_id)
    return session_id


def put(store: Messages, session: str, *messages: Message) -> None:
    with store.open(session) as mailbox:
        for message in messages:
            assert mailbox.add(message)


def everything(store: Messages, session: str) -> list[Message]:
    with store.open(session) as mailbox:
        return mailbox.page(10_000)[0]


def pasteable() -> st.SearchStrategy[str]:
    allowed = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t\u2028\ufeff\U0010ffff'\";%_")
    return st.text(allowed, min_size=1)


@given(st.lists(st.tuples(pasteable(), st.none() | st.just("21"), st.integers(1, 13)), max_size=5))
@settings(max_examples=40)
def test_any_text_comes_back_exactly_and_in_order(sent: list[tuple[str, str | None, int]]) -> None:
    with short_directory() as directory:
        layout = Layout(directory)
        Workspace(layout).prepare()
        session, store = a_session(layout), a_store(layout)[0]
        given = [
            a_message(parse_message(text), *(f"{agent:02d}" for agent in range(agents)), sender=sender)
            for text, sender, agents in sent
        ]
        put(store, session, *given)
        assert everything(store, session) == given


def test_a_message_of_a_mebibyte_comes_back_exactly(store: Messages, session: str) -> None:
    large = a_message("長\n" * (1 << 18))
    put(store, session, large)
    assert everything(store, session) == [large]


def test_the_database_is_private_and_one_file_when_not_in_use(layout: Layout, store: Messages, session: str) -> None:
    private = layout.session(session).private
    assert not store.exists(session)
    with store.open(session) as mailbox:
        mailbox.add(a_message())
        assert {mode(os.path.join(private, name)) for name in os.listdir(private) if "messages" in name} == {0o600}
        assert os.path.exists(store.path(session) + "-wal")
    assert store.exists(session)
    assert {name for name in os.listdir(private) if "messages" in name} == {"messages.db", "messages.lock"}
    with closing(sqlite3.connect(store.path(session))) as found:
        assert found.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert found.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_what_must_last_is_on_the_disk_before_it_is_answered(store: Messages, session: str) -> None:
    """SQLite is asked to wait for the disk with every step; only what such a step follows may be quicker."""
    first, second = a_message(), a_message()
    full, normal, off = (2,), (1,), (0,)

    def waits() -> tuple[int]:
        found: tuple[int] = mailbox._sql.execute("PRAGMA synchronous").fetchone()
        return found

    with store.open(session) as mailbox:
        mailbox.add(first)
        assert waits() == full
        mailbox.add(second, lasting=False)
        assert waits() == off
        mailbox.begin(first.id, "00", NOW)
        assert waits() == off
        mailbox.step(first.id, ["00"], TYPED, NOW)
        assert waits() == full
        mailbox.begin(second.id, "00", NOW)
        mailbox.put_back(second.id, "00")
        assert waits() == off
        mailbox.enter_again(first.id, "00", NOW)
        assert waits() == full
        with store.open(session) as other:
            other.add(a_message(), lasting=False)
            assert other._sql.execute("PRAGMA synchronous").fetchone() == normal, "its log had begun before"


def test_a_waiting_message_is_on_the_disk_before_its_sender_gets_a_reply(
    store: Messages, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was added in haste is brought there by a step, or else on its own."""
    queued, typed = a_message(), a_message()
    synced: list[int] = []
    sync = os.fsync

    def noting(fd: int) -> None:
        synced.append(os.fstat(fd).st_ino)
        sync(fd)

    with store.open(session) as mailbox:
        monkeypatch.setattr(os, "fsync", noting)
        mailbox.add(queued, lasting=False)
        mailbox.make_last(queued.id)
        log = store.path(session) + "-wal"
        assert synced == [os.stat(path).st_ino for path in (log, os.path.dirname(log))], "the log was begun just now"
        with store.open(session) as other:
            other.make_last(queued.id)
            assert synced[2:] == [os.stat(log).st_ino]
        mailbox.add(typed, lasting=False)
        mailbox.step(typed.id, ["00"], TYPED, NOW)
        mailbox.make_last(typed.id)
        assert len(synced) == 3


@pytest.mark.parametrize("fresh", [True, False])
def test_a_message_whose_session_is_deleted_while_it_is_sent_is_on_the_disk_all_the_same(
    layout: Layout, store: Messages, session: SessionId, fresh: bool
) -> None:
    message = a_message()
    with ExitStack() as others:
        if not fresh:
            others.enter_context(store.open(session))
        with store.open(session) as mailbox:
            mailbox.add(message, lasting=False)
            Workspace(layout).trash(session, NOW)
            mailbox.make_last(message.id)
            (trashed,) = Workspace(layout).trashed()
            # What the database holds without its log.
            copy = os.path.join(layout.root, "copy.db")
            shutil.copyfile(os.path.join(trashed.path, ".mas", "messages.db"), copy)
            with closing(sqlite3.connect(copy)) as connection:
                assert connection.execute("SELECT id FROM messages").fetchall() == [(message.id,)]
            assert mailbox.get(message.id) == message


@pytest.mark.parametrize("step", ["_make", "_fill", "_connect", "_migrate"])
@pytest.mark.parametrize("before", [True, False])
def test_a_session_that_is_deleted_while_its_messages_are_created_is_not_found_and_keeps_nothing_half_made(
    layout: Layout, store: Messages, session: SessionId, monkeypatch: pytest.MonkeyPatch, step: str, before: bool
) -> None:
    do = getattr(module, step)
    moved: list[bool] = []

    def delete_when(when: bool) -> None:
        if when and not moved:
            moved.append(True)
            Workspace(layout).trash(session, NOW)

    def step_and_delete(*arguments: object) -> object:
        delete_when(before)
        done = do(*arguments)
        delete_when(not before)
        return done

    monkeypatch.setattr(module, step, step_and_delete)
    with pytest.raises(NoSession), store.open(session):
        pass
    (trashed,) = Workspace(layout).trashed()
    assert set(os.listdir(os.path.join(trashed.path, ".mas"))) <= {"launch", "messages.db", "messages.lock"}


def test_threads_that_write_at_once_wait_for_one_another(store: Messages, session: str) -> None:
    """SQLite itself, with no patience at all, would refuse most of them."""
    each, writers = 20, 6
    together = threading.Barrier(writers)

    def write(_: int) -> None:
        with store.open(session) as mailbox:
            mailbox._sql.execute("PRAGMA busy_timeout = 0")
            together.wait()
            for number in range(each):
                mailbox.add(a_message(), lasting=number % 2 == 0)

    # Open all the time: who closes it last would pack it, and keep the others out meanwhile.
    with store.open(session), ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    assert len(everything(store, session)) == each * writers


def test_a_writer_that_never_gets_a_turn_gets_an_error(
    store: Messages, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mas.store.session.mailbox._PATIENCE", 0.01)
    with store.open(session) as one, store.open(session) as other:
        with one._turn, pytest.raises(Busy, match="writing"):
            other.add(a_message())
        other.add(a_message())
    assert len(everything(store, session)) == 1


def test_the_same_message_again_is_the_same_message_and_another_is_refused(store: Messages, session: str) -> None:
    first = a_message("hello", "00", "21", sender="23")
    put(store, session, first)
    with store.open(session) as mailbox:
        mailbox.step(first.id, ["21"], TYPED, "later")
        assert not mailbox.add(first._replace(created_at="later"))
        for other in (first._replace(message="bye"), first._replace(sender=None), first._replace(target="21")):
            with pytest.raises(AlreadyThere, match=first.id):
                mailbox.add(other)
        assert [delivery.state for delivery in mailbox.get(first.id).deliveries] == [QUEUED, TYPED]
    assert len(everything(store, session)) == 1


def test_a_step_is_taken_with_all_agents_or_none(store: Messages, session: str) -> None:
    message = a_message("hello", "00", "21", "22")
    put(store, session, message)
    with store.open(session) as mailbox:
        assert mailbox.step(message.id, ["21"], TYPED, "t1") == [Delivery("21", TYPED, "t1")]
        with pytest.raises(Conflict, match="cannot become typed"):
            mailbox.step(message.id, ["00", "21"], TYPED, "t2")
        for unknown in ("23", ""):
            with pytest.raises(Conflict, match="not for agent"):
                mailbox.step(message.id, ["00", unknown], TYPED, "t2")
        with pytest.raises(Conflict, match="No message"):
            mailbox.step("m-0000000000000000", ["00"], TYPED, "t2")
        mailbox.step(message.id, ["00", "22"], UNDELIVERED, "t3", "why")
        mailbox.step(message.id, ["21"], ACKNOWLEDGED, "t4")
    assert everything(store, session)[0].deliveries == (
        Delivery("00", UNDELIVERED, "t3", "why"),
        Delivery("21", ACKNOWLEDGED, "t4"),
        Delivery("22", UNDELIVERED, "t3", "why"),
    )


def test_the_oldest_that_is_not_all_the_way_is_an_agents_next(store: Messages, session: str) -> None:
    first, second = a_message("one", "00", "21"), a_message("two", "00")
    with store.open(session) as mailbox:
        mailbox.add(first)
        mailbox.add(second, forced=True)
        assert mailbox.next("00") == Pending(first, QUEUED, None, None, forced=False)
        assert (mailbox.next("22"), mailbox.waiting()) == (None, ["00", "21"])
        mailbox.begin(first.id, "00", "t1")
        assert mailbox.next("00") == Pending(first, QUEUED, "t1", None, forced=False)
        for message_id, agent in ((first.id, "00"), (first.id, "22"), ("m-0000000000000000", "00")):
            with pytest.raises(Conflict, match="not waiting"):
                mailbox.begin(message_id, agent, NOW)
        mailbox.put_back(first.id, "00")
        mailbox.begin(first.id, "00", "t2")
        mailbox.step(first.id, ["00"], TYPED, "t3", awaited=True)
        mailbox.enter_again(first.id, "00", "t4")
        typed = mailbox.next("00")
        assert typed
        assert typed[1:] == (TYPED, None, "t4", False)
        mailbox.step(first.id, ["00"], ACKNOWLEDGED, "t5")
        assert mailbox.next("00") == Pending(second, QUEUED, None, None, forced=True)
        mailbox.step(second.id, ["00"], TYPED, "t6")
        assert (mailbox.next("00"), mailbox.waiting()) == (None, ["21"]), "no word is awaited of it"
        assert mailbox.counts() == {"queued": 1, "typed": 1, "acknowledged": 1, "undelivered": 0}


def test_pages_are_counted_from_the_newest_and_listed_newest_last(store: Messages, session: str) -> None:
    sent = [a_message(f"{number}", sender="21" if number % 2 else None) for number in range(7)]
    sent += [a_message("to 21", "21"), a_message("to all", "00", "21", sender="00")]
    put(store, session, *sent)

    def texts(limit: int, offset: int, agent: str | None = None, box: str = "all") -> tuple[list[str], int]:
        with store.open(session) as mailbox:
            found, total = mailbox.page(limit, offset, agent, Box(box))
        return [message.message for message in found], total

    assert texts(3, 0) == (["6", "to 21", "to all"], 9)
    assert texts(3, 3) == (["3", "4", "5"], 9)
    assert texts(3, 8) == (["0"], 9)
    assert texts(3, 9) == texts(0, 0) == ([], 9)
    assert texts(9, 0, agent="21") == (["1", "3", "5", "to 21", "to all"], 5)
    assert texts(9, 0, agent="21", box="inbox") == (["to 21", "to all"], 2)
    assert texts(1, 1, agent="21", box="sent") == (["3"], 3)
    assert texts(9, 0, agent="33") == ([], 0)


WRITER = """
import sys
from mas.model.message import Delivery, DeliveryState, Message
from mas.store.layout import Layout
from mas.store.session.messages import Messages
root, session, first, many = sys.argv[1:]
store = Messages(Layout(root), lambda: "now", lambda *_: None)
sys.stdin.read(1)
for number in range(int(first), int(first) + int(many)):
    name = f"m-{number:016x}"
    with store.open(session) as mailbox:
        mailbox.add(Message(name, None, "00", "x" * 100, "now", (Delivery("00", DeliveryState.QUEUED, "now"),)))
        mailbox.begin(name, "00", "now")
        mailbox.step(name, ["00"], DeliveryState.TYPED, "now")
    print(name, flush=True)
"""


def go(writer: subprocess.Popen[bytes]) -> None:
    assert writer.stdin
    writer.stdin.write(b"\n")
    writer.stdin.flush()


def test_processes_that_write_at_once_lose_nothing(layout: Layout, store: Messages, session: str) -> None:
    """Also the very first message, for which each of them would make the database."""
    each, writers = 25, 6
    with ExitStack() as stack:
        started = [
            stack.enter_context(program(WRITER, layout.root, session, str(first * each), str(each)))
            for first in range(writers)
        ]
        for process in started:
            go(process)
        assert [len(rest_of(process).split()) for process in started] == [each] * writers
    found = everything(store, session)
    assert sorted(message.id for message in found) == [f"m-{number:016x}" for number in range(each * writers)]
    assert {delivery.state for message in found for delivery in message.deliveries} == {TYPED}


def test_threads_that_write_at_once_lose_nothing(store: Messages, session: str) -> None:
    groups = [[a_message() for _ in range(20)] for _ in range(4)]
    threads = [threading.Thread(target=put, args=(store, session, *group)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {message.id for message in everything(store, session)} == {one.id for group in groups for one in group}


def test_a_writer_killed_at_any_moment_loses_nothing_it_has_answered_for(
    layout: Layout, store: Messages, session: str
) -> None:
    answered: set[str] = set()
    chance = random.Random(5)
    for turn in range(12):
        with program(WRITER, layout.root, session, str(turn * 1000), "1000") as writer:
            go(writer)
            lines = [next_line(writer) for _ in range(chance.randrange(1, 9))]
            writer.send_signal(signal.SIGKILL)
            lines += rest_of(writer).split()
            answered |= {line for line in lines if len(line) == 18}
        found = {message.id: message.deliveries[0].state for message in everything(store, session)}
        assert answered <= {name for name, state in found.items() if state is TYPED}
        assert set(found.values()) <= {QUEUED, TYPED}
    with store.open(session) as mailbox:
        assert mailbox._sql.execute("PRAGMA integrity_check").fetchone() == ("ok",)


KILLED_WHILE_MAKING = """
import os, signal, sys
from mas.store.session import messages
from mas.store.layout import Layout
def kill(*args, **named):
    os.kill(os.getpid(), signal.SIGKILL)
moments = {"migrate": (messages, "_migrate"), "rename": (os, "rename"), "sync": (messages, "sync_directory")}
setattr(*moments[sys.argv[3]], kill)
with messages.Messages(Layout(sys.argv[1]), lambda: "now", print).open(sys.argv[2]):
    pass
"""


@pytest.mark.parametrize("moment", ["migrate", "rename", "sync"])
def test_a_database_whose_maker_was_killed_is_made_by_the_next(layout: Layout, session: str, moment: str) -> None:
    with program(KILLED_WHILE_MAKING, layout.root, session, moment) as maker:
        assert maker.wait() == -signal.SIGKILL
    store, warned = a_store(layout)
    put(store, session, a_message())
    assert len(everything(store, session)) == 1
    assert warned == []
    assert store.kept_aside(session) == []
    assert not [name for name in os.listdir(layout.session(session).private) if name.endswith(".tmp")]


def cut(path: str) -> None:
    os.truncate(path, os.stat(path).st_size // 2)


def emptied(path: str) -> None:
    os.truncate(path, 0)


def garbage(path: str) -> None:
    with open(path, "wb") as file:
        file.write(b"garbage " * 4096)


def a_link(path: str) -> None:
    os.rename(path, f"{path}.elsewhere")
    os.symlink(f"{path}.elsewhere", path)


def a_directory(path: str) -> None:
    os.unlink(path)
    os.mkdir(path)


def a_page(path: str) -> None:
    """Damage that opening the file does not show."""
    size = os.stat(path).st_size
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))


def without_table(path: str) -> None:
    with closing(sqlite3.connect(path)) as found:
        found.execute("DROP TABLE deliveries")


def a_schema_that_is_none(path: str) -> None:
    """SQLite quotes it, in letters that are none."""
    with closing(sqlite3.connect(path)) as found, found:
        found.execute("PRAGMA writable_schema = ON")
        found.execute(
            "UPDATE sqlite_schema SET name = CAST(x'9d' AS TEXT), sql = 'CREATE TABLE (' WHERE name = 'messages'"
        )


@pytest.mark.parametrize("damage", [cut, emptied, garbage, a_link, a_directory, a_schema_that_is_none])
def test_a_damaged_database_is_kept_aside_and_a_new_one_begun(
    layout: Layout, session: str, damage: Callable[[str], None]
) -> None:
    store, warned = a_store(layout)
    put(store, session, a_message("lost"))
    damage(store.path(session))
    before = os.lstat(store.path(session))
    new = a_message("new")
    put(store, session, new)
    assert everything(store, session) == [new]
    (aside,) = store.kept_aside(session)
    assert os.lstat(aside).st_ino == before.st_ino
    assert len(warned) == 1
    assert aside in warned[0]


def rows_that_are_none(path: str) -> None:
    with closing(sqlite3.connect(path)) as found, found:
        found.execute("UPDATE messages SET message = x'00'")


def text_that_is_none(path: str) -> None:
    with closing(sqlite3.connect(path)) as found, found:
        found.execute("UPDATE messages SET message = CAST(x'ff' AS TEXT)")


def states_that_are_none(path: str) -> None:
    with closing(sqlite3.connect(path)) as found, found:
        found.execute("UPDATE deliveries SET state = 'lost'")


@pytest.mark.parametrize("damage", [a_page, without_table, rows_that_are_none, states_that_are_none, text_that_is_none])
def test_damage_that_shows_in_use_is_an_error_once_and_the_file_is_kept(
    layout: Layout, session: str, damage: Callable[[str], None]
) -> None:
    store, warned = a_store(layout)
    put(store, session, *(a_message("x" * 3000) for _ in range(20)))
    damage(store.path(session))
    kept = read(store.path(session))
    with pytest.raises(Corrupt, match=r"messages\.db"):
        everything(store, session)
    (aside,) = store.kept_aside(session)
    assert read(aside)[4096:] == kept[4096:]
    assert len(warned) == 1
    put(store, session, a_message())
    assert len(everything(store, session)) == 1
    assert len(warned) == 1


def test_damage_that_shows_in_a_copy_is_reported_and_put_aside_once(layout: Layout, session: str) -> None:
    store, _ = a_store(layout)
    put(store, session, a_message())
    without_table(store.path(session))
    with pytest.raises(Corrupt, match=session):
        store.copy(session, a_session(layout), "copied")
    assert len(store.kept_aside(session)) == 1
    store.copy(session, a_session(layout), "copied")


def test_a_delivery_whose_message_is_gone_is_damage(layout: Layout, session: str) -> None:
    store, warned = a_store(layout)
    put(store, session, a_message())
    with closing(sqlite3.connect(store.path(session))) as found, found:
        found.execute("DELETE FROM messages")
    with pytest.raises(Corrupt, match=r"messages\.db"), store.open(session) as mailbox:
        mailbox.next("00")
    assert len(warned) == len(store.kept_aside(session)) == 1


def test_two_processes_that_find_the_same_damage_put_it_aside_once(layout: Layout, session: str) -> None:
    store, warned = a_store(layout)
    put(store, session, a_message())
    garbage(store.path(session))
    threads = [threading.Thread(target=put, args=(store, session, a_message())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(everything(store, session)) == 4
    assert len(warned) == len(store.kept_aside(session)) == 1


def test_what_a_lost_database_left_beside_it_is_not_taken_for_the_new_ones(layout: Layout, session: str) -> None:
    store, _ = a_store(layout)
    put(store, session, a_message("old"))
    with store.open(session) as mailbox:
        mailbox.add(a_message("in the log only"))
        for side in ("", "-wal"):
            shutil.copy(store.path(session) + side, layout.session(session).at(f"copy{side}"))
    os.rename(layout.session(session).at("copy-wal"), store.path(session) + "-wal")
    os.unlink(store.path(session))
    new = a_message("new")
    put(store, session, new)
    assert everything(store, session) == [new]
    with store.open(session) as mailbox:
        assert mailbox._sql.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_database_of_a_newer_version_is_left_alone(layout: Layout, session: str) -> None:
    store, warned = a_store(layout)
    put(store, session, a_message())
    with closing(sqlite3.connect(store.path(session))) as found:
        found.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(Corrupt, match="newer MAS"):
        everything(store, session)
    assert (warned, store.kept_aside(session)) == ([], [])


def test_a_database_of_an_older_version_is_brought_up_to_date_once(
    layout: Layout, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, warned = a_store(layout)
    old = a_message("old")
    put(store, session, old)
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, "ALTER TABLE messages ADD COLUMN subject TEXT"))
    monkeypatch.setattr(module, "VERSION", VERSION + 1)
    for _ in range(2):
        with store.open(session) as mailbox:
            assert mailbox._sql.execute("SELECT message, subject FROM messages").fetchall() == [("old", None)]
    another = a_session(layout)
    with store.open(another) as mailbox:
        assert mailbox._sql.execute("SELECT subject FROM messages").fetchall() == []
    assert warned == []


@pytest.fixture
def small(layout: Layout, session: str) -> Iterator[str]:
    """The session's own directory on a file system of 300 kilobytes; answers a file to fill it with."""
    private = layout.session(session).private
    shutil.rmtree(private)
    os.mkdir(private, 0o700)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", private], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    yield os.path.join(private, "filler")
    subprocess.run(["umount", private], check=True)


def fill(path: str) -> None:
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass


def test_a_full_disk_is_reported_and_loses_nothing(store: Messages, session: str, small: str) -> None:
    kept: list[Message] = []
    with pytest.raises(DiskFull, match="The disk is full"):  # noqa: PT012 - it takes as many as there is room for
        for _ in range(100):
            message = a_message("x" * 10_000)
            put(store, session, message)
            kept.append(message)
    assert len(kept) > 3
    fill(small)
    with pytest.raises(DiskFull):
        put(store, session, a_message())
    os.unlink(small)
    assert everything(store, session) == kept
    assert store.kept_aside(session) == []


def test_a_disk_that_is_full_at_the_first_message_leaves_none_half_made(
    store: Messages, session: str, small: str
) -> None:
    fill(small)
    with pytest.raises((DiskFull, OSError)):
        put(store, session, a_message())
    os.unlink(small)
    put(store, session, a_message())
    assert len(everything(store, session)) == 1


def test_a_disk_that_refuses_is_reported(place: str) -> None:
    with ordinary_user(place):
        layout = Layout(place)
        Workspace(layout).prepare()
        session, (store, warned) = a_session(layout), a_store(layout)
        put(store, session, a_message())
        os.chmod(store.path(session), 0o400)
        with pytest.raises(DiskRefused):
            put(store, session, a_message())
        os.chmod(store.path(session), 0o600)
        assert len(everything(store, session)) == 1
        assert warned == []


def test_messages_that_are_shut_cannot_be_opened_and_are_all_in_the_one_file(
    layout: Layout, store: Messages, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = (
        "import sys\nfrom mas.model.message import Message\nfrom mas.store.layout import Layout\n"
        "from mas.store.session.messages import Messages\n"
        "with Messages(Layout(sys.argv[1]), str, print).open(sys.argv[2]) as mailbox:\n"
        "    mailbox.add(Message('m-0', None, '00', 'in the log only', 'now', ()))\n"
        "    print('kept', flush=True)\n    sys.stdin.read()\n"
    )
    with program(holder, layout.root, session) as writer:
        assert next_line(writer) == "kept"
        writer.send_signal(signal.SIGKILL)
    assert os.path.getsize(store.path(session) + "-wal")
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    with store.shut(session):
        assert not os.path.exists(store.path(session) + "-wal")
        copy = os.path.join(layout.root, "copy.db")
        shutil.copy(store.path(session), copy)
        with pytest.raises(Busy):
            put(store, session, a_message())
    with closing(sqlite3.connect(copy)) as found:
        assert found.execute("SELECT message FROM messages").fetchall() == [("in the log only",)]
    put(store, session, a_message())


def test_a_process_that_waits_for_messages_that_are_moved_gets_an_error(
    layout: Layout, store: Messages, session: SessionId
) -> None:
    put(store, session, a_message())
    told: list[type[BaseException]] = []

    def send() -> None:
        try:
            put(store, session, a_message())
        except NoSession as error:
            told.append(type(error))

    thread = threading.Thread(target=send)
    with store.shut(session):
        thread.start()
        Workspace(layout).discard(session)
    thread.join()
    assert told == [NoSession]
    assert not layout.is_session(session)


def test_the_right_to_type_is_one_at_a_time_and_comes_back_from_the_dead(
    layout: Layout, store: Messages, session: str
) -> None:
    typist = (
        "import sys, time\nfrom mas.store.layout import Layout\nfrom mas.store.session.messages import Messages\n"
        "with Messages(Layout(sys.argv[1]), str, print).typing(sys.argv[2], '00'):\n"
        "    print('typing', flush=True)\n    sys.stdin.read()\n"
    )
    with program(typist, layout.root, session) as other:
        assert next_line(other) == "typing"
        with store.nobody_typing(session, "00") as free, store.nobody_typing(session, "21") as other_free:
            assert (free, other_free) == (False, True)
        other.send_signal(signal.SIGKILL)
        other.wait()
        with store.nobody_typing(session, "00") as free:
            assert free
            with store.nobody_typing(session, "00") as again:
                assert not again


def test_an_unknown_session_gets_no_messages(layout: Layout, store: Messages) -> None:
    with pytest.raises(NoSession), store.open(new_id()):
        pass
    assert os.listdir(layout.sessions) == [".mas"]


def test_a_lost_private_directory_is_created_again(layout: Layout, store: Messages, session: str) -> None:
    shutil.rmtree(layout.session(session).private)
    put(store, session, a_message())
    assert stat.S_IMODE(os.stat(layout.session(session).private).st_mode) == 0o700


def test_a_listing_does_not_know_sqlite() -> None:
    code = "import sys, mas.cli.main, mas.cli.list_, mas.bootstrap; sys.exit('sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
