"""A conversation as it is built from what a program recorded: bounded, whatever was recorded."""

from __future__ import annotations

import json
import re
from typing import Any

from mas.model.transcript import LARGEST_COUNT, LONGEST_DETAIL, Part, Tokens, Turn, clean

# What one conversation keeps, in characters of text; older turns are dropped.
MOST_TEXT = 4 << 20
_MOST_TURNS = 5_000
_MOST_OF_TURN = 1 << 20
_MOST_BLOCKS = 2_000
_LONGEST_NAME = 128
# What a turn without any text takes.
_OVERHEAD = 256
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(?:Z|\+00:00)", re.ASCII)

Fields = dict[str, Any]


class _OpenTurn:
    """A turn that may still grow. What it has is kept in blocks, so that what was recorded again replaces the first."""

    def __init__(self, name: str, at: str, prompt: str) -> None:
        self.name = name
        self.started = self.ended = at
        self.prompt = prompt
        self.blocks: dict[str, list[Part]] = {}
        self.counts: dict[str, Tokens] = {}
        self.spent = Tokens()
        self.model: str | None = None
        self.finished = False
        self.cut = False
        self.size = _OVERHEAD + len(prompt)
        self._made: Turn | None = None

    def changed(self, at: str) -> None:
        self._made = None
        self.ended = at or self.ended
        self.started = self.started or at

    def resize(self, size: int) -> None:
        self.size += size
        while len(self.blocks) > 1 and (len(self.blocks) > _MOST_BLOCKS or self.size > _MOST_OF_TURN):
            oldest = next(iter(self.blocks))
            self.size -= _size(self.blocks.pop(oldest))
            self.cut = True

    def made(self, conversation: str) -> Turn:
        if self._made is None:
            parts = tuple(part for block in self.blocks.values() for part in block)
            said = [part.text for part in parts if part.kind == "text" and part.text and part.text.strip()]
            tokens = self.spent
            for count in self.counts.values():
                tokens = tokens.plus(count)
            answer = said[-1] if said else ""
            self._made = Turn(
                self.name, conversation, self.started, self.ended, self.prompt, answer, self.model, tokens,
                self.finished, self.cut, parts,
            )  # fmt: skip
        return self._made


class Conversation:
    """Turns in the order they were recorded. `is_cut` once some were dropped, whose tokens are still `dropped`."""

    def __init__(self) -> None:
        self.name = ""
        self.is_cut = False
        self.dropped = Tokens()
        self.size = 0
        self._turns: list[_OpenTurn] = []
        self._number = 0

    @property
    def turns(self) -> list[Turn]:
        return [turn.made(self.name) for turn in self._turns]

    @property
    def is_open(self) -> bool:
        """Whether the last turn can still grow."""
        return bool(self._turns) and not self._turns[-1].finished

    @property
    def last_name(self) -> str:
        return self._turns[-1].name if self._turns else ""

    def ask(self, name: str, at: str, prompt: str) -> None:
        """A turn begins, and so the one before has ended; more words in the same turn are added to its prompt."""
        prompt, name = clean(prompt), clean(name, _LONGEST_NAME)
        if self._turns and name and self._turns[-1].name == name:
            turn = self._turns[-1]
            if prompt and prompt not in turn.prompt:
                added = clean(f"{turn.prompt}\n\n{prompt}" if turn.prompt else prompt)
                self._grow(turn, at, len(added) - len(turn.prompt))
                turn.prompt = added
            return
        self.end("")
        self._number += 1
        turn = _OpenTurn(name or clean(f"{self.name}-{self._number}", _LONGEST_NAME), at, prompt)
        self._turns.append(turn)
        self.size += turn.size
        while len(self._turns) > 1 and (len(self._turns) > _MOST_TURNS or self.size > MOST_TEXT):
            self._drop()

    def say(self, key: str, at: str, parts: list[Part]) -> None:
        """Something that the agent did; what has the same `key` replaces what was recorded before."""
        turn = self._current(at)
        before = _size(turn.blocks.get(key, ()))
        turn.blocks[key] = parts
        turn.finished = False
        self._grow(turn, at, _size(parts) - before)

    def returned(self, call: str, at: str, text: str, failed: bool) -> None:
        """What a tool that was used returned; its use has the key `call`, or is the only one with that key."""
        if not self._turns or not (block := self._turns[-1].blocks.get(call)):
            return
        result = clean(text, LONGEST_DETAIL)
        self.say(call, at, [block[0]._replace(text=result, failed=failed), *block[1:]])

    def count(self, key: str, tokens: Tokens) -> None:
        """What a call of the model took; of several counts of one call the largest is right."""
        turn = self._current("")
        if key not in turn.counts and len(turn.counts) >= _MOST_BLOCKS:
            turn.spent = turn.spent.plus(turn.counts.pop(next(iter(turn.counts))))
        known = turn.counts.get(key)
        if known is None or tokens.total >= known.total:
            turn.counts[key] = tokens
            turn.changed("")

    def uses(self, model: str) -> None:
        turn = self._current("")
        turn.model = clean(model, _LONGEST_NAME) or turn.model
        turn.changed("")

    def end(self, at: str) -> None:
        """The last turn is over."""
        if self.is_open:
            self._turns[-1].finished = True
            self._turns[-1].changed(at)

    def take_back(self) -> None:
        """The last turn was none, if nothing has come of it."""
        if self._turns and not self._turns[-1].blocks:
            self.size -= self._turns.pop().size

    def shrink(self, size: int) -> None:
        """Keep no more than that of text, and the last turn in any case."""
        while len(self._turns) > 1 and self.size > size:
            self._drop()

    def _drop(self) -> None:
        oldest = self._turns.pop(0)
        self.size -= oldest.size
        self.dropped = self.dropped.plus(oldest.made(self.name).tokens)
        self.is_cut = True

    def _current(self, at: str) -> _OpenTurn:
        if not self._turns:
            # Its beginning was not recorded, or not read.
            self.ask("", at, "")
        return self._turns[-1]

    def _grow(self, turn: _OpenTurn, at: str, size: int) -> None:
        before = turn.size
        turn.changed(at)
        turn.resize(size)
        self.size += turn.size - before
        self.shrink(MOST_TEXT)


def _size(parts: list[Part] | tuple[()]) -> int:
    return sum(_OVERHEAD + len(part.text or "") + len(part.arguments or "") for part in parts)


def record_in(line: bytes) -> Fields:
    """The JSON object in a line; empty if there is none."""
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def object_of(value: object) -> Fields:
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Fields]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def time_of(value: object) -> str:
    """A time as every file of MAS has it; empty if it is none."""
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    return f"{match[1]}{(match[2] or '.000')[:4].ljust(4, '0')}Z" if match else ""


def count_of(value: object) -> int:
    """How many; 0 for what is no number of tokens."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < len(str(LARGEST_COUNT)):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LARGEST_COUNT:
        return 0
    return int(value)


def text_part(text: str, at: str) -> Part:
    return Part("text", at, clean(text))


def thinking_part(text: str, at: str) -> Part:
    return Part("thinking", at, clean(text, LONGEST_DETAIL))


def tool_part(name: object, arguments: object, at: str) -> Part:
    """The use of a tool; arguments that are no text are written as JSON."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return Part("tool", at, None, clean(text_of(name), _LONGEST_NAME) or "tool", clean(given, LONGEST_DETAIL))


def words_of(value: object) -> str:
    """The text in what is text, or a list of blocks with text."""
    if isinstance(value, str):
        return value
    return "\n".join(text_of(block.get("text")) for block in objects_of(value) if text_of(block.get("text")))
