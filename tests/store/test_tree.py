"""Trees: copied byte for byte and never through a link, measured, and removed whatever they hold."""

from __future__ import annotations

import errno
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.store.files import tree
from mas.store.files.descent import Cursor, Descent, let_in
from mas.store.files.tree import copy_tree, remove_tree, sync_tree, usage, walk
from tests.site import short_directory
from tests.store.samples import mode, ordinary_user, picture, put, read

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in {".", ".."} and len(name.encode()) <= 100
)
RAW_NAMES = (
    st.binary(min_size=1, max_size=8)
    .map(os.fsdecode)
    .filter(lambda name: not {"/", "\0"} & {*name} and name not in {".", ".."})
)


@pytest.fixture
def source(place: str) -> str:
    path = os.path.join(place, "source")
    os.mkdir(path)
    return path


@pytest.fixture
def target(place: str) -> str:
    return os.path.join(place, "target")


def nest(root: str, levels: int, mode: int = 0o755) -> None:
    """Directories inside each other, made from the inside out so that no path gets too long."""
    made = os.path.join(root, "deepest")
    os.mkdir(made)
    for level in range(levels - 1):
        outer = os.path.join(root, f"level{level}")
        os.mkdir(outer)
        os.rename(made, os.path.join(outer, "d"))
        os.chmod(os.path.join(outer, "d"), mode)
        made = outer
    os.rename(made, os.path.join(root, "d"))
    os.chmod(os.path.join(root, "d"), mode)


@given(
    st.dictionaries(NAMES | RAW_NAMES, st.binary(max_size=100) | st.lists(NAMES, max_size=3, unique=True), max_size=6)
)
@settings(max_examples=40)
def test_a_copy_is_byte_identical(things: dict[str, bytes | list[str]]) -> None:
    with short_directory() as directory:
        source, target = os.path.join(directory, "source"), os.path.join(directory, "target")
        os.mkdir(source)
        for name, thing in things.items():
            if isinstance(thing, bytes):
                put(source, name, thing)
            else:
                os.mkdir(os.path.join(source, name))
                for inner in thing:
                    put(os.path.join(source, name), inner, inner)
        assert copy_tree(source, target) == []
        assert picture(target) == picture(source)


def test_large_and_sparse_files_are_copied_whole(source: str, target: str) -> None:
    put(source, "large", os.urandom(1 << 16) * 50)
    with open(os.path.join(source, "sparse"), "wb") as file:
        file.seek(5 << 20)
        file.write(b"end")
    copy_tree(source, target)
    assert picture(target) == picture(source)


def test_links_are_copied_as_links_and_never_followed(place: str, source: str, target: str) -> None:
    outside = put(place, "outside/secret", "mine")
    put(source, "inner/file", "x")
    links = {
        "absolute": outside,
        "outwards": "../outside/secret",
        "directory": os.path.dirname(outside),
        "dangling": "no/such/thing",
        "inside": "inner/file",
        "loop": "loop",
        "raw": os.fsdecode(b"\xff\xfe"),
    }
    for name, to in links.items():
        os.symlink(to, os.path.join(source, name))
    assert copy_tree(source, target) == []
    assert {name: os.readlink(os.path.join(target, name)) for name in links} == links
    assert picture(target) == picture(source)


def test_a_template_that_is_itself_a_link_is_not_followed(place: str, source: str, target: str) -> None:
    os.symlink(source, os.path.join(place, "link"))
    with pytest.raises(OSError):
        copy_tree(os.path.join(place, "link"), target)
    assert not os.path.exists(target)


def test_the_copy_of_what_was_read_only_can_be_written(place: str, source: str, target: str) -> None:
    with ordinary_user(place):
        os.mkdir(os.path.join(place, "mine"))
        source = os.path.join(place, "mine")
        put(source, "locked/file", "x", 0o400)
        put(source, "locked/program", "x", 0o555)
        os.chmod(os.path.join(source, "locked"), 0o500)
        os.chmod(source, 0o555)
        copy_tree(source, target)
        os.chmod(source, 0o755)
        put(target, "locked/new", "y")
        assert {name: oct(mode(os.path.join(target, "locked", name))) for name in ("", "file", "program")} == {
            "": "0o700",
            "file": "0o600",
            "program": "0o755",
        }
        remove_tree(source)
        remove_tree(target)


