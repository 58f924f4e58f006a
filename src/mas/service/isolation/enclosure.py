"""Isolation: what the kernel enforces around each agent of a session, computed from its policy and the machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import sha256

from mas.model.errors import BadInput, Corrupt, NotIsolated
from mas.model.ids import SessionId, shown
from mas.model.isolation import Isolation, Mode, NetworkMode, Policy, SessionLimits, Tier
from mas.model.launch import NetworkPlan, Rules
from mas.model.run import Run
from mas.providers.provider import Program
from mas.runtime.sandbox.places import ETC, NEVER, WHOLE
from mas.runtime.sandbox.seccomp import packed
from mas.runtime.sandbox.view import split
from mas.service.isolation import etc
from mas.service.isolation.account import Account, account_for, find_account
from mas.service.isolation.homes import Homes, is_in
from mas.service.isolation.network import (
    DOOR_PORT,
    NAME_SERVER,
    RESOLVER,
    SessionNetwork,
    choose_network,
    unusable_proxies,
)
from mas.service.isolation.own_config import own_config_path, system_view
from mas.service.isolation.sights import (
    HIDE,
    POLICY_DEPTH,
    PREFIX_DEPTH,
    READ,
    WRITE,
    Sight,
    Sights,
    is_in_sessions,
    nested_workspaces,
)
from mas.service.isolation.tiers import warning
from mas.service.world import World
from mas.settings import DEFAULT_PORT, workspace_policy
from mas.store.agent.directory import AgentPlace
from mas.store.files.atomic import ensure_directory
from mas.store.files.tree import remove_tree
from mas.store.layout import PRIVATE_DIR
from mas.store.server.address import find as find_address
from mas.store.session.etc_copy import EtcCopy
from mas.store.session.private_home import PrivateHome, hand_over, let_pass
from mas.store.workspace.known import KnownWorkspaces

# Every agent has its own temporary files, mounted over these paths.
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - what they are elsewhere is what an agent does not see
# Sockets of everything that runs on the machine; what resolves names is put back.
_RUN = ("/run", "/var/run")
# Control groups are named after sessions.
_GROUPS = "/sys/fs/cgroup"
_NAMES = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf")
# What agents see of a workspace, beside their own session.
_PARTS = ("unit", "workflows", "templates", "providers", "config.json", ".masrc")
# What of a workspace is not for agents to write, whatever a policy says.
_OURS = ("sessions", "unit", "workflows", "templates", "providers", "logs", "config.json", ".masrc")
_XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}
# Where programs of the desktop and keys of ssh can be reached.
_OF_THE_DESKTOP = ("XDG_RUNTIME_DIR", "SSH_AUTH_SOCK")
# Variables that name certificates or a tool chain, which need not be on PATH.
_NAMED_BY = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
    "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HOME", "CUDA_HOME", "DOTNET_ROOT", "GOROOT", "JAVA_HOME",
)  # fmt: skip
_LISTED, _ALL = "listed", "all"
# Where launchers of a start keep what they share, in no agent's view.
_ROOTS = "roots"
_SAYS_ALL = 'isolation.root is "all" in your own configuration'


def policy_of(world: World, run: Run) -> Policy:
    """A run's isolation from all three places: the run, then its team, then the workspace."""
    # `mas network` may have changed these since a server has read the rest.
    now = workspace_policy(world.settings.root)
    workspace = world.settings.isolation._replace(allow=now.allow, private=now.private)
    return run.policy.under(workspace)


def limits_of(world: World, run: Run) -> SessionLimits:
    """A run's limits from all three places: the run, then its team, then the workspace."""
    return run.all_limits.under(world.settings.limits)


def choose_isolation(world: World, run: Run) -> tuple[Isolation, tuple[str, ...]]:
    """How the agents of a run will be isolated, and what people should know of it; refused before anything is made."""
    policy = policy_of(world, run)
    KnownWorkspaces(world.settings.environ).add(world.layout.root)
    tiers = world.tiers()
    isolation = tiers.choose(policy)
    network, to_know = choose_network(isolation, tiers)
    isolation = isolation._replace(network=network)
    if run.policy.enforce is Mode.OFF:
        # Asked for just now; who has set it for the whole workspace knows.
        return isolation, ("Isolation is off: agents can read and change everything that you can",)
    if isolation.tier == Tier.D:
        return isolation, warning(isolation, tiers.reason())
    _Resolved(world, policy)
    account, words = account_for(policy, world.settings.environ, world.layout.sessions)
    if isolation.tier == Tier.B and os.getuid() == 0 and account is None:
        raise NotIsolated(
            "In tier B, the best that this machine offers, agents cannot run as root: they could change the mode of"
            " every file of root's",
            "set isolation.runAs to an account in config.json; or, to run without isolation: mas start --isolation off",
        )
    to_know += unusable_proxies(network, world.settings.environ)
    warnings = (*warning(isolation, tiers.reason()), *to_know, *((words,) if words else ()))
    if isolation.tier == Tier.A and system_view(world.settings.environ).root == _ALL:
        warnings += (f"Agents see the whole machine but for what is hidden: {_SAYS_ALL}",)
    return isolation._replace(account=account.name if account else None), warnings


