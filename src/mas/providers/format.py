"""The provider format: one TOML file into one frozen value, or an error that names file, table and field."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from mas.model.errors import BadInput, NotFound
from mas.model.ids import shown
from mas.model.launch import Sign
from mas.providers.keys import bytes_of

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
PLACEHOLDERS = {
    "agent_uuid", "key_tail", "mas", "model", "package", "python", "role", "role_file", "session_dir", "shell",
    "state_dir", "unit_dir", "workspace",
}  # fmt: skip
_OF_ITS_PLACE = {"role", "role_file", "state_dir", "agent_uuid"}
SOURCES = ("osc7501", "hooks", "title", "foreground", "screen")
_SCREEN = "screen"
_SEEN = ("idle", "working", "blocked")
_STATES = ("starting", "idle", "working", "blocked", "error", "exited")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EVENT = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_KEY = re.compile(r"[A-Za-z0-9]|[CMS]-[A-Za-z0-9]|[A-Z][A-Za-z0-9]{1,15}")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){0,3}")
# A program that has these can speak to the user's tmux, keys and desktop in the user's name.
_NEVER_PASSED = re.compile(r"TMUX.*|SSH_AUTH_SOCK|SSH_AGENT_PID|DBUS_.*|MAS_.*")
# An unknown program may need a moment to distinguish a paste from keys.
_USUAL_SUBMIT_DELAY = 0.2
_LONGEST = 600.0
_LONGEST_HEADER = 16


class Input(NamedTuple):
    """How a message is typed, and how one sees that it was taken (`ack`: `hook:EVENT`, `osc:working` or `none`).

    `header` stands before the line that every message begins with: a shell needs a sign that it is a comment.
    """

    method: str = "paste"
    header: str = ""
    submit_delay: float = _USUAL_SUBMIT_DELAY
    ack: str = "none"
    ack_timeout: float = 8.0
    busy: str = "hold"


class Approve(NamedTuple):
    """How a permission is given: by answering a hook (`hook:EVENT`), by a key, or not by MAS at all (`none`).

    A hook waits for an answer for up to `hook_timeout`; after that the program's own dialog is left to people, or with
    `or_key` answered by key.
    """

    method: str = "none"
    key: str = "Enter"
    deny_key: str = "Escape"
    key_min_wait: float = 1.2
    key_verify: bool = True
    hook_timeout: float = 300.0
    or_key: bool = False


class Stop(NamedTuple):
    """The keys that ask the program to end by itself, and how long it may take."""

    graceful: tuple[str, ...] = ()
    timeout: float = 5.0


# A word, or words that are left out together where a placeholder in them has no value.
Words = tuple[str | tuple[str, ...], ...]


class Launch(NamedTuple):
    """What to run. `resume_if` is a pattern of files: if none exists, there is no conversation to resume.

    `files` are written at every start, `seed` only where there is none: the program keeps them from then on.
    `credentials` are what it needs of the user's home to sign in, `credentials_if` what it needs where a variable is
    set: an isolated agent sees nothing else of what programs keep there.
    """

    argv: Words = ()
    resume: Words = ()
    resume_if: str = ""
    env: tuple[tuple[str, str], ...] = ()
    env_pass: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    seed: tuple[tuple[str, str], ...] = ()
    credentials: tuple[str, ...] = ()
    credentials_if: tuple[tuple[str, tuple[str, ...]], ...] = ()


class StatusTable(NamedTuple):
    """Where the program's state is read; the first source that has spoken wins.

    The screen is always the last of them, and one of them wherever there are `startup_dialogs` or a `screen_map`: what
    the last lines look like once nothing has changed for `quiet` seconds. After `start_timeout` seconds in which no
    source has spoken the state is unknown; 0 waits for ever.
    Titles count from its `start`, or from when it has called one of its `hooks` and shows none of the dialogs.
    """

    sources: tuple[str, ...] = ()
    start_timeout: float = 60.0
    titles_from: str = "start"
    title_map: tuple[Sign, ...] = ()
    hook_map: tuple[Sign, ...] = ()
    startup_dialogs: tuple[Sign, ...] = ()
    """Screens it may begin with that only a person should answer: they are reported, no key is pressed."""
    screen_map: tuple[Sign, ...] = ()
    quiet: float = 1.0


class Provider(NamedTuple):
    """One agent CLI, as its file describes it."""

    id: str
    description: str
    min_version: str
    version_cmd: tuple[str, ...]
    install: str
    needs_command: bool
    model: str
    input: Input
    approve: Approve
    stop: Stop
    launch: Launch
    status: StatusTable

    @property
    def needs_place(self) -> bool:
        """Whether its agents need a place of their own on the disk, or a name for their conversation."""
        return bool(self.launch.files or self.launch.seed or _OF_ITS_PLACE & self._placeholders())

    @property
    def takes_model(self) -> bool:
        """Whether its program takes a model."""
        return "model" in self._placeholders()

    def _placeholders(self) -> set[str]:
        launch = self.launch
        words = [
            part for word in (*launch.argv, *launch.resume) for part in ((word,) if isinstance(word, str) else word)
        ]
        return set(PLACEHOLDER.findall(" ".join((*words, *(value for _, value in launch.env)))))


def read_provider(path: str, name: str) -> Provider:
    """The provider in the file at `path`, which must call itself `name`."""
    import tomllib

    try:
        with open(path, "rb") as file:
            body = tomllib.load(file)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not TOML: {error}") from None
    except FileNotFoundError:
        raise NotFound(f"No provider file {path}") from None
    try:
        return _provider(_Table("", body), name, os.path.dirname(path))
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from None


class _Table:
    """A table of the file: returns its fields by type, and at the end refuses those that were not read."""

    def __init__(self, name: str, body: Mapping[str, Any]) -> None:
        self.name = name
        self._body = body
        self._known: list[str] = []

    def place(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def has(self, key: str) -> bool:
        self._known.append(key)
        return key in self._body

    def raw(self, key: str) -> Any:  # noqa: ANN401 - raw TOML
        if not self.has(key):
            raise ValueError(f"{self.place(key)} is missing")
        return self._body[key]

    def table(self, key: str, needed: bool = False) -> _Table:
        value = self.raw(key) if needed or self.has(key) else {}
        if not isinstance(value, dict):
            raise ValueError(f"{self.place(key)} must be a table")
        return _Table(self.place(key), value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.raw(key) if default is None or self.has(key) else default
        return _text(value, self.place(key))

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.text(key, choices[0])
        if value not in choices:
            raise ValueError(f"{self.place(key)} is {shown(value)}; it can be: {', '.join(choices)}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.raw(key) if self.has(key) else default
        if not isinstance(value, bool):
            raise ValueError(f"{self.place(key)} must be true or false")
        return value

    def seconds(self, key: str, default: float) -> float:
        value = self.raw(key) if self.has(key) else default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LONGEST:
            raise ValueError(f"{self.place(key)} must be from 0 to {_LONGEST:.0f} seconds")
        return float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.raw(key) if self.has(key) else []
        if not isinstance(value, list):
            raise ValueError(f"{self.place(key)} must be a list of text")
        return tuple(_text(item, self.place(key)) for item in value)

    def tables(self, key: str) -> list[_Table]:
        value = self.raw(key) if self.has(key) else []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ValueError(f"{self.place(key)} must be a list of tables")
        return [_Table(f"{self.place(key)}[{position}]", item) for position, item in enumerate(value)]

    def pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        table = self.table(key)
        return tuple((name, table.text(name)) for name in table.names())

    def names(self) -> list[str]:
        return list(self._body)

    def end(self) -> None:
        """Refuse what was not asked for: a misspelt field must not go unseen."""
        for key in self._body:
            if key not in self._known:
                raise ValueError(f"{self.place(shown(key))} is not known (known: {', '.join(self._known)})")


def _text(value: Any, place: str) -> str:  # noqa: ANN401 - raw TOML
    if not isinstance(value, str):
        raise ValueError(f"{place} must be text")
    if "\0" in value:
        raise ValueError(f"{place} must not hold a NUL character")
    return value


def _provider(body: _Table, name: str, directory: str) -> Provider:
    about = body.table("provider", needed=True)
    if about.text("id") != name:
        raise ValueError(f"provider.id must be {name!r}, as the file is called")
    needs_command = about.flag("needs_command", False)
    models = body.table("models")
    read = Provider(
        id=name,
        description=about.text("description", ""),
        min_version=_min_version(about),
        version_cmd=about.texts("version_cmd"),
        install=about.text("install", ""),
        needs_command=needs_command,
        model=models.text("default", ""),
        input=_input(body.table("input")),
        approve=_approve(body.table("approve")),
        stop=_stop(body.table("stop")),
        launch=_launch(body.table("launch", needed=not needs_command), needs_command, directory),
        status=_status(body.table("status")),
    )
    for table in (about, models, body):
        table.end()
    return read


def _min_version(about: _Table) -> str:
    value = about.text("min_version", "")
    if value and not _VERSION.fullmatch(value):
        raise ValueError(f"provider.min_version is {shown(value)}; it must be numbers such as 1.2.3")
    if value and not about.texts("version_cmd"):
        raise ValueError("provider.min_version needs provider.version_cmd")
    return value


def _input(table: _Table) -> Input:
    usual = Input()
    ack = table.text("ack", usual.ack)
    if ack not in ("none", "osc:working") and not _is_hook(ack):
        raise ValueError(f"input.ack is {shown(ack)}; it can be: hook:EVENT, osc:working, none")
    read = Input(
        method=table.choice("method", ("paste",)),
        header=_header(table),
        submit_delay=table.seconds("submit_delay", usual.submit_delay),
        ack=ack,
        ack_timeout=table.seconds("ack_timeout", usual.ack_timeout),
        busy=table.choice("busy", ("hold",)),
    )
    table.end()
    return read


def _header(table: _Table) -> str:
    header = table.text("header", Input().header)
    if not header.isprintable() or len(header) > _LONGEST_HEADER:
        raise ValueError(f"input.header must be at most {_LONGEST_HEADER} printable characters")
    return header


def _approve(table: _Table) -> Approve:
    usual = Approve()
    method = table.text("method", usual.method)
    if method not in ("none", "key") and not _is_hook(method):
        raise ValueError(f"approve.method is {shown(method)}; it can be: hook:EVENT, key, none")
    read = Approve(
        method=method,
        key=_key(table.text("key", usual.key), table.place("key")),
        deny_key=_key(table.text("deny_key", usual.deny_key), table.place("deny_key")),
        key_min_wait=table.seconds("key_min_wait", usual.key_min_wait),
        key_verify=table.flag("key_verify", usual.key_verify),
        hook_timeout=table.seconds("hook_timeout", usual.hook_timeout),
        or_key=table.flag("or_key", usual.or_key),
    )
    table.end()
    return read


def _is_hook(text: str) -> bool:
    return text.startswith("hook:") and bool(_EVENT.fullmatch(text[5:]))


def _key(text: str, place: str) -> str:
    if not _KEY.fullmatch(text):
        raise ValueError(f"{place} is {shown(text)}; it must be a key as tmux calls it, such as Enter, Escape or C-c")
    return text


def _typed_key(text: str, place: str) -> str:
    """A key that the launcher can type by itself."""
    key = _key(text, place)
    try:
        bytes_of(key)
    except ValueError:
        raise ValueError(
            f"{place} is {shown(text)}, which cannot be typed; use C-c, Escape, Enter, F10, q, …"
        ) from None
    return key


def _stop(table: _Table) -> Stop:
    keys = tuple(_typed_key(key, table.place("graceful")) for key in table.texts("graceful"))
    read = Stop(keys, table.seconds("timeout", Stop().timeout))
    table.end()
    return read


def _launch(table: _Table, needs_command: bool, directory: str) -> Launch:
    argv = _words(table, "argv")
    if needs_command and argv:
        raise ValueError("launch.argv: a provider that needs a command has no arguments of its own")
    if not needs_command and not table.has("argv"):
        raise ValueError("launch.argv is missing")
    if not needs_command and not (argv and isinstance(argv[0], str)):
        raise ValueError("launch.argv is empty" if not argv else "launch.argv must begin with a program")
    resume = _words(table, "resume")
    if resume and not isinstance(resume[0], str):
        raise ValueError("launch.resume must begin with a program")
    read = Launch(
        argv=argv,
        resume=resume,
        resume_if=_filled_later(table.text("resume_if", ""), table.place("resume_if")),
        env=_env(table),
        env_pass=_env_pass(table),
        files=_files(table, "files", directory),
        seed=_files(table, "seed", directory),
        credentials=_credentials(table, "credentials"),
        credentials_if=_credentials_if(table),
    )
    if read.resume_if and not resume:
        raise ValueError("launch.resume_if needs launch.resume")
    table.end()
    return read


def _words(table: _Table, key: str) -> Words:
    value = table.raw(key) if table.has(key) else []
    place = table.place(key)
    if not isinstance(value, list):
        raise ValueError(f"{place} must be a list of text")
    words: list[str | tuple[str, ...]] = []
    for word in value:
        if isinstance(word, list):
            words.append(tuple(_filled_later(_text(inner, place), place) for inner in word))
        else:
            words.append(_filled_later(_text(word, place), place))
    return tuple(words)


def _filled_later(text: str, place: str) -> str:
    """`text` if every placeholder in it will have a value."""
    if unknown := set(PLACEHOLDER.findall(text)) - PLACEHOLDERS:
        known = ", ".join(sorted(PLACEHOLDERS))
        raise ValueError(f"{place} uses {{{min(unknown)}}}, which MAS does not know (known: {known})")
    return text


def _env(table: _Table) -> tuple[tuple[str, str], ...]:
    pairs = table.pairs("env")
    for name, value in pairs:
        place = f"{table.place('env')}.{shown(name)}"
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{place} is not a variable name")
        _filled_later(value, place)
    return pairs


def _env_pass(table: _Table) -> tuple[str, ...]:
    names = table.texts("env_pass")
    for name in names:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{table.place('env_pass')}: {shown(name)} is not a variable name")
        if _NEVER_PASSED.fullmatch(name):
            raise ValueError(f"{table.place('env_pass')}: {name} is never passed to an agent")
    return names


def _credentials(table: _Table, key: str) -> tuple[str, ...]:
    paths = table.texts(key)
    for path in paths:
        parts = path.split("/")
        if parts[0] != "~" or len(parts) < 2 or {"", ".", ".."} & set(parts):
            raise ValueError(
                f"{table.place(key)}: {shown(path)} must be a file or directory in the home, such as ~/.x/key"
            )
    return paths


def _credentials_if(table: _Table) -> tuple[tuple[str, tuple[str, ...]], ...]:
    inner = table.table("credentials_if")
    for name in inner.names():
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{inner.place(shown(name))} is not a variable name")
    return tuple((name, _credentials(inner, name)) for name in inner.names())


def _files(table: _Table, key: str, directory: str) -> tuple[tuple[str, str], ...]:
    pairs = table.pairs(key)
    for target, template in pairs:
        place = f"{table.place(key)}.{shown(target)}"
        inside = target.removeprefix("{state_dir}/")
        if inside == target or ".." in inside.split("/") or PLACEHOLDER.search(inside) or not inside.strip("/"):
            raise ValueError(f"{place}: a file is written below {{state_dir}}/ and nowhere else")
        if os.path.isabs(template) or ".." in template.split("/"):
            raise ValueError(f"{place}: {shown(template)} must lie beside the provider's file")
        if not os.path.isfile(os.path.join(directory, template)):
            raise ValueError(f"{place}: there is no template {shown(template)} beside the provider's file")
    return pairs


def _status(table: _Table) -> StatusTable:
    sources = table.texts("sources")
    for source in sources:
        if source not in SOURCES:
            raise ValueError(f"status.sources: {shown(source)} is not known (known: {', '.join(SOURCES)})")
    screens = _signs(table, "screen_map", _SEEN)
    dialogs = tuple(map(_dialog, table.tables("startup_dialogs")))
    if _SCREEN in sources or screens or dialogs:
        sources = (*(source for source in sources if source != _SCREEN), _SCREEN)
    read = StatusTable(
        sources=sources,
        start_timeout=table.seconds("start_timeout", StatusTable().start_timeout),
        titles_from=table.choice("titles_from", ("start", "hooks")),
        title_map=_signs(table, "title_map", _STATES),
        hook_map=tuple(_hook(event, state, table.place("hook_map")) for event, state in table.pairs("hook_map")),
        startup_dialogs=dialogs,
        screen_map=screens,
        quiet=table.seconds("quiet", StatusTable().quiet),
    )
    table.end()
    return read


def _signs(table: _Table, key: str, states: tuple[str, ...]) -> tuple[Sign, ...]:
    """A pattern for each state."""
    place = table.place(key)
    return tuple(
        _sign(_pattern(pattern, f"{place}.{state}"), state, place, states) for state, pattern in table.pairs(key)
    )


def _hook(event: str, state: str, place: str) -> Sign:
    if not _EVENT.fullmatch(event):
        raise ValueError(f"{place}: {shown(event)} is not the name of a hook")
    return _sign(event, state, f"{place}.{event}", _STATES)


def _sign(match: str, text: str, place: str, states: tuple[str, ...]) -> Sign:
    """What means a state; of a blocked one also what it waits for, as `blocked:KIND`."""
    state, _, kind = text.partition(":")
    if state not in states:
        raise ValueError(f"{place}: {shown(text)} is not a state (states: {', '.join(states)})")
    if state != text and (state != "blocked" or not _KIND.fullmatch(kind)):
        raise ValueError(f"{place}: {shown(text)} must be STATE or blocked:KIND")
    return Sign(match=match, state=state, kind=kind)


def _pattern(text: str, place: str) -> str:
    if "\n" in text:
        raise ValueError(f"{place} must be one line")
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{place} is not a regular expression: {error}") from None
    return text


def _dialog(table: _Table) -> Sign:
    state, _, kind = table.text("report").partition(":")
    if state not in ("blocked", "error") or not _KIND.fullmatch(kind or "x"):
        raise ValueError(f"{table.place('report')} must be blocked:KIND or error")
    hint = _filled_later(table.text("hint", ""), table.place("hint"))
    if "\n" in hint:
        raise ValueError(f"{table.place('hint')} must be one line")
    match = _pattern(table.text("match"), table.place("match"))
    read = Sign(match=match, state=state, kind=kind, hint=hint)
    table.end()
    return read
