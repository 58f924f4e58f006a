"""Isolation and limits: what a policy says, how much of it the kernel enforces, and how much an agent may use."""

from enum import StrEnum
from typing import Annotated, NamedTuple

from mas.model.fields import FLAT, Rule

_UNITS = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
_MOST_DIGITS = 30
_LARGEST_NUMBER = 1 << 62
_MOST_CORES = 4096
_LARGEST_PORT = 65535


def shown_size(size: int) -> str:
    """Bytes for people, as `2 GiB`; read back by `parse_size` where it is a whole number of them."""
    unit, shift = "B", 0
    for name, bits in _UNITS.items():
        if size >> bits:
            unit, shift = name, bits
    if size % (1 << shift):
        exact = {name: bits for name, bits in _UNITS.items() if bits and size % (1 << bits) == 0}
        if not exact or size >> max(exact.values()) > 9999:
            return f"{size / (1 << shift):.1f} {unit}"
        unit, shift = max(exact.items(), key=lambda item: item[1])
    return f"{size >> shift} {unit}"


def parse_size(value: object) -> int:
    """Bytes as a number, or as text such as `2GiB`; `ValueError` if it is neither."""
    number: float | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str):
        digits = value.rstrip("BKMGTi").rstrip()
        unit = value[len(digits) :].strip()
        if unit in _UNITS and len(digits) <= _MOST_DIGITS and digits.isascii() and digits.replace(".", "", 1).isdigit():
            number = (float(digits) if "." in digits else int(digits)) * (1 << _UNITS[unit])
    if number is None or not 1 <= number <= _LARGEST_NUMBER:
        raise ValueError("not a size")
    return int(number)


def _written_size(size: int) -> int | str:
    """As people write it in a file, where that is exact."""
    words = shown_size(size)
    return size if "." in words or words.endswith(" B") else words.replace(" ", "")


SIZE = Rule(
    "a number of bytes or a size such as 512MiB or 2GiB",
    "Bytes, or a size such as 512MiB or 2GiB",
    read=parse_size,
    write=_written_size,
    written_as=int | str,
)
_COUNT = Rule("a whole number from 1 on", least=1, test=lambda number: number <= _LARGEST_NUMBER)
_PORT = Rule(f"a number from 1 to {_LARGEST_PORT}", least=1, most=_LARGEST_PORT)
_PATH = Rule("a path, in which ~ is only your own home", test=lambda path: path and not _is_home_of_another(path))
_CORES = Rule(
    f"a number of cores, from 0.01 to {_MOST_CORES}",
    "Number of processor cores, such as 1.5",
    least=0.01,
    most=_MOST_CORES,
)
_OPEN_FILES = _COUNT._replace(about="Number of open files")
_ACCOUNT = Rule("the name of an account", "The user account of agents, if MAS runs as root", test=bool)


def _is_place(word: str) -> bool:
    from mas.model.network import parse_place

    try:
        parse_place(word)
    except ValueError:
        return False
    return True


_PLACE = Rule("a host name such as git.example.com, *.example.com or db.example.com:5432", test=_is_place)


def _is_home_of_another(path: str) -> bool:
    return path.startswith("~") and path != "~" and not path.startswith("~/")


class Tier(StrEnum):
    """How much the kernel enforces: A namespaces and Landlock, B Landlock and seccomp, D file modes only."""

    A = "A"
    B = "B"
    D = "D"


class Mode(StrEnum):
    """How agents are isolated: `auto` as well as the machine can, `require` fully or not started, `off` not at all."""

    AUTO = "auto"
    REQUIRE = "require"
    OFF = "off"


class NetworkMode(StrEnum):
    """What agents reach: public names, those of a list, public addresses, MAS alone, or all that the machine does."""

    NAMES = "names"
    LIST = "list"
    FULL = "full"
    NONE = "none"
    SHARED = "shared"


