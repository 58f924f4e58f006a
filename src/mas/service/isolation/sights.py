"""What an agent sees, path by path, and why: rules in order, of which the last for a path counts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mas.runtime.sandbox.places import ETC, followed
from mas.settings import MARKER

READ, WRITE, HIDE = "read", "write", "hide"
# How deep below an install prefix another workspace is looked for, and below what a policy shows; and among how many
# directories.
PREFIX_DEPTH, POLICY_DEPTH = 2, 6
_MOST_DIRECTORIES = 2000
# Nobody has a workspace in there, and they are large.
_NOT_IN = ("node_modules", ".git", "__pycache__")
_SESSIONS = "sessions"
_RUNNABLE_BY_ALL = 0o005
_COVERED = "covered"


class Sight(NamedTuple):
    """What a path is to an agent, and why."""

    kind: str
    why: str


class Kept(dict[str, Sight]):
    """Rules that are needed."""

    def of(self, kind: str) -> tuple[str, ...]:
        """The paths of one kind."""
        return tuple(sorted(path for path, sight in self.items() if sight.kind == kind))


class Sights:
    """Rules for paths. Paths are given as people name them; the links on the way are kept, too."""

    def __init__(self, base: str = HIDE) -> None:
        self._base = base
        self.rules: dict[str, Sight] = {}
        self.links: dict[str, str] = {}

    def copy(self) -> Sights:
        copied = Sights(self._base)
        copied.update(self)
        return copied

    def update(self, other: Sights) -> None:
        self.rules |= other.rules
        self.links |= other.links

    def add(self, kind: str, why: str, paths: Iterable[str], only_new: bool = False) -> None:
        """A rule for those of the paths that exist; with `only_new`, a path of that kind keeps the reason it has."""
        found, links = followed(paths)
        there = {path for path in found if path in self.rules and self.rules[path].kind == kind} if only_new else ()
        self.rules |= {path: Sight(kind, why) for path in found if path not in there}
        if kind != HIDE:
            self.links |= links

    def kind_of(self, path: str) -> str:
        """What a resolved path is."""
        return self.nearest(path, self.rules)[1].kind

    def nearest(self, path: str, rules: dict[str, Sight]) -> tuple[str, Sight]:
        """The rule that decides for a path, and whose it is."""
        while path not in rules and path != "/":
            path = path.rpartition("/")[0] or "/"
        return path, rules.get(path, Sight(self._base, "not listed" if self._base == HIDE else "the machine"))

    def needed(self, covered: tuple[str, ...]) -> Kept:
        """Without rules that repeat what a rule for a parent directory already says, and without covered paths."""
        covers = dict.fromkeys(covered, Sight(HIDE, _COVERED))
        everything = {**self.rules, **covers}
        kept = Kept()
        for path, sight in self.rules.items():
            above = self.nearest(os.path.dirname(path), everything)[1]
            # Below a directory of the agent's own, what is hidden is covered, if only as a way to what is shown.
            if path not in covers and (sight.kind != above.kind or above.why == _COVERED):
                kept[path] = sight
        return kept

    def needed_links(self, covered: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """The links that do not come with what is shown; those of /etc are in its copy."""
        everything = {**self.rules, **dict.fromkeys((*covered, ETC), Sight(HIDE, _COVERED))}
        found = []
        for path, target in sorted(self.links.items()):
            _, sight = self.nearest(path, everything)
            if sight.kind == HIDE and sight.why != _COVERED and path not in self.rules:
                found.append((path, target))
        return tuple(found)

    def leading_out(self, path: str) -> list[str]:
        """The links among the programs on PATH that lead to what is not seen, where every user may run it."""
        found = []
        for directory in dict.fromkeys(map(os.path.realpath, filter(os.path.isabs, path.split(":")))):
            for link in _links_in(directory):
                real = _real(link)
                if real and self.kind_of(real) == HIDE:
                    found.append(link)
        return found


def nested_workspaces(places: Iterable[str], depth: int) -> Iterator[str]:
    """The workspaces in these places, as far as they are near the top."""
    left = _MOST_DIRECTORIES
    for place in dict.fromkeys(places):
        level = [place]
        for below in range(depth + 1):
            yield from (one for one in level if os.path.exists(os.path.join(one, MARKER)))
            left -= len(level)
            if left < 0 or below == depth:
                break
            level = [inner for one in level for inner in _directories_in(one)]


def is_in_sessions(path: str) -> bool:
    """Whether a resolved path is in the sessions of a workspace, of this one or any other."""
    parts = path.split("/")
    roots = ("/".join(parts[:at]) for at, name in enumerate(parts) if name == _SESSIONS)
    return any(os.path.exists(os.path.join(root, MARKER)) for root in roots)


def _directories_in(place: str) -> list[str]:
    try:
        found = [entry for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [entry.path for entry in found if entry.name not in _NOT_IN]


def _links_in(directory: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(directory) if entry.is_symlink()]
    except OSError:
        return []


def _real(link: str) -> str:
    """Where a link to a program that every user may run leads; empty for any other."""
    try:
        fd = os.open(link, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        runnable = os.fstat(fd).st_mode & _RUNNABLE_BY_ALL == _RUNNABLE_BY_ALL
        return os.readlink(f"/proc/self/fd/{fd}") if runnable else ""
    finally:
        os.close(fd)
