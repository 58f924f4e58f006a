"""Limits: what the kernel, or otherwise the launcher, enforces for the agents of a session."""

from __future__ import annotations

import os
from typing import NamedTuple

from mas.model.errors import BadInput
from mas.model.ids import SessionId
from mas.model.isolation import Limits, shown_size
from mas.model.run import Run
from mas.model.team import Agent
from mas.runtime.limits.cgroups import (
    Ground,
    ground,
    group_of,
    is_group_of,
    make_agent,
    make_session,
    members,
    remove_groups,
    session_groups,
)
from mas.runtime.limits.scope import Scopes, agent_scope, slice_of
from mas.service.isolation.enclosure import limits_of
from mas.service.world import World
from mas.store.files.atomic import read_file, write_atomic
from mas.store.files.descriptors import remove_file

_GRACE = 5.0
_OOM = {1: "memory.oom_control oom_kill", 2: "memory.events oom_kill"}
_FORKS = "pids.events max"
_SCOPE = "scope:"
_HOME = "home:"


class Holding(NamedTuple):
    """How the agents of one session are held to their limits: by control groups, by systemd, or by nothing but us."""

    session_id: SessionId
    run: Run
    ground: Ground | None = None
    by_systemd: bool = False

    def options(self, agent: Agent) -> dict[str, str]:
        """What an agent's launcher needs to know; makes its groups, or raises `BadInput`."""
        limits, session = agent_limits(self.run, agent), self.run.all_limits.session
        if limits == Limits() and session._replace(disk=None) == Limits():
            return {}
        options = {"limits": "1", **_words(limits.under(session)), **_own(limits.under(session))}
        if self.ground:
            return options | self._groups(self.ground, agent, limits)
        if self.by_systemd:
            return options | _counts(limits.under(session), f"{_SCOPE}{_OOM[2]}", f"{_SCOPE}{_FORKS}")
        return options | _sums(_smaller(limits, session))

    def _groups(self, where: Ground, agent: Agent, limits: Limits) -> dict[str, str]:
        try:
            groups = make_agent(where, self.session_id, agent.id, limits)
        except OSError as error:
            raise _refused(error) from None
        both = limits.under(self.run.all_limits.session)
        memory = group_of(where, "memory", self.session_id, agent.id)
        # The newer version counts where the limit is that was reached, the older one where the process was.
        counted = agent.id if limits.processes or where.version == 1 else ""
        forks = group_of(where, "pids", self.session_id, counted)
        return {"limit_groups": "\n".join(groups)} | _counts(
            both, f"{memory}/{_OOM[where.version]}", f"{forks}/{_FORKS}"
        )

    def before(self, agent: Agent) -> tuple[str, ...]:
        """What to run an agent's launcher with."""
        if not self.by_systemd or not self.options(agent):
            return ()
        return agent_scope(self.session_id, agent.id, agent_limits(self.run, agent))


def agent_limits(run: Run, agent: Agent) -> Limits:
    """The limits of one agent: its own, otherwise those that the run and its team set for all."""
    return agent.limits.under(run.all_limits.agent)


def unheld(world: World, run: Run) -> tuple[str, ...]:
    """Which limits of a run cannot be enforced here, as sentences for people."""
    run = run._replace(limits=limits_of(world, run))
    if not any(limits.cpu for limits in _asked(run)) or ((where := ground()) and where.place("cpu")):
        return ()
    if not where and Scopes(world.settings.environ).given():
        return ()
    return ("The cpu limit is not enforced: MAS cannot use control groups on this machine",)


def _asked(run: Run) -> list[Limits]:
    return [run.all_limits.session, *(agent_limits(run, agent) for agent in run.team.agents())]


