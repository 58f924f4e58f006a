"""Whether files match a pattern in a directory that agents can write: follows no link, and gives up in time."""

from __future__ import annotations

import os

from mas.store.files.descriptors import DIRECTORY

_MAGIC = ("*", "?", "[")
# So many entries are looked at; what has more was made to be looked at.
_MOST = 20_000
_DEEPEST = 64


def is_any(pattern: str) -> bool:
    """Whether something matches a pattern: `*`, `?` and `[…]` within a name, `**` for any directories."""
    parts = pattern.split("/")
    fixed = next((place for place, part in enumerate(parts) if _is_magic(part)), len(parts) - 1)
    try:
        start = "/".join(_plain(part) for part in parts[:fixed])
        fd = os.open(start or ("/" if pattern.startswith("/") else "."), DIRECTORY)
    except OSError:
        return False
    return _Search().below(fd, parts[fixed:], 0)


class _Search:
    """One search, which ends when it has looked at enough."""

    def __init__(self) -> None:
        self._left = _MOST

    def below(self, fd: int, parts: list[str], depth: int) -> bool:
        """Whether something in an open directory, which is closed, matches the rest of a pattern."""
        try:
            part, rest = parts[0], parts[1:]
            if not _is_magic(part):
                return self._matches(fd, _plain(part), rest, depth)
            if part == "**" and self._here_too(fd, rest, depth):
                return True
            with os.scandir(fd) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        return False
                    if part == "**":
                        if entry.is_dir(follow_symlinks=False) and self._enter(fd, entry.name, parts, depth):
                            return True
                    elif _is_meant(entry.name, part) and self._matches(fd, entry.name, rest, depth):
                        return True
            return False
        except OSError:
            return False
        finally:
            os.close(fd)

    def _here_too(self, fd: int, rest: list[str], depth: int) -> bool:
        """`**` is no directory at all as well."""
        return bool(rest) and self.below(os.dup(fd), rest, depth)

    def _matches(self, fd: int, name: str, rest: list[str], depth: int) -> bool:
        if rest:
            return self._enter(fd, name, rest, depth)
        os.stat(name, dir_fd=fd, follow_symlinks=False)
        return True

    def _enter(self, fd: int, name: str, parts: list[str], depth: int) -> bool:
        if depth >= _DEEPEST:
            return False
        try:
            inner = os.open(name, DIRECTORY, dir_fd=fd)
        except OSError:
            return False
        return self.below(inner, parts, depth + 1)


def _is_meant(name: str, part: str) -> bool:
    from fnmatch import fnmatchcase

    return (not name.startswith(".") or part.startswith(".")) and fnmatchcase(name, part)


def _is_magic(part: str) -> bool:
    return any(sign in _unescaped(part) for sign in _MAGIC)


def _unescaped(part: str) -> str:
    """A part without the signs that `glob.escape` made to mean themselves."""
    for sign in _MAGIC:
        part = part.replace(f"[{sign}]", "")
    return part


def _plain(part: str) -> str:
    for sign in _MAGIC:
        part = part.replace(f"[{sign}]", sign)
    return part
