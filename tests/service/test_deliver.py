"""What an agent's event file says of a message, whatever the agent made of that file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mas.service.messages.deliver import _Receipt

ID = "m-0123456789abcdef"
START = b'{"at":"2026-01-01T00:00:00.000Z","event":"start"}\n'
HOOK = b'{"at":"2026-01-01T00:00:00.000Z","event":"hook","name":"UserPromptSubmit","prompt":%s}\n'


def seen(directory: Path, *lines: bytes) -> _Receipt:
    path = directory / "agent-00.events.jsonl"
    path.write_bytes(b"".join(lines))
    return _Receipt(str(path), ID, "hook:UserPromptSubmit")


def test_a_hook_that_names_the_message_acknowledges_it(tmp_path: Path) -> None:
    assert seen(tmp_path, START, HOOK % f'"[MAS from=person to=00 id={ID}]"'.encode()).acknowledged()
    assert not seen(tmp_path, START, HOOK % b'"[MAS from=person to=00 id=m-another]"').acknowledged()


@pytest.mark.parametrize(
    "line",
    [
        HOOK % b"7",
        HOOK % b"null",
        b'{"event":"hook","name":"UserPromptSubmit","prompt":"\n',
        b'["event":"hook","prompt":""]\n',
        b'"\\"event\\":\\"hook\\"" "event":"hook","prompt":"\n',
        b'{"event":"hook","prompt":"no name"}\n',
    ],
)
def test_rubbish_in_the_file_acknowledges_nothing(tmp_path: Path, line: bytes) -> None:
    assert not seen(tmp_path, START, line).acknowledged()
