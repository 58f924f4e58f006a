"""Providers: what an agent runs, with which files and environment, and how MAS types to it and reads its state."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mas.model.errors import BadInput, MasError, NoProgram
from mas.model.ids import shown
from mas.model.keys import is_key
from mas.model.launch import StatePlan
from mas.model.run import GENERIC
from mas.providers.format import (
    PLACEHOLDER,
    PLACEHOLDERS,
    About,
    Approve,
    Input,
    Provider,
    StatusTable,
    Stop,
    Words,
    read_provider,
)
from mas.providers.keys import bytes_of

if TYPE_CHECKING:
    from mas.model.catalog import ProviderView
    from mas.model.team import Agent

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_BUILTIN = os.path.join(_PACKAGE, "providers", "builtin")
_ID = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_KEY_TAIL = 20
_NUMBERS = re.compile(r"\d+(?:\.\d+)+")


class AgentHome(NamedTuple):
    """Where one agent lives: what the placeholders of its provider stand for. Empty is nothing."""

    workspace: str = ""
    session_dir: str = ""
    unit_dir: str = ""
    state_dir: str = ""
    agent_uuid: str = ""
    role_file: str = ""
    role: str = ""


NOWHERE = AgentHome()


class Program(NamedTuple):
    """What one agent runs: arguments found on this machine, its own environment, the files it needs first.

    Those of `seed` are for a first start: where there is one already, it is the program's.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    seed: tuple[tuple[str, str], ...] = ()
    provider: str = ""
    uuid: str = ""
    can_resume: bool = False
    resumes: bool = False
    resume: tuple[str, ...] = ()
    resume_if: str = ""
    status: StatusTable = StatusTable()
    approve: Approve = Approve()
    stop: Stop = Stop()
    credentials: tuple[str, ...] = ()
    """What it needs of the user's home to sign in, as `~/…`."""
    system_calls: tuple[str, ...] = ()
    """What is opened to it of the calls that are closed to most programs."""

    def state_plan(self) -> StatePlan:
        """How the launcher, and `mas hook`, know the program's state."""
        status, answered = self.status, self.approve.method.startswith("hook:")
        return StatePlan(
            sources=status.sources,
            start_timeout=status.start_timeout if status.sources else 0.0,
            title_map=status.title_map,
            titles_wait=status.titles_from == "hooks",
            dialogs=status.startup_dialogs,
            screen_map=status.screen_map,
            quiet=status.quiet,
            hook_map=status.hook_map,
            answer_hook=self.approve.method.removeprefix("hook:") if answered else "",
            answer_timeout=self.approve.hook_timeout if answered else 0.0,
        )

    def quit_keys(self) -> tuple[str, ...]:
        """What to type for the program to end by itself, key by key, in hexadecimal."""
        return tuple(bytes_of(key).hex() for key in self.stop.graceful)


# Asks a program for its version: its arguments and environment, to what it printed; None if it does not say.
AskVersion = Callable[[tuple[str, ...], Mapping[str, str]], str | None]


