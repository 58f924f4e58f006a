"""Limits: who enforces those of a session's agents, and what is made on the machine for it."""

from __future__ import annotations

import os
from typing import NamedTuple

from mas.model.errors import BadInput
from mas.model.ids import SessionId
from mas.model.isolation import Limits, SessionLimits, shown_size
from mas.model.launch import LimitPlan
from mas.model.team import Agent, Team
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
from mas.service.world import World
from mas.store.files.atomic import read_file, write_atomic
from mas.store.files.descriptors import remove_file

_GRACE = 5.0
# Where the kernel counts, in a control group: a file and the word in it.
_OOM = {1: ("memory.oom_control", "oom_kill"), 2: ("memory.events", "oom_kill")}
_FORKS = ("pids.events", "max")
_NOT_COUNTED = (
    "The memory limit does not count memory in files (memfd, /dev/shm): MAS cannot use control groups on this machine"
)
_SCOPE = "scope:"
_HOME = "home:"


class Enforcer(NamedTuple):
    """What enforces the limits of a session's agents: control groups, systemd, or only their launchers."""

    session_id: SessionId
    limits: SessionLimits
    ground: Ground | None = None
    by_systemd: bool = False

    def apply(self, agent: Agent) -> LimitPlan | None:
        """Create the agent's control groups; returns what its launcher must do. `BadInput` if that fails."""
        limits = self._with_session(agent)
        if not self._are_any(agent):
            return None
        plan = LimitPlan(files=limits.files, file_size=limits.file_size, words=_words(limits))
        if self.ground:
            return self._in_groups(self.ground, agent, plan)
        if self.by_systemd:
            return plan.but(counts=_counts(limits, _OOM[2], _FORKS))
        return plan.but(**_sums(_smaller(agent_limits(self.limits, agent), self.limits.session)))

    def _in_groups(self, where: Ground, agent: Agent, plan: LimitPlan) -> LimitPlan:
        limits = agent_limits(self.limits, agent)
        try:
            groups = make_agent(where, self.session_id, agent.id, limits)
        except OSError as error:
            raise _refused(error) from None
        memory = group_of(where, "memory", self.session_id, agent.id)
        # The newer version counts where the limit is that was reached, the older one where the process was.
        counted = agent.id if limits.processes or where.version == 1 else ""
        forks = group_of(where, "pids", self.session_id, counted)
        oom, word = _OOM[where.version]
        counts = _counts(self._with_session(agent), (f"{memory}/{oom}", word), (f"{forks}/{_FORKS[0]}", _FORKS[1]))
        return plan.but(groups=tuple(groups), counts=counts)

    def prefix(self, agent: Agent) -> tuple[str, ...]:
        """What to run an agent's launcher with."""
        if not self.by_systemd or not self._are_any(agent):
            return ()
        return agent_scope(self.session_id, agent.id, agent_limits(self.limits, agent))

    def unenforced(self, team: Team) -> tuple[str, ...]:
        """Which limits cannot be enforced here, as sentences for people."""
        if self.by_systemd:
            return ()
        limits = _all_limits(self.limits, team)
        found = []
        if any(one.cpu for one in limits) and not (self.ground and self.ground.place("cpu")):
            found.append("The cpu limit is not enforced: MAS cannot use control groups on this machine")
        if any(one.memory for one in limits) and not (self.ground and self.ground.place("memory")):
            found.append(_NOT_COUNTED)
        return tuple(found)

    def _with_session(self, agent: Agent) -> Limits:
        return agent_limits(self.limits, agent).under(self.limits.session)

    def _are_any(self, agent: Agent) -> bool:
        return self._with_session(agent)._replace(disk=None) != Limits()


def agent_limits(limits: SessionLimits, agent: Agent) -> Limits:
    """The limits of one agent: its own, otherwise those for all agents."""
    return agent.limits.under(limits.agent)


def _all_limits(limits: SessionLimits, team: Team) -> list[Limits]:
    return [limits.session, *(agent_limits(limits, agent) for agent in team.agents())]


def enforcer_of(world: World, session_id: SessionId, team: Team, limits: SessionLimits) -> Enforcer:
    """See who can enforce a session's limits, and make what is needed for it; `BadInput` if that is refused."""
    by_launchers = Enforcer(session_id, limits)
    if not any(one.memory or one.processes or one.cpu for one in _all_limits(limits, team)):
        return by_launchers
    path = _list_path(world, session_id)
    where = ground()
    if where:
        # Written down first: whatever is made can be found again.
        lines = dict.fromkeys((_home(world), *_listed(world, session_id), *session_groups(where, session_id)))
        write_atomic(path, "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n")
        try:
            make_session(where, session_id, limits.session)
        except OSError as error:
            raise _refused(error) from None
        return by_launchers._replace(ground=where)
    scopes = Scopes(world.settings.environ)
    if scopes.given():
        write_atomic(path, f"{_home(world)}\n{_SCOPE}{slice_of(session_id)}\n".encode())
        return by_launchers._replace(by_systemd=scopes.limit_slice(session_id, limits.session))
    return by_launchers


def pids_of(world: World, session_id: SessionId) -> list[int]:
    """Every process in the control groups of a session."""
    return members(_groups(world, session_id))


def remove_limits(world: World, session_id: SessionId) -> list[str]:
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
    """What to report when a limit is reached, by limit."""
    shown = {
        "memory": limits.memory and shown_size(limits.memory),
        "file_size": limits.file_size and shown_size(limits.file_size),
        "processes": limits.processes,
    }
    return {name: f"{name.replace('_', ' ')} limit {most} reached" for name, most in shown.items() if most}


def _counts(limits: Limits, memory: tuple[str, str], processes: tuple[str, str]) -> dict[str, tuple[str, str]]:
    """Where the kernel counts how often an agent reached a limit."""
    counts = (("memory", limits.memory, memory), ("processes", limits.processes, processes))
    return {name: place for name, most, place in counts if most}


def _sums(limits: Limits) -> dict[str, int]:
    """What the launcher checks itself, and what bounds the agent between two checks."""
    sums: dict[str, int] = {}
    if limits.memory:
        sums |= {"most_memory": limits.memory, "data": 2 * limits.memory}
    if limits.processes:
        sums |= {"most_processes": limits.processes, "processes": limits.processes}
    return sums


def _smaller(one: Limits, other: Limits) -> Limits:
    """Without a group of its own, no agent of a session may take more than all of them."""
    pairs = (("memory", one.memory, other.memory), ("processes", one.processes, other.processes))
    return Limits(**{name: min(filter(None, values), default=None) for name, *values in pairs})
