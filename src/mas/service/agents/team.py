"""A session's panes: opened as one team, closed with every process that they started."""

from __future__ import annotations

import os
import shutil
import sys

import mas
from mas.model.errors import Conflict, NoTmux
from mas.model.ids import SessionId, tmux_name
from mas.model.isolation import Isolation, Tier
from mas.model.run import Run, agent_runs
from mas.model.session import AgentRun
from mas.model.team import NEVER, Agent
from mas.providers.provider import Program
from mas.runtime.panes import MARK
from mas.runtime.runtime import PanePlan, PaneState, Place, TeamPlan, WindowPlan
from mas.runtime.sandbox.rules import to_options
from mas.runtime.servers import usual_descriptor_limit
from mas.runtime.sweep import Owner, end_processes, find_processes
from mas.service.isolation.enclosure import Enclosure
from mas.service.isolation.limits import Holding, held, hold, let_go
from mas.service.world import World
from mas.store.agent.hook_spool import spool_path
from mas.store.agent.launch import gate_path, launch_path, write_launch
from mas.store.agent.self_reports import forget_reports
from mas.store.files.atomic import ensure_directory, open_lock
from mas.store.files.descriptors import remove_file, try_lock
from mas.store.layout import PRIVATE_DIR

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


def open_team(
    world: World,
    session_id: SessionId,
    run: Run,
    programs: dict[str, Program],
    place: Place,
    gate: Gate,
    isolation: Isolation | None = None,
) -> tuple[AgentRun, ...]:
    """Open all panes of a session, its launchers waiting at the gate; returns its agents with their panes."""
    paths = world.layout.session(session_id)
    ensure_directory(os.path.dirname(launch_path(paths.root, "")), PRIVATE_DIR)
    waiting = _waiting_at(gate_path(paths.root))
    holding = hold(world, session_id, run)
    enclosure = _enclosure(world, session_id, isolation)
    if enclosure:
        enclosure.empty()
        enclosure.furnish(programs)
    for agent in run.team.agents():
        _write_launch(world, holding, agent, programs[agent.id], bool(waiting), enclosure)
    forget_reports(paths, programs)
    gate.shut(gate_path(paths.root))
    plan = _plan(place, paths.root, holding, waiting)._replace(
        environment=tuple(session_environment(world, session_id).items())
    )
    panes = world.runtime.open(place.socket, plan)
    return agent_runs(run.team, panes)


def reopen_agent(
    world: World, session_id: SessionId, run: Run, agent: Agent, program: Program, place: Place, pane: PaneState
) -> None:
    """Run one agent again in its pane, isolated as its session is; what a person has started there ends.

    Nobody waits at a gate: once the pane is open, all of it is done.
    """
    enclosure = _enclosure(world, session_id, world.records.load(session_id).isolation)
    if enclosure:
        enclosure.furnish({agent.id: program})
    holding = hold(world, session_id, run)
    _write_launch(world, holding, agent, program, False, enclosure)
    forget_reports(world.layout.session(session_id), (agent.id,))
    plan = _pane(world.layout.session(session_id).root, agent, holding.before(agent), place.home)
    world.runtime.reopen(place, pane.pane, plan, force=pane.replaced)


def _enclosure(world: World, session_id: SessionId, isolation: Isolation | None) -> Enclosure | None:
    """What isolates the agents of a session; None where nothing does."""
    if isolation is None or isolation.tier == Tier.D:
        return None
    return Enclosure(world, session_id, isolation)


def _write_launch(
    world: World, holding: Holding, agent: Agent, program: Program, waits: bool, enclosure: Enclosure | None
) -> None:
    """Write the launch file of the agent's launcher."""
    session_id, run = holding.session_id, holding.run
    options = {"nofile": str(usual_descriptor_limit()), **holding.options(agent)}
    if waits:
        options["opener"] = str(os.getpid())
    if lazy := world.workspace.lazy_source(session_id, agent.id) if run.lazy_units else None:
        options["lazy"] = lazy
    policy, limit = run.team.restart_of(agent)
    again = policy != NEVER
    if again:
        options |= {"restart": policy, "restart_limit": str(limit), "resume_if": program.resume_if}
    env = agent_environment(world, session_id, run, agent, program, enclosure)
    argv, resume = list(program.argv), list(program.resume)
    if enclosure:
        hooks, spool = _heard_by_the_launcher(world, session_id, agent, program)
        env |= hooks
        options |= spool
        options |= to_options(enclosure.rules(agent.id, program, env["PATH"]))
        argv = enclosure.argv(program.argv, env["PATH"])
        resume = enclosure.argv(program.resume, env["PATH"]) if resume else []
    path = launch_path(world.layout.session(session_id).root, agent.id)
    write_launch(path, argv, env, options | program.options(), resume if again else None)


def _heard_by_the_launcher(
    world: World, session_id: SessionId, agent: Agent, program: Program
) -> tuple[dict[str, str], dict[str, str]]:
    """What tells an isolated agent where its hooks go, and its launcher, if it may have any, to hear them there."""
    paths = world.layout.session(session_id)
    hears = program.hook_map or program.approve.method.startswith("hook:")
    return {"MAS_HOOKS": spool_path(paths.root, agent.id)}, {"spool": "1"} if hears else {}


def close_team(world: World, session_id: SessionId, socket: str | None) -> str | None:
    """End the session's panes and every process of it, also those that detached themselves.

    What the same session runs in another workspace, of which one is a copy, is left alone: answers where that is.
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
    found = find_processes(owner, roots, held(world, session_id))
    if place and not unseen:
        world.runtime.close(place)
    # A process without a launcher has no other process that would end it.
    left = end_processes(owner, found.processes, _GRACE if roots or unseen else 0.0)
    left += [pid for pid in held(world, session_id) if pid not in left] if let_go(world, session_id) else []
    if left:
        raise Conflict(f"Processes of session {session_id} did not end: {left}", "ps -fp " + ",".join(map(str, left)))
    if unseen:
        raise unseen
    return found.elsewhere


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


def _plan(place: Place, directory: str, holding: Holding, waiting: tuple[str, ...]) -> TeamPlan:
    def pane(agent: Agent) -> PanePlan:
        return _pane(directory, agent, (*holding.before(agent), *waiting), place.home)

    windows = tuple(WindowPlan(unit.name, tuple(map(pane, unit.agents))) for unit in holding.run.team.units)
    return TeamPlan(place.name, directory, windows, place.home)


def _pane(directory: str, agent: Agent, before: tuple[str, ...], home: str) -> PanePlan:
    launcher = (*before, sys.executable, "-ISE", _LAUNCHER, directory, agent.id)
    return PanePlan(agent.id, agent.role, launcher, Owner(os.path.basename(directory), home, agent.id).mark)


def _waiting_at(gate: str) -> tuple[str, ...]:
    """A command prefix that waits for the lock and then becomes the launcher; without a lock it does not wait."""
    flock = shutil.which("flock")
    return (flock, "--shared", "--no-fork", gate) if flock else ()