class Providers:
    """The built-in providers and those of the workspace, which win."""

    def __init__(
        self,
        workspace_files: str,
        environ: Mapping[str, str],
        ask: AskVersion = lambda *_: None,
        is_any: Callable[[str], bool] = lambda _: False,
        stored_keys: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._directories = (workspace_files, _BUILTIN)
        self._environ = environ
        self._ask = ask
        self._is_any = is_any
        self._stored_keys = stored_keys
        self._read: dict[str, tuple[tuple[int, int], Provider]] = {}

    def names(self) -> list[str]:
        found = set()
        for directory in self._directories:
            if os.path.isdir(directory):
                found |= {name.removesuffix(".toml") for name in os.listdir(directory) if name.endswith(".toml")}
        return sorted(name for name in found if _ID.fullmatch(name))

    def get(self, name: str) -> Provider:
        """The provider called `name`, or an error that names the ones there are."""
        return self._found(name)[1]

    def of(self, provider: str, command: str | None) -> Provider:
        """How an agent behaves: one that runs a command of its own is a generic one."""
        return self.get(provider if command is None else GENERIC)

    def sources(self, provider: str, command: str | None) -> tuple[str, ...]:
        """Where an agent's state is read, the best first; nothing of a program MAS knows nothing of."""
        return self.of(provider, command).status.sources

    def input(self, provider: str, command: str | None) -> Input:
        return self.of(provider, command).input

    def program(self, agent: Agent, home: AgentHome = NOWHERE, resume: bool = False) -> Program:
        """What `agent` runs in `home`; `NoProgram` at once if it is not on this machine.

        With `resume` it goes on with its conversation, if its provider can and there is one: see `resumes`.
        """
        name = GENERIC if agent.command is not None else agent.provider or ""
        directory, provider = self._found(name)
        about, launch, status = provider.provider, provider.launch, provider.status
        passed = self._passed(launch.env_pass)
        values = self._values(provider, agent, home, passed)
        resume_if = _where_it_is(launch.resume_if, values)
        resumes = resume and bool(launch.resume) and (not resume_if or self._is_any(resume_if))
        going_on = self._installed(_arguments(launch.resume, values), about.install) if launch.resume else ()
        if agent.command is not None:
            argv = _split(agent.command)
        elif about.needs_command:
            raise BadInput(f"The provider {name} needs a command to run", "mas start --command CMD")
        else:
            argv = list(going_on) if resumes else _arguments(launch.argv, values)
        own = {key: _filled(value, values) for key, value in launch.env}
        return Program(
            argv=self._installed(argv, about.install),
            env=tuple((passed | own).items()),
            files=tuple(_rendered(directory, launch.files, values)) if home.state_dir else (),
            seed=tuple(_rendered(directory, launch.seed, values)) if home.state_dir else (),
            provider=name,
            uuid=home.agent_uuid,
            can_resume=bool(launch.resume),
            resumes=resumes,
            resume=going_on,
            resume_if=resume_if,
            status=status._replace(
                startup_dialogs=tuple(
                    # One line, whatever a path may hold.
                    dialog.but(hint=" ".join(_filled(dialog.hint, values).split()))
                    for dialog in status.startup_dialogs
                )
            ),
            approve=provider.approve,
            stop=provider.stop,
            credentials=(
                *launch.credentials,
                *(path for name, paths in launch.credentials_if if self._environ.get(name) for path in paths),
            ),
            system_calls=launch.system_calls,
        )

    def look(self, name: str, is_default: bool = False) -> ProviderView:
        """The provider as this machine has it: found or not, and which version."""
        from mas.model.catalog import ProviderView
        from mas.model.team import Agent

        own = os.path.isfile(os.path.join(self._directories[0], f"{name}.toml"))
        origin = "workspace" if own else "shipped"
        try:
            provider = self.get(name)
            about, composer = provider.provider, bool(provider.composer.prompt)
        except MasError as error:
            return ProviderView(name, "", is_default, False, None, error.message, origin=origin)
        view = ProviderView(
            id=name,
            description=about.description,
            is_default=is_default,
            installed=True,
            program=None,
            problem="",
            min_version=about.min_version or None,
            install=about.install,
            composer=composer,
            origin=origin,
        )
        if about.needs_command:
            return view
        try:
            program = self.program(Agent("00", "meta", provider=name))
        except MasError as error:
            return view._replace(installed=False, problem=error.message)
        view = view._replace(program=program.argv[0])
        return self._with_version(view, about) if about.version_cmd else view

    def built_in(self, name: str) -> dict[str, bytes]:
        """The built-in file of a provider and the templates that it names, by their paths beside it."""
        path = os.path.join(_BUILTIN, f"{name}.toml")
        if not _ID.fullmatch(name) or not os.path.isfile(path):
            known = sorted(file.removesuffix(".toml") for file in os.listdir(_BUILTIN) if file.endswith(".toml"))
            raise BadInput(f"No built-in provider {shown(name)} (there are: {', '.join(known)})", "mas providers")
        launch = read_provider(path, name).launch
        names = (f"{name}.toml", *dict.fromkeys(template for _, template in (*launch.files, *launch.seed)))
        return {file: _content(os.path.join(_BUILTIN, file)) for file in names}

    def _with_version(self, view: ProviderView, about: About) -> ProviderView:
        basic = {key: self._environ[key] for key in ("PATH", "HOME", "LANG") if key in self._environ}
        output = self._ask(self._installed(list(about.version_cmd), about.install), basic)
        match = _NUMBERS.search(output or "")
        if match is None:
            return view._replace(meets_minimum=not about.min_version, problem="its version is unknown")
        view = view._replace(version=match[0])
        if _numbers(match[0]) < _numbers(about.min_version or "0"):
            problem = f"version {match[0]} is older than {about.min_version}"
            return view._replace(meets_minimum=False, problem=problem)
        return view

    def _found(self, name: str) -> tuple[str, Provider]:
        """The provider called `name` and the directory of its file."""
        for directory in self._directories:
            path = os.path.join(directory, f"{name}.toml")
            if _ID.fullmatch(name) and os.path.isfile(path):
                return directory, self._kept(path, name)
        raise BadInput(f"No provider {shown(name)} (there are: {', '.join(self.names())})", "mas doctor")

    def _kept(self, path: str, name: str) -> Provider:
        """What the file says; read once, and again when it has changed."""
        status = os.stat(path)
        stamp = status.st_mtime_ns, status.st_size
        if path not in self._read or self._read[path][0] != stamp:
            self._read[path] = stamp, read_provider(path, name)
        return self._read[path][1]

    def _passed(self, names: tuple[str, ...]) -> dict[str, str]:
        """The variables that the program gets: those of the environment, and the stored keys that are not in it."""
        found = {name: self._environ[name] for name in names if name in self._environ}
        missing = [name for name in names if name not in found and is_key(name)]
        kept = self._stored_keys() if missing else {}
        return found | {name: kept[name] for name in missing if name in kept}

    def _values(self, provider: Provider, agent: Agent, home: AgentHome, passed: Mapping[str, str]) -> dict[str, str]:
        return {
            "python": sys.executable,
            "package": _PACKAGE,
            "shell": self._environ.get("SHELL") or "/bin/sh",
            "mas": _mas(),
            "model": agent.model or provider.models.default,
            "key_tail": _key_tail(passed),
            **home._asdict(),
        }

    def _installed(self, argv: list[str], install: str) -> tuple[str, ...]:
        from shutil import which

        program = which(argv[0], path=self._environ.get("PATH"))
        if program is None:
            hint = f"install it: {install}" if install else "mas doctor"
            raise NoProgram(f"Not installed or not executable: {shown(argv[0])}", hint)
        # Agents work in directories of their own: a path must mean the same there.
        return (os.path.abspath(program), *argv[1:])


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _key_tail(passed: Mapping[str, str]) -> str:
    """The end of the key that is passed on: some programs ask before they use one that they do not know by it."""
    return next((key[-_KEY_TAIL:] for name, key in passed.items() if name.endswith("_API_KEY")), "")


def _mas() -> str:
    """The words that run this very `mas` from a shell."""
    from shlex import join

    script = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "mas")
    return join([script] if os.access(script, os.X_OK) else [sys.executable, "-m", "mas"])


