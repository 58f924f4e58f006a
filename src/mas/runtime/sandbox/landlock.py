"""Landlock: a process gives up access, for itself and its children, to every file and port that no rule allows."""

from __future__ import annotations

import os

from mas.runtime.sandbox.system import call, open_place
from mas.runtime.sandbox.view import DEVICES, has_below, is_below, kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mas.model.launch import Rules

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL, _RESOLVE_UNIX = 1 << 14, 1 << 15, 1 << 16
# How many rights there are from which version on.
_RIGHTS = ((9, 17), (5, 16), (3, 15), (2, 14), (1, 13))
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = (1 << 17) - 1 & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL)
_DEVICE = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _IOCTL
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL | _RESOLVE_UNIX
_BIND, _CONNECT = 1, 2
_SIGNALS_AND_ABSTRACT_SOCKETS = 3
_FORMAT, _DIRECTORY = 0o170000, 0o040000
_VERSION = 1
_BENEATH, _PORT = 1, 2
_PORTS_SINCE, _SCOPES_SINCE = 4, 6
_LESS = {"hide": ("read", "write"), "read": ("write",)}


def abi() -> int:
    """Which version of Landlock the kernel has; 0 is none."""
    try:
        return call("landlock_create_ruleset", None, 0, _VERSION)
    except OSError:
        return 0


def ruleset(rules: Rules, terminal: str = "") -> int:
    """A descriptor of what is allowed by the rules, made where all their paths can be seen; -1 without Landlock.

    `terminal` is the path of the agent's own; without it, all there are in its view.
    """
    version = abi()
    if rules.ports is not None and version < _PORTS_SINCE:
        raise OSError(95, f"this kernel cannot restrict ports: Landlock {version}, and that needs {_PORTS_SINCE}")
    if not version:
        if rules.tier == "A":
            return -1
        raise OSError(95, "this kernel has no Landlock")
    handled = (1 << next(count for since, count in _RIGHTS if version >= since)) - 1
    words = (handled, _handled_ports(rules), _SIGNALS_AND_ABSTRACT_SOCKETS)
    size = 1 + (version >= _PORTS_SINCE) + (version >= _SCOPES_SINCE)
    attribute = b"".join(word.to_bytes(8, "little") for word in words[:size])
    made = call("landlock_create_ruleset", attribute, len(attribute), 0)
    named = kinds(rules)
    for path, rights in _grants(rules, terminal):
        try:
            _allow(made, path, rights & handled)
        except FileNotFoundError:
            # Seen a moment ago in a directory that is given in parts, and gone since.
            if path in named:
                raise
    if rules.ports is not None:
        ports = dict.fromkeys(rules.connect, _CONNECT) | dict.fromkeys(rules.ports, _BIND | _CONNECT)
        for port, rights in ports.items():
            call("landlock_add_rule", made, _PORT, rights.to_bytes(8, "little") + port.to_bytes(8, "little"), 0)
    return made


def restrict(made: int) -> None:
    """Give up everything else, for ever. Needs `no_new_privs`."""
    if made >= 0:
        call("landlock_restrict_self", made, 0)
        os.close(made)


def _handled_ports(rules: Rules) -> int:
    """What is refused at ports without a rule. In tier B an agent could take the port of a server that is restarted."""
    if rules.ports is not None:
        return _BIND | _CONNECT
    return _BIND if rules.tier == "B" else 0


def _allow(made: int, path: str, rights: int) -> None:
    place = open_place(path)
    try:
        if os.fstat(place).st_mode & _FORMAT != _DIRECTORY:
            rights &= _OF_FILES
        beneath = rights.to_bytes(8, "little") + place.to_bytes(4, "little")
        # A right that this kernel does not know leaves none, and a rule without one is an error.
        if rights:
            call("landlock_add_rule", made, _BENEATH, beneath, 0)
    finally:
        os.close(place)


def _grants(rules: Rules, terminal: str) -> list[tuple[str, int]]:
    """Which path is given which rights."""
    # A right to all terminals would be one to those of other sessions.
    terminals = (terminal,) if terminal else ("/dev/ptmx", "/dev/pts")
    devices = [(path, _DEVICE) for path in (*(f"/dev/{name}" for name in DEVICES), *terminals)]
    devices = [(os.path.realpath(path), rights) for path, rights in devices if os.path.exists(path)]
    named = kinds(rules)
    if rules.tier == "A":
        # What is hidden or read-only is so by its mount.
        writable = [path for path, kind in named.items() if kind in ("write", "bind")]
        sockets = [(path, _RESOLVE_UNIX) for path in rules.read if is_below(path, "/run")]
        return [("/", _READ), ("/dev/shm", _WRITE), *devices, *((path, _all(path)) for path in writable), *sockets]  # noqa: S108
    granted = [one for path, kind in named.items() if kind in ("read", "write") for one in _split(path, kind, named)]
    return [*devices, *((path, _READ if kind == "read" else _all(path)) for path, kind in granted)]


def _all(path: str) -> int:
    return _WRITE | _IOCTL if is_below(path, "/dev") else _WRITE


def _split(path: str, kind: str, named: dict[str, str]) -> list[tuple[str, str]]:
    """The places that together are `path` without what is less than it below.

    A right given to a directory holds for all in it and cannot be taken back, so then what is in it gets it one by one.
    """
    less = [other for other, its in named.items() if kind in _LESS.get(its, ())]
    if not has_below(path, less):
        return [(path, kind)]
    found = []
    for entry in os.scandir(path):
        if entry.path not in named and not entry.is_symlink():
            found += _split(entry.path, kind, named)
    return found
