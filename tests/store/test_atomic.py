"""Durable files: whole, with their exact mode, and never written through a link."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from mas.model.errors import AlreadyThere, Disk, DiskFull, DiskRefused
from mas.store.files.atomic import (
    append_line,
    disk_errors,
    ensure_directory,
    locked,
    make_directory,
    open_lock,
    read_file,
    set_aside,
    write_atomic,
    write_new,
)
from mas.store.files.descriptors import remove_file, still_at, try_lock, write_all
from tests.store.samples import NOW, mode, next_line, ordinary_user, program, put, read, umask

_SWITCH = """
import sys
from mas.store.files.atomic import write_atomic
print("ready", flush=True)
while True:
    for letter in b"ab":
        write_atomic(sys.argv[1], bytes([letter]) * 300_000)
"""
_HOLD = """
import sys
from mas.store.files.atomic import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("wanted", [0o600, 0o644])
def test_a_file_is_replaced_whole_with_its_exact_mode(place: str, mask: int, wanted: int) -> None:
    path = put(place, "file", "the old and longer content", 0o666)
    with umask(mask):
        write_atomic(path, b"new", wanted)
    assert read(path) == b"new"
    assert mode(path) == wanted
    assert os.listdir(place) == ["file"]


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_directories_and_locks_have_their_exact_mode_too(place: str, mask: int) -> None:
    directory, lock = os.path.join(place, "directory"), os.path.join(place, "lock")
    with umask(mask):
        make_directory(directory, 0o755)
        os.close(open_lock(lock))
    assert (mode(directory), mode(lock)) == (0o755, 0o600)


def test_a_process_with_the_old_file_open_keeps_reading_the_old_file(place: str) -> None:
    path = put(place, "file", "old")
    with open(path, "rb") as reader:
        write_atomic(path, b"new")
        assert reader.read() == b"old"


def test_what_a_killed_writer_left_is_simply_written_over(place: str) -> None:
    path = os.path.join(place, "file")
    leftover = put(place, ".file.tmp", "half of something much longer", 0o644)
    write_atomic(path, b"new")
    assert read(path) == b"new"
    assert mode(path) == 0o600
    assert not os.path.exists(leftover)


def test_a_file_is_all_old_or_all_new_whenever_its_writer_is_killed(place: str) -> None:
    path = put(place, "file", b"a" * 300_000)
    for _ in range(5):
        with program(_SWITCH, path) as writer:
            assert next_line(writer) == "ready"
            before = os.stat(path).st_ino
            while os.stat(path).st_ino == before:
                assert set(read(path)) in ({97}, {98})
            writer.kill()
            writer.wait()
        assert read(path) in (b"a" * 300_000, b"b" * 300_000)
    write_atomic(path, b"last")
    assert os.listdir(place) == ["file"]


def test_a_link_in_place_of_the_file_is_replaced_and_not_followed(place: str) -> None:
    other = put(place, "other", "mine")
    path = os.path.join(place, "file")
    os.symlink(other, path)
    with pytest.raises(OSError):
        read_file(path)
    with pytest.raises(OSError):
        append_line(path, b"x\n")
    write_atomic(path, b"new")
    assert not os.path.islink(path)
    assert (read(path), read(other)) == (b"new", b"mine")


def test_a_link_in_place_of_the_temporary_is_neither_followed_nor_in_the_way(place: str) -> None:
    other = put(place, "other", "mine")
    path = put(place, "file", "old")
    os.symlink(other, os.path.join(place, ".file.tmp"))
    write_atomic(path, b"new")
    assert (read(path), read(other)) == (b"new", b"mine")


def test_another_name_of_a_file_and_a_pipe_in_place_of_the_temporary_are_not_written_to(place: str) -> None:
    other = put(place, "other", "mine")
    path = put(place, "file", "old")
    os.link(other, os.path.join(place, ".file.tmp"))
    write_atomic(path, b"new")
    assert (read(path), read(other)) == (b"new", b"mine")
    os.mkfifo(os.path.join(place, ".file.tmp"))
    write_atomic(path, b"newer")
    assert read(path) == b"newer"


def test_a_link_in_place_of_a_lock_is_not_followed(place: str) -> None:
    os.symlink(os.path.join(place, "elsewhere"), os.path.join(place, "lock"))
    with pytest.raises(OSError):
        open_lock(os.path.join(place, "lock"))
    assert os.listdir(place) == ["lock"]


