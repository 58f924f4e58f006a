"""Isolation: what the kernel enforces around each agent of a session, computed from its policy and the machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from mas.model.errors import BadInput, Corrupt, NotIsolated
from mas.model.ids import SessionId, shown
from mas.model.isolation import Isolation, Mode, Policy, SessionLimits, Tier
from mas.model.launch import Rules
from mas.model.run import Run
from mas.providers.provider import Program
from mas.service.isolation.account import Account, account_for, find_account
from mas.service.isolation.homes import Homes, is_in
from mas.service.isolation.tiers import warning
from mas.service.world import World
from mas.settings import DEFAULT_PORT
from mas.store.agent.directory import AgentPlace
from mas.store.server.address import find as find_address
from mas.store.session.private_home import PrivateHome, hand_over, let_pass

# Every agent has its own temporary files, mounted over these paths.
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - what they are elsewhere is what an agent does not see
_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc", "/opt", "/nix", "/gnu", "/proc", "/sys",
)  # fmt: skip
# Sockets of everything that runs on the machine; what resolves names is put back.
_RUN = ("/run", "/var/run")
# Control groups are named after sessions.
_GROUPS = "/sys/fs/cgroup"
_NAMES = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf")
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
_READ, _WRITE, _HIDE = "read", "write", "hide"
_Kinds = dict[str, str]


def policy_of(world: World, run: Run) -> Policy:
    """A run's isolation from all three places: the run, then its team, then the workspace."""
    return run.policy.under(world.settings.isolation)


def limits_of(world: World, run: Run) -> SessionLimits:
    """A run's limits from all three places: the run, then its team, then the workspace."""
    return run.all_limits.under(world.settings.limits)


