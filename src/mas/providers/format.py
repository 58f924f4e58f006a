"""The provider format: one TOML file into one frozen value, or an error that names file, table and field."""

import os
import re
from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, get_args

from mas.model.errors import BadInput, NotFound
from mas.model.fields import Rule
from mas.model.ids import shown
from mas.model.launch import Sign
from mas.model.system_calls import OPENABLE
from mas.providers.keys import bytes_of

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
PLACEHOLDERS = {
    "agent_uuid", "key_tail", "mas", "model", "package", "python", "role", "role_file", "session_dir", "shell",
    "state_dir", "unit_dir", "workspace",
}  # fmt: skip
_OF_ITS_PLACE = {"role", "role_file", "state_dir", "agent_uuid"}
Source = Literal["osc7501", "hooks", "title", "foreground", "screen"]
SOURCES: tuple[Source, ...] = get_args(Source)
_SCREEN: Source = "screen"
_SEEN = ("idle", "working", "blocked")
_STATES = ("starting", "idle", "working", "blocked", "error", "exited")
_EVENT = r"[A-Za-z][A-Za-z0-9_]{0,63}"
# A hook, or a hook for a tool.
_CALL = rf"{_EVENT}(:{_EVENT})?"
_KEY = r"[A-Za-z0-9]|[CMS]-[A-Za-z0-9]|[A-Z][A-Za-z0-9]{1,15}"
_KIND = r"[a-z][a-z0-9_-]{0,31}"
# A program that has these can speak to the user's tmux, keys and desktop in the user's name.
_NEVER_PASSED = re.compile(r"TMUX.*|SSH_AUTH_SOCK|SSH_AGENT_PID|DBUS_.*|MAS_.*")
# An unknown program may need a moment to distinguish a paste from keys.
_USUAL_SUBMIT_DELAY = 0.2
_LONGEST = 600
_LONGEST_HEADER = 16


def _has_known_placeholders(text: str) -> bool:
    """Whether every placeholder in `text` will have a value; `ValueError` names one that will not."""
    if unknown := set(PLACEHOLDER.findall(text)) - PLACEHOLDERS:
        known = ", ".join(sorted(PLACEHOLDERS))
        raise ValueError(f"uses {{{min(unknown)}}}, which MAS does not know (known: {known})")
    return True


def _is_line(text: str) -> bool:
    if "\n" in text:
        raise ValueError("must be one line")
    return True


def _is_pattern(text: str) -> bool:
    try:
        return _is_line(text) and bool(re.compile(text))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None


def _is_in_home(path: str) -> bool:
    first, *rest = path.split("/")
    return first == "~" and bool(rest) and not {"", ".", ".."} & set(rest)


def _is_in_state_dir(target: str) -> bool:
    inside = target.removeprefix("{state_dir}/")
    is_inside = inside != target and ".." not in inside.split("/") and not PLACEHOLDER.search(inside)
    return is_inside and bool(inside.strip("/"))


def _is_below_state_dir(pattern: str) -> bool:
    """Whether a pattern of files stays in the agent's own directory, into which no other agent writes."""
    return _is_in_state_dir(pattern) and "" not in pattern.split("/")


def _is_beside(template: str) -> bool:
    return not os.path.isabs(template) and ".." not in template.split("/")


def _is_openable(name: str) -> bool:
    if name not in OPENABLE:
        raise ValueError(f"is not a system call that can be opened (those are: {', '.join(sorted(OPENABLE))})")
    return True


def _state(states: tuple[str, ...]) -> Rule:
    return Rule(f"a state: {', '.join(states)} or blocked:KIND", pattern="|".join((*states, f"blocked:{_KIND}")))


