"""Restart: run one agent again in its own pane, with its conversation if its provider can resume it."""

from __future__ import annotations

from mas.model.agents import RestartedAgent
from mas.model.errors import Conflict
from mas.model.ids import SessionId
from mas.providers.provider import Program
from mas.runtime.runtime import PaneState, Place
from mas.runtime.sweep import Owner, end_agent
from mas.service.agents.living import has_ended, last_start, running_pane, state_of
from mas.service.agents.programs import furnish, program_of, started_fresh
from mas.service.agents.team import TeamLaunch, reopen_agent
from mas.service.inspect.show import just_opened
from mas.service.isolation.enclosure import limits_of
from mas.service.lifecycle.quit import quit_agents
from mas.service.world import World
from mas.store.agent.agentlog import AgentLog
from mas.store.files.descriptors import utc_now

# The launcher gives an agent three seconds to end by itself; this is how long we wait for the launcher.
_GRACE = 5.0
_KILLED = -9


def restart_agent(world: World, session_id: SessionId, agent_id: str, force: bool = False) -> RestartedAgent:
    """Run an agent that ended once more; with `force` one that runs is ended first.

    The pane stays what it was. `Conflict` if the agent runs, or the session does not.
    """
    session = world.records.load(session_id)
    session.agent(agent_id)
    # Before anything is ended: what cannot be started again should at least go on.
    _program(world, session_id, agent_id)

    def allowed() -> tuple[Place, PaneState]:
        place, pane = _pane(world, session_id, agent_id)
        state = state_of(world, session_id, agent_id, pane)
        # One that has ended may have a launcher that would start it again in a moment.
        if not state.gone and not has_ended(world, session_id, agent_id) and not force:
            hint = f"mas restart-agent --force {session_id} {agent_id}"
            raise Conflict(f"Agent {agent_id} is running: it is {state.state}", hint)
        if pane.replaced and not force:
            raise Conflict(
                f"Another program, started by a person, is running in the pane of agent {agent_id}",
                f"end it, or: mas restart-agent --force {session_id} {agent_id}",
            )
        return place, pane

    with world.intents.begin(session_id, "restart", session.socket, allowed, agent_id) as operation:
        place, pane = allowed()
        operation.no_return()
        program = _run_again(world, session_id, agent_id, place, pane)
        operation.done()
    warnings = started_fresh({agent_id: program})
    for line in (f"restart {agent_id}", *warnings):
        world.logs.session(session_id, line)
    (view,) = (view for view in just_opened(session) if view.id == agent_id)
    return RestartedAgent(session_id, view._replace(pane=pane.pane), warnings)


def start_ended(world: World, session_id: SessionId, agent_id: str, since: str) -> None:
    """Start an agent again that has ended, and has not begun to run since then; for who found that cut short."""
    place, pane = _pane(world, session_id, agent_id)
    if pane.dead and not pane.replaced and _begun_at(world, session_id, agent_id) < since:
        _run_again(world, session_id, agent_id, place, pane)


def _pane(world: World, session_id: SessionId, agent_id: str) -> tuple[Place, PaneState]:
    return running_pane(world, world.records.load(session_id), agent_id)


def _program(world: World, session_id: SessionId, agent_id: str) -> Program:
    run = world.records.load_run(session_id).settled(world.settings.provider)
    (agent,) = run.team.targets(agent_id)
    return program_of(world, session_id, agent, resume=True)


def _run_again(world: World, session_id: SessionId, agent_id: str, place: Place, pane: PaneState) -> Program:
    """End the agent, if it runs, and start it; returns what it runs now."""
    run = world.records.load_run(session_id).settled(world.settings.provider)
    (agent,) = run.team.targets(agent_id)
    # No process may type to the agent while none runs.
    with world.messages().typing(session_id, agent_id):
        _end(world, session_id, agent_id, pane)
        # Only now: it may have begun a conversation until it ended.
        program = program_of(world, session_id, agent, resume=True)
        furnish(world, session_id, {agent_id: program})
        isolation = world.records.load(session_id).isolation
        launch = TeamLaunch(session_id, run, {agent_id: program}, place, isolation, limits_of(world, run))
        reopen_agent(world, launch, agent, pane)
    return program


def _end(world: World, session_id: SessionId, agent_id: str, pane: PaneState) -> None:
    """End the agent and all that an agent whose launcher was killed may have left."""
    quit_agents(world, world.records.load(session_id), (agent_id,))
    owner = Owner(session_id, world.layout.home(), agent_id)
    left = end_agent(owner, None if pane.dead else pane.pid, _GRACE)
    if left:
        raise Conflict(f"Processes of agent {agent_id} did not end: {left}", "ps -fp " + ",".join(map(str, left)))
    if not has_ended(world, session_id, agent_id):
        # Its launcher was killed and could not say so; what is known of that run must not pass for the next one's.
        with AgentLog(world.layout.session(session_id).agent_events(agent_id)) as log:
            log.add({"at": utc_now(), "event": "exit", "status": _KILLED})


def _begun_at(world: World, session_id: SessionId, agent_id: str) -> str:
    """When the agent's last run began; empty if none has."""
    return str(last_start(world, session_id, agent_id).get("at", ""))
