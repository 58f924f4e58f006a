"""Control groups: one for each session with limits and one for each of its agents, wherever MAS may create them.

Version 2 where a part of the tree is ours to divide, version 1 as root; which of them is found out by trying. Groups
are called `mas/{session}/{agent}` below the group this process is in, so that whatever limits us limits agents too.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from mas.model.isolation import Limits

_OURS = "mas"
# What version 1 offers; agents' processor time is limited only if it can be.
_NEEDED = ("memory", "pids")
_WANTED = ("memory", "pids", "cpu")
_PERIOD = 100_000
_TRIES = 5
_LOOK_AGAIN = 0.005


class Ground(NamedTuple):
    """Where control groups can be made: a directory for each controller, the same for all in version 2."""

    version: int
    places: tuple[tuple[str, str], ...]

    @property
    def roots(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place for _, place in self.places))

    def place(self, controller: str) -> str | None:
        return dict(self.places).get(controller)


def ground(proc: str = "/proc/self") -> Ground | None:
    """Where this process can make control groups that limit memory and processes; None if nowhere."""
    try:
        own = dict(_own_groups(f"{proc}/cgroup"))
        mounts = list(_mounts(f"{proc}/mountinfo"))
    except OSError:
        return None
    return _second(own, mounts) or _first(own, mounts)


def _own_groups(path: str) -> Iterator[tuple[str, str]]:
    """The group this process is in for each controller; for version 2 under the empty name."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            _, controllers, group = line.rstrip("\n").split(":", 2)
            # What an agent starts, and stays, is not part of the agent.
            group = group.partition(f"/{_OURS}/")[0]
            for controller in controllers.split(","):
                yield controller, group.strip("/")


class _Mount(NamedTuple):
    """A mounted hierarchy: its version, which group of it is mounted, where, and its options."""

    version: int
    group: str
    path: str
    options: frozenset[str]

    def inside(self, group: str) -> str | None:
        """A group as the rest of a path below this mount; None if it is not below it."""
        if not self.group:
            return group
        return group[len(self.group) :].strip("/") if f"{group}/".startswith(f"{self.group}/") else None


def _mounts(path: str) -> Iterator[_Mount]:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            kind, _, options = after.split()[:3]
            if kind in ("cgroup", "cgroup2"):
                group, place = before.split()[3:5]
                yield _Mount(2 if kind == "cgroup2" else 1, group.strip("/"), place, frozenset(options.split(",")))


def _second(own: Mapping[str, str], mounts: list[_Mount]) -> Ground | None:
    """The nearest group above this process that is ours to divide."""
    for mount in mounts:
        group = mount.inside(own.get("", "")) if mount.version == 2 else None
        while group is not None:
            place = os.path.join(mount.path, group) if group else mount.path
            if _can_divide(place):
                offered = _words(place, "cgroup.controllers")
                return Ground(2, tuple((name, place) for name in _WANTED if name in offered))
            group = os.path.dirname(group) if group else None
    return None


def _can_divide(place: str) -> bool:
    """Whether groups below can be limited; a group that holds processes itself, other than the root, cannot."""
    if not set(_NEEDED) <= _words(place, "cgroup.controllers"):
        return False
    made = os.path.join(place, _OURS)
    try:
        _enable(place)
        os.makedirs(made, exist_ok=True)
        _enable(made)
        # Entering a group takes the right to write here too.
        return os.access(os.path.join(place, "cgroup.procs"), os.W_OK)
    except OSError:
        with suppress(OSError):
            os.rmdir(made)
        return False


def _enable(place: str) -> None:
    """Let the groups below be limited."""
    missing = (set(_WANTED) & _words(place, "cgroup.controllers")) - _words(place, "cgroup.subtree_control")
    for name in sorted(missing):
        _write(place, "cgroup.subtree_control", f"+{name}")


def _first(own: Mapping[str, str], mounts: list[_Mount]) -> Ground | None:
    """A place in each hierarchy of version 1; as a rule only root has that."""
    found = {}
    for mount in mounts:
        for name in mount.options & set(_WANTED) if mount.version == 1 else ():
            group = mount.inside(own.get(name, ""))
            place = os.path.join(mount.path, group) if group else mount.path
            if group is not None and _can_make(place):
                found[name] = place
    return Ground(1, tuple(found.items())) if set(_NEEDED) <= set(found) else None


def _can_make(place: str) -> bool:
    """Whether groups can be made there; what another user made of that name is not for us."""
    made = os.path.join(place, _OURS)
    for _ in range(_TRIES):
        try:
            os.makedirs(made, exist_ok=True)
            tried = os.path.join(made, f"try-{os.getpid()}-{time.monotonic_ns()}")
            os.mkdir(tried)
            os.rmdir(tried)
        except FileNotFoundError:
            # Another session has just removed what it was the last to need.
            continue
        except OSError:
            return False
        return True
    return False


def leave(where: Ground) -> None:
    """Remove what only the look for a place has made."""
    for place in where.roots:
        with suppress(OSError):
            os.rmdir(os.path.join(place, _OURS))