def _split(command: str) -> list[str]:
    from shlex import split

    try:
        argv = split(command)
    except ValueError as error:
        raise BadInput(f"Not a command: {shown(command)} ({error})") from None
    if not argv:
        raise BadInput("The command is empty")
    return argv


def _where_it_is(pattern: str, values: Mapping[str, str]) -> str:
    """A pattern of files with its placeholders filled, each meaning nothing but itself."""
    if not pattern:
        return ""
    from glob import escape

    return PLACEHOLDER.sub(lambda match: escape(values[match[1]]), pattern)


def _arguments(words: Words, values: Mapping[str, str]) -> list[str]:
    """The words with their placeholders filled; a group in which one has no value is left out."""
    argv = []
    for word in words:
        if isinstance(word, str):
            argv.append(_filled(word, values))
        elif all(values[name] for part in word for name in PLACEHOLDER.findall(part)):
            argv += [_filled(part, values) for part in word]
    return argv


def _filled(word: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: values[match[1]], word)


def _rendered(directory: str, files: Iterable[tuple[str, str]], values: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """The files with their final content."""
    for target, template in files:
        path = os.path.join(directory, template)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if unknown := set(PLACEHOLDER.findall(text)) - PLACEHOLDERS:
            raise BadInput(f"{path} uses {{{min(unknown)}}}, which MAS does not know")
        quoted = target.endswith((".json", ".toml"))
        yield (
            _filled(target, values),
            _filled(text, {key: _escaped(value) for key, value in values.items()} if quoted else values),
        )


def _escaped(text: str) -> str:
    """`text` between the quotes of a JSON or TOML string."""
    import json

    # Undecodable bytes of a path have no other form in such a file than a replacement.
    return json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))
