"""What the launcher in a pane must do: one value with all of it, and how it is written as text.

A launcher starts once per agent, so this imports nothing but the C half of `json`: all of `json` costs 10 ms, and so do
`dataclasses` or `typing`.
"""

from __future__ import annotations

from _json import encode_basestring, make_encoder, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_):  # noqa: ANN003, ANN201 - for type checkers alone
        return lambda cls: cls


# RLIMIT_LOCKS, which the kernel has not enforced for twenty years. A process inherits it from its parent, and only root
# can raise it again: its value marks all processes of an agent.
MARK_LIMIT = 10


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """A value with the fields that its class lists, given by name; `TypeError` for a missing or an unknown one."""

    _needed: ClassVar[frozenset[str]]

    def __init_subclass__(cls) -> None:
        cls._needed = frozenset(name for name in cls.__annotations__ if name not in cls.__dict__)

    def __init__(self, **fields: object) -> None:
        known = type(self).__annotations__.keys()
        if not self._needed <= fields.keys() <= known:
            wrong = (self._needed - fields.keys()) | (fields.keys() - known)
            raise TypeError(f"missing or unknown in {type(self).__name__}: {', '.join(sorted(wrong))}")
        self.__dict__.update(fields)

    def but(self, **fields: object) -> Self:
        """The same with other values for these fields."""
        return type(self)(**self.__dict__ | fields)

    def __eq__(self, other: object) -> bool:
        names = type(self).__annotations__
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment] # never a key

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__dict__})"


class Sign(Record):
    """Something that a program shows or calls, and the state that it means."""

    match: str
    """A pattern for titles and screens; for hooks the name of the event."""
    state: str
    kind: str = ""
    hint: str = ""
    """What a person can do about it."""


class Rules(Record):
    """What an agent's process may reach. All paths are absolute, resolved and exist.

    The longest path that covers a file decides. What is not named does not exist, unless `root` is `all`.
    """

    tier: str
    """`A` or `B`."""
    how: str
    """`namespaces`, `bwrap` or `landlock`."""
    root: str = "all"
    """`listed`: the root is empty but for what is named. `all`: in tier A, what is not named is seen read-only."""
    write: tuple[str, ...] = ()
    """Seen, and writable at their own place."""
    binds: tuple[tuple[str, str], ...] = ()
    """Private directories that are shown, writable, at another path; tier A only."""
    copies: tuple[tuple[str, str], ...] = ()
    """Directories that are shown, read-only, at another path; tier A only."""
    read: tuple[str, ...] = ()
    """Seen, and read-only; in tier B nothing else is seen at all."""
    links: tuple[tuple[str, str], ...] = ()
    """Symbolic links to create in a listed root, and what each says."""
    hide: tuple[str, ...] = ()
    """Not there, directories and files."""
    ports: tuple[int, ...] | None = None
    """The TCP ports it may connect to and listen at; None is all, but in tier B to listen at none."""
    connect: tuple[int, ...] = ()
    """Ports that it may connect to as well, but not listen at."""
    system_calls: tuple[str, ...] = ()
    """Those of the calls closed to most that its provider opens."""
    filter: str = ""
    """What `runtime.sandbox.seccomp` makes of these rules, in hexadecimal; empty: each agent's process makes it."""
    account: tuple[int, int] | None = None
    """The user and group that root runs it as."""
    own: tuple[str, ...] = ()
    """Those paths of `write` that no other agent has."""
    shared_root: str = ""
    """The file through which launchers share a listed root: agents that have the same one differ in `own` and `binds`
    alone. Empty: each builds its own."""
    shared_memory: int = 64 << 20
    """How many bytes `/dev/shm` can hold; tier A only."""


class NetworkPlan(Record):
    """The network of an agent's session, which its launchers make and keep."""

    directory: str
    """Where the session's egress process has its socket, rules and files; in no agent's view."""
    listen: tuple[tuple[str, int], ...] = ()
    """Where to listen inside, besides the usual places: addresses and ports."""
    pasta: str = ""
    """The program that carries all else to public addresses; empty if nothing does."""
    mark: int = 0
    """What marks the processes of that program as the session's."""


