"""The bytes that a terminal sends for each key, by tmux's names of the keys."""

from __future__ import annotations

_NAMED = {
    "Enter": "\r", "Escape": "\x1b", "Tab": "\t", "Space": " ", "BSpace": "\x7f",
    "Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Home": "\x1b[H", "End": "\x1b[F",
    "PageUp": "\x1b[5~", "PageDown": "\x1b[6~",
    "F1": "\x1bOP", "F2": "\x1bOQ", "F3": "\x1bOR", "F4": "\x1bOS", "F5": "\x1b[15~", "F6": "\x1b[17~",
    "F7": "\x1b[18~", "F8": "\x1b[19~", "F9": "\x1b[20~", "F10": "\x1b[21~", "F11": "\x1b[23~", "F12": "\x1b[24~",
}  # fmt: skip
_CONTROL = 0x1F


def bytes_of(key: str) -> bytes:
    """What a terminal sends for a key; `ValueError` for one that has no name here."""
    if key in _NAMED:
        return _NAMED[key].encode()
    if len(key) == 1:
        return key.encode()
    modifier, _, letter = key.partition("-")
    if modifier == "C" and letter.isalpha():
        return bytes([ord(letter.upper()) & _CONTROL])
    if modifier == "M" and letter:
        return b"\x1b" + letter.encode()
    if modifier == "S" and letter.isalpha():
        return letter.upper().encode()
    raise ValueError(f"no key {key}")