def choose_isolation(world: World, run: Run) -> tuple[Isolation, tuple[str, ...]]:
    """How the agents of a run will be isolated, and what people should know of it; refused before anything is made."""
    policy = policy_of(world, run)
    tiers = world.tiers()
    isolation = tiers.choose(policy)
    if run.policy.enforce is Mode.OFF:
        # Asked for just now; who has set it for the whole workspace knows.
        return isolation, ("Isolation is off: agents can read and change everything that you can",)
    if isolation.tier == Tier.D:
        return isolation, warning(isolation, tiers.reason())
    _Resolved(world, policy)
    account, words = account_for(policy, world.settings.environ, world.layout.sessions)
    warnings = (*warning(isolation, tiers.reason()), *((words,) if words else ()))
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
        self._common: dict[str, tuple[_Kinds, _Kinds, _Kinds]] = {}
        # Where a policy shows what everybody has there, it is not replaced.
        shared = {*self._policy.read, *self._policy.write}
        self._covered = tuple(
            place
            for place in dict.fromkeys(map(os.path.realpath, _TEMPORARY))
            if self._is_a and os.path.isdir(place) and place not in shared
        )
        self._has_usual = os.path.realpath(_TEMPORARY[0]) in self._covered

    def empty(self) -> None:
        """Leave nothing of what agents of an earlier run kept for a moment."""
        self._home.empty_temporary()

    def furnish(self, programs: dict[str, Program]) -> None:
        """Create what isolated agents need on the disk, owned by the account they run as."""
        paths = self._paths
        self._home.make()
        for agent, program in programs.items():
            AgentPlace(paths, agent).make()
            self._home.make_temporary(agent)
            for path in program.credentials:
                if os.path.exists(real := os.path.realpath(self._homes.own(path))):
                    self._home.link(path.removeprefix("~/"), real)
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
        seen = ":".join(map(self._homes.without_links, path.split(":")))
        return {
            "HOME": home,
            "TMPDIR": _TEMPORARY[0] if self._has_usual else self._paths.at(".tmp", agent),
            **{name: f"{home}/{place}" for name, place in _XDG.items()},
            **self._homes.roots(),
            "PATH": seen,
            "MAS_PATH": seen,
        }

    def argv(self, argv: tuple[str, ...], path: str) -> tuple[str, ...]:
        """The words that run a program, its file named so that it is found inside."""
        program, *rest = argv
        directory, name = os.path.split(program)
        if os.path.islink(program) and directory not in path.split(":"):
            return self._homes.without_links(program), *rest
        return os.path.join(self._homes.without_links(directory), name), *rest

    def rules(self, agent: str, program: Program, path: str) -> Rules:
        """What the kernel must enforce around one agent."""
        if path not in self._common:
            self._common[path] = self._shared_by_all(path)
        before, secrets, after = self._common[path]
        temporary = self._paths.at(".tmp", agent)
        # The program may be a script in a directory that is hidden otherwise.
        started = [word for word in program.argv if os.path.isabs(word) and os.path.isfile(word)]
        named = {
            **before,
            **_kinds(_READ, (need for word in started for need in self._homes.program(word))),
            **secrets,
            **_kinds(_READ, map(self._homes.own, program.credentials)),
            **after,
            **_kinds(_WRITE, self._own(AgentPlace(self._paths, agent).path)),
            **({} if self._has_usual else _kinds(_WRITE, self._own(temporary))),
        }
        kept = _needed(named, dict.fromkeys(self._covered, _HIDE), base=_READ if self._is_a else _HIDE)
        return Rules(
            tier=self._isolation.tier,
            how=self._isolation.how,
            write=_of_kind(_WRITE, kept),
            binds=tuple((os.path.realpath(temporary), place) for place in self._covered),
            read=_of_kind(_READ, kept),
            hide=_of_kind(_HIDE, kept),
            ports=self._ports(),
            account=(self._account.uid, self._account.gid) if self._account else None,
            system_calls=program.system_calls,
        )

    def _shared_by_all(self, path: str) -> tuple[_Kinds, _Kinds, _Kinds]:
        """The rules for paths that all agents share, in parts, so that one agent's own rules can go between them.

        If a path has several rules, the last counts.
        """
        layout, paths, homes, settings = self._world.layout, self._paths, self._homes, self._world.settings
        before = {
            **({} if self._is_a else _kinds(_READ, _SYSTEM)),
            **_kinds(_HIDE, (*_RUN, _GROUPS)),
            **_kinds(_READ, (*_NAMES, *_resolver())),
            **_kinds(_HIDE, homes.all),
            **_kinds(_READ, homes.tool_chain(path)),
            **_kinds(_READ, _workspace(layout.root, homes)),
        }
        after = {
            **_kinds(_READ, self._policy.read),
            **_kinds(_WRITE, self._policy.write),
            **_kinds(_HIDE, self._policy.hide),
            **_kinds(_HIDE, (os.path.dirname(settings.user_socket), settings.private_sockets)),
            **_kinds(_HIDE, (settings.environ.get(name, "") for name in _OF_THE_DESKTOP)),
            **_kinds(_HIDE, (layout.sessions, layout.at("logs"))),
            **_kinds(_READ, (paths.root, layout.address)),
            # An agent that can open the lock could hold it, and then not be stopped.
            **_kinds(_HIDE, (paths.private, paths.temporary, paths.lock)),
            **_kinds(_WRITE, self._own(paths.unit, paths.workflows, paths.home)),
        }
        return before, _kinds(_HIDE, homes.secrets()), after

    def _ports(self) -> tuple[int, ...] | None:
        """The ports of the policy, and that of MAS itself: the one it is served at, or will be if that is free."""
        ports = self._isolation.policy.ports
        if ports is None:
            return None
        server = find_address(self._paths.root)
        own = server.url.rpartition(":")[2] if server else ""
        return tuple(dict.fromkeys((*ports, int(own) if own.isdigit() else DEFAULT_PORT)))

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
        self.hide = self._paths("hide", policy.hide)
        sessions = os.path.realpath(world.layout.sessions)
        for path in self.read:
            if is_in(path, sessions):
                why = f"isolation.read: {shown(path)} is in the sessions directory, which agents cannot see"
                raise BadInput(why, field="isolation.read")
        ours = [os.path.realpath(os.path.join(self._root, part)) for part in _OURS]
        # An agent that could write these would run code outside the sandbox at the next start.
        ours += [os.path.realpath(place) for place in self._homes.tool_chain("")]
        for path in self.write:
            for place in ours:
                if is_in(path, place) or is_in(place, path):
                    why = f"isolation.write: {shown(path)} overlaps {place}, which agents may never write"
                    raise BadInput(why, field="isolation.write")

    def _paths(self, key: str, paths: tuple[str, ...]) -> tuple[str, ...]:
        """The paths, resolved against the user's home and the workspace; a missing one is an error."""
        found = []
        for path in paths:
            real = os.path.realpath(os.path.join(self._root, self._homes.own(path)))
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


def _workspace(root: str, homes: Homes) -> list[str]:
    """What agents see of the workspace; if it is a person's whole home, only the workspace's own files."""
    if any(is_in(home, root) for home in homes.all):
        return [os.path.join(root, part) for part in _OURS]
    return [root]


def _resolver() -> Iterator[str]:
    """Where the addresses of name servers really are."""
    real = os.path.realpath("/etc/resolv.conf")
    yield real
    # It is replaced there, now and then, by another file of that name.
    if os.path.dirname(real) not in ("/", "/etc", "/run"):
        yield os.path.dirname(real)


def _kinds(kind: str, paths: Iterable[str]) -> _Kinds:
    """Those of the paths that are there, resolved."""
    found = {os.path.realpath(path) for path in paths if os.path.isabs(path)}
    return {path: kind for path in found if path != "/" and os.path.exists(path)}


def _needed(named: _Kinds, covers: _Kinds, base: str) -> _Kinds:
    """Without rules that repeat what a rule for a parent directory already says."""
    everything = {**named, **covers}

    def above(path: str) -> str:
        while (path := os.path.dirname(path)) != "/":
            if path in everything:
                return everything[path]
        return base

    return {path: kind for path, kind in named.items() if path not in covers and above(path) != kind}


def _of_kind(kind: str, named: _Kinds) -> tuple[str, ...]:
    return tuple(sorted(path for path, found in named.items() if found == kind))