class LimitPlan(Record):
    """What an agent may take of the machine, and who enforces it."""

    groups: tuple[str, ...] = ()
    """The control groups to enter."""
    files: int | None = None
    file_size: int | None = None
    data: int | None = None
    """Limits of each process; `data` bounds the memory between two looks of the launcher."""
    processes: int | None = None
    """How many there may be, where no control group counts them."""
    most_memory: int = 0
    most_processes: int = 0
    """The limits for which the launcher itself ends the agent; 0 if the kernel enforces them, or nothing does."""
    counts: Mapping[str, tuple[str, str]] = {}
    """Where the kernel counts how often a limit was reached: a file, and the word in it. A relative path is in the
    control group of the launcher itself."""
    words: Mapping[str, str] = {}
    """What to report when a limit is reached, by limit."""


class StatePlan(Record):
    """How the state of a program is known."""

    sources: tuple[str, ...] = ()
    """Where the agent's state is read, the best first."""
    start_timeout: float = 0.0
    """If no source has reported anything for this many seconds, the state is unknown; 0 is never."""
    title_map: tuple[Sign, ...] = ()
    titles_wait: bool = False
    """Whether titles count only once the program has called a hook."""
    dialogs: tuple[Sign, ...] = ()
    screen_map: tuple[Sign, ...] = ()
    quiet: float = 1.0
    """For how many seconds a screen must not change before it is read."""
    hook_map: tuple[Sign, ...] = ()
    answer_hook: str = ""
    """The hook that waits for an answer, at most `answer_timeout` seconds."""
    answer_timeout: float = 0.0


class LaunchPlan(Record):
    """Everything a launcher needs to know: what to run, its limits and isolation, how to read the program's state."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    mark: int = 0
    """What the hard limit is set to that marks all processes of the agent; 0 is not at all."""
    nofile: int | None = None
    """The soft limit of open files that programs expect; a tmux server of ours has a higher one."""
    opener: int | None = None
    """The process that opens the team. Its launchers wait for it, and do not start if it died on the way."""
    lazy: str | None = None
    """What to copy as the agent's unit directory, if there is none yet."""
    restart: str = ""
    """When to start the agent again; empty is never."""
    restart_limit: int = 0
    resume: tuple[str, ...] = ()
    """The arguments to start it again with, if any file matches `resume_if` or that is empty."""
    resume_if: str = ""
    isolation: Rules | None = None
    network: NetworkPlan | None = None
    """None is the network of the machine."""
    limits: LimitPlan | None = None
    states: StatePlan = StatePlan()
    spool: bool = False
    """Whether the launcher takes the hooks of an isolated agent, which cannot write them down itself."""
    quit_keys: tuple[str, ...] = ()
    """What to type for the program to end by itself: bytes in hexadecimal, key by key."""
    quit_timeout: float = 0.0


_PARTS = {"isolation": Rules, "network": NetworkPlan, "limits": LimitPlan, "states": StatePlan}
_SIGNS = ("title_map", "dialogs", "screen_map", "hook_map")


class _Context:
    """What the C half of `json` asks of its other half."""

    strict = False
    object_hook = object_pairs_hook = array_hook = parse_constant = None
    parse_float, parse_int = float, int
    memo: dict[str, str] = {}  # noqa: RUF012 - emptied by the scanner after each call


_scan: Any = make_scanner(_Context)  # type: ignore[arg-type]


def plan_text(plan: LaunchPlan) -> str:
    """The plan as a line of JSON."""
    encode: Any = make_encoder(None, vars, encode_basestring, None, ":", ",", False, False, False)
    return "".join(encode(plan, 0))


def plan_in(text: str) -> LaunchPlan:
    """The plan that `plan_text` wrote; `ValueError` if it is none."""
    fields = fields_in(text)
    try:
        fields |= {name: _frozen(value) for name, value in fields.items() if name != "env"}
        states = fields.get("states", {})
        states |= {name: tuple(Sign(**sign) for sign in states[name]) for name in _SIGNS if name in states}
        fields |= {name: kind(**fields[name]) for name, kind in _PARTS.items() if fields.get(name)}
        return LaunchPlan(**fields)
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a launch plan: {error}") from None


def fields_in(text: str) -> dict[str, Any]:
    """The fields of a JSON object; `ValueError` if the text is none."""
    try:
        fields = _scan(text, 0)[0]
    except (StopIteration, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ValueError("not a JSON object")
    return fields


def _frozen(value: Any) -> Any:  # noqa: ANN401 - anything that JSON can say
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return {key: _frozen(inner) for key, inner in value.items()} if isinstance(value, dict) else value