def test_a_copy_shares_nothing_with_its_master(source: str, target: str) -> None:
    master = put(source, "file", b"master" * 1000)
    os.link(master, os.path.join(source, "second"))
    before = picture(source)
    copy_tree(source, target)
    for name in ("file", "second"):
        ours, theirs = os.stat(os.path.join(target, name)), os.stat(os.path.join(source, name))
        assert ours.st_ino != theirs.st_ino
        assert (ours.st_nlink, theirs.st_nlink) == (1, 2)
        with open(os.path.join(target, name), "r+b") as file:
            file.write(b"changed")
    assert picture(source) == before


def test_pipes_and_sockets_are_left_out_and_reported(source: str, target: str) -> None:
    put(source, "sub/file", "x")
    os.mkfifo(os.path.join(source, "sub", "pipe"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.join(source, "socket"))
    assert sorted(copy_tree(source, target)) == ["socket", "sub/pipe"]
    assert sorted(picture(target)) == ["sub", "sub/file"]


def test_copies_lose_the_bits_that_give_rights_and_keep_their_times(source: str, target: str) -> None:
    put(source, "program", "x", 0o4755)
    put(source, "shared/file", "x", 0o2711)
    os.chmod(os.path.join(source, "shared"), 0o3775)
    for name in ("program", "shared/file", "shared"):
        os.utime(os.path.join(source, name), ns=(1_000_000_001, 1_234_567_890_123_456_789))
    copy_tree(source, target)
    found = picture(target)
    assert {name: oct(fact.mode) for name, fact in found.items()} == {
        "program": "0o755",
        "shared": "0o775",
        "shared/file": "0o711",
    }
    assert {fact.mtime for fact in found.values()} == {1_234_567_890_123_456_789}


def test_nothing_is_copied_over_what_is_there(source: str, target: str) -> None:
    put(source, "file", "new")
    put(target, "file", "old")
    with pytest.raises(FileExistsError):
        copy_tree(source, target)
    assert read(os.path.join(target, "file")) == b"old"


@pytest.mark.parametrize("number", [errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP])
def test_where_the_kernel_will_not_copy_the_bytes_are_read_and_written(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = os.copy_file_range
    calls: list[int] = []

    def refuse(here: int, there: int, count: int) -> int:
        calls.append(count)
        if len(calls) == 1:
            return real(here, there, 1000)  # a part goes through: the rest must follow exactly there
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "copy_file_range", refuse)
    put(source, "large", os.urandom(3 << 20))
    copy_tree(source, target)
    assert len(calls) == 2
    assert picture(target) == picture(source)


def test_a_write_that_was_cut_short_is_gone_on_with(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def refuse(*_: int) -> int:
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:1000]))
    put(source, "file", os.urandom(5000))
    copy_tree(source, target)
    monkeypatch.undo()
    assert picture(target) == picture(source)


def test_an_error_of_the_disk_is_not_taken_for_a_missing_feature(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: int) -> int:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "copy_file_range", fail)
    put(source, "file", "x")
    with pytest.raises(OSError, match="broken"):
        copy_tree(source, target)


def test_a_tree_is_copied_between_file_systems(source: str) -> None:
    if not os.access("/dev/shm", os.W_OK) or os.stat("/dev/shm").st_dev == os.stat(source).st_dev:
        pytest.skip("no second file system here")
    put(source, "large", os.urandom(3 << 20))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        copy_tree(source, os.path.join(other, "target"))
        assert picture(os.path.join(other, "target")) == picture(source)


