"""Transcripts: what an agent and its model said to each other, turn by turn, whatever program recorded it."""

from typing import Literal, NamedTuple

PartKind = Literal["text", "thinking", "tool"]
# Where an agent's answer was taken from.
Source = Literal["transcript", "screen", "log"]
LONGEST_TEXT = 128 << 10
LONGEST_DETAIL = 16 << 10
"""The longest text of a message, and of what a tool got or returned; in characters. The rest is left out."""
LARGEST_COUNT = 1 << 53
MOST_TURNS = 500
"""The most turns of one page."""
# Controls but for line feed and tab, and what turns the direction of writing: the text of an agent must not be able to
# draw on the reader's terminal.
_UNSHOWN = dict.fromkeys(
    (
        *(code for code in range(0x20) if chr(code) not in "\n\t"),
        *range(0x7F, 0xA0),
        *(0x61C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF),
    )
)


class Tokens(NamedTuple):
    """Tokens as they are paid for: `input` is without what a cache was read for or written with, `output` is with
    `reasoning`.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def plus(self, other: "Tokens") -> "Tokens":
        return Tokens(*map(sum, zip(self, other, strict=True)))

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


class Part(NamedTuple):
    """Something that an agent said, thought or used. Of a tool, `text` is what it returned; null before it has."""

    kind: PartKind
    at: str
    text: str | None
    tool: str | None = None
    arguments: str | None = None
    failed: bool = False


class Turn(NamedTuple):
    """What an agent was asked, and all that it did about it; `answer` is the last that it said.

    A turn that is not `finished` can still grow. `cut` means that some of it was too much to be shown.
    """

    id: str
    conversation: str
    started_at: str
    ended_at: str
    prompt: str
    answer: str
    model: str | None
    tokens: Tokens
    finished: bool
    cut: bool
    parts: tuple[Part, ...]


class Transcript(NamedTuple):
    """A page of an agent's turns, newest last, of `total` in all; `tokens` are those of all.

    `cut` means that there were more than MAS reads, which are the newest.
    """

    agent: str
    format: str
    turns: tuple[Turn, ...]
    total: int
    tokens: Tokens
    cut: bool


def clean(text: str, most: int = LONGEST_TEXT) -> str:
    """Text of an agent, of bounded length, without anything that a terminal would obey."""
    # Half of a surrogate pair is valid JSON and no text.
    return text[:most].encode("utf-8", "replace").decode().translate(_UNSHOWN)
