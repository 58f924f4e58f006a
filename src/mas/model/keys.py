"""Provider keys: what they are called, and what is shown of them. A key itself is never shown."""

import re
from typing import NamedTuple

from mas.model.errors import BadInput
from mas.model.ids import shown

# Short names for the variables that agent programs read.
NAMES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
}
_VARIABLE = re.compile(r"(?!MAS_)[A-Z][A-Z0-9_]{0,62}_(KEY|TOKEN)")
_KEY = re.compile(r"[!-~]{8,4096}")
_SHOWN = 4


class KeyView(NamedTuple):
    """A key that is kept: for which variable, its last characters, since when. `where` is `workspace` or `user`."""

    name: str
    variable: str
    where: str
    place: str
    tail: str
    set_at: str
    used: bool
    """Whether agents get this one: not if another place or the environment has the variable too."""


class KeyList(NamedTuple):
    """All keys that are kept."""

    keys: tuple[KeyView, ...]


class KeyTest(NamedTuple):
    """What a provider's API said of a key."""

    name: str
    variable: str
    where: str
    url: str
    ok: bool
    message: str


def variable_of(name: str) -> str:
    """The variable that a key is for, by its short name or its own."""
    if name in NAMES:
        return NAMES[name]
    if not _VARIABLE.fullmatch(name):
        known = ", ".join(NAMES)
        raise BadInput(
            f"Not the name of a key: {shown(name)}. Names are {known}, or a variable that ends in _KEY or _TOKEN",
            "mas keys set anthropic",
        )
    return name


def name_of(variable: str) -> str:
    """The short name of a variable, or the variable itself."""
    return next((name for name, known in NAMES.items() if known == variable), variable)


def is_key(variable: str) -> bool:
    """Whether a variable can be kept as a key."""
    return bool(_VARIABLE.fullmatch(variable))


def parse_key(text: str) -> str:
    """A key as it was typed or piped, without the line's end; the error does not repeat it."""
    key = text.strip()
    if not _KEY.fullmatch(key):
        raise BadInput(
            "That is not a key: it must be 8 to 4096 characters of ASCII without spaces", "mas keys set NAME < FILE"
        )
    return key


def tail_of(key: str) -> str:
    """The end of a key, for people to know it by; of a short one even less."""
    return key[-min(_SHOWN, len(key) // 4) :]
