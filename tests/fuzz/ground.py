"""What every fuzzed parser has: a workspace to put its bytes in, and samples that are sound."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from mas.model.errors import MasError
from mas.model.ids import SessionId
from mas.model.retention import Retention
from mas.store.layout import Layout, SessionPaths
from mas.store.workspace.workspace import Workspace

NOW = "2026-01-02T03:04:05.678Z"
ID = SessionId("0b0c0d0e-1234-4abc-8def-0123456789ab")
AGENT = "00"

# Types that their users import for the type checker alone.
_IMPORTED_LATE = {"Retention": Retention}


class Ground:
    """A workspace with the directory of one session, in which nothing else happens."""

    def __init__(self, root: str) -> None:
        self.layout = Layout(os.path.join(root, "ws"))
        os.mkdir(self.layout.root)
        Workspace(self.layout).prepare()
        for directory in (
            self.session.root,
            self.session.logs,
            self.session.private,
            self.session.at(".mas", "launch"),
        ):
            os.makedirs(directory, 0o700)

    @property
    def session(self) -> SessionPaths:
        return self.layout.session(ID)

    def put(self, path: str, data: bytes) -> str:
        """A file with just this in it."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path


class Parser(NamedTuple):
    """One parser: takes a workspace and any bytes, and holds what its function asserts."""

    name: str
    run: Callable[[Ground, bytes], None]
    samples: tuple[bytes, ...]
    refusal: type[Exception]


Function = Callable[[Ground, bytes], None]


class Parsers(dict[str, Parser]):
    """Parsers by name."""

    def of(self, *samples: bytes | str, refusal: type[Exception] = MasError) -> Callable[[Function], Function]:
        """Adds a parser with sound samples of what it reads, and how it refuses what is not."""

        def add(function: Function) -> Function:
            name = function.__name__.replace("_", "-")
            sound = tuple(sample.encode() if isinstance(sample, str) else sample for sample in samples)
            self[name] = Parser(name, function, sound, refusal)
            return function

        return add


PARSERS = Parsers()


def is_typed(hint: Any, value: Any) -> bool:
    """Whether a value is all through what its type says: a reader must not hand on what no caller expects."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(is_typed(option, value) for option in inner)
    if origin is Literal:
        return value in inner
    if hint in (None, NoneType):
        return value is None
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        hints = inner[:1] * len(value) if inner[1:] == (...,) else inner
        return len(hints) == len(value) and all(map(is_typed, hints, value))
    if origin is list:
        return isinstance(value, list) and all(is_typed(inner[0], item) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(
            is_typed(inner[0], k) and is_typed(inner[1], v) for k, v in value.items()
        )
    if hasattr(hint, "_fields"):
        fields = get_type_hints(hint, localns=_IMPORTED_LATE)
        return isinstance(value, hint) and all(is_typed(fields[name], getattr(value, name)) for name in fields)
    kind = getattr(hint, "__supertype__", hint)
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))