def session_groups(where: Ground, session_id: str) -> tuple[str, ...]:
    """The groups a session has, one in each hierarchy; no matter whether they have been made."""
    return tuple(os.path.join(place, _OURS, _name(session_id)) for place in where.roots)


def make_session(where: Ground, session_id: str, limits: Limits) -> None:
    """Make the groups of a session, or give those there are other limits."""
    for group in session_groups(where, session_id):
        _make(group)
        if where.version == 2:
            _enable(os.path.dirname(group))
            _enable(group)
    _limit(where, session_id, limits)


def make_agent(where: Ground, session_id: str, agent: str, limits: Limits) -> tuple[str, ...]:
    """Make the groups of an agent below those of its session; returns them, for its launcher."""
    groups = tuple(os.path.join(group, _name(agent)) for group in session_groups(where, session_id))
    for group in groups:
        _make(group)
    _limit(where, f"{session_id}/{agent}", limits)
    return groups


def group_of(where: Ground, controller: str, session_id: str, agent: str) -> str | None:
    """Where a controller keeps count of an agent."""
    place = where.place(controller)
    return place and os.path.join(place, _OURS, session_id, agent)


def _make(group: str) -> None:
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            # Another session may just have removed what it was the last to need.
            os.makedirs(group, exist_ok=True)
            return
    raise OSError(errno.ENOENT, "cannot be made", group)


def _limit(where: Ground, path: str, limits: Limits) -> None:
    for controller, place in where.places:
        group = os.path.join(place, _OURS, path)
        for name, value in _settings(where.version, controller, limits):
            # Without swap there is nothing to limit of it.
            if os.path.exists(os.path.join(group, name)) or "sw" not in name:
                _write(group, name, value)


def _settings(version: int, controller: str, limits: Limits) -> Iterator[tuple[str, str]]:
    """What to write into which file of a controller."""
    memory, cpu = limits.memory, limits.cpu
    if controller == "pids":
        yield "pids.max", str(limits.processes or "max")
    elif controller == "memory" and version == 2:
        yield "memory.max", str(memory or "max")
        yield "memory.swap.max", "0" if memory else "max"
    elif controller == "memory" and memory:
        yield "memory.limit_in_bytes", str(memory)
        yield "memory.memsw.limit_in_bytes", str(memory)
    elif controller == "cpu" and version == 2:
        yield "cpu.max", f"{int(cpu * _PERIOD)} {_PERIOD}" if cpu else f"max {_PERIOD}"
    elif controller == "cpu":
        yield "cpu.cfs_quota_us", str(int(cpu * _PERIOD)) if cpu else "-1"


def members(groups: tuple[str, ...]) -> list[int]:
    """Every process in these groups and in those below."""
    found: dict[int, None] = {}
    for group in groups:
        for place, _, _ in os.walk(group):
            try:
                with open(os.path.join(place, "cgroup.procs"), encoding="ascii") as file:
                    found |= dict.fromkeys(map(int, file.read().split()))
            except OSError:
                continue
    # Of what lives in another pid namespace there is no number here.
    found.pop(0, None)
    return list(found)


def end_members(groups: tuple[str, ...]) -> None:
    """Kill all processes in these groups, as fast as they can fork."""
    for group in groups:
        for place, _, files in os.walk(group):
            with suppress(OSError):
                if "pids.max" in files:
                    # What is being killed starts nothing more.
                    _write(place, "pids.max", "0")
        with suppress(OSError):
            _write(group, "cgroup.kill", "1")
    for pid in members(groups):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, 9)


def remove_groups(groups: tuple[str, ...], patience: float) -> list[str]:
    """End what is left in the groups of a session and remove them; returns those that could not be removed."""
    deadline = time.monotonic() + patience
    while left := [group for group in groups if not _removed(group)]:
        if time.monotonic() > deadline:
            return left
        end_members(tuple(left))
        time.sleep(_LOOK_AGAIN)
    for group in groups:
        with suppress(OSError):
            # Unless another session has some.
            os.rmdir(os.path.dirname(group))
    return []


def _removed(group: str) -> bool:
    for place, _, _ in os.walk(group, topdown=False):
        try:
            os.rmdir(place)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True


def is_group_of(path: str, session_id: str) -> bool:
    """Whether a path is that of a session's control group, and not just called so."""
    sound = "\0" not in path and os.path.realpath(path) == path and path.endswith(f"/{_OURS}/{session_id}")
    return sound and os.path.isfile(os.path.join(path, "cgroup.procs"))


def _name(word: str) -> str:
    """A part of a group's name; ids are nothing but these characters."""
    if not word or not word.replace("-", "").isalnum():
        raise ValueError(f"not a name for a control group: {word!r}")
    return word


def _words(place: str, name: str) -> set[str]:
    try:
        with open(os.path.join(place, name), encoding="ascii") as file:
            return set(file.read().split())
    except OSError:
        return set()


def _write(place: str, name: str, value: str) -> None:
    fd = os.open(os.path.join(place, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)
