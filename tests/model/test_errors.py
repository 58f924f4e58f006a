"""Errors: their codes are a promise to scripts."""

from __future__ import annotations

from collections.abc import Iterator

from mas.model import errors
from mas.model.errors import MasError


def tree(error: type[MasError]) -> Iterator[type[MasError]]:
    yield error
    for inner in error.__subclasses__():
        if inner.__module__ == errors.__name__:
            yield from tree(inner)


def test_the_code_of_every_error_is_as_promised() -> None:
    assert {error.__name__: error.code for error in tree(MasError)} == {
        "MasError": "error",
        "BadInput": "bad-input",
        "NotFound": "not-found",
        "NoWorkspace": "no-workspace",
        "NoSession": "session-not-found",
        "NoAgent": "agent-not-found",
        "Conflict": "wrong-state",
        "BadTransition": "wrong-state",
        "Busy": "busy",
        "Archived": "archived",
        "AlreadyThere": "exists",
        "ServerRunning": "server-running",
        "AgentExited": "agent-exited",
        "Denied": "denied",
        "NotSignedIn": "unauthorized",
        "Forbidden": "forbidden",
        "TooMuch": "too-much",
        "TimedOut": "timed-out",
        "Corrupt": "corrupt",
        "Disk": "disk",
        "DiskFull": "disk-full",
        "DiskRefused": "disk-refused",
        "Unavailable": "unavailable",
        "NoTmux": "no-tmux",
        "NoServer": "no-server",
        "NoProgram": "no-program",
        "NotIsolated": "not-isolated",
    }


def test_the_tree_at_the_top_of_the_file_is_the_tree_there_is() -> None:
    drawn = [line.split("── ")[-1].split()[0] for line in (errors.__doc__ or "").splitlines() if "── " in line]
    assert ["MasError", *drawn] == [error.__name__ for error in tree(MasError)]


def test_an_error_names_the_thing_and_the_next_command() -> None:
    assert errors.NoSession("abcd").message == "Session not found: abcd"
    assert errors.NoWorkspace("/here").hint == "mas init"
    assert errors.Archived("abcd").hint == "mas unarchive abcd"
    assert errors.Corrupt("/f", "torn").path == "/f"
