"""What agents have as /etc: a few files of the machine's, without keys, passwords and other people's accounts."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator

from mas.runtime.sandbox.places import ETC, ETC_ACCOUNTS, ETC_DIRECTORIES, ETC_FILES, follow, in_etc
from mas.service.isolation.homes import is_in

_LARGEST = 8 << 20
_FOR_ALL = stat.S_IROTH
# Lines that sign in somewhere: tokens of package registries, passwords and tokens in addresses, keys in variables. Not
# the line `passwd:` of nsswitch.conf, and not `git@`, which is no secret.
_SIGNS_IN = re.compile(
    rb"_authToken|_password|_auth\s*=|passw(or)?d\s*=|password\s*:|://[^/\s@]*:[^/\s@]*@|://(?!git@)[^/\s@]+@"
    rb"|(token|secret|api_?key|access_?key)\s*=\s*\S|authorization\s*:",
    re.IGNORECASE,
)
_ALWAYS = {"passwd": (b"root", b"nobody"), "group": (b"root", b"nogroup", b"nobody", b"tty")}
_FEWEST_FIELDS = 3


def copied(is_seen: Callable[[str], bool], uid: int, home: str) -> dict[str, bytes | str]:
    """The files for a copy of /etc, by name: their content or, as text, what a link that agents can follow leads to."""
    links = (link for path in directories() for link in follow(path)[1].items())
    found: dict[str, bytes | str] = {os.path.relpath(path, ETC): target for path, target in links if is_in(path, ETC)}
    for path in in_etc(ETC_FILES):
        name, real = os.path.relpath(path, ETC), os.path.realpath(path)
        if real != path and is_seen(real):
            found[name] = real
        elif (content := _public(real)) is not None:
            found[name] = _without_keys(content)
    return {**found, **_accounts(uid, home)}


def directories() -> Iterator[str]:
    """The directories of /etc that agents see."""
    return (path for path in in_etc(ETC_DIRECTORIES) if os.path.isdir(path))


def harmless() -> Iterator[str]:
    """The files of /etc that agents may read as they are, where there can be no copy."""
    for path in in_etc((*ETC_FILES, *ETC_ACCOUNTS)):
        content = _public(os.path.realpath(path))
        if content is not None and _without_keys(content) == content:
            yield path


def closed(places: Iterable[str]) -> Iterator[str]:
    """What below these directories is not for every user of the machine: an agent may own it."""
    for place in places:
        try:
            entries = list(os.scandir(place))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                continue
            if not entry.stat().st_mode & _FOR_ALL:
                yield entry.path
            elif entry.is_dir():
                yield from closed((entry.path,))


def _public(path: str) -> bytes | None:
    """The content of a file that every user may read; None of any other."""
    try:
        info = os.stat(path)
        if not stat.S_ISREG(info.st_mode) or not info.st_mode & _FOR_ALL or info.st_size > _LARGEST:
            return None
        with open(path, "rb") as file:
            return file.read(_LARGEST)
    except OSError:
        return None


def _without_keys(content: bytes) -> bytes:
    if b"\0" in content or not _SIGNS_IN.search(content):
        return content
    return b"".join(line for line in content.splitlines(keepends=True) if not _SIGNS_IN.search(line))


def _accounts(uid: int, home: str) -> dict[str, bytes]:
    """`passwd` and `group` with root, nobody and the agents' own account, whose home is that of the session."""
    import pwd

    try:
        own = pwd.getpwuid(uid)
    except KeyError:
        own = pwd.struct_passwd((str(uid), "x", uid, os.getgid(), "", home, "/bin/sh"))
    people = _lines("passwd", b"")
    line = ":".join((own.pw_name, "x", str(uid), str(own.pw_gid), own.pw_gecos, home, own.pw_shell))
    people[os.fsencode(own.pw_name)] = os.fsencode(line)
    groups = _lines("group", str(own.pw_gid).encode())
    return {"passwd": b"\n".join(people.values()) + b"\n", "group": b"\n".join(groups.values()) + b"\n"}


def _lines(name: str, number: bytes) -> dict[bytes, bytes]:
    """The lines of such a file that every agent has, and the one with that number, by their names."""
    found = {}
    for line in (_public(f"{ETC}/{name}") or b"").splitlines():
        fields = line.split(b":")
        if len(fields) > _FEWEST_FIELDS and (fields[0] in _ALWAYS[name] or fields[2] == number):
            fields[1] = b"x"
            if name == "group":
                fields[3] = b""
            found[fields[0]] = b":".join(fields)
    return found
