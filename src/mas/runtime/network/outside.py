"""The world outside, as far as the rules allow: a name is looked up, every address checked, and only then connected.

A connection is made to the very address that was checked. Where the machine reaches the outside through a proxy, the
proxy is given the name, which it looks up itself: then a name that leads to a closed address here is refused, and one
that is unknown here is left to the proxy, unless it is of a kind that is never public.
"""

from __future__ import annotations

import socket

from mas.model.network import LOCALHOST, PRIVATE, is_address
from mas.model.proxy import is_never_public
from mas.runtime.network.addresses import LOOPBACK, NAMED, why_closed
from mas.runtime.network.dialling import Dialling, tcp
from mas.runtime.network.resolve import Found, Resolver
from mas.runtime.network.tunnel import Tunnel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mas.model.network import NetworkRules
    from mas.model.proxy import Proxy, ProxyRules
    from mas.runtime.network.joining import Loop

    # A connection, or None; why not, and the list that would let it through; what has come from it already.
    Then = Callable[[socket.socket | None, str, str, bytes], None]


class Checked:
    """What was found out about a name: the addresses that may be used, or why there are none."""

    __slots__ = ("addresses", "is_private", "may_exist", "remedy", "why")

    def __init__(
        self, addresses: list[str], why: str = "", remedy: str = "", is_private: bool = False, may_exist: bool = False
    ) -> None:
        self.addresses = addresses
        self.why = why
        self.remedy = remedy
        """The list of the policy that would let it through."""
        self.is_private = is_private
        """Whether one of the addresses is open only because the owner has named this place."""
        self.may_exist = may_exist
        """Whether the look-up failed, rather than there being no such name."""


class Outside:
    """What can be reached, and what is on its way there."""

    def __init__(self, loop: Loop, rules: NetworkRules, proxies: ProxyRules) -> None:
        self._loop = loop
        self.rules = rules
        self._proxies = proxies
        self._pending: set[Dialling | Tunnel] = set()
        self.resolver = Resolver()

    @property
    def is_busy(self) -> bool:
        """Whether something may have to be given up soon."""
        return bool(self._pending)

    def look(self, now: float) -> None:
        """Give up what takes too long."""
        for one in [one for one in self._pending if not one.is_over and one.deadline < now]:
            one.give_up()
        self._pending = {one for one in self._pending if not one.is_over}

    def check(self, name: str, port: int | None, then: Callable[[Checked], None]) -> None:
        """Call `then` with what may be reached of a name, at a port or at any."""
        if why := self.rules.refusal(name, port):
            then(Checked([], f"refused: {why}", self.rules.remedy(name)))
        elif is_address(name):
            then(self._checked(name, port, Found((name,))))
        else:
            self.resolver.find(name, lambda found: then(self._checked(name, port, found)))

    def _checked(self, name: str, port: int | None, found: Found) -> Checked:
        proxy = self._proxies.proxy_for(name, port)
        if not found.addresses:
            if proxy and not is_never_public(name):
                return Checked([])
            why = "failed: it could not be looked up" if found.failed else "failed: there is no such name"
            return Checked([], why, may_exist=found.failed)
        closed = {address: why_closed(address) for address in found.addresses}
        may = ("", *self._may_also_be(name, port))
        kept = [address for address, kind in closed.items() if kind in may]
        # A proxy chooses the address itself.
        if not kept or (proxy and len(kept) < len(closed)):
            kinds = ", ".join(dict.fromkeys(filter(None, closed.values())))
            remedy = PRIVATE if any(kind in NAMED for kind in closed.values()) else ""
            return Checked([], f"refused: it is at an address that agents may not reach ({kinds})", remedy)
        return Checked(kept, is_private=any(closed[address] for address in kept))

    def _may_also_be(self, name: str, port: int | None) -> tuple[str, ...]:
        """The kinds of addresses that the owner has allowed by naming this place."""
        if not self.rules.is_private(name, port):
            return ()
        if name == LOCALHOST:
            return (LOOPBACK,)
        return (why_closed(name),) if is_address(name) else NAMED

    def connect(self, name: str, port: int, then: Then) -> None:
        """Connect to a name, if that is allowed."""

        def checked(found: Checked) -> None:
            proxy = self._proxies.proxy_for(name, port)
            if found.why:
                then(None, found.why, found.remedy, b"")
            # What the owner has named in a private network is not behind a proxy.
            elif proxy and not found.is_private:
                self._by_proxy(proxy, name, port, then)
            else:
                self.dial([tcp(address, port) for address in found.addresses], lambda one, why: _tell(then, one, why))

        self.check(name, port, checked)

    def dial(self, addresses: list[tuple[int, object]], then: Callable[[socket.socket | None, str], None]) -> None:
        """Connect to one of some addresses, which are not checked here."""
        dialling = Dialling(self._loop, addresses, then)
        self._pending.add(dialling)
        dialling.start()

    def _by_proxy(self, proxy: Proxy, name: str, port: int, then: Then) -> None:
        def found(result: Found) -> None:
            if result.addresses:
                self.dial([tcp(address, proxy.port) for address in result.addresses], reached)
            else:
                then(None, "failed: the proxy's own name could not be looked up", "", b"")

        def reached(one: socket.socket | None, why: str) -> None:
            if one is None:
                then(None, f"failed: the proxy cannot be reached: {why}", "", b"")
                return

            def answered(early: bytes | None, why: str) -> None:
                if early is None:
                    one.close()
                _tell(then, None if early is None else one, why, early or b"")

            tunnel = Tunnel(self._loop, one, answered)
            self._pending.add(tunnel)
            tunnel.ask(name, port, proxy.authorization)

        self.resolver.find(proxy.host, found)


def _tell(then: Then, one: socket.socket | None, why: str, early: bytes = b"") -> None:
    then(one, "" if one else f"failed: {why}", "", early)