def hold(world: World, session_id: SessionId, run: Run) -> Holding:
    """See by what a session's limits can be held, and make what is needed for it; `BadInput` if that is refused."""
    run = run._replace(limits=limits_of(world, run))
    if not any(limits.memory or limits.processes or limits.cpu for limits in _asked(run)):
        return Holding(session_id, run)
    path = _list_path(world, session_id)
    where = ground()
    if where:
        # Written down first: whatever is made can be found again.
        lines = dict.fromkeys((_home(world), *_listed(world, session_id), *session_groups(where, session_id)))
        write_atomic(path, "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n")
        try:
            make_session(where, session_id, run.all_limits.session)
        except OSError as error:
            raise _refused(error) from None
        return Holding(session_id, run, where)
    scopes = Scopes(world.settings.environ)
    if scopes.given():
        write_atomic(path, f"{_home(world)}\n{_SCOPE}{slice_of(session_id)}\n".encode())
        if scopes.limit_slice(session_id, run.all_limits.session):
            return Holding(session_id, run, by_systemd=True)
    return Holding(session_id, run)


def held(world: World, session_id: SessionId) -> list[int]:
    """Every process in the control groups of a session."""
    return members(_groups(world, session_id))


def let_go(world: World, session_id: SessionId) -> list[str]:
    """End what is left in the control groups of a session and remove them; returns those that could not be removed."""
    lines = _listed(world, session_id)
    if not lines:
        return []
    if any(line.startswith(_SCOPE) for line in lines):
        Scopes(world.settings.environ).end_slice(session_id)
    left = remove_groups(_groups(world, session_id), _GRACE)
    if not left:
        remove_file(_list_path(world, session_id))
    return left


def _groups(world: World, session_id: SessionId) -> tuple[str, ...]:
    # The file is out of the agents' reach only where they are isolated.
    return tuple(line for line in _listed(world, session_id) if is_group_of(line, session_id))


def _listed(world: World, session_id: SessionId) -> list[str]:
    """What was written down for this workspace: in a copy of it, the groups are those of the original."""
    try:
        lines = read_file(_list_path(world, session_id)).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    homes = [line for line in lines if line.startswith(_HOME)]
    return [] if homes and _home(world) not in homes else lines


def _home(world: World) -> str:
    return f"{_HOME}{world.layout.home()}"


def _list_path(world: World, session_id: SessionId) -> str:
    return os.path.join(world.layout.session(session_id).private, "groups")


def _refused(error: OSError) -> BadInput:
    return BadInput(f"Cannot set the limits: {error.strerror}: {error.filename}", "mas doctor")


def _words(limits: Limits) -> dict[str, str]:
    """What to say of a limit that was reached."""
    sizes = {"memory": limits.memory, "file_size": limits.file_size}
    words = {
        f"words_{name}": f"{name.replace('_', ' ')} limit {shown_size(size)} reached"
        for name, size in sizes.items()
        if size
    }
    if limits.processes:
        words["words_processes"] = f"processes limit {limits.processes} reached"
    return words


def _own(limits: Limits) -> dict[str, str]:
    """The limits that are set on each process itself."""
    own = {"limit_files": limits.files, "limit_file_size": limits.file_size}
    return {name: str(value) for name, value in own.items() if value}


def _counts(limits: Limits, memory: str, processes: str) -> dict[str, str]:
    """Where the kernel tells that it held an agent to a limit."""
    counts = {"count_memory": memory if limits.memory else "", "count_processes": processes if limits.processes else ""}
    return {name: value for name, value in counts.items() if value}


def _sums(limits: Limits) -> dict[str, str]:
    """What the launcher checks itself, and what bounds the agent between two checks."""
    options: dict[str, str] = {}
    if limits.memory:
        options |= {"sum_memory": str(limits.memory), "limit_data": str(2 * limits.memory)}
    if limits.processes:
        options |= {"sum_processes": str(limits.processes), "limit_processes": str(limits.processes)}
    return options


def _smaller(one: Limits, other: Limits) -> Limits:
    """Without a group of its own, no agent of a session may take more than all of them."""
    pairs = (("memory", one.memory, other.memory), ("processes", one.processes, other.processes))
    return Limits(**{name: min(filter(None, values), default=None) for name, *values in pairs})