class Enclosure:
    """The sandbox rules for the agents of one session: shared by all of them, except each agent's own paths."""

    def __init__(self, world: World, session_id: SessionId, isolation: Isolation) -> None:
        self._world = world
        self._isolation = isolation
        self._is_a = isolation.tier == Tier.A
        self._paths = world.layout.session(session_id)
        self._home = PrivateHome(self._paths)
        self._account = _known_account(isolation.account)
        self._policy = _Resolved(world, isolation.policy)
        self._homes = Homes(world.settings.environ, (self._account.home,) if self._account else ())
        self._view = system_view(world.settings.environ)
        self._known = [path for path in KnownWorkspaces(world.settings.environ).all() if path != world.layout.root]
        self._is_listed = not self._is_a or self._view.root == _LISTED
        self._etc = EtcCopy(self._paths)
        self._roots = self._paths.at(".mas", _ROOTS)
        self._common: dict[tuple[str, tuple[str, ...]], tuple[Sights, Sights, Sights]] = {}
        self._places: set[str] = set()
        self._seen_paths: dict[str, str] = {}
        self._filters: dict[tuple[str, ...], str] = {}
        # Where a policy shows what everybody has there, it is not replaced.
        shared = {*self._policy.read, *self._policy.write}
        self.covered = tuple(
            place
            for place in dict.fromkeys(map(os.path.realpath, _TEMPORARY))
            if self._is_a and os.path.isdir(place) and place not in shared
        )
        self._has_usual = os.path.realpath(_TEMPORARY[0]) in self.covered
        # Where a policy shows /etc itself, there is no copy.
        self.has_copy = self._is_a and self._is_listed and ETC not in shared
        is_shared = isolation.network == NetworkMode.SHARED
        self._network = None if is_shared else SessionNetwork(world, session_id, isolation)

    def empty(self) -> None:
        """Leave nothing of what agents of an earlier run kept for a moment."""
        self._home.empty_temporary()
        remove_tree(self._roots)
        if self._network:
            self._network.empty()

    def furnish(self, programs: dict[str, Program]) -> None:
        """Create what isolated agents need on the disk, owned by the account they run as."""
        paths = self._paths
        if self._network:
            self._network.furnish()
        ensure_directory(self._roots, PRIVATE_DIR)
        self._home.make()
        for agent, program in programs.items():
            AgentPlace(paths, agent).make()
            self._home.make_temporary(agent)
            for path in program.credentials:
                if os.path.exists(real := os.path.realpath(self._homes.own(path))):
                    self._home.link(path.removeprefix("~/"), real)
        uid = self._account.uid if self._account else os.getuid()
        if self.has_copy:
            files = etc.copied(lambda path: self._system.kind_of(path) == READ, uid, paths.home)
            self._etc.write({**files, **({RESOLVER: NAME_SERVER} if self._network else {})})
        # Without its powers not even root can write what is another's, as after an earlier run for an account.
        uid, gid = (self._account.uid, self._account.gid) if self._account else (os.getuid(), os.getgid())
        if os.getuid() == 0 and (self._account or os.stat(paths.unit).st_uid != uid):
            places = [AgentPlace(paths, agent).path for agent in programs]
            hand_over([paths.unit, paths.workflows, paths.home, paths.temporary, *places], uid, gid)
            let_pass((paths.root,), gid, to_list=True)
            let_pass((paths.private, os.path.dirname(places[0])), gid)

    def environment(self, agent: str, path: str) -> dict[str, str]:
        """What an isolated agent has instead of the user's own; `path` is its PATH."""
        home = self._paths.home
        if path not in self._seen_paths:
            self._seen_paths[path] = ":".join(map(self._homes.without_links, path.split(":")))
        seen = self._seen_paths[path]
        return {
            "HOME": home,
            "TMPDIR": _TEMPORARY[0] if self._has_usual else self._paths.at(".tmp", agent),
            **{name: f"{home}/{place}" for name, place in _XDG.items()},
            **self._homes.roots,
            "PATH": seen,
            "MAS_PATH": seen,
            **({"MAS_PORT": str(DOOR_PORT)} if self._network else {}),
        }

    def argv(self, argv: tuple[str, ...], path: str) -> tuple[str, ...]:
        """The words that run a program, its file named so that it is found inside."""
        program, *rest = argv
        directory, name = os.path.split(program)
        if os.path.islink(program) and directory not in path.split(":"):
            return self._homes.without_links(program), *rest
        return os.path.join(self._homes.without_links(directory), name), *rest

    def rules(self, agent: str, program: Program, env: Mapping[str, str], in_team: bool = False) -> Rules:
        """What the kernel must enforce around one agent, which has this environment.

        `in_team`: others are started at the same time, and can share a root with it.
        """
        sights = self.sights(agent, program, env)
        kept = sights.needed(self.covered)
        copies = ((self._etc.path, ETC),) if self.has_copy else self._network.files() if self._network else ()
        for path in kept if self.has_copy else ():
            if is_in(path, ETC) and path not in self._places:
                self._etc.make_place(path)
                self._places.add(path)
        rules = Rules(
            tier=self._isolation.tier,
            how=self._isolation.how,
            root=_LISTED if self._is_listed else _ALL,
            write=kept.of(WRITE),
            binds=tuple((os.path.realpath(self._paths.at(".tmp", agent)), place) for place in self.covered),
            copies=copies,
            read=kept.of(READ),
            links=sights.needed_links(self.covered) if self._is_a and self._is_listed else (),
            hide=kept.of(HIDE),
            ports=self._isolation.policy.ports,
            connect=self._own_port(),
            account=(self._account.uid, self._account.gid) if self._account else None,
            system_calls=program.system_calls,
            own=tuple(path for path in map(os.path.realpath, self._own_paths(agent)) if path in kept),
        )
        return rules.but(filter=self._filter(rules), shared_root=self._shared_root(rules) if in_team else "")

    def _filter(self, rules: Rules) -> str:
        """The filter of system calls; it is the same for all programs that need the same calls."""
        if rules.system_calls not in self._filters:
            self._filters[rules.system_calls] = packed(rules, own_processes=rules.how != "landlock").hex()
        return self._filters[rules.system_calls]

    def _shared_root(self, rules: Rules) -> str:
        """Where launchers find the root of agents with the same rules, but for what each has alone."""
        if rules.how != "namespaces" or rules.root != _LISTED:
            return ""
        common, own = split(rules)
        places = [path for _, path, _ in own if not any(is_in(path, one) for one in rules.own)]
        same = (common, places, rules.links)
        return os.path.join(self._roots, sha256(repr(same).encode()).hexdigest())

    def _own_paths(self, agent: str) -> tuple[str, ...]:
        return AgentPlace(self._paths, agent).path, self._paths.at(".tmp", agent)

    def sights(self, agent: str, program: Program, env: Mapping[str, str]) -> Sights:
        """All paths for which there is a rule, and why."""
        path = env.get("PATH", "")
        named = tuple(env[name] for name in _NAMED_BY if name in env)
        if (path, named) not in self._common:
            secrets = Sights()
            secrets.add(HIDE, "a known secret", self._homes.secrets())
            self._common[path, named] = self._machine(path, named), secrets, self._after()
        before, secrets, after = self._common[path, named]
        # The program may be a script in a directory that is hidden otherwise.
        own = AgentPlace(self._paths, agent).path
        # What it is given of its own directory is not a program, and stays writable.
        started = [
            word for word in program.argv if os.path.isabs(word) and os.path.isfile(word) and not is_in(word, own)
        ]
        sights = before.copy()
        sights.add(READ, "started by the provider", started)
        sights.add(READ, "started by the provider", (need for word in started for need in self._homes.program(word)))
        sights.update(secrets)
        sights.add(READ, "the provider signs in with it", map(self._homes.own, program.credentials))
        sights.update(after)
        sights.add(WRITE, "this agent's own state", self._own(own))
        if not self._has_usual:
            sights.add(WRITE, "temporary files of this agent", self._own(self._paths.at(".tmp", agent)))
        return sights

    def overview(self, path: str) -> dict[str, Sight]:
        """The rules that all agents with this PATH have, without those that others imply."""
        sights = self._machine(path, ())
        sights.add(HIDE, "a known secret", self._homes.secrets())
        sights.update(self._after())
        return dict(sights.needed(self.covered))

    def _machine(self, path: str, named: tuple[str, ...]) -> Sights:
        """What agents see of the machine and of the workspace."""
        homes, root = self._homes, self._world.layout.root
        sights = Sights(base=HIDE if self._is_listed else READ)
        if self._is_listed:
            sights.update(self._system)
        else:
            sights.add(HIDE, "sockets of the machine's services", (*_RUN, _GROUPS))
            sights.add(HIDE, "sessions of another workspace", (f"{one}/sessions" for one in self._known))
            sights.add(READ, "finds addresses of names", () if self._network else (*_NAMES, *_resolver()))
        sights.add(HIDE, "a home", homes.all)
        sights.add(READ, "a program on PATH", filter(_is_no_session, _without_homes(path.split(":"), homes)))
        chain = list(filter(_is_no_session, (*homes.tool_chain(path), *_without_homes(named, homes))))
        # The system's own Python is one, too: with it, /usr is the system all the same.
        sights.add(READ, "a tool chain on PATH, or named by a variable", chain, only_new=True)
        if self._is_listed:
            for link in sights.leading_out(path):
                sights.add(READ, "a link on PATH leads there", filter(_is_no_session, (link, *homes.program(link))))
            sights.add(HIDE, "another workspace", nested_workspaces((*chain, "/opt", "/usr/local"), PREFIX_DEPTH))
            sights.add(HIDE, "another workspace", self._known_in((*chain, *WHOLE)))
            sights.add(HIDE, "the workspace, but for its parts", (root,))
        parts = _PARTS if self._is_listed else _OURS
        sights.add(READ, "part of the workspace", (os.path.join(root, part) for part in parts))
        if not self._is_listed and not any(is_in(home, root) for home in homes.all):
            sights.add(READ, "the workspace", (root,))
        return sights

    @cached_property
    def _system(self) -> Sights:
        """What agents see of the machine itself, if that is listed."""
        sights = Sights()
        resolver = () if self._network else tuple(_resolver())
        sights.add(READ, "finds addresses of names", resolver)
        sights.add(HIDE, "sockets of the machine's services", _sockets(resolver))
        sights.add(READ, "the system", WHOLE if self._is_a else (*WHOLE, "/proc"))
        sights.add(READ, "the system", etc.directories())
        sights.add(HIDE, "not for every user", (*NEVER, *etc.closed(map(os.path.realpath, etc.directories()))))
        if not self._is_a:
            sights.add(READ, "the system", etc.harmless())
        sights.add(READ, "isolation.system of your own configuration", self._view.system)
        return sights

    def _after(self) -> Sights:
        """What counts more than all rules for the machine: the policy and, more than that, the session."""
        layout, paths, settings = self._world.layout, self._paths, self._world.settings
        sights = Sights()
        sights.add(READ, "isolation.read", self._policy.read_as_given)
        sights.add(WRITE, "isolation.write", self._policy.write_as_given)
        for workspace in self._other_workspaces():
            sights.add(HIDE, "sessions of another workspace", (f"{workspace}/sessions", f"{workspace}/logs"))
            if any(is_in(workspace, place) for place in self._policy.write):
                # What is in there would be run outside by the next start of that workspace.
                sights.add(READ, "part of another workspace", (f"{workspace}/{part}" for part in _PARTS))
        sights.add(HIDE, "isolation.hide", self._policy.hide)
        sights.add(HIDE, "sockets of tmux", (os.path.dirname(settings.user_socket), settings.private_sockets))
        sights.add(HIDE, "of the desktop", (settings.environ.get(name, "") for name in _OF_THE_DESKTOP))
        sights.add(HIDE, "other sessions, and logs", (layout.sessions, layout.at("logs")))
        sights.add(READ, "the session", (paths.root,))
        sights.add(READ, "the address of MAS's server", (layout.address,))
        # An agent that can open the lock could hold it, and then not be stopped.
        sights.add(HIDE, "MAS's own", (paths.private, paths.temporary, paths.lock))
        if os.path.isdir(paths.root):
            sights.add(WRITE, "the session's work", self._own(paths.unit, paths.workflows, paths.home))
        return sights

    def _other_workspaces(self) -> list[str]:
        """The workspaces in what the user shows to agents beside the usual."""
        shown = [*self._policy.read, *self._policy.write, *map(os.path.realpath, self._view.system)]
        found = (*self._known_in(shown), *nested_workspaces(shown, POLICY_DEPTH))
        return [path for path in found if path != self._world.layout.root]

    def _known_in(self, places: Iterable[str]) -> list[str]:
        places = tuple(places)
        return [path for path in self._known if any(is_in(path, place) for place in places)]

    def network(self) -> NetworkPlan | None:
        """What launchers must do for the session's own network; None if it shares that of the machine."""
        return self._network.plan() if self._network else None

    def _own_port(self) -> tuple[int, ...]:
        """The port of MAS itself, if ports are restricted: where it is served, or will be if that is free."""
        if self._isolation.policy.ports is None:
            return ()
        if self._network:
            return (DOOR_PORT,)
        server = find_address(self._paths.root)
        own = server.url.rpartition(":")[2] if server else ""
        return (int(own) if own.isdigit() else DEFAULT_PORT,)

    def _own(self, *directories: str) -> tuple[str, ...]:
        """Directories of the session, each of which really is one: a link could lead to anything."""
        for directory in directories:
            if os.path.islink(directory) or not os.path.isdir(directory):
                raise Corrupt(directory, "not a directory", "remove it")
        return directories