_VARIABLE = Rule("a variable name", pattern="[A-Za-z_][A-Za-z0-9_]*")
_PASSED = Rule(
    "a variable name, but none of TMUX*, SSH_AUTH_SOCK, SSH_AGENT_PID, DBUS_* and MAS_*",
    pattern=_VARIABLE.pattern,
    test=lambda name: not _NEVER_PASSED.fullmatch(name),
)
_VERSION = Rule("numbers such as 1.2.3", pattern=r"(\d{1,6}(\.\d{1,6}){0,3})?")
_HEADER = Rule(
    f"at most {_LONGEST_HEADER} printable characters",
    test=lambda text: text.isprintable() and len(text) <= _LONGEST_HEADER,
)
_ACK = Rule("hook:EVENT, osc:working or none", pattern=f"hook:{_EVENT}|osc:working|none")
_METHOD = Rule("hook:EVENT, key or none", pattern=f"hook:{_EVENT}|key|none")
_QUIT_KEY = Rule("a key that can be typed, such as C-c, Escape, Enter, F10 or q", pattern=_KEY, test=bytes_of)
_HINT = Rule(test=lambda text: _is_line(text) and _has_known_placeholders(text))
_REPORT = Rule("blocked:KIND or error", pattern=f"(blocked|error)(:({_KIND})?)?")

Seconds = Annotated[float, Rule(f"from 0 to {_LONGEST} seconds", least=0, most=_LONGEST)]
Key = Annotated[str, Rule("a key as tmux calls it, such as Enter, Escape or C-c", pattern=_KEY)]
Filled = Annotated[str, Rule(test=_has_known_placeholders)]
# A word, or words that are left out together where a placeholder in them has no value.
Words = tuple[Filled | tuple[Filled, ...], ...]
Files = tuple[
    tuple[
        Annotated[str, Rule("a file below {state_dir}/", test=_is_in_state_dir)],
        Annotated[str, Rule("a template beside the provider's file", test=_is_beside)],
    ],
    ...,
]
Credentials = tuple[Annotated[str, Rule("a file or directory in the home, such as ~/.x/key", test=_is_in_home)], ...]
Pattern = Annotated[str, Rule(test=_is_pattern)]
# Looked for in a text without its blanks.
BlanklessPattern = Annotated[str, Rule(test=lambda text: _is_pattern(text.replace(" ", "")))]


class Dialog(NamedTuple):
    """A screen that only a person should answer, and what it is reported as."""

    match: Pattern
    report: Annotated[str, _REPORT]
    hint: Annotated[str, _HINT] = ""


def _sign(match: str, report: str, hint: str = "") -> Sign:
    """What means a state; of a blocked one also what it waits for, as `blocked:KIND`."""
    state, _, kind = report.partition(":")
    return Sign(match=match, state=state, kind=kind, hint=hint)


def _signs(patterns: tuple[tuple[str, str], ...]) -> tuple[Sign, ...]:
    return tuple(_sign(match, state) for state, match in patterns)


_TITLES = Rule(written_as=tuple[tuple[Annotated[str, _state(_STATES)], Pattern], ...], read=_signs)
_SCREENS = Rule(written_as=tuple[tuple[Annotated[str, _state(_SEEN)], Pattern], ...], read=_signs)
_HOOKS = Rule(
    written_as=tuple[
        tuple[Annotated[str, Rule("the name of a hook", pattern=_CALL)], Annotated[str, _state(_STATES)]], ...
    ],
    read=lambda hooks: tuple(_sign(event, state) for event, state in hooks),
)
_DIALOG = Rule(written_as=Dialog, read=lambda dialog: _sign(*dialog))


class Input(NamedTuple):
    """How a message is typed, and how one sees that it was taken (`ack`: `hook:EVENT`, `osc:working` or `none`).

    `header` stands before the line that every message begins with: a shell needs a sign that it is a comment. What
    `mention` finds in a text would be more than text to the program, such as a file to read: a backslash is typed
    before it. What `completion` finds in the last line of a text may open a menu there, and Enter would choose from
    it: a blank is typed at the end.
    """

    method: Literal["paste"] = "paste"
    header: Annotated[str, _HEADER] = ""
    submit_delay: Seconds = _USUAL_SUBMIT_DELAY
    ack: Annotated[str, _ACK] = "none"
    ack_timeout: Seconds = 8.0
    busy: Literal["hold"] = "hold"
    mention: Pattern = ""
    completion: Pattern = ""

    def neutral(self, text: str) -> str:
        """`text` with nothing in it that is more than text to the program."""
        if self.mention:
            text = re.sub(self.mention, lambda found: f"\\{found[0]}", text)
            # Behind a backslash, Enter is a new line to many; a blank at the end they remove.
            text = f"{text} " if text.endswith("\\") else text
        if self.completion and re.search(self.completion, text.rpartition("\n")[2]):
            text = f"{text} "
        return text


