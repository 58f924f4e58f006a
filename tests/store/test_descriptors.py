"""Flags, locks and names of open files."""

from __future__ import annotations

import calendar
import fcntl
import os
import re
import time
from pathlib import Path
from threading import Timer

import pytest

import mas
from mas.store.files.descriptors import DIRECTORY, READ, is_locked, take_lock, try_lock, utc_now
from mas.store.files.safe_open import made_beneath


def test_no_other_module_puts_the_flags_of_a_safe_open_together() -> None:
    source = Path(mas.__file__).parent
    files = {str(path.relative_to(source)) for path in source.rglob("*.py") if "O_NOFOLLOW" in path.read_text()}
    # The two rooms know nothing of each other, so each has them once.
    assert files == {"store/files/descriptors.py", "runtime/sandbox/system.py"}


def test_a_lock_that_comes_free_is_taken_and_one_that_stays_is_not(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    holder, waiter = (os.open(path, os.O_RDWR | os.O_CREAT) for _ in range(2))
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert not take_lock(waiter, 3, 0.001)
    leaving = Timer(0.05, lambda: os.close(holder))
    leaving.start()
    assert take_lock(waiter, 10_000, 0.001)
    leaving.join()
    os.close(waiter)


def test_looking_at_a_lock_makes_no_file_and_takes_no_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    assert not is_locked(path)
    assert not os.path.exists(path)
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    assert not is_locked(path, shared=False)
    assert try_lock(fd, shared=True)
    assert not is_locked(path)
    assert is_locked(path, shared=False)
    assert try_lock(fd)
    assert is_locked(path)
    os.close(fd)


def test_a_pipe_or_a_link_in_the_place_of_a_file_is_not_waited_for_or_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.close(os.open(tmp_path / "pipe", READ))
    (tmp_path / "link").symlink_to("pipe")
    with pytest.raises(OSError, match="symbolic"):
        os.open(tmp_path / "link", READ)


def test_directories_are_made_beneath_one_and_never_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "inner").mkdir()
    for _ in range(2):
        fd = made_beneath(os.open(tmp_path / "inner", DIRECTORY), ("a", "b"))
        assert os.path.samestat(os.fstat(fd), os.stat(tmp_path / "inner" / "a" / "b"))
        os.close(fd)
    (tmp_path / "inner" / "way").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotADirectoryError):
        made_beneath(os.open(tmp_path / "inner", DIRECTORY), ("way", "out"))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_times_are_utc_to_the_millisecond() -> None:
    before = time.time()
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z", utc_now())
    assert found
    assert int(before) <= calendar.timegm(time.strptime(found[1], "%Y-%m-%dT%H:%M:%S")) <= time.time()
