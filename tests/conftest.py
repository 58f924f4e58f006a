"""What all tests share: a workspace of their own with a tmux of their own, and nothing left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import HealthCheck, settings

from tests.seed import SEED, draw_seed
from tests.served import Served
from tests.site import Site, fresh_site, fresh_workspace, words_of

# Whoever runs the tests in the background may ignore these, and every program they start would too.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


# For property tests a busy machine is no failure.
settings.register_profile("mas", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mas")


def pytest_configure() -> None:
    """Here, before there are workers: all of them have the same."""
    draw_seed()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"{SEED}={os.environ[SEED]}")


@pytest.fixture
def site() -> Iterator[Site]:
    """A fresh workspace with its own home, its own tmux sockets, and the real `mas` command."""
    with fresh_workspace("--provider", "shell") as made:
        yield made


@pytest.fixture
def bare() -> Iterator[Site]:
    """The same without a workspace."""
    with fresh_site() as made:
        yield made


@pytest.fixture
def served(site: Site) -> Iterator[Served]:
    """A fresh workspace with a real server in front of it."""
    made = Served(site)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """The run fails if a process that one of its tests started outlives it."""
    yield
    mark = f"MAS_TEST_RUN={os.getpid()}"
    left = [words_of(process) for process in psutil.process_iter() if mark in _environ(process)]
    assert left == []


def _environ(process: psutil.Process) -> list[str]:
    try:
        return [f"{key}={value}" for key, value in process.environ().items()]
    except (psutil.Error, OSError):
        return []