class Composer(NamedTuple):
    """What the program's input line looks like; without a `prompt` it is not described.

    The cursor is in its last row. Its first row begins with the `prompt`, each further one with the `margin`; what is
    on the screen above it ends with `above`, what is below begins with `below`. At rest it is empty, or shows `rest`.
    `pasted` is what it shows for a long paste, without blanks; its groups `newlines`, `lines` and `characters` are
    compared with the text. `dialogs` are what may be there in its place.
    """

    prompt: Pattern = ""
    margin: Pattern = ""
    above: Pattern = ""
    below: Pattern = ""
    rest: Pattern = ""
    pasted: BlanklessPattern = ""
    dialogs: tuple[Annotated[Sign, _DIALOG], ...] = ()


class Approve(NamedTuple):
    """How a permission is given: by answering a hook (`hook:EVENT`), by a key, or not by MAS at all (`none`).

    A hook waits for an answer for up to `hook_timeout`; after that the program's own dialog is left to people, or with
    `or_key` answered by key.
    """

    method: Annotated[str, _METHOD] = "none"
    key: Key = "Enter"
    deny_key: Key = "Escape"
    key_min_wait: Seconds = 1.2
    key_verify: bool = True
    hook_timeout: Seconds = 300.0
    or_key: bool = False


class Stop(NamedTuple):
    """The keys that ask the program to end by itself, and how long it may take."""

    graceful: tuple[Annotated[str, _QUIT_KEY], ...] = ()
    timeout: Seconds = 5.0


class Launch(NamedTuple):
    """What to run. `resume_if` is a pattern of files: if none exists, there is no conversation to resume.

    `files` are written at every start, `seed` only where there is none: the program keeps them from then on.
    `credentials` are what it needs of the user's home to sign in, `credentials_if` what it needs where a variable is
    set: an isolated agent sees nothing else of what programs keep there.
    `system_calls` are opened to it if it is isolated, of those that are closed to most programs.
    """

    argv: Words = ()
    resume: Words = ()
    resume_if: Filled = ""
    env: tuple[tuple[Annotated[str, _VARIABLE], Filled], ...] = ()
    env_pass: tuple[Annotated[str, _PASSED], ...] = ()
    files: Files = ()
    seed: Files = ()
    credentials: Credentials = ()
    credentials_if: tuple[tuple[Annotated[str, _VARIABLE], Credentials], ...] = ()
    system_calls: tuple[Annotated[str, Rule(test=_is_openable)], ...] = ()


class StatusTable(NamedTuple):
    """Where the program's state is read; the first source that has spoken wins.

    The screen is always the last of them, and one of them wherever there are `startup_dialogs` or a `screen_map`: what
    the last lines look like once nothing has changed for `quiet` seconds. After `start_timeout` seconds in which no
    source has spoken the state is unknown; 0 waits for ever.
    Titles count from its `start`, or from when it has called one of its `hooks` and shows none of the dialogs.
    """

    sources: tuple[Source, ...] = ()
    start_timeout: Seconds = 60.0
    titles_from: Literal["start", "hooks"] = "start"
    title_map: Annotated[tuple[Sign, ...], _TITLES] = ()
    hook_map: Annotated[tuple[Sign, ...], _HOOKS] = ()
    startup_dialogs: tuple[Annotated[Sign, _DIALOG], ...] = ()
    """Screens it may begin with that only a person should answer: they are reported, no key is pressed."""
    screen_map: Annotated[tuple[Sign, ...], _SCREENS] = ()
    quiet: Seconds = 1.0

    def with_screen_last(self) -> "StatusTable":
        if _SCREEN not in self.sources and not self.screen_map and not self.startup_dialogs:
            return self
        return self._replace(sources=(*(source for source in self.sources if source != _SCREEN), _SCREEN))


