"""Text for an agent: what may be typed into a pane."""

from __future__ import annotations

from mas.model.errors import BadInput

LARGEST = 1 << 20
_ALLOWED_CONTROLS = {"\n", "\t"}


def parse_message(text: str) -> str:
    """`text` if it can be pasted exactly: valid UTF-8, 1 MiB at most, no control but newline and tab."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadInput("A message must be valid UTF-8") from None
    if size == 0:
        raise BadInput("The message is empty")
    if size > LARGEST:
        raise BadInput(f"The message has {size} bytes; the largest is {LARGEST} (1 MiB)")
    for position, character in enumerate(text):
        # C0, DEL and C1: one of them (ESC) would end the bracketed paste that keeps text from being keys.
        if (character < " " or "\x7f" <= character <= "\x9f") and character not in _ALLOWED_CONTROLS:
            raise BadInput(f"The message has the control character {character!r} at position {position}")
    return text
