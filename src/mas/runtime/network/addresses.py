"""Which addresses outside no agent may reach: those of this machine and of networks that are not public."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

LOOPBACK, LINK_LOCAL, PRIVATE, NOT_PUBLIC, OWN = "loopback", "link-local", "private", "not public", "own"
_KINDS = tuple(
    (kind, ip_network(network))
    for kind, network in (
        (LOOPBACK, "127.0.0.0/8"),
        (LOOPBACK, "::1/128"),
        (LINK_LOCAL, "169.254.0.0/16"),
        (LINK_LOCAL, "fe80::/10"),
        # Where clouds answer for their machines.
        (LINK_LOCAL, "fd00:ec2::254/128"),
        (LINK_LOCAL, "168.63.129.16/32"),
        (LINK_LOCAL, "100.100.100.200/32"),
        (PRIVATE, "10.0.0.0/8"),
        (PRIVATE, "172.16.0.0/12"),
        (PRIVATE, "192.168.0.0/16"),
        (PRIVATE, "100.64.0.0/10"),
        (PRIVATE, "fc00::/7"),
        (PRIVATE, "fec0::/10"),
        (NOT_PUBLIC, "0.0.0.0/8"),
        (NOT_PUBLIC, "192.0.0.0/24"),
        (NOT_PUBLIC, "192.0.2.0/24"),
        (NOT_PUBLIC, "192.88.99.0/24"),
        (NOT_PUBLIC, "198.18.0.0/15"),
        (NOT_PUBLIC, "198.51.100.0/24"),
        (NOT_PUBLIC, "203.0.113.0/24"),
        (NOT_PUBLIC, "224.0.0.0/4"),
        (NOT_PUBLIC, "240.0.0.0/4"),
        (NOT_PUBLIC, "::/128"),
        (NOT_PUBLIC, "100::/64"),
        (NOT_PUBLIC, "2001:2::/48"),
        (NOT_PUBLIC, "2001:db8::/32"),
        (NOT_PUBLIC, "3fff::/20"),
        (NOT_PUBLIC, "5f00::/16"),
        (NOT_PUBLIC, "ff00::/8"),
    )
)
# An address of the older kind within a newer one: mapped, compatible, translated (NAT64) and tunnelled ones.
_LAST_FOUR_BYTES = tuple(ip_network(one) for one in ("::ffff:0:0/96", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
_NOT_KNOWN = tuple(ip_network(one) for one in ("64:ff9b:1::/48", "2001::/32"))
_TUNNELLED = ip_network("2002::/16")
# What an owner who names a host allows it to be.
NAMED = (PRIVATE, OWN)


def closed_networks() -> list[tuple[bytes, int]]:
    """All networks but loopback that agents may not reach, as an address and how many of its bits count."""
    networks = [network for kind, network in _KINDS if kind != LOOPBACK] + [*_NOT_KNOWN, _TUNNELLED]
    found = [(network.network_address.packed, network.prefixlen) for network in networks]
    translated = _LAST_FOUR_BYTES[-1].network_address.packed[:12]
    return found + [(translated + packed, 96 + length) for packed, length in found if len(packed) == 4]


def why_closed(text: str) -> str:
    """What kind of address it is that agents may not reach; empty for a public one of another machine."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return NOT_PUBLIC
    kind = _kind(_inner(address)) or _kind(address)
    if not kind and isinstance(address, IPv6Address) and any(address in network for network in _NOT_KNOWN):
        kind = NOT_PUBLIC
    return kind or (OWN if _is_own(address) else "")


def _kind(address: IPv4Address | IPv6Address) -> str:
    return next((kind for kind, network in _KINDS if address in network), "")


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The address that one of the newer kind stands for."""
    if isinstance(address, IPv4Address):
        return address
    packed = address.packed
    if any(address in network for network in _LAST_FOUR_BYTES) and int(address) > 1:
        return IPv4Address(packed[12:])
    if address in _TUNNELLED:
        return IPv4Address(packed[2:6])
    return address


def _is_own(address: IPv4Address | IPv6Address) -> bool:
    """Whether this machine has that address itself: then it would speak to itself from that very one."""
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        try:
            # Nothing is sent by this.
            one.connect((str(address), 9))
            return ip_address(str(one.getsockname()[0]).partition("%")[0]) == address
        except OSError:
            return False
