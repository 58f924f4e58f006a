"""Restore: a stopped session comes back in the same directory with the same team."""

from __future__ import annotations

from mas.model.errors import AlreadyThere, Conflict
from mas.model.ids import SessionId
from mas.model.session import Session, Status
from mas.model.state import State
from mas.model.views import SessionDetail
from mas.service.agents.living import state_before_end
from mas.service.agents.programs import furnish, programs_of, started_fresh
from mas.service.agents.team import Gate, TeamLaunch, close_team, open_team, place_for
from mas.service.inspect.show import describe, just_opened
from mas.service.isolation.disk import check_room
from mas.service.isolation.enclosure import choose_isolation, limits_of
from mas.service.world import World
from mas.store.files.atomic import ensure_directory
from mas.store.layout import OPEN_DIR
from mas.store.workspace.registry import entry_of


def restore(world: World, session_id: SessionId) -> SessionDetail:
    """Bring a stopped session back; each agent resumes where its provider can."""
    session, warnings = _restored(world, session_id)
    return describe(world, session, warnings, just_opened(session))


def restored(world: World, session_id: SessionId) -> Session:
    """The same without a caller that reads the warnings: they go to the session's log."""
    return _restored(world, session_id)[0]


def check_restore(world: World, session_id: SessionId) -> None:
    """Refuse what `restore` would refuse before it changes anything."""
    launch, _ = _launch(world, session_id)
    _before_and_after(world, launch)


def _launch(world: World, session_id: SessionId) -> tuple[TeamLaunch, tuple[str, ...]]:
    """What will be started and how, and what people should know of it."""
    run = world.records.load_run(session_id).settled(world.settings.provider)
    programs = programs_of(world, session_id, run, resume=True)
    isolation, to_know = choose_isolation(world, run)
    place = place_for(world, session_id, len(programs))
    return TeamLaunch(session_id, run, programs, place, isolation, limits_of(world, run)), to_know


def _ended(world: World, session_id: SessionId) -> Session:
    session = world.records.load(session_id)
    if session.status is Status.ACTIVE:
        raise Conflict(f"Session {session_id} is active", f"mas attach {session_id}")
    return session


def _before_and_after(world: World, launch: TeamLaunch) -> tuple[Session, Session]:
    """The session as it is and as it will be."""
    before = _ended(world, launch.session_id)
    check_room(world, launch.session_id, launch.limits.session.disk)
    return before, before.to(Status.ACTIVE, world.now())


def _restored(world: World, session_id: SessionId) -> tuple[Session, tuple[str, ...]]:
    launch, to_know = _launch(world, session_id)
    run, programs, place = launch.run, launch.programs, launch.place

    def ended() -> object:
        return _ended(world, session_id)

    with Gate() as gate, world.intents.begin(session_id, "restore", place.socket, ended) as operation:
        before, after = _before_and_after(world, launch)
        cut_off = _cut_off(world, before)
        # What a crash of tmux left over must not work beside the new agents.
        if other := close_team(world, session_id, before.socket):
            raise Conflict(
                f"Session {session_id} is running in another copy of this workspace: {other}",
                f"stop it there first; or for a separate session here: mas clone {session_id}",
            )
        paths = world.layout.session(session_id)
        ensure_directory(paths.private, 0o700)
        ensure_directory(paths.logs, OPEN_DIR)
        ensure_directory(paths.unit, OPEN_DIR)
        if not run.lazy_units:
            world.workspace.fill_units(session_id, list(programs))
        furnish(world, session_id, programs)
        try:
            agents, unenforced = open_team(world, operation, gate, launch)
        except AlreadyThere:
            name = place.name
            raise AlreadyThere(
                f"tmux already has a session {name}, which is not this workspace's",
                f"for a session with another name: mas clone {session_id}; or: tmux rename-session -t ={name} NAME",
            ) from None
        after = launch.opened(after._replace(started_at=after.last_activity), agents)
        operation.undo(lambda: world.records.save(before))
        world.records.save(after)
        operation.undo(lambda: world.registry.put(entry_of(before)))
        world.registry.put(entry_of(after))
        operation.done()
    world.logs.session(session_id, f"restore {len(agents)} agents")
    warnings = (*cut_off, *to_know, *started_fresh(programs), *unenforced)
    for warning in warnings:
        world.logs.session(session_id, warning)
    return after, warnings


def _cut_off(world: World, session: Session) -> tuple[str, ...]:
    """What agents were doing when their session was lost: nothing else says that it was not finished."""
    if not session.lost:
        return ()
    states = {agent.id: state_before_end(world, session.id, agent.id) for agent in session.agents}
    working = [agent for agent, state in states.items() if state.state is State.WORKING]
    said = [f"These agents were working when the session was lost: {', '.join(working)}"] if working else []
    for agent, state in states.items():
        if state.state is State.BLOCKED:
            said.append(f"Agent {agent} was waiting for a decision when the session was lost: {state.words}")
    return tuple(said)
