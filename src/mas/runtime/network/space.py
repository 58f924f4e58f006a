"""A session's network namespace, and the sockets made inside it through which all of its traffic goes.

A socket belongs to the namespace it was created in, not to the process that uses it: so a process outside can listen
inside. Runs in launchers, which start once per agent, so this imports nothing but C modules.
"""

from __future__ import annotations

import _socket
import fcntl
import os

from mas.runtime.descriptors import open_in_child
from mas.runtime.sandbox.namespaces import keep_ids
from mas.runtime.sandbox.system import libc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NEWUSER, _NEWNET = 0x10000000, 0x40000000
_EPERM = 1
_SIOCSIFFLAGS, _SIOCSIFADDR, _IFF_UP = 0x8914, 0x8916, 1
_BACKLOG = 128
LOOPBACK = "127.0.0.1"
DOOR_PORT = 7717
"""Where agents reach MAS: the same in every session, whatever the server's own port is."""
PROXY_PORT = 3128
_ANOTHER = "127.63.0.1"
# The second is where programs ask that find no list of name servers.
NAME_SERVERS = (("127.0.0.53", 53), (LOOPBACK, 53))
# Agents cannot take these: to bind a port below 1024 needs a capability that they do not have.
STRAIGHT_PORTS = (22, 80, 443)


class Space:
    """Descriptors of a network namespace and of the user namespace that owns it."""

    __slots__ = ("net", "user")

    def __init__(self, user: int, net: int) -> None:
        self.user = user
        self.net = net

    def join(self, with_user: bool = False) -> None:
        """Move this process into it; into the user namespace only if it has to or is told to, and is not there yet."""
        if os.geteuid() == 0 and not with_user:
            try:
                libc("setns", self.net, _NEWNET)
                return
            except OSError as error:
                if error.errno != _EPERM:
                    raise
        if os.fstat(self.user).st_ino != os.stat("/proc/self/ns/user").st_ino:
            libc("setns", self.user, _NEWUSER)
        libc("setns", self.net, _NEWNET)

    def close(self) -> None:
        os.close(self.user)
        os.close(self.net)


def unshare_network() -> None:
    """Move this process into a new network namespace in which only loopback exists; `OSError` if that is refused."""
    uid, gid = os.geteuid(), os.getegid()
    if uid:
        libc("unshare", _NEWUSER | _NEWNET)
        keep_ids(uid, gid)
    else:
        _unshare_as_root()
    with_socket = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    request = b"lo".ljust(16, b"\0") + _IFF_UP.to_bytes(2, "little") + bytes(22)
    fcntl.ioctl(with_socket.fileno(), _SIOCSIFFLAGS, request)
    with_socket.close()


def _unshare_as_root() -> None:
    try:
        libc("unshare", _NEWNET)
    except OSError as error:
        if error.errno != _EPERM:
            raise
        libc("unshare", _NEWUSER | _NEWNET)
        keep_ids(0, os.getegid())


def listeners(extra: tuple[tuple[str, int], ...]) -> list[int]:
    """Descriptors of the sockets through which all traffic of this namespace goes; `extra` are more to listen at.

    The port 0 stands for an address of a private network, which the namespace is given.
    """
    # Programs that want addresses of the machine's own kinds only (AI_ADDRCONFIG) do not count 127.0.0.1.
    _add_address(_ANOTHER)
    straight = [("0.0.0.0", port) for port in STRAIGHT_PORTS]  # noqa: S104 - of a namespace without a way out
    usual = [(LOOPBACK, DOOR_PORT), (LOOPBACK, PROXY_PORT), *straight, *NAME_SERVERS]
    found = [_bound(_socket.SOCK_STREAM, place) for place in usual]
    found += [_bound(_socket.SOCK_DGRAM, place) for place in NAME_SERVERS]
    return [*found, *_more_listeners(extra)]


def _more_listeners(extra: tuple[tuple[str, int], ...]) -> list[int]:
    """Listeners besides the usual ones. An address that was added before is no error."""
    for address, port in extra:
        if not port:
            _add_address(address)
    return [_bound(_socket.SOCK_STREAM, place) for place in extra if place[1]]


def _add_address(address: str) -> None:
    # A name of its own: the address of a name that is there already would be replaced.
    interface = f"lo:{_socket.inet_aton(address).hex()}"
    request = interface.encode().ljust(16, b"\0") + _socket.AF_INET.to_bytes(2, "little") + bytes(2)
    request += _socket.inet_aton(address) + bytes(16)
    one = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(one.fileno(), _SIOCSIFADDR, request)
    one.close()


def _bound(kind: int, place: tuple[str, int]) -> int:
    made = _socket.socket(_socket.AF_INET, kind | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
    made.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    try:
        made.bind(place)
    except OSError as error:
        raise OSError(error.errno, f"{place[0]}:{place[1]}: {error.strerror}") from None
    if kind == _socket.SOCK_STREAM:
        made.listen(_BACKLOG)
    return made.detach()


def make_space(
    space: Space | None, extra: tuple[tuple[str, int], ...], prepare: Callable[[], None] | None = None
) -> tuple[Space, list[int]]:
    """A new namespace, or the one that is given, and new listeners in it; this process stays where it is.

    `prepare` is called first by the process that makes a new one.
    """
    return _make(space, lambda: listeners(extra), prepare)


def add_listeners(space: Space, extra: tuple[tuple[str, int], ...]) -> list[int]:
    """More listeners in a namespace that has some; none, but an `OSError`, if one of them cannot be had."""
    return _make(space, lambda: _more_listeners(extra), None)[1]


def _make(
    space: Space | None, listen: Callable[[], list[int]], prepare: Callable[[], None] | None
) -> tuple[Space, list[int]]:
    def inside() -> list[int]:
        if space is not None:
            space.join()
        else:
            if prepare:
                prepare()
            unshare_network()
        spaces = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in ("user", "net")]
        return [*spaces, *listen()]

    user, net, *sockets = open_in_child(inside)
    made = Space(user, net)
    if space is None:
        return made, sockets
    # Who made the listeners has not always joined the user namespace.
    made.close()
    return space, sockets
