"""Programs: what every agent of a session runs, found before anything is changed."""

from __future__ import annotations

import os

from mas.model.errors import BadInput, NotFound
from mas.model.fields import in_field
from mas.model.ids import SessionId
from mas.model.run import Run
from mas.model.team import Agent
from mas.providers.provider import AgentHome, Program
from mas.service.world import World
from mas.store.agent.directory import AgentPlace
from mas.store.files.safe_open import opened_beneath

_ROLE = "ROLE.md"
_LONGEST_ROLE = 1 << 20


def check_programs(world: World, run: Run) -> None:
    """`NoProgram` if the program of an agent is not on this machine."""
    providers = world.providers()
    # The first agent of each kind: what the others run is the same.
    first = {(agent.provider, agent.command): agent for agent in reversed([*run.team.agents()])}
    for agent in reversed(first.values()):
        own = "command" if agent.command else "provider" if agent.provider != run.provider else None
        with in_field(f"agents.{agent.id}.{own}" if own else "provider"):
            providers.program(agent)


def with_model(world: World, run: Run) -> tuple[Run, tuple[str, ...]]:
    """The run with its model given to every agent that takes one and names none; and a warning if some take none."""
    if run.model is None:
        return run, ()
    providers = world.providers()
    takes = {
        agent.id: providers.of(agent.provider or "", agent.command).takes_model
        for agent in run.team.agents()
        if not agent.model
    }
    without = sorted({agent.provider or "" for agent in run.team.agents() if not takes.get(agent.id, True)})
    if takes and not any(takes.values()):
        why = f"{' and '.join(without)} does not take a model"
        raise BadInput(why, "mas doctor lists the providers", field="model")
    units = tuple(
        unit._replace(
            agents=tuple(agent._replace(model=run.model) if takes.get(agent.id) else agent for agent in unit.agents)
        )
        for unit in run.team.units
    )
    ids = ", ".join(agent for agent, does in takes.items() if not does)
    note = (f"Started without model {run.model}, because {' and '.join(without)} takes none: {ids}",) if without else ()
    return run._replace(team=run.team._replace(units=units), model=None), note


def programs_of(world: World, session_id: SessionId, run: Run, resume: bool = False) -> dict[str, Program]:
    """What every agent of the session runs, each in its own directory."""
    return {agent.id: program_of(world, session_id, agent, resume) for agent in run.team.agents()}


def program_of(world: World, session_id: SessionId, agent: Agent, resume: bool) -> Program:
    """What one agent of the session runs."""
    providers = world.providers()
    paths = world.layout.session(session_id)
    home = AgentHome(world.layout.root, paths.root, os.path.join(paths.unit, agent.id))
    if not providers.of(agent.provider or "", agent.command).needs_place:
        return providers.program(agent, home, resume)
    place = AgentPlace(paths, agent.id)
    uuid = place.uuid()
    role = _unit_role(world, session_id, agent.id)
    own_role = os.path.join(home.unit_dir, _ROLE) if role else ""
    home = home._replace(state_dir=place.path, agent_uuid=uuid or world.new_id(), role_file=own_role, role=role)
    return providers.program(agent, home, resume and bool(uuid))


def furnish(world: World, session_id: SessionId, programs: dict[str, Program]) -> None:
    """Write what the programs must find at their start."""
    paths = world.layout.session(session_id)
    for agent, program in programs.items():
        if program.uuid:
            AgentPlace(paths, agent).furnish(program.uuid, program.files, program.seed)


def started_fresh(programs: dict[str, Program]) -> tuple[str, ...]:
    """Says which agents do not go on with a conversation, and why."""
    reasons: dict[str, list[str]] = {}
    for agent, program in programs.items():
        if not program.resumes:
            why = (
                "no conversation was kept" if program.can_resume else f"{program.provider} cannot resume a conversation"
            )
            reasons.setdefault(why, []).append(agent)
    return tuple(f"Started fresh: {', '.join(agents)} ({why})" for why, agents in reasons.items())


def _unit_role(world: World, session_id: SessionId, agent: str) -> str:
    """What the agent's unit says about its role; empty if it says nothing."""
    root = world.layout.session(session_id).root
    if not os.path.isdir(os.path.join(root, "unit", agent)):
        # It is copied when the agent starts.
        root = world.layout.root
    try:
        with opened_beneath(root, ("unit", agent, _ROLE)) as fd:
            return os.read(fd, _LONGEST_ROLE).decode("utf-8", "replace").rstrip("\n")
    except (NotFound, OSError):
        return ""
