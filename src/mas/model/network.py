"""A session's network: which names its agents may reach, as people write it and as the egress process reads it.

The egress process starts with every session, so this imports nothing.
"""

from __future__ import annotations

STRAIGHT_PORTS = (22, 80, 443)
"""What can be reached at every allowed name without naming a port."""
_LARGEST_PORT = 65535
_LONGEST_NAME, _LONGEST_LABEL = 253, 63
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_ANY_BELOW = "*."
LOCALHOST = "localhost"
ALLOW, PRIVATE = "allow", "private"
"""The lists of a policy that name what may be reached."""


class Place:
    """A host, and the one port of it that is meant; without a port those that need no naming."""

    __slots__ = ("host", "port")

    def __init__(self, host: str, port: int | None) -> None:
        self.host = host
        self.port = port

    def covers(self, name: str, port: int | None) -> bool:
        """Whether a name, at a port or at any, is meant."""
        if port is not None and (port != self.port if self.port else port not in STRAIGHT_PORTS):
            return False
        if self.host.startswith(_ANY_BELOW):
            return name.endswith(self.host[1:])
        return name == self.host


def parse_place(word: str) -> Place:
    """`example.com`, `*.example.com`, `db.example.com:5432` or `10.1.2.3:443`; else `ValueError`."""
    host, port = word.lower(), None
    head, colon, tail = host.rpartition(":")
    if colon:
        if not tail.isascii() or not tail.isdigit() or not 1 <= int(tail) <= _LARGEST_PORT:
            raise ValueError("not a port")
        host, port = head, int(tail)
    if not is_name(host.removeprefix(_ANY_BELOW)):
        raise ValueError("not a host name")
    if host == LOCALHOST and port is None:
        raise ValueError("not a service of this machine: that needs a port")
    return Place(host.removesuffix("."), port)


def is_name(text: str) -> bool:
    """Whether it can be the name of a host, in small letters; a dot at its end is allowed."""
    text = text.removesuffix(".")
    labels = text.split(".")
    return len(text) <= _LONGEST_NAME and all(
        0 < len(label) <= _LONGEST_LABEL and _LETTERS.issuperset(label) for label in labels
    )


def is_address(host: str) -> bool:
    """Whether a host is given by its address."""
    parts = host.split(".")
    return len(parts) == 4 and all(part.isascii() and part.isdigit() for part in parts)


class NetworkRules:
    """What agents may reach: by name in `mode` `names` (all public ones) or `list`; in `none` nothing but MAS.

    In `full` they reach what is public without this; by name what is private, and what they ask the proxy inside for.
    """

    def __init__(self, mode: str, allow: tuple[str, ...] = (), private: tuple[str, ...] = ()) -> None:
        self.mode = mode
        self._allow = [parse_place(word) for word in allow]
        self._private = [parse_place(word) for word in private]

    def refusal(self, name: str, port: int | None) -> str:
        """Why a name may not be reached, at a port or at all; empty if it may, as far as its name goes."""
        if self.mode == "none":
            return "the session has no network"
        if self.is_private(name, port) or any(place.covers(name, port) for place in self._allow):
            return ""
        if self.mode == "list":
            return "it is not on the list of allowed names"
        if "." not in name:
            return "it is not a public name"
        if port is not None and port not in STRAIGHT_PORTS and self.mode != "full":
            return f"port {port} is not open"
        return ""

    def remedy(self, name: str) -> str:
        """The list that a name must be added to so that it is no longer refused; empty if none helps."""
        if self.mode == "none":
            return ""
        return ALLOW if "." in name else PRIVATE

    def is_private(self, name: str, port: int | None) -> bool:
        """Whether the owner has named it as one that may be in a private network."""
        return self.mode != "none" and any(place.covers(name, port) for place in self._private)


def shown_place(name: str, port: int | None) -> str:
    """A name and a port as a list has them."""
    return f"{name}:{port}" if port and port not in STRAIGHT_PORTS else name


def places_to_listen(allow: tuple[str, ...], private: tuple[str, ...]) -> dict[str, list[int]]:
    """The hosts that are named with a port of their own, and those ports; and all that are named by address."""
    found: dict[str, list[int]] = {}
    for place in map(parse_place, (*allow, *private)):
        if place.port and place.port not in STRAIGHT_PORTS and not place.host.startswith(_ANY_BELOW):
            found.setdefault(place.host, []).append(place.port)
        elif is_address(place.host):
            found.setdefault(place.host, [])
    return {host: list(dict.fromkeys(ports)) for host, ports in found.items()}