class TranscriptTable(NamedTuple):
    """What the program records of its conversations: where, and in which format.

    With `own` only those conversations count that its hooks or its start have named: what the agent itself runs with
    the same program is recorded beside them.
    """

    format: Literal["", "aider", "claude", "codex", "gemini"] = ""
    files: tuple[Annotated[str, Rule("a pattern of files below {state_dir}/", test=_is_below_state_dir)], ...] = ()
    conversations: Literal["all", "own"] = "all"

    @property
    def patterns(self) -> tuple[tuple[str, ...], ...]:
        """The same below the agent's directory, name by name."""
        return tuple(tuple(pattern.split("/")[1:]) for pattern in self.files)


class About(NamedTuple):
    """What the program is, how to ask for its version and how to install it.

    With `needs_command` it is whatever command an agent has, and the file has no arguments of its own.
    """

    id: str
    description: str = ""
    min_version: Annotated[str, _VERSION] = ""
    version_cmd: tuple[str, ...] = ()
    install: str = ""
    needs_command: bool = False


class Models(NamedTuple):
    """The model of agents without one."""

    default: str = ""


class Provider(NamedTuple):
    """One agent CLI, as its file describes it: each field is a table of the file."""

    provider: About
    models: Models = Models()
    input: Input = Input()
    composer: Composer = Composer()
    approve: Approve = Approve()
    stop: Stop = Stop()
    launch: Launch = Launch()
    status: Annotated[StatusTable, Rule(written_as=StatusTable, read=StatusTable.with_screen_last)] = StatusTable()
    transcript: TranscriptTable = TranscriptTable()

    @property
    def needs_place(self) -> bool:
        """Whether its agents need a place of their own on the disk, or a name for their conversation."""
        launch = self.launch
        return bool(launch.files or launch.seed or self.transcript.format or _OF_ITS_PLACE & self._placeholders())

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

    from mas.model.shapes import read

    try:
        with open(path, "rb") as file:
            body = tomllib.load(file)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not TOML: {error}") from None
    except FileNotFoundError:
        raise NotFound(f"No provider file {path}") from None
    try:
        provider = read(Provider, body, called="a provider file", snake=True)
    except BadInput as error:
        raise BadInput(f"{path}: {error.message}") from None
    for problem in (*_problems(provider, name), *_missing_templates(provider.launch, os.path.dirname(path))):
        raise BadInput(f"{path}: {problem}")
    return provider


def _problems(provider: Provider, name: str) -> Iterator[str]:
    """What is wrong in more than one field."""
    about, launch = provider.provider, provider.launch
    if about.id != name:
        yield f"provider.id must be {name!r}, as the file is called"
    if about.min_version and not about.version_cmd:
        yield "provider.min_version needs provider.version_cmd"
    if about.needs_command and launch.argv:
        yield "launch.argv: a provider that needs a command has no arguments of its own"
    if not about.needs_command and not launch.argv:
        yield "launch.argv is missing"
    for field, words in (("argv", launch.argv), ("resume", launch.resume)):
        if words and not isinstance(words[0], str):
            yield f"launch.{field} must begin with a program"
    if bool(provider.transcript.format) != bool(provider.transcript.files):
        yield "transcript needs both format and files"
    if launch.resume_if and not launch.resume:
        yield "launch.resume_if needs launch.resume"
    if not provider.composer.prompt and provider.composer != Composer():
        yield "composer.prompt is missing"


def _missing_templates(launch: Launch, directory: str) -> Iterator[str]:
    for field, files in (("files", launch.files), ("seed", launch.seed)):
        for target, template in files:
            if not os.path.isfile(os.path.join(directory, template)):
                place = f"launch.{field}.{shown(target)}"
                yield f"{place}: there is no template {shown(template)} beside the provider's file"
