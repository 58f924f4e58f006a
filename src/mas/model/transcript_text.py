"""Turns as people read them: plain text, or Markdown."""

import re
from collections.abc import Iterable, Iterator

from mas.model.transcript import Part, Tokens, Turn

# How much of what a tool returned is shown; all of it is in the JSON.
_RESULT_LINES = 10
_LONGEST_ARGUMENTS = 400
_TICKS = re.compile("`+")


def plain_turns(turns: Iterable[Turn]) -> str:
    """The turns as text: what was asked after `>`, tools after `*`, and an empty line between turns."""
    return "\n\n".join("\n".join(_plain(turn)) for turn in turns)


def markdown_turns(turns: Iterable[Turn]) -> str:
    return "\n\n".join("\n\n".join(_markdown(turn)) for turn in turns)


def _plain(turn: Turn) -> Iterator[str]:
    if turn.started_at:
        yield f"[{_head(turn)}]"
    if turn.prompt:
        yield from (f"> {line}".rstrip() for line in turn.prompt.split("\n"))
    for part in turn.parts:
        if part.kind == "text":
            yield (part.text or "").strip("\n")
        elif part.kind == "tool":
            yield f"* {_call(part)}{_outcome(part)}".rstrip()
            yield from (f"    {line}".rstrip() for line in _result(part))


def _markdown(turn: Turn) -> Iterator[str]:
    yield f"## {_head(turn) or 'Turn'}"
    if turn.prompt:
        yield "\n".join(f"> {line}".rstrip() for line in turn.prompt.split("\n"))
    for part in turn.parts:
        if part.kind == "text":
            yield (part.text or "").strip("\n")
        elif part.kind == "tool":
            yield f"**{part.tool}**{_outcome(part)}"
            yield _fenced(_short(part.arguments or ""))
            if result := list(_result(part)):
                yield _fenced("\n".join(result))
    if turn.tokens.total:
        yield f"*{_spent(turn.tokens)}*"


def _head(turn: Turn) -> str:
    at = turn.started_at[:19].replace("T", " ")
    return " · ".join(filter(None, (f"{at} UTC" if at else "", turn.model, "" if turn.finished else "not finished")))


def _call(part: Part) -> str:
    return f"{part.tool} {' '.join(_short(part.arguments or '').split())}"


def _short(arguments: str) -> str:
    return arguments if len(arguments) <= _LONGEST_ARGUMENTS else f"{arguments[:_LONGEST_ARGUMENTS]} …"


def _outcome(part: Part) -> str:
    return " (failed)" if part.failed else " (not returned yet)" if part.text is None else ""


def _result(part: Part) -> Iterator[str]:
    lines = (part.text or "").strip("\n").split("\n") if part.text else []
    yield from lines[:_RESULT_LINES]
    if len(lines) > _RESULT_LINES:
        yield f"… {len(lines) - _RESULT_LINES} more lines"


def _fenced(text: str) -> str:
    """Text in a fence that nothing in it closes."""
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def _spent(tokens: Tokens) -> str:
    parts = (
        (tokens.input, "in"),
        (tokens.cache_read, "from cache"),
        (tokens.cache_write, "to cache"),
        (tokens.output, "out"),
    )
    return f"{', '.join(f'{number} {what}' for number, what in parts if number)} tokens"
