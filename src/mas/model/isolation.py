"""Isolation and limits: what a policy says, how much of it the kernel enforces, and how much an agent may use."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from mas.model.errors import BadInput
from mas.model.fields import known, text
from mas.model.ids import shown

_UNITS = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
_MOST_DIGITS = 30
_LARGEST_NUMBER = 1 << 62
_MOST_CORES = 4096
_LARGEST_PORT = 65535


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


class Policy(NamedTuple):
    """What agents may use in addition to the default, or may not; an `enforce` of null is not set."""

    enforce: Mode | None = None
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    ports: tuple[int, ...] | None = None
    """The TCP ports they may use; None is all."""
    run_as: str | None = None
    """The account their programs run under, where MAS itself runs as root."""

    def under(self, far: "Policy") -> "Policy":
        """This policy completed by a more general one: lists are added up, otherwise this policy decides."""
        return Policy(
            self.enforce or far.enforce,
            _both(self.read, far.read),
            _both(self.write, far.write),
            _both(self.hide, far.hide),
            far.ports if self.ports is None else self.ports,
            self.run_as or far.run_as,
        )


class Limits(NamedTuple):
    """Limits of one agent or of a whole session; null is no limit."""

    memory: int | None = None
    processes: int | None = None
    cpu: float | None = None
    """Cores."""
    files: int | None = None
    """Open files."""
    file_size: int | None = None
    disk: int | None = None
    """Of sessions only."""

    def under(self, far: "Limits") -> "Limits":
        """These limits, and a farther one wherever there is none."""
        said = {name: value for name, value in self._asdict().items() if value is not None}
        return far._replace(**said)


class SessionLimits(NamedTuple):
    """The limits of a session, and the defaults for each of its agents."""

    session: Limits = Limits()
    agent: Limits = Limits()

    def under(self, far: "SessionLimits") -> "SessionLimits":
        return SessionLimits(self.session.under(far.session), self.agent.under(far.agent))


class Isolation(NamedTuple):
    """How the agents of a session are isolated since its start.

    `how` is `namespaces`, `bwrap`, `landlock` or, in tier D, empty; `account` is the user they run as, if that is not
    who MAS runs as.
    """

    tier: str
    how: str = ""
    not_enforced: tuple[str, ...] = ()
    account: str | None = None
    policy: Policy = Policy()


class TierView(NamedTuple):
    """The tier that a session started now would get; if none, `problem` says why."""

    tier: str | None
    how: str = ""
    not_enforced: tuple[str, ...] = ()
    problem: str = ""


def parse_mode(word: str, what: str = "isolation") -> Mode:
    try:
        return Mode(word)
    except ValueError:
        raise BadInput(f"{what} is {shown(word)}; it can be: {', '.join(Mode)}") from None


def parse_policy(value: object, what: str = "isolation", run_as: str = "runAs") -> Policy:
    """A policy as a word or an object; `run_as` is the spelling of that field. None sets nothing."""
    if value is None:
        return Policy()
    if isinstance(value, str):
        return Policy(parse_mode(value, what))
    fields = known(value, what, {"enforce", "read", "write", "hide", "ports", run_as})
    mode, account = text(fields, "enforce"), text(fields, run_as)
    if account == "":
        raise BadInput(f"{what}.{run_as} is empty")
    return Policy(
        None if mode is None else parse_mode(mode, f"{what}.enforce"),
        _paths(fields, "read", what),
        _paths(fields, "write", what),
        _paths(fields, "hide", what),
        _ports(fields.get("ports"), what),
        account,
    )


def policy_body(policy: Policy, run_as: str = "runAs") -> str | dict[str, Any]:
    """What `parse_policy` reads back as the same."""
    if policy == Policy(policy.enforce) and policy.enforce:
        return str(policy.enforce)
    lists = {"read": policy.read, "write": policy.write, "hide": policy.hide}
    body: dict[str, Any] = {key: list(paths) for key, paths in lists.items() if paths}
    if policy.enforce:
        body = {"enforce": str(policy.enforce), **body}
    if policy.ports is not None:
        body["ports"] = list(policy.ports)
    if policy.run_as:
        body[run_as] = policy.run_as
    return body


def parse_session_limits(value: object, what: str = "limits", file_size: str = "fileSize") -> SessionLimits:
    """The limits of a session, and under `agent` those of each agent; None says nothing."""
    if value is None:
        return SessionLimits()
    fields = known(value, what, {"memory", "processes", "cpu", "files", file_size, "disk", "agent"})
    whole = {key: item for key, item in fields.items() if key != "agent"}
    disk = _size(whole.pop("disk", None), f"{what}.disk")
    limits = parse_limits(whole, what, file_size)._replace(disk=disk)
    return SessionLimits(limits, parse_limits(fields.get("agent"), f"{what}.agent", file_size))


def parse_limits(value: object, what: str = "limits", file_size: str = "fileSize") -> Limits:
    """The limits of an agent; None says nothing."""
    if value is None:
        return Limits()
    fields = known(value, what, {"memory", "processes", "cpu", "files", file_size})
    return Limits(
        memory=_size(fields.get("memory"), f"{what}.memory"),
        processes=_number(fields.get("processes"), f"{what}.processes"),
        cpu=_cores(fields.get("cpu"), f"{what}.cpu"),
        files=_number(fields.get("files"), f"{what}.files"),
        file_size=_size(fields.get(file_size), f"{what}.{file_size}"),
    )


def session_limits_body(limits: SessionLimits, file_size: str = "fileSize") -> dict[str, Any]:
    """What `parse_session_limits` reads back as the same."""
    body = limits_body(limits.session, file_size)
    return {**body, "agent": limits_body(limits.agent, file_size)} if limits.agent != Limits() else body


def limits_body(limits: Limits, file_size: str = "fileSize") -> dict[str, Any]:
    """What `parse_limits` reads back as the same, and the disk of a session."""
    body = {
        "memory": _size_body(limits.memory),
        "processes": limits.processes,
        "cpu": limits.cpu,
        "files": limits.files,
        file_size: _size_body(limits.file_size),
        "disk": _size_body(limits.disk),
    }
    return {key: value for key, value in body.items() if value is not None}


def shown_limits(limits: Limits) -> str:
    """Limits for people, in one line; empty where there are none."""
    sizes = {"memory": limits.memory, "file size": limits.file_size, "disk": limits.disk}
    words = {
        "memory": limits.memory,
        "processes": limits.processes,
        "cpu": limits.cpu,
        "files": limits.files,
        "file size": limits.file_size,
        "disk": limits.disk,
    }
    return ", ".join(
        f"{name} {shown_size(int(value)) if name in sizes else f'{value:g}'}"
        for name, value in words.items()
        if value is not None
    )


def shown_policy(policy: Policy) -> str:
    """A policy for people, in one line; empty where it adds nothing."""
    words = [
        f"{word} {', '.join(paths)}"
        for word, paths in (("read", policy.read), ("write", policy.write), ("hide", policy.hide))
        if paths
    ]
    if policy.ports is not None:
        words.append(f"ports {', '.join(map(str, policy.ports)) or 'none'}")
    return "; ".join(words)


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


def parse_size(value: object, what: str) -> int:
    """Bytes as a number, or as text such as `2GiB`."""
    number: float | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str):
        digits = value.rstrip("BKMGTi").rstrip()
        unit = value[len(digits) :].strip()
        if unit in _UNITS and len(digits) <= _MOST_DIGITS and digits.isascii() and digits.replace(".", "", 1).isdigit():
            number = (float(digits) if "." in digits else int(digits)) * (1 << _UNITS[unit])
    if number is None or not 1 <= number <= _LARGEST_NUMBER:
        said = f" is {shown(value)}; it" if isinstance(value, str) else ""
        raise BadInput(f"{what}{said} must be a number of bytes or a size such as 512MiB or 2GiB")
    return int(number)


def _both(near: tuple[str, ...], far: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*near, *far)))


def _size(value: object, what: str) -> int | None:
    return None if value is None else parse_size(value, what)


def _size_body(size: int | None) -> int | str | None:
    """As people wrote it, where that is exact."""
    if size is None:
        return None
    words = shown_size(size)
    # As people write it in such a file.
    return size if "." in words or words.endswith(" B") else words.replace(" ", "")


def _number(value: object, what: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST_NUMBER:
        raise BadInput(f"{what} must be a number from 1 on")
    return value


def _cores(value: object, what: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.01 <= value <= _MOST_CORES:
        raise BadInput(f"{what} must be a number of cores, from 0.01 to {_MOST_CORES}")
    return float(value)


def _paths(fields: Mapping[str, Any], key: str, what: str) -> tuple[str, ...]:
    value = fields.get(key)
    if value is None:
        return ()
    place = f"{what}.{key}"
    if not isinstance(value, (list, tuple)):
        raise BadInput(f"{place} must be a list of paths")
    paths = tuple(text({place: item}, place) or "" for item in value)
    for path in paths:
        if not path:
            raise BadInput(f"{place} holds an empty path")
        if path.startswith("~") and path != "~" and not path.startswith("~/"):
            raise BadInput(f"{place}: {shown(path)} is the home of another; write the path out")
    return paths


def _ports(value: object, what: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(port, int) and not isinstance(port, bool) and 1 <= port <= _LARGEST_PORT for port in value
    ):
        raise BadInput(f"{what}.ports must be a list of numbers from 1 to {_LARGEST_PORT}")
    return tuple(value)
