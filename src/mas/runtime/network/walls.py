"""Closes a network namespace against everything that is not public, by rules of the kernel that no agent can change."""

from __future__ import annotations

import _socket
import os

from mas.runtime.network.addresses import closed_networks

_REQUEST, _ACK, _CREATE, _EXCLUSIVE = 1, 4, 0x400, 0x200
_NEW_RULE, _ERROR = 32, 2
_DESTINATION, _PRIORITY = 1, 6
_UNREACHABLE = 7
_ROUTE = 0
# After the table of the namespace's own addresses, before all others.
_BEFORE_OTHERS = 100
# There is such a rule already; and there are no addresses of that kind.
_HARMLESS = (17, 97)


def close_what_is_not_public(also: list[tuple[bytes, int]]) -> None:
    """Make networks that are not public, and some more, unreachable in this namespace; `OSError` if that cannot be."""
    netlink = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, _ROUTE)
    try:
        for packed, length in (*closed_networks(), *also):
            netlink.send(_rule(packed, length))
            answer = netlink.recv(1 << 12)
            code = -int.from_bytes(answer[16:20], "little", signed=True) if answer[4:6] == _short(_ERROR) else 0
            if code and code not in _HARMLESS:
                raise OSError(code, f"private networks cannot be closed: {os.strerror(code)}")
    finally:
        netlink.close()


def _rule(packed: bytes, length: int) -> bytes:
    family = _socket.AF_INET if len(packed) == 4 else _socket.AF_INET6
    body = bytes((family, length, 0, 0, 0, 0, 0, _UNREACHABLE)) + bytes(4)
    body += _attribute(_DESTINATION, packed) + _attribute(_PRIORITY, _BEFORE_OTHERS.to_bytes(4, "little"))
    head = (16 + len(body)).to_bytes(4, "little") + _short(_NEW_RULE) + _short(_REQUEST | _ACK | _CREATE | _EXCLUSIVE)
    return head + (1).to_bytes(4, "little") + bytes(4) + body


def _attribute(kind: int, data: bytes) -> bytes:
    return _short(4 + len(data)) + _short(kind) + data


def _short(number: int) -> bytes:
    return number.to_bytes(2, "little")


def machine_addresses() -> list[tuple[bytes, int]]:
    """The addresses of the namespace that this process is in, but for loopback."""
    found = []
    with open("/proc/self/net/fib_trie", encoding="ascii") as file:
        before = ""
        for line in file:
            words = line.split()
            if words[:3] == ["/32", "host", "LOCAL"] and not before.startswith("127."):
                found.append((_socket.inet_aton(before), 32))
            before = words[-1] if words else ""
    try:
        with open("/proc/self/net/if_inet6", encoding="ascii") as file:
            found += [(bytes.fromhex(words[0]), 128) for words in map(str.split, file) if words[5] != "lo"]
    except FileNotFoundError:
        # This kernel has no addresses of the newer kind.
        pass
    return found