class Policy(NamedTuple):
    """How agents are isolated, and which files they can use.

    Paths: absolute, `~/…`, or relative to the workspace. An `enforce` of null is not set.
    """

    enforce: Mode | None = None
    read: tuple[Annotated[str, _PATH], ...] = ()
    write: tuple[Annotated[str, _PATH], ...] = ()
    hide: tuple[Annotated[str, _PATH], ...] = ()
    ports: Annotated[
        tuple[Annotated[int, _PORT], ...] | None, Rule(about="The TCP ports that agents may use (default: all)")
    ] = None
    run_as: Annotated[str | None, _ACCOUNT] = None
    network: Annotated[NetworkMode | None, Rule(about="What agents reach (default: names, in tier A)")] = None
    allow: Annotated[
        tuple[Annotated[str, _PLACE], ...], Rule(about="Names that agents may reach, with a port if it is another")
    ] = ()
    private: Annotated[
        tuple[Annotated[str, _PLACE], ...], Rule(about="Hosts of private networks that agents may reach")
    ] = ()

    def under(self, far: "Policy") -> "Policy":
        """This policy completed by a more general one: lists are added up, otherwise this policy decides."""
        return Policy(
            self.enforce or far.enforce,
            _both(self.read, far.read),
            _both(self.write, far.write),
            _both(self.hide, far.hide),
            far.ports if self.ports is None else self.ports,
            self.run_as or far.run_as,
            self.network or far.network,
            _both(self.allow, far.allow),
            _both(self.private, far.private),
        )


# A policy that says only how strict it is may be written as that one word.
PolicyOrWord = Annotated[Policy, Rule(word="enforce")]


class Limits(NamedTuple):
    """Limits of one agent or of a whole session; null is no limit."""

    memory: Annotated[int | None, SIZE] = None
    processes: Annotated[int | None, _COUNT] = None
    cpu: Annotated[float | None, _CORES] = None
    files: Annotated[int | None, _OPEN_FILES] = None
    file_size: Annotated[int | None, SIZE] = None
    disk: Annotated[int | None, SIZE] = None
    """Of sessions only."""

    def under(self, far: "Limits") -> "Limits":
        """These limits, and a farther one wherever there is none."""
        given = {name: value for name, value in self._asdict().items() if value is not None}
        return far._replace(**given)


# The disk is the session's: one agent has no limit of its own.
AgentLimits = Annotated[Limits, Rule(without=("disk",))]


class SessionLimits(NamedTuple):
    """The limits of a session, and the defaults for each of its agents."""

    session: Annotated[Limits, FLAT] = Limits()
    agent: AgentLimits = Limits()

    def under(self, far: "SessionLimits") -> "SessionLimits":
        return SessionLimits(self.session.under(far.session), self.agent.under(far.agent))


class Isolation(NamedTuple):
    """How the agents of a session are isolated since its start.

    Not enforced is what agents can do although they should not; not available is what programs expect and agents do not
    have.

    `how` is `namespaces`, `bwrap`, `landlock` or, in tier D, empty; `account` is the user they run as, if that is not
    who MAS runs as. `network` is `shared` if they use the network of the machine.
    """

    tier: str
    how: str = ""
    not_enforced: tuple[str, ...] = ()
    not_available: tuple[str, ...] = ()
    account: str | None = None
    policy: PolicyOrWord = Policy()
    network: NetworkMode = NetworkMode.SHARED


class TierView(NamedTuple):
    """The tier that a session started now would get; if none, `problem` says why."""

    tier: str | None
    how: str = ""
    not_enforced: tuple[str, ...] = ()
    not_available: tuple[str, ...] = ()
    problem: str = ""


def shown_gaps(found: Isolation | TierView) -> tuple[str, ...]:
    """What is not enforced and what is not available, for people: a phrase each, if there is any."""
    lists = {"not enforced": found.not_enforced, "not available": found.not_available}
    return tuple(f"{title}: {'; '.join(lines)}" for title, lines in lists.items() if lines)


def shown_limits(limits: Limits) -> str:
    """Limits for people, in one line; empty where there are none."""
    from mas.model.shapes import fields_of

    return ", ".join(
        f"{field.name.replace('_', ' ')} {shown_size(int(value)) if field.rule is SIZE else f'{value:g}'}"
        for field, value in zip(fields_of(Limits), limits, strict=True)
        if value is not None
    )


def shown_policy(policy: Policy) -> str:
    """A policy for people, in one line; empty where it adds nothing."""
    lists = {name: getattr(policy, name) for name in ("read", "write", "hide", "allow", "private")}
    words = [f"{word} {', '.join(values)}" for word, values in lists.items() if values]
    if policy.ports is not None:
        words.append(f"ports {', '.join(map(str, policy.ports)) or 'none'}")
    if policy.network:
        words.append(f"network {policy.network}")
    return "; ".join(words)


def _both(near: tuple[str, ...], far: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*near, *far)))
