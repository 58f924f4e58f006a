"""The formats of transcripts, by the names that provider files use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mas.providers.transcripts.aider import AiderReader
from mas.providers.transcripts.claude import ClaudeReader
from mas.providers.transcripts.codex import CodexReader
from mas.providers.transcripts.conversation import Conversation
from mas.providers.transcripts.gemini import GeminiReader


class Reader(Protocol):
    """Reads the lines of one file into one conversation. It raises nothing, whatever the lines are."""

    conversation: Conversation
    is_main: bool
    """Whether it is a conversation with the agent; else with something that the agent started."""

    def read(self, line: bytes) -> None:
        """The next line."""

    def flush(self) -> None:
        """No more lines for now."""


def reader_of(format_: str, name: str) -> Reader:
    """A reader for a file called `name`."""
    return _READERS[format_](name)


_READERS: dict[str, Callable[[str], Reader]] = {
    "aider": AiderReader,
    "claude": ClaudeReader,
    "codex": CodexReader,
    "gemini": GeminiReader,
}