class _Resolved:
    """The paths of a policy as they are on this machine."""

    def __init__(self, world: World, policy: Policy) -> None:
        self._root = world.layout.root
        self._homes = Homes(world.settings.environ)
        self.read = self._paths("read", policy.read)
        self.write = self._paths("write", policy.write)
        # The same before links are followed, which agents must find.
        self.read_as_given = tuple(map(self._given, policy.read))
        self.write_as_given = tuple(map(self._given, policy.write))
        self.hide = self._paths("hide", policy.hide)
        for key, paths in (("read", self.read), ("write", self.write)):
            for path in paths:
                if is_in_sessions(path):
                    why = f"isolation.{key}: {shown(path)} is in the sessions of a workspace, which agents cannot see"
                    raise BadInput(why, field=f"isolation.{key}")
        ours = [os.path.realpath(os.path.join(self._root, part)) for part in _OURS]
        # An agent that could write these would run code outside the sandbox at the next start.
        ours += [os.path.realpath(place) for place in self._homes.tool_chain("")]
        ours.append(os.path.realpath(own_config_path(world.settings.environ)))
        for path in self.write:
            for place in ours:
                if is_in(path, place) or is_in(place, path):
                    why = f"isolation.write: {shown(path)} overlaps {place}, which agents may never write"
                    raise BadInput(why, field="isolation.write")

    def _given(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._root, self._homes.own(path)))

    def _paths(self, key: str, paths: tuple[str, ...]) -> tuple[str, ...]:
        """The paths, resolved against the user's home and the workspace; a missing one is an error."""
        found = []
        for path in paths:
            real = os.path.realpath(self._given(path))
            if not os.path.exists(real):
                where = f" ({real})" if real != path else ""
                why = f"isolation.{key}: there is no {shown(path)}{where}"
                raise BadInput(why, f"mkdir -p {real}", f"isolation.{key}")
            found.append(real)
        return tuple(found)


def _known_account(name: str | None) -> Account | None:
    """The account that a session was started for."""
    account = find_account(name) if name else None
    if name and account is None:
        raise NotIsolated(f"The account {shown(name)} that the session's agents run as no longer exists")
    return account


def _resolver() -> Iterator[str]:
    """Where the addresses of name servers really are, if not in /etc itself."""
    real = os.path.realpath("/etc/resolv.conf")
    if os.path.dirname(real) not in ("/", ETC):
        yield real
        # It is replaced there, now and then, by another file of that name.
        if os.path.dirname(real) != "/run":
            yield os.path.dirname(real)


def _sockets(places: Iterable[str]) -> Iterator[str]:
    """The sockets in directories."""
    for place in filter(os.path.isdir, places):
        for entry in os.scandir(place):
            if stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                yield entry.path


def _without_homes(paths: Iterable[str], homes: Homes) -> Iterator[str]:
    """Those of the paths that are neither a home nor above one."""
    for path in filter(os.path.isabs, paths):
        real = os.path.realpath(path)
        if real != "/" and not any(is_in(home, real) for home in homes.all):
            yield path


def _is_no_session(path: str) -> bool:
    return not is_in_sessions(os.path.realpath(path))
