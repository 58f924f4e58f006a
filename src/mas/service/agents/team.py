"""A session's panes: opened as one team, closed with every process that they started."""

from __future__ import annotations

import os
import shutil
import sys
from typing import NamedTuple

import mas
from mas.model.errors import AlreadyThere, Conflict, NoTmux
from mas.model.ids import SessionId, tmux_name
from mas.model.isolation import Isolation, SessionLimits, Tier
from mas.model.launch import LaunchPlan, LimitPlan
from mas.model.run import Run, agent_runs
from mas.model.session import AgentRun, Session
from mas.model.team import NEVER, Agent
from mas.providers.provider import Program
from mas.runtime.panes import MARK
from mas.runtime.runtime import PanePlan, PaneState, Place, TeamPlan, WindowPlan
from mas.runtime.servers import usual_descriptor_limit
from mas.runtime.sweep import Owner, end_processes, find_processes
from mas.service.isolation.enclosure import Enclosure
from mas.service.isolation.limits import enforcer_of, pids_of, remove_limits
from mas.service.isolation.network import remove_rest
from mas.service.world import World
from mas.store.agent.hook_spool import spool_path
from mas.store.agent.launch_plan import gate_path, launch_path, write_plan
from mas.store.agent.self_reports import forget_reports
from mas.store.files.atomic import ensure_directory, open_lock
from mas.store.files.descriptors import remove_file, try_lock
from mas.store.layout import PRIVATE_DIR
from mas.store.workspace.intents import Operation

_LAUNCHER = os.path.join(os.path.dirname(mas.__file__), "pane", "__main__.py")
# The launcher gives an agent three seconds to end by itself; this is how long we wait for launchers.
_GRACE = 5.0


class Gate:
    """Holds back the launchers of a team until its session is whole.

    No agent runs, and none takes the processor from tmux, before everything about its session is on the disk.
    Should this process die, the kernel opens the gate, and the launchers see by the intent that they are not to start.
    """

    def __init__(self) -> None:
        self._fd = -1

    def shut(self, path: str) -> None:
        """Make a new gate and hold it; an exiting process may still hold an older one."""
        remove_file(path)
        self._fd = open_lock(path)
        try_lock(self._fd)

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)


class TeamLaunch(NamedTuple):
    """All that a session's programs are started with."""

    session_id: SessionId
    run: Run
    programs: dict[str, Program]
    place: Place
    isolation: Isolation | None
    limits: SessionLimits

    def opened(self, session: Session, agents: tuple[AgentRun, ...]) -> Session:
        """The session as it is once its programs run."""
        return session._replace(socket=self.place.socket, agents=agents, isolation=self.isolation, limits=self.limits)


def open_team(
    world: World, operation: Operation, gate: Gate, launch: TeamLaunch
) -> tuple[tuple[AgentRun, ...], tuple[str, ...]]:
    """Open all panes of a session, its launchers waiting at the gate, as a part of an operation.

    Returns the agents with their panes, and what people should know. If the operation fails the panes are closed again,
    but not if `AlreadyThere` says that the tmux session of that name is not ours.
    """
    operation.undo(lambda: close_team(world, launch.session_id, launch.place.socket))
    try:
        return _open(world, gate, launch)
    except AlreadyThere:
        # The tmux session of that name is not ours and must not be closed.
        operation.forget()
        raise


def _open(world: World, gate: Gate, launch: TeamLaunch) -> tuple[tuple[AgentRun, ...], tuple[str, ...]]:
    paths, team = world.layout.session(launch.session_id), launch.run.team
    ensure_directory(os.path.dirname(launch_path(paths.root, "")), PRIVATE_DIR)
    waiting = _waiting_at(gate_path(paths.root))
    enforcer = enforcer_of(world, launch.session_id, team, launch.limits)
    enclosure = _enclosure(world, launch)
    if enclosure:
        enclosure.empty()
        enclosure.furnish(launch.programs)
    for agent in team.agents():
        _write_plan(world, launch, agent, enforcer.apply(agent), enclosure, waits=bool(waiting))
    forget_reports(paths, launch.programs)
    gate.shut(gate_path(paths.root))

    def pane(agent: Agent) -> PanePlan:
        return _pane(paths.root, agent, (*enforcer.prefix(agent), *waiting), launch.place.home)

    windows = tuple(WindowPlan(unit.name, tuple(map(pane, unit.agents))) for unit in team.units)
    environment = tuple(session_environment(world, launch.session_id).items())
    plan = TeamPlan(launch.place.name, paths.root, windows, launch.place.home, environment)
    panes = world.runtime.open(launch.place.socket, plan)
    return agent_runs(team, panes), enforcer.unenforced(team)


def reopen_agent(world: World, launch: TeamLaunch, agent: Agent, pane: PaneState) -> None:
    """Run one agent again in its pane, isolated as its session is; what a person has started there ends.

    Nobody waits at a gate: once the pane is open, all of it is done.
    """
    paths = world.layout.session(launch.session_id)
    enclosure = _enclosure(world, launch)
    if enclosure:
        enclosure.furnish(launch.programs)
    enforcer = enforcer_of(world, launch.session_id, launch.run.team, launch.limits)
    _write_plan(world, launch, agent, enforcer.apply(agent), enclosure, waits=False)
    forget_reports(paths, (agent.id,))
    plan = _pane(paths.root, agent, enforcer.prefix(agent), launch.place.home)
    world.runtime.reopen(launch.place, pane.pane, plan, force=pane.replaced)


def _enclosure(world: World, launch: TeamLaunch) -> Enclosure | None:
    """What isolates the agents of a session; None where nothing does."""
    if launch.isolation is None or launch.isolation.tier == Tier.D:
        return None
    return Enclosure(world, launch.session_id, launch.isolation)


