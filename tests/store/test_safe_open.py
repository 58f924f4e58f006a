"""What is opened beneath a directory is beneath it, whether the kernel sees to that or a walk does."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import pytest

from mas.model.errors import NotFound
from mas.store.files import safe_open
from mas.store.files.matching import is_any
from mas.store.files.safe_open import opened_beneath
from tests.site import short_directory


@pytest.fixture
def place() -> Iterator[str]:
    with short_directory() as directory:
        yield directory


@pytest.fixture(params=["kernel", "walk"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways; the walk by a kernel that does not know the call, or may not be asked for it."""
    kernel = safe_open._by_the_kernel
    if request.param == "walk":

        def refuse(fd: int, path: str) -> int:
            raise OSError(errno.ENOSYS, "no such call")

        monkeypatch.setattr(safe_open, "_by_the_kernel", refuse)
    else:
        with short_directory() as directory:
            fd = os.open(directory, os.O_RDONLY)
            try:
                os.close(kernel(fd, "."))
            except OSError:
                pytest.skip("this kernel has no openat2")
            finally:
                os.close(fd)
    return str(request.param)


def read(root: str, *names: str) -> bytes:
    with opened_beneath(root, names) as fd:
        return os.read(fd, 100)


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_files_and_directories_are_opened_whatever_their_names(place: str, way: str) -> None:
    odd = os.fsdecode(b"a\n\x1b[31m\xff")
    write(os.path.join(place, "root", odd, "inner", odd), "mine")
    assert read(os.path.join(place, "root"), odd, "inner", odd) == b"mine"
    with opened_beneath(os.path.join(place, "root"), (odd,)) as fd:
        assert os.listdir(fd) == ["inner"]
    with opened_beneath(os.path.join(place, "root"), ()) as fd:
        assert os.listdir(fd) == [odd]


def test_no_link_is_followed_wherever_it_stands(place: str, way: str) -> None:
    root = os.path.join(place, "root")
    write(os.path.join(place, "outside", "unit", "secret"), "secret")
    os.mkdir(root)
    os.symlink("../outside/unit/secret", os.path.join(root, "last"))
    os.symlink("../outside", os.path.join(root, "first"))
    os.makedirs(os.path.join(root, "a"))
    os.symlink("../../outside/unit", os.path.join(root, "a", "middle"))
    os.symlink("/proc/self/root", os.path.join(root, "magic"))
    os.symlink(root, os.path.join(place, "link"))
    for names in (("last",), ("first", "unit", "secret"), ("a", "middle", "secret"), ("magic", "etc", "passwd")):
        with pytest.raises(NotFound):
            read(root, *names)
    with pytest.raises(NotFound):
        read(os.path.join(place, "link"), "a")


def test_pipes_and_devices_are_neither_read_nor_waited_for(place: str, way: str) -> None:
    os.mkfifo(os.path.join(place, "pipe"))
    writer = os.open(os.path.join(place, "pipe"), os.O_RDWR | os.O_NONBLOCK)
    try:
        with pytest.raises(NotFound):
            read(place, "pipe")
    finally:
        os.close(writer)
    with pytest.raises(NotFound):
        read("/dev", "zero")


def test_a_second_name_of_another_users_file_is_left_alone(place: str, way: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file that is somebody else's")
    root = os.path.join(place, "root")
    write(os.path.join(place, "secret"), "secret")
    write(os.path.join(root, "own"), "mine")
    os.link(os.path.join(root, "own"), os.path.join(root, "own too"))
    os.link(os.path.join(place, "secret"), os.path.join(root, "planted"))
    os.chown(root, 12345, 12345)
    os.chown(os.path.join(root, "own"), 12345, 12345)
    assert read(root, "own too") == b"mine"
    with pytest.raises(NotFound):
        read(root, "planted")


def test_no_descriptor_is_left_open(place: str, way: str) -> None:
    os.mkfifo(os.path.join(place, "pipe"))
    before = len(os.listdir("/proc/self/fd"))
    for names in (("pipe",), ("nothing",), ("pipe", "deeper"), ("a", "b")):
        with pytest.raises(NotFound):
            read(place, *names)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("x/[*]/a.txt", True), ("x/**/*.txt", True), ("**/deep", True), ("x/*", True), ("y/**/*.txt", False),
        ("x/?.txt", False), ("*.txt", False), ("link/a.txt", False), ("**/secret", False), ("*/secret", False),
    ],
)  # fmt: skip
def test_a_pattern_finds_what_is_there_and_nothing_behind_links(place: str, pattern: str, found: bool) -> None:
    write(os.path.join(place, "outside", "secret"), "secret")
    write(os.path.join(place, "root", "x", "*", "a.txt"), "mine")
    write(os.path.join(place, "root", "x", "1", "2", "deep"), "mine")
    os.symlink(os.path.join(place, "root", "x", "*"), os.path.join(place, "root", "link"))
    os.symlink(os.path.join(place, "outside"), os.path.join(place, "root", "away"))
    assert is_any(f"{place}/root/{pattern}") is found


def test_a_maze_of_directories_is_not_searched_for_ever(place: str) -> None:
    for name in ("a", "b"):
        os.symlink(".", os.path.join(place, name))
    for number in range(300):
        os.makedirs(os.path.join(place, "wide", str(number), "x"))
    assert not is_any(f"{place}/**/nothing")
    path = os.open(place, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=path)
        inner = os.open("d", os.O_RDONLY, dir_fd=path)
        os.close(path)
        path = inner
    os.close(path)
    assert not is_any(f"{place}/**/nothing")
