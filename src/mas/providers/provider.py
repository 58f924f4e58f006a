"""Providers: what to run for an agent, and how text is typed to it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mas.model.errors import BadInput, NoProgram, NotFound
from mas.model.ids import shown

if TYPE_CHECKING:
    from mas.model.team import Agent

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_BUILTIN = os.path.join(_PACKAGE, "providers", "builtin")
_ID = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_PLACEHOLDERS = {"python", "package", "shell", "model"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A program MAS knows nothing of may need a moment to tell a paste from keys.
_UNKNOWN_SUBMIT_DELAY = 0.2
_LONGEST_SUBMIT_DELAY = 60.0


class Provider(NamedTuple):
    """One agent CLI, as its file describes it."""

    id: str
    description: str
    argv: tuple[str, ...]
    resume: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    submit_delay: float


class Program(NamedTuple):
    """What one agent runs: arguments that were found on this machine, and its extra environment."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


class Providers:
    """The built-in providers and those of the workspace, which win."""

    def __init__(self, workspace_files: str, environ: Mapping[str, str]) -> None:
        self._directories = (workspace_files, _BUILTIN)
        self._shell = environ.get("SHELL") or "/bin/sh"
        self._path = environ.get("PATH")

    def names(self) -> list[str]:
        found = set()
        for directory in self._directories:
            if os.path.isdir(directory):
                found |= {name.removesuffix(".toml") for name in os.listdir(directory) if name.endswith(".toml")}
        return sorted(name for name in found if _ID.fullmatch(name))

    def get(self, name: str) -> Provider:
        """The provider called `name`, or an error that names the ones there are."""
        for directory in self._directories:
            path = os.path.join(directory, f"{name}.toml")
            if _ID.fullmatch(name) and os.path.isfile(path):
                return _read(path, name)
        raise BadInput(f"No provider {shown(name)} (there are: {', '.join(self.names())})", "mas doctor")

    def program(self, agent: Agent, resume: bool = False) -> Program:
        """What `agent` runs; `NoProgram` at once if it is not on this machine."""
        if agent.command is not None:
            return Program(self._found(_split(agent.command)), ())
        provider = self.get(agent.provider or "")
        words = provider.resume if resume and provider.resume else provider.argv
        values = {
            "python": sys.executable,
            "package": _PACKAGE,
            "shell": self._shell,
            "model": agent.model or "",
        }
        return Program(self._found([_filled(word, values) for word in words]), provider.env)

    def submit_delay(self, provider: str, command: str | None) -> float:
        return _UNKNOWN_SUBMIT_DELAY if command is not None else self.get(provider).submit_delay

    def _found(self, argv: list[str]) -> tuple[str, ...]:
        from shutil import which

        program = which(argv[0], path=self._path)
        if program is None:
            raise NoProgram(f"Not installed or not executable: {shown(argv[0])}", "mas doctor")
        # Agents work in directories of their own: a path must mean the same there.
        return (os.path.abspath(program), *argv[1:])


def _split(command: str) -> list[str]:
    from shlex import split

    try:
        argv = split(command)
    except ValueError as error:
        raise BadInput(f"Not a command: {shown(command)} ({error})") from None
    if not argv:
        raise BadInput("The command is empty")
    return argv


def _filled(word: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values[match[1]], word)


def _read(path: str, name: str) -> Provider:
    import tomllib

    try:
        with open(path, "rb") as file:
            body = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not TOML: {error}") from None
    except FileNotFoundError:
        raise NotFound(f"No provider file {path}") from None
    try:
        return _provider(body, name)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from None


def _provider(body: Mapping[str, Any], name: str) -> Provider:
    about, launch = _table(body, "provider"), _table(body, "launch")
    if _field(about, "provider", "id") != name:
        raise ValueError(f"provider.id must be {name!r}, as the file is called")
    argv = _words(_field(launch, "launch", "argv"))
    if not argv:
        raise ValueError("launch.argv is empty")
    return Provider(
        id=name,
        description=str(about.get("description", "")),
        argv=argv,
        resume=_words(launch.get("resume", [])),
        env=_variables(launch),
        submit_delay=_delay(body),
    )


def _field(table: Mapping[str, Any], place: str, key: str) -> Any:  # noqa: ANN401 - raw TOML
    if key not in table:
        raise ValueError(f"{place}.{key} is missing")
    return table[key]


def _table(body: Mapping[str, Any], key: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    table = body.get(key, default)
    if table is None:
        raise ValueError(f"{key} is missing")
    if not isinstance(table, dict):
        raise ValueError(f"{key} must be a table")
    return table


def _words(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - raw TOML
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError("launch.argv and launch.resume are lists of text")
    for word in value:
        if "\0" in word:
            raise ValueError("launch.argv and launch.resume must not hold a NUL character")
        if unknown := set(_PLACEHOLDER.findall(word)) - _PLACEHOLDERS:
            raise ValueError(f"it uses {{{min(unknown)}}}, which MAS does not know")
    return tuple(value)


def _variables(launch: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    pairs = tuple((key, str(value)) for key, value in _table(launch, "env", {}).items())
    for key, value in pairs:
        if not _VARIABLE.fullmatch(key) or "\0" in value:
            raise ValueError(f"launch.env cannot hold {shown(key)}")
    return pairs


def _delay(body: Mapping[str, Any]) -> float:
    value = _table(body, "input", {}).get("submit_delay", _UNKNOWN_SUBMIT_DELAY)
    if not isinstance(value, (int, float)) or not 0 <= value <= _LONGEST_SUBMIT_DELAY:
        raise ValueError(f"input.submit_delay must be from 0 to {_LONGEST_SUBMIT_DELAY:.0f} seconds")
    return float(value)