def _write_plan(
    world: World, launch: TeamLaunch, agent: Agent, limits: LimitPlan | None, enclosure: Enclosure | None, waits: bool
) -> None:
    """Write the plan of what the agent's launcher must do."""
    session_id, run, program = launch.session_id, launch.run, launch.programs[agent.id]
    root = world.layout.session(session_id).root
    policy, limit = run.team.restart_of(agent)
    again = policy != NEVER
    env = agent_environment(world, session_id, run, agent, program, enclosure)
    argv, resume = program.argv, program.resume
    if enclosure:
        env["MAS_HOOKS"] = spool_path(root, agent.id)
        argv = enclosure.argv(argv, env["PATH"])
        resume = enclosure.argv(resume, env["PATH"]) if resume else ()
    states = program.state_plan()
    plan = LaunchPlan(
        argv=argv,
        env=env,
        mark=Owner(session_id, world.layout.home(), agent.id).number,
        nofile=usual_descriptor_limit(),
        opener=os.getpid() if waits else None,
        lazy=world.workspace.lazy_source(session_id, agent.id) if run.lazy_units else None,
        restart=policy if again else "",
        restart_limit=limit,
        resume=resume if again else (),
        resume_if=program.resume_if,
        isolation=enclosure.rules(agent.id, program, env, in_team=waits) if enclosure else None,
        network=enclosure.network() if enclosure else None,
        limits=limits,
        states=states,
        spool=bool(enclosure and (states.hook_map or states.answer_hook)),
        quit_keys=program.quit_keys(),
        quit_timeout=program.stop.timeout,
    )
    write_plan(launch_path(root, agent.id), plan)


def close_team(world: World, session_id: SessionId, socket: str | None) -> str | None:
    """End the session's panes and every process of it, also those that detached themselves.

    If one workspace is a copy of another, what this session runs in the other one is left alone: returns where that is.
    """
    roots: list[int] = []
    unseen: NoTmux | None = None
    home = world.layout.home()
    place = Place(socket, tmux_name(session_id), home) if socket else None
    owner = Owner(session_id, home)
    if place:
        try:
            roots = [pane.pid for pane in world.runtime.panes(place) if pane.agent and not pane.dead]
        except NoTmux as error:
            unseen = error
    found = find_processes(owner, roots, pids_of(world, session_id))
    if place and not unseen:
        world.runtime.close(place)
    # A process without a launcher has no other process that would end it.
    left = end_processes(owner, found.processes, _GRACE if roots or unseen else 0.0)
    left += [pid for pid in pids_of(world, session_id) if pid not in left] if remove_limits(world, session_id) else []
    if left:
        raise Conflict(f"Processes of session {session_id} did not end: {left}", "ps -fp " + ",".join(map(str, left)))
    if unseen:
        raise unseen
    remove_rest(world.layout.session(session_id))
    return found.elsewhere


def place_for(world: World, session_id: SessionId, panes: int) -> Place:
    """Where a session that is about to be opened will run; `TmuxFull` if no server has room for it."""
    name = tmux_name(session_id)
    return Place(world.runtime.place(name, panes), name, world.layout.home())


def session_environment(world: World, session_id: SessionId) -> dict[str, str]:
    """The environment variables of a session, or of one of its agents."""
    paths = world.layout.session(session_id)
    name = tmux_name(session_id)
    return {
        "MAS_WORKSPACE_ROOT": world.layout.root,
        # The same, as scripts of the older MAS spell it.
        "MAS_ROOT": world.layout.root,
        "MAS_SESSION_ID": session_id,
        "MAS_SESSION_DIR": paths.root,
        "MAS_SESSION_NAME": name,
        "UNIT_DIR": paths.unit,
        "WORKFLOWS_DIR": paths.workflows,
        "SESSION_NAME": name,
    }


def agent_environment(
    world: World,
    session_id: SessionId,
    run: Run,
    agent: Agent,
    program: Program,
    enclosure: Enclosure | None = None,
) -> dict[str, str]:
    """All that one agent has, but for what its terminal is: nothing of ours or of tmux's comes to it by itself."""
    env = world.settings.carried
    env["PATH"] = _with_mas(env.get("PATH", os.defpath))
    if enclosure:
        env |= enclosure.environment(agent.id, env["PATH"])
    env |= dict(program.env)
    env |= dict(run.env)
    env |= session_environment(world, session_id)
    env["MAS_AGENT_ID"] = agent.id
    env["MAS_TOKEN"] = world.access().agent_token(session_id, agent.id)
    env[MARK] = Owner(session_id, world.layout.home(), agent.id).mark
    return env


def _with_mas(path: str) -> str:
    """PATH with this very `mas` on it, so that agents can send messages."""
    here = os.path.dirname(os.path.abspath(sys.executable))
    if here in path.split(":") or not os.path.exists(os.path.join(here, "mas")):
        return path
    return f"{path}:{here}"


def _pane(directory: str, agent: Agent, before: tuple[str, ...], home: str) -> PanePlan:
    launcher = (*before, sys.executable, "-ISE", _LAUNCHER, directory, agent.id)
    return PanePlan(agent.id, agent.role, launcher, Owner(os.path.basename(directory), home, agent.id).mark)


def _waiting_at(gate: str) -> tuple[str, ...]:
    """A command prefix that waits for the lock and then becomes the launcher; without a lock it does not wait."""
    flock = shutil.which("flock")
    # A relative one would be another file in the directory of a pane.
    return (flock, "--shared", "--no-fork", gate) if flock and os.path.isabs(flock) else ()
