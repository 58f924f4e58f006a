"""Files that agents' programs append to, and that agents can replace by anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from zstandard import ZstdCompressor

from mas.store.agent import appended
from mas.store.agent.appended import LONGEST_LINE, AppendedFile, find_files
from tests.site import short_directory


@pytest.fixture
def root() -> Iterator[Path]:
    with short_directory() as directory:
        yield Path(directory)


def look(file: AppendedFile) -> list[bytes]:
    return list(file.lines())


def found(root: Path, pattern: str) -> list[str]:
    return ["/".join(file.names) for file in find_files(str(root), tuple(pattern.split("/")))]


def test_only_what_was_added_is_read_and_half_a_line_waits(root: Path) -> None:
    path = root / "a"
    file = AppendedFile(str(root), ("a",))
    assert look(file) == []
    path.write_bytes(b"one\ntw")
    assert look(file) == [b"one"]
    assert look(file) == []
    with path.open("ab") as more:
        more.write(b"o\nthree\n")
    assert look(file) == [b"two", b"three"]
    assert not file.is_new
    assert not file.is_cut


@pytest.mark.parametrize("how", ["replaced", "cut short", "written again, longer", "emptied"])
def test_a_file_that_is_another_is_read_from_its_beginning(root: Path, how: str) -> None:
    path = root / "a"
    path.write_bytes(b"one\ntwo\n")
    file = AppendedFile(str(root), ("a",))
    assert look(file) == [b"one", b"two"]
    new = {"replaced": b"1\n2\n3\n", "cut short": b"1\n", "written again, longer": b"1\n2\n3\n4\n5\n", "emptied": b""}[
        how
    ]
    if how == "replaced":
        (root / "b").write_bytes(new)
        (root / "b").rename(path)
    else:
        path.write_bytes(new)
    assert look(file) == new.split(b"\n")[:-1]
    assert file.is_new
    assert look(file) == []
    assert not file.is_new


def test_of_a_long_file_only_the_end_is_read(root: Path) -> None:
    path = root / "a"
    path.write_bytes(b"".join(b"%05d\n" % number for number in range(1000)))
    file = AppendedFile(str(root), ("a",), largest=100)
    lines = look(file)
    # The first line that is found there may be half a one.
    assert lines == [b"%05d" % number for number in range(984, 1000)]
    assert file.is_cut
    with path.open("ab") as more:
        more.write(b"new\n")
    assert look(file) == [b"new"]


def test_a_line_without_end_is_not_kept(root: Path) -> None:
    path = root / "a"
    path.write_bytes(b"one\n" + b"x" * (LONGEST_LINE + 10) + b"\ntwo\n" + b"y" * (LONGEST_LINE + 10))
    file = AppendedFile(str(root), ("a",))
    assert look(file) == [b"one", b"two"]
    assert file.is_cut
    assert file._rest == b""
    with path.open("ab") as more:
        more.write(b"yyy\nthree\n")
    assert look(file) == [b"three"]


def test_a_file_with_a_hole_of_a_terabyte_costs_no_more_than_its_end(root: Path) -> None:
    path = root / "a"
    path.write_bytes(b"one\n")
    os.truncate(path, 1 << 40)
    with path.open("ab") as more:
        more.write(b"\nlast\n")
    file = AppendedFile(str(root), ("a",), largest=1 << 20)
    assert look(file)[-1] == b"last"


@pytest.mark.parametrize("what", ["link", "link on the way", "pipe", "directory", "socket of none"])
def test_what_is_no_file_of_its_own_is_not_read_and_not_waited_for(root: Path, what: str) -> None:
    place = root / "in"
    place.mkdir()
    outside = root / "secret"
    outside.write_bytes(b"secret\n")
    path = place / "a"
    names: tuple[str, ...] = ("a",)
    if what == "link":
        path.symlink_to(outside)
    elif what == "link on the way":
        (place / "d").symlink_to(root)
        names = ("d", "secret")
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "directory":
        path.mkdir()
    assert look(AppendedFile(str(place), names)) == []
    assert found(place, "/".join(names)) == []
    assert found(place, "**/*") == []


def test_a_compressed_file_is_read_once_and_no_further_than_allowed(root: Path) -> None:
    path = root / "a.zst"
    path.write_bytes(ZstdCompressor().compress(b"one\ntwo\n"))
    file = AppendedFile(str(root), ("a.zst",))
    assert look(file) == [b"one", b"two"]
    assert look(file) == []
    # Next to nothing on the disk, and endless in memory.
    path.write_bytes(ZstdCompressor().compress(b"x\n" * (1 << 20)))
    bomb = AppendedFile(str(root), ("a.zst",), largest=1000)
    assert len(look(bomb)) == 500
    assert bomb.is_cut
    path.write_bytes(b"not compressed at all")
    broken = AppendedFile(str(root), ("a.zst",))
    assert look(broken) == []
    assert broken.is_cut


def test_files_are_found_by_patterns_the_newest_last(root: Path) -> None:
    for number, name in enumerate(("x/y/b.jsonl", "x/a.jsonl", "x/y/.hidden/c.jsonl", "x/d.txt", ".s/e.jsonl")):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        os.utime(path, ns=(0, 1_000 - number))
    assert found(root, "x/**/*.jsonl") == ["x/a.jsonl", "x/y/b.jsonl"]
    assert found(root, "x/*/*.jsonl") == ["x/y/b.jsonl"]
    assert found(root, ".s/*.jsonl") == [".s/e.jsonl"]
    assert found(root, "*/e.jsonl") == []
    assert found(root, "x/d.txt") == ["x/d.txt"]
    assert found(root, "../*") == []


def test_a_crowd_of_files_is_given_up_on_in_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(200):
        (root / f"{number:03d}").write_bytes(b"")
        os.utime(root / f"{number:03d}", ns=(0, number))
    assert found(root, "*") == [f"{number:03d}" for number in range(136, 200)]
    monkeypatch.setattr(appended, "_MOST_ENTRIES", 10)
    assert len(found(root, "*")) == 10
