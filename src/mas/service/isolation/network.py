"""Networks: which one a session's agents have, and what its egress process must know."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from shutil import which
from typing import Any

from mas.model.errors import BadInput, NotIsolated
from mas.model.ids import SessionId
from mas.model.isolation import Isolation, Mode, NetworkMode, Tier
from mas.model.launch import NetworkPlan, fields_in
from mas.model.network import LOCALHOST, is_address, parse_place, places_to_listen
from mas.runtime.network.applying import apply_rules
from mas.runtime.network.pasta import PROGRAM as PASTA
from mas.runtime.sweep import Owner
from mas.service.isolation.own_config import proxies
from mas.service.isolation.tiers import Tiers
from mas.service.world import World
from mas.store.files.atomic import ensure_directory, read_file, write_atomic
from mas.store.files.descriptors import remove_file
from mas.store.files.tree import remove_tree
from mas.store.layout import PRIVATE_DIR, SessionPaths
from mas.store.server.presence import Presence
from mas.store.session.network_log import LOG

DOOR_PORT = 7717
"""Where agents with a network of their own reach MAS, at 127.0.0.1."""
PROXY_PORT = 3128
"""Where they have a proxy."""
_DIRECTORY, _RULES = "network", "rules.json"
_OF_THE_PROCESS = ("egress.sock", "space", ".space.tmp")
RESOLVER = "resolv.conf"
NAME_SERVER = (
    b"# What this session reaches: network, allow and private of its policy\nnameserver 127.0.0.53\nsearch .\n"
)
_FIRST_OF_OURS = "127.64.0."
_MOST_WITH_PORTS = 250


def choose_network(isolation: Isolation, tiers: Tiers) -> tuple[NetworkMode, tuple[str, ...]]:
    """The network that a session gets, and what people should know of it; `NotIsolated` if the one asked for fails."""
    asked = isolation.policy.network
    for place in map(parse_place, isolation.policy.private):
        if place.host == LOCALHOST and place.port in (DOOR_PORT, PROXY_PORT):
            why = f"isolation.private: inside, port {place.port} of localhost is MAS's own"
            raise BadInput(why, "have the service listen at another port", "isolation.private")
    if isolation.policy.enforce is Mode.OFF:
        return NetworkMode.SHARED, ()
    if asked is NetworkMode.SHARED:
        return asked, _shared("the policy says so")
    why = tiers.why_not("network") if isolation.tier == Tier.A else f"isolation is tier {isolation.tier}"
    if not why and asked is NetworkMode.FULL:
        why = tiers.why_not("full")
    if not why:
        return asked or NetworkMode.NAMES, ()
    if asked or isolation.policy.enforce is Mode.REQUIRE:
        raise NotIsolated(
            f"Agents cannot have the network {asked or NetworkMode.NAMES}: {why}",
            'mas doctor; to share the network of this machine: "network": "shared" in the policy',
        )
    return NetworkMode.SHARED, _shared(why) if isolation.tier == Tier.A else ()


def unusable_proxies(network: NetworkMode, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What people should know of proxies of this machine that a session's own network cannot use."""
    if network not in (NetworkMode.NAMES, NetworkMode.LIST):
        return ()
    return tuple(f"Agents reach the outside without a proxy that is set. {why}" for why in proxies(environ)[1])


def _shared(why: str) -> tuple[str, ...]:
    return (f"The network is shared: agents reach all that this machine does, its own services too ({why})",)


def remove_rest(paths: SessionPaths) -> None:
    """Remove what an egress process left; no process of the session may be running."""
    for name in _OF_THE_PROCESS:
        remove_file(paths.at(".mas", _DIRECTORY, name))


class SessionNetwork:
    """The network of one session: the files its egress process reads, and what its launchers do."""

    def __init__(self, world: World, session_id: SessionId, isolation: Isolation) -> None:
        self._world = world
        self._session_id = session_id
        self._paths = world.layout.session(session_id)
        self._mode = isolation.network
        self._policy = isolation.policy
        self._directory = self._paths.at(".mas", _DIRECTORY)
        self._places = places_to_listen(self._policy.allow, self._policy.private)
        self._fixed = self._addresses()

    def _addresses(self) -> dict[str, str]:
        """The addresses inside of names with a port of their own; those that were given out since the start stay."""
        fixed = {str(host): str(address) for host, address in self._rules().get("fixed", {}).items()}
        ours = (f"{_FIRST_OF_OURS}{number}" for number in range(1, _MOST_WITH_PORTS + 1))
        free = iter([address for address in ours if address not in fixed.values()])
        for host in self._places:
            if host not in fixed and not is_address(host) and host != LOCALHOST and (address := next(free, "")):
                fixed[host] = address
        return fixed

    def _rules(self) -> dict[str, Any]:
        """What the egress process has read last; nothing if there is no such file."""
        try:
            return fields_in(os.fsdecode(read_file(os.path.join(self._directory, _RULES))))
        except (OSError, ValueError):
            return {}

    def empty(self) -> None:
        """Leave nothing of an earlier run; no agent may be running."""
        remove_tree(self._directory)

    def furnish(self) -> None:
        """Write what the egress process and its launchers read."""
        ensure_directory(self._directory, PRIVATE_DIR)
        presence = Presence(self._world.layout, self._world.settings.private_sockets)
        before = self._rules()
        rules = {
            "mode": self._mode,
            "allow": self._policy.allow,
            "private": self._policy.private,
            "fixed": self._fixed,
            # Never fewer: what was opened inside stays open until the session stops.
            "listen": list(dict.fromkeys((*map(tuple, before.get("listen", ())), *self.plan().listen))),
            "log": self._paths.at("logs", LOG),
            "door": presence.agents_socket,
            # It may hold a password: this file is in no agent's view, and in no archive.
            # The one of the process that started the session: another command may have another environment.
            "proxy": before["proxy"] if "proxy" in before else proxies(self._world.settings.environ)[0].as_fields(),
        }
        write_atomic(os.path.join(self._directory, _RULES), json.dumps(rules).encode())
        write_atomic(self._name_servers, NAME_SERVER, 0o644)

    def plan(self) -> NetworkPlan:
        """What launchers must do."""
        listen = []
        for host, ports in self._places.items():
            where = "127.0.0.1" if host == LOCALHOST else self._fixed.get(host, host)
            # The port 0 gives the namespace that address.
            listen += [(where, port) for port in (*((0,) if is_address(host) else ()), *ports)]
        if self._mode is not NetworkMode.FULL:
            return NetworkPlan(directory=self._directory, listen=tuple(listen))
        pasta = which(PASTA, path=self._world.settings.environ.get("PATH"))
        if not pasta:
            raise NotIsolated("Agents cannot have the network full: pasta is not installed", "apt install passt")
        mark = Owner(self._session_id, self._world.layout.home()).number_of_no_agent
        return NetworkPlan(directory=self._directory, listen=tuple(listen), pasta=pasta, mark=mark)

    def apply(self) -> str:
        """Have the running egress process use the policy; returns why not all of it, empty if it does."""
        self.furnish()
        return apply_rules(self._directory)

    def files(self) -> tuple[tuple[str, str], ...]:
        """What agents see in the place of the machine's own files."""
        real = os.path.realpath(f"/etc/{RESOLVER}")
        return ((self._name_servers, real),) if os.path.exists(real) else ()

    @property
    def _name_servers(self) -> str:
        return os.path.join(os.path.realpath(self._directory), RESOLVER)