def test_only_slow_work_reports_progress(source: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        put(source, f"file{number}", b"x" * 1000)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(tree, "_SLOW", 3600.0)
    copy_tree(source, os.path.join(place, "quick"), lambda done, total: told.append((done, total)))
    assert told == []
    monkeypatch.setattr(tree, "_SLOW", 0.0)
    copy_tree(source, os.path.join(place, "slow"), lambda done, total: told.append((done, total)))
    assert told == [(1000 * number, 5000) for number in range(1, 6)]


def test_a_tree_is_copied_however_deep_it_is_and_however_long_its_names(source: str, target: str, place: str) -> None:
    names = [f"{level:03}" + "n" * 200 for level in range(300)]
    with Cursor(source) as there:
        for name in names:
            os.mkdir(name, dir_fd=there.fd)
            there.down(name)
        os.close(os.open("last", os.O_CREAT | os.O_WRONLY, dir_fd=there.fd))
    nest(source, 2000)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert copy_tree(source, target) == []
    with Cursor(target) as there:
        there.go(names)
        assert os.listdir(there.fd) == ["last"]
    assert usage(target).disk == usage(source).disk
    for root in (source, target):
        remove_tree(root)
    assert os.listdir(place) == []
    assert not before or len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("shut", [0o000, 0o500, 0o300, 0o400])
def test_what_agents_have_shut_is_copied_and_counted_and_stays_shut(place: str, shut: int) -> None:
    with ordinary_user(place):
        root, target = os.path.join(place, "root"), os.path.join(place, "target")
        put(root, "dir/inner/file", "work")
        put(root, "dir/closed", "too", 0o000)
        open_count = usage(root)
        for path in ("dir/inner", "dir", ""):
            os.chmod(os.path.join(root, path), shut)
        assert copy_tree(root, target, open_up=True) == []
        assert (read(os.path.join(target, "dir/inner/file")), read(os.path.join(target, "dir/closed"))) == (
            b"work",
            b"too",
        )
        assert usage(root, open_up=True) == open_count
        assert mode(root) == shut
        remove_tree(target)
        if shut != 0o500:
            with pytest.raises(PermissionError):
                copy_tree(root, target)
            assert mode(root) == shut, "what is not an agent's is not opened"
        remove_tree(root)


def test_a_deep_tree_of_shut_directories_is_copied_and_stays_shut(place: str) -> None:
    with ordinary_user(place):
        root, target = os.path.join(place, "root"), os.path.join(place, "target")
        os.mkdir(root)
        nest_shut(root, 300, 0o000)
        assert copy_tree(root, target, open_up=True) == []
        with Cursor(target) as there:
            there.go(["d"] * 300)
        for _ in range(2):
            assert mode(root) == 0
            assert usage(root, open_up=True).files == 0
        remove_tree(root)


def test_a_hard_link_that_its_owner_may_not_read_is_left_out_and_keeps_its_mode(place: str) -> None:
    with ordinary_user(place):
        outside = put(place, "outside", "mine", 0o000)
        root = os.path.join(place, "root")
        put(root, "other", "x")
        os.link(outside, os.path.join(root, "linked"))
        assert copy_tree(root, os.path.join(place, "target"), open_up=True) == ["linked"]
        assert mode(outside) == 0


def test_what_is_moved_away_deep_down_while_it_is_copied_is_left_out_and_reported(
    place: str, source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"d{level}" for level in range(100)]
    with Cursor(source) as there:
        for name in names:
            os.mkdir(name, dir_fd=there.fd)
            os.close(os.open("z", os.O_CREAT | os.O_WRONLY, dir_fd=there.fd))
            there.down(name)
        os.close(os.open("deepest", os.O_CREAT | os.O_WRONLY, dir_fd=there.fd))
    real = tree._copy_file

    def moving(copy: Any, from_fd: int, to_fd: int, name: str) -> bool:
        if name == "deepest":
            for depth in (90, 80):
                os.rename(os.path.join(source, *names[:depth]), os.path.join(place, f"moved{depth}"))
        return real(copy, from_fd, to_fd, name)

    monkeypatch.setattr(tree, "_copy_file", moving)
    (left_out,) = copy_tree(source, target)
    assert "/".join(names[:80]).startswith(left_out.removesuffix("…"))
    assert os.path.isfile(os.path.join(target, *names, "deepest"))
    assert os.path.isfile(os.path.join(target, *names[:78], "z"))


@pytest.mark.parametrize("shut", [0o000, 0o500, 0o300])
def test_directories_that_were_shut_are_removed_however_deep(place: str, shut: int) -> None:
    with ordinary_user(place):
        root = os.path.join(place, "root")
        put(root, "dir/file", "x", 0o000)
        os.chmod(os.path.join(root, "dir"), shut)
        nest_shut(root, 450, shut)
        os.chmod(root, shut)
        remove_tree(root)
        assert os.listdir(place) == []


def nest_shut(root: str, levels: int, shut: int) -> None:
    """Directories inside each other that are shut once they are made."""
    fds = [os.open(root, os.O_RDONLY)]
    for _ in range(levels):
        os.mkdir("d", dir_fd=fds[-1])
        fds.append(os.open("d", os.O_RDONLY, dir_fd=fds[-1]))
    for fd in reversed(fds):
        os.fchmod(fd, shut)
        os.close(fd)


def test_a_tree_is_removed_without_following_its_links(place: str) -> None:
    outside = put(place, "outside/secret", "mine")
    root = os.path.join(place, "root")
    put(root, "sub/file", "x")
    os.symlink(os.path.dirname(outside), os.path.join(root, "directory"))
    os.symlink(outside, os.path.join(root, "sub", "file-link"))
    os.mkfifo(os.path.join(root, "pipe"))
    remove_tree(root)
    assert read(outside) == b"mine"
    assert os.listdir(place) == ["outside"]


def test_removing_a_link_a_file_or_nothing_removes_just_that(place: str) -> None:
    outside = put(place, "outside/secret", "mine")
    link = os.path.join(place, "link")
    os.symlink(os.path.dirname(outside), link)
    remove_tree(link)
    remove_tree(link)
    remove_tree(put(place, "file"))
    remove_tree(os.path.join(place, "no", "such", "tree"))
    assert os.listdir(place) == ["outside"]
    assert read(outside) == b"mine"


def test_usage_counts_what_is_there_and_not_what_links_point_to(place: str, source: str) -> None:
    outside = put(place, "outside", b"x" * 100_000)
    put(source, "one", b"x" * 10)
    put(source, "sub/two", b"x" * 5000)
    put(source, "sub/empty")
    os.symlink(outside, os.path.join(source, "link"))
    found = usage(source)
    assert (found.files, found.size) == (3, 5010)
    named = ("one", "sub", "sub/two", "sub/empty", "link")
    assert found.disk == sum(os.lstat(os.path.join(source, name)).st_blocks * 512 for name in named)


def test_walking_yields_a_directory_before_its_content(source: str) -> None:
    put(source, "b/file", "x")
    put(source, "a", "x")
    os.symlink("b", os.path.join(source, "c"))
    found = [(entry.path, stat.S_IFMT(entry.info.st_mode)) for entry in walk(source)]
    assert found == [("a", stat.S_IFREG), ("b", stat.S_IFDIR), ("b/file", stat.S_IFREG), ("c", stat.S_IFLNK)]


def test_what_vanishes_during_a_walk_is_left_out(source: str) -> None:
    for name in ("a/file", "b/file", "c"):
        put(source, name)

    def names() -> Iterator[str]:
        for entry in walk(source):
            if entry.path == "a":
                remove_tree(os.path.join(source, "b"))
                remove_tree(os.path.join(source, "a"))
            yield entry.path

    assert list(names()) == ["a", "c"]


def test_a_tree_can_be_brought_to_the_disk(source: str) -> None:
    put(source, "file", "x")
    sync_tree(source)
    with pytest.raises(OSError):
        sync_tree(os.path.join(source, "missing"))


def test_a_huge_file_of_nothing_is_copied_in_no_time_and_takes_no_room(source: str, target: str) -> None:
    path = os.path.join(source, "huge")
    with open(path, "wb") as file:
        file.seek(1 << 30)
        file.write(b"here")
        file.truncate(1 << 42)
    assert copy_tree(source, target) == []
    info = os.stat(os.path.join(target, "huge"))
    assert (info.st_size, info.st_blocks * 512 < 1 << 20) == (1 << 42, True)
    with open(os.path.join(target, "huge"), "rb") as file:
        file.seek((1 << 30) - 1)
        assert file.read(6) == b"\0here\0"
    assert usage(source).size == 1 << 42


def test_what_becomes_something_else_while_it_is_copied_is_left_out_and_reported(
    place: str, source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = os.path.join(place, "secret")
    os.mkdir(secret)
    with open(os.path.join(secret, "key"), "w", encoding="utf-8") as file:
        file.write("secret")
    names = ("to-link", "to-pipe", "to-directory", "directory-to-link", "gone")
    for name in names:
        path = os.path.join(source, name)
        if name.startswith("directory"):
            os.mkdir(path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write("mine")
    real = os.scandir

    def swapped(fd: int) -> Any:
        entries = list(real(fd))
        monkeypatch.setattr(os, "scandir", real)
        for name in names:
            path = os.path.join(source, name)
            os.rmdir(path) if name.startswith("directory") else os.unlink(path)
        os.symlink(os.path.join(secret, "key"), os.path.join(source, "to-link"))
        os.mkfifo(os.path.join(source, "to-pipe"))
        os.mkdir(os.path.join(source, "to-directory"))
        os.symlink(secret, os.path.join(source, "directory-to-link"))
        return nullcontext(entries)

    monkeypatch.setattr(os, "scandir", swapped)
    assert sorted(copy_tree(source, target)) == sorted(names)
    assert [name for name in os.listdir(target) if os.path.isfile(os.path.join(target, name))] == []


def test_a_file_that_grows_while_it_is_copied_is_copied_as_long_as_it_was(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.path.join(source, "log")
    with open(path, "wb") as file:
        file.write(b"x" * 1000)
    real = os.copy_file_range

    def growing(here: int, there: int, count: int) -> int:
        with open(path, "ab") as file:
            file.write(b"y" * 1000)
        return real(here, there, count)

    monkeypatch.setattr(os, "copy_file_range", growing)
    copy_tree(source, target)
    assert os.path.getsize(os.path.join(target, "log")) == 1000


def test_the_report_of_what_is_left_out_is_limited(source: str, target: str) -> None:
    for number in range(130):
        os.mkfifo(os.path.join(source, str(number)))
    skipped = copy_tree(source, target)
    assert (len(skipped), skipped[-1]) == (101, "… and 30 more")


def test_a_directory_that_becomes_a_link_before_it_is_opened_up_leaves_what_it_points_to_alone(place: str) -> None:
    outside = os.path.join(place, "outside")
    os.mkdir(outside, 0o755)
    os.symlink(outside, os.path.join(place, "link"))
    fd = os.open(place, os.O_RDONLY)
    try:
        with pytest.raises(OSError):
            let_in("link", fd)
    finally:
        os.close(fd)
    assert os.stat(outside).st_mode & 0o777 == 0o755


def test_usage_counts_however_deep_it_is_and_what_is_moved_away_meanwhile_is_left_out(source: str) -> None:
    nest(source, 1000)
    with open(os.path.join(source, "last"), "wb") as file:
        file.write(b"x" * 5000)
    found = usage(source)
    assert (found.files, found.size, found.disk >= 1000 * 4096 or found.disk > 0) == (1, 5000, True)
    remove_tree(source)
    os.makedirs(os.path.join(source, "a", "b"))
    os.makedirs(os.path.join(source, "c"))
    with Descent(source) as descent:
        seen = []
        while (entry := descent.next()) is not None:
            seen.append(name := entry.name)
            if os.path.isdir(os.path.join(source, name)) or name == "b":
                descent.enter(name)
            if name == "b":
                os.rename(os.path.join(source, "a", "b"), os.path.join(source, "b"))
    assert sorted(seen) == ["a", "b", "c"]


def test_a_walk_past_what_is_closed_passes_by_a_directory_that_may_only_be_listed(place: str) -> None:
    with ordinary_user(place):
        put(place, "tree/shut/file")
        put(place, "tree/z")
        root, shut = os.path.join(place, "tree"), os.path.join(place, "tree", "shut")
        os.chmod(shut, 0o400)
        assert [entry.path for entry in walk(root, past_closed=True)] == ["shut", "z"]
        os.chmod(shut, 0o700)