def test_a_failed_write_leaves_the_old_file_and_no_temporary(place: str) -> None:
    path = put(place, "file", "old")
    with ordinary_user(place):
        os.chmod(place, 0o500)
        with pytest.raises(PermissionError):
            write_atomic(path, b"new")
        os.chmod(place, 0o700)
    assert read(path) == b"old"
    os.mkdir(os.path.join(place, "directory"))
    with pytest.raises(OSError):
        write_atomic(os.path.join(place, "directory"), b"new")
    assert sorted(os.listdir(place)) == ["directory", "file"]


@pytest.mark.parametrize("size", [0, (1 << 16) - 1, 1 << 16, 5 << 20])
def test_a_file_is_read_whole_and_in_few_steps_however_large(
    place: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, steps = os.urandom(size), []

    def counted(really: Callable[..., bytes]) -> Callable[..., bytes]:
        def read(*args: int) -> bytes:
            steps.append(args)
            return really(*args)

        return read

    path = put(place, "file", data)
    for name in ("read", "pread"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    assert read_file(path) == data
    assert len(steps) <= 3


def test_lines_are_added_at_the_end(place: str) -> None:
    path = os.path.join(place, "log")
    append_line(path, b"one\n")
    append_line(path, b"two\n")
    assert read(path) == b"one\ntwo\n"
    assert mode(path) == 0o600


def test_what_is_set_aside_never_takes_the_place_of_anything(place: str) -> None:
    path = os.path.join(place, ".index")
    kept: list[str] = []
    os.symlink("nowhere", f"{path}.corrupt-20260102T030405678Z")
    for content in ("first", "second", "third"):
        put(place, ".index", content)
        kept.append(set_aside(path, NOW))
        assert not os.path.exists(path)
    assert [read(name) for name in kept] == [b"first", b"second", b"third"]
    assert all(os.path.basename(name).startswith(".index.corrupt-20260102T030405678Z-") for name in kept)
    assert len(os.listdir(place)) == 4


def test_a_link_is_set_aside_as_a_link(place: str) -> None:
    other = put(place, "other", "mine")
    path = os.path.join(place, "file")
    os.symlink(other, path)
    assert os.readlink(set_aside(path, NOW)) == other
    assert read(other) == b"mine"


def test_an_existing_directory_is_distinguished_from_something_in_the_way(place: str) -> None:
    path = os.path.join(place, "directory")
    assert [ensure_directory(path, 0o700), ensure_directory(path, 0o755)] == [True, False]
    assert mode(path) == 0o700
    with pytest.raises(FileExistsError):
        make_directory(path, 0o700)
    with pytest.raises(FileExistsError):
        ensure_directory(put(place, "file"), 0o700)


def test_removing_twice_is_fine(place: str) -> None:
    path = put(place, "file")
    assert [remove_file(path), remove_file(path)] == [True, False]


def test_a_lock_is_held_by_one_and_let_go_when_its_holder_is_killed(place: str) -> None:
    path = os.path.join(place, "lock")
    with program(_HOLD, path) as holder:
        assert next_line(holder) == "held"
        fd = open_lock(path)
        assert not try_lock(fd)
        holder.kill()
        holder.wait()
        assert try_lock(fd)
        os.close(fd)
    with locked(path):
        pass


def test_a_file_that_was_moved_or_replaced_is_no_longer_the_one_that_was_opened(place: str) -> None:
    path = os.path.join(place, "lock")
    fd = open_lock(path)
    assert still_at(fd, path)
    os.rename(path, path + ".moved")
    assert not still_at(fd, path)
    write_new(path, b"")
    assert not still_at(fd, path)
    os.close(fd)


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EFBIG, DiskFull),
        (errno.EROFS, DiskRefused),
        (errno.EACCES, DiskRefused),
        (errno.EPERM, DiskRefused),
        (errno.EEXIST, AlreadyThere),
        (errno.EIO, Disk),
        (errno.ELOOP, OSError),
    ],
)
def test_a_refusal_of_the_disk_is_reported_with_the_path(number: int, told: type[Exception]) -> None:
    with pytest.raises(told, match="/some/file"), disk_errors():
        raise OSError(number, os.strerror(number), "/some/file")


def test_a_full_disk_is_reported_as_full() -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "wb") as full, pytest.raises(DiskFull), disk_errors():
        write_all(full.fileno(), b"x")
