"""What agent programs record of their conversations, in files that agents can write."""

from __future__ import annotations

import os

from mas.model.transcript import LARGEST_COUNT, LONGEST_TEXT, Turn
from mas.model.transcript_text import markdown_turns, plain_turns
from mas.providers.transcripts.conversation import MOST_TEXT
from mas.providers.transcripts.readers import Reader, reader_of
from mas.store.agent.appended import AppendedFile, find_files
from tests.fuzz.ground import PARSERS, Ground, is_typed
from tests.site import REPOSITORY

_SAMPLES = os.path.join(REPOSITORY, "tests", "providers", "transcripts")
_UNSHOWN = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E)} - {"\n", "\t"}


def _sample(name: str) -> tuple[bytes, ...]:
    """A few lines of a recorded file, which are enough for one turn."""
    with open(os.path.join(_SAMPLES, name), "rb") as file:
        data = file.read()
    return data[:3000], data[-2000:]


def _read(ground: Ground, format_: str, data: bytes) -> None:
    """However a file grows, the same turns are found; they are what their types say, short, and draw on no terminal."""
    whole, grown = _followed(ground, format_, [data + b"\n"]), _followed(ground, format_, [*_parts(data), b"\n"])
    turns = whole.conversation.turns
    assert turns == grown.conversation.turns
    assert whole.is_main == grown.is_main
    assert is_typed(tuple[Turn, ...], tuple(turns))
    assert whole.conversation.size <= MOST_TEXT
    for turn in turns:
        texts = [turn.id, turn.prompt, turn.answer, *(part.text or "" for part in turn.parts)]
        assert all(len(text) <= LONGEST_TEXT and not _UNSHOWN & set(text) for text in texts)
        assert all(0 <= count <= LARGEST_COUNT * (1 + len(data)) for count in turn.tokens)
        turn.prompt.encode()
    assert not _UNSHOWN & set(plain_turns(turns) + markdown_turns(turns))


def _parts(data: bytes) -> list[bytes]:
    """The same bytes as a program may write them, in a few parts."""
    size = max(1 + (data[0] if data else 0) % 97, len(data) // 8)
    return [data[place : place + size] for place in range(0, len(data), size)]


def _followed(ground: Ground, format_: str, parts: list[bytes]) -> Reader:
    path = ground.put(ground.session.at(".mas", "agents", "00", "x.jsonl"), b"")
    names = (".mas", "agents", "00", "x.jsonl")
    assert [file.names for file in find_files(ground.session.root, names)] == [names]
    file, reader = AppendedFile(ground.session.root, names), reader_of(format_, names[-1])
    for part in parts:
        with open(path, "ab") as more:
            more.write(part)
        for line in file.lines():
            reader.read(line)
        reader.flush()
        assert not file.is_new
    return reader


@PARSERS.of(*_sample("claude.jsonl"))
def claude_transcript(ground: Ground, data: bytes) -> None:
    """A transcript of Claude Code."""
    _read(ground, "claude", data)


@PARSERS.of(*_sample("codex.jsonl"))
def codex_transcript(ground: Ground, data: bytes) -> None:
    """A transcript of Codex."""
    _read(ground, "codex", data)


@PARSERS.of(*_sample("gemini.jsonl"))
def gemini_transcript(ground: Ground, data: bytes) -> None:
    """A transcript of Gemini CLI."""
    _read(ground, "gemini", data)


@PARSERS.of(*_sample("aider.md"))
def aider_transcript(ground: Ground, data: bytes) -> None:
    """The chat history of Aider."""
    _read(ground, "aider", data)
