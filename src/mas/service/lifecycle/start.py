"""Start: a new session, completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Thread

from mas.model.errors import AlreadyThere, BadInput
from mas.model.fields import in_field
from mas.model.ids import PREFIX_LENGTH, SessionId, parse_new_name, tmux_name
from mas.model.isolation import Isolation
from mas.model.run import Run, run_body
from mas.model.session import Gone, Session, Status
from mas.model.views import SessionDetail
from mas.runtime.servers import TmuxFull
from mas.runtime.threads import started
from mas.service.agents.programs import check_programs, furnish, programs_of, with_model
from mas.service.agents.team import Gate, TeamLaunch, open_team, place_for
from mas.service.inspect.show import describe, just_opened, show
from mas.service.isolation.disk import check_room
from mas.service.isolation.enclosure import choose_isolation, limits_of
from mas.service.lifecycle.naming import register
from mas.service.messages.prompts import check_prompts, keep_prompts, tell_prompts
from mas.service.upkeep.reconcile import finish_work, resolve
from mas.service.world import Progress, World
from mas.store.files.tree import sync_tree

_DRAWS = 8


def start_once(world: World, run: Run, legacy: bool, progress: Progress | None, key: str) -> SessionDetail:
    """The same for a request that may be repeated: the session that `key` started, or a new one."""
    import json

    wanted = [run_body(run), run.command, legacy, *([run.session_id] if run.session_id else [])]
    asked = json.dumps(wanted, sort_keys=True).encode()
    with world.keys().held(key, asked) as kept:
        if kept.is_other_request:
            raise BadInput("This Idempotency-Key was already used for another run", "use a new Idempotency-Key")
        # The process that held the key before may have been killed half-way; that start is undone first.
        finish_work(world)
        if kept.session_id and (kept.done or world.layout.is_session(kept.session_id)):
            return show(world, resolve(world, kept.session_id))
        session = start(world, run, legacy, progress, lambda drawn: kept.note(drawn, done=False))
        kept.note(session.session_id, done=True)
        return session


def start(
    world: World,
    run: Run,
    legacy: bool,
    progress: Progress | None = None,
    drawn: Callable[[SessionId], None] = lambda _: None,
) -> SessionDetail:
    """Start a session as `run` says. `legacy` marks a request for the old single mode: it gets the warning.

    It has the id that `run` asks for, or `AlreadyThere`; else one is drawn. `drawn` is called with the id of what is
    about to be created, once no other process can create it.
    """
    with in_field("name"):
        run = run._replace(name=run.name and parse_new_name(run.name)).settled(world.settings.provider)
    run, without_model = with_model(world, run)
    check_programs(world, run)
    check_prompts(run)
    with in_field("isolation"):
        isolation, to_know = choose_isolation(world, run)
    to_know = (*without_model, *to_know)
    legacy = legacy or wants_legacy(world)
    for attempt in range(_DRAWS):
        session_id = run.session_id or draw_id(world)
        try:
            session, warnings = _start_as(world, session_id, run, isolation, progress, drawn)
        except (AlreadyThere, TmuxFull) as error:
            # Another workspace has a tmux session of that name, or others took the room there was.
            if attempt == _DRAWS - 1 or (run.session_id and isinstance(error, AlreadyThere)):
                raise
            continue
        break
    warnings = (*to_know, *warnings)
    for line in to_know:
        world.logs.session(session.id, line)
    if legacy:
        warnings = (*legacy_warning(session.id), *warnings)
        world.logs.session(session.id, "legacy session mode was asked for; started an isolated session")
        world.logs.workspace(f"legacy session mode was asked for; started isolated session {session.id}")
        world.events.add("warning", session.id, text="\n".join(legacy_warning(session.id)))
    return describe(world, session, warnings, just_opened(session))


def draw_id(world: World) -> SessionId:
    """An id whose first eight characters no session of this workspace has, wherever it is kept."""
    taken = {name[:PREFIX_LENGTH] for name in _kept(world)} | {
        name[:PREFIX_LENGTH] for name in world.intents.sessions()
    }
    while True:
        session_id = world.new_id()
        if session_id[:PREFIX_LENGTH] not in taken:
            return session_id


def _kept(world: World) -> dict[str, str]:
    """The id of every session there is, and the command that shows it or brings it back."""
    kept = {name[:36]: f"mas undelete {name[:36]}" for name in os.listdir(world.layout.trash)}
    kept |= {name[:36]: f"mas unarchive {name[:36]}" for name in os.listdir(world.layout.archive)}
    return kept | {name: f"mas show {name}" for name in world.layout.directories()}


def _check_free(world: World, session_id: SessionId) -> None:
    """`AlreadyThere` if a chosen id belongs to a session, or if another session's tmux session has the same name."""
    kept = _kept(world)
    if session_id in kept:
        raise AlreadyThere(f"Session {session_id} already exists", f"{kept[session_id]}; or use another id")
    for other in {*kept, *world.intents.sessions()} - {session_id}:
        if tmux_name(other) == tmux_name(session_id):
            raise AlreadyThere(
                f"{session_id} begins like session {other}; both would have the name {tmux_name(session_id)} in tmux",
                "use an id with different first 8 characters",
            )


def _start_as(
    world: World,
    session_id: SessionId,
    run: Run,
    isolation: Isolation,
    progress: Progress | None,
    drawn: Callable[[SessionId], None],
) -> tuple[Session, tuple[str, ...]]:
    """The session, and what people should know of it."""
    ids = [agent.id for agent in run.team.agents()]
    place = place_for(world, session_id, len(ids))
    limits = limits_of(world, run)

    def free() -> None:
        # Before the intent is written: should this process be killed, what an intent to start speaks of is removed.
        if run.session_id:
            _check_free(world, session_id)

    with Gate() as gate, world.intents.begin(session_id, "start", place.socket, free) as operation:
        # Again, now that others see this start: of two whose ids begin alike at most one goes on.
        free()
        drawn(session_id)
        world.workspace.create(session_id)
        operation.undo(lambda: world.workspace.discard(session_id))
        world.workspace.furnish(session_id)
        # Files that the launcher copies belong to its user, which does not help an agent that runs as another one.
        lazy = run.lazy_units and not isolation.account
        world.workspace.copy_templates(session_id, lazy, progress)
        if not lazy:
            world.workspace.fill_units(session_id, ids)
        check_room(world, session_id, limits.session.disk)
        world.records.save_run(session_id, run)
        programs = programs_of(world, session_id, run)
        furnish(world, session_id, programs)
        prompts = keep_prompts(world, session_id, run)
        launch = TeamLaunch(session_id, run, programs, place, isolation, limits)
        syncing = _Syncing(world.layout.session(session_id).root)
        try:
            agents, unenforced = open_team(world, operation, gate, launch)
        finally:
            syncing.wait()
        now = world.now()
        session = launch.opened(Session(session_id, Status.ACTIVE, now, now, now, run.name), agents)
        world.records.save(session)
        operation.undo(lambda: world.registry.retract(session_id, Gone.DELETED))
        session, named = register(world, session)
        operation.done()
    world.logs.session(session_id, f"start {len(agents)} agents")
    return session, (*named, *tell_prompts(world, session_id, prompts), *unenforced)


class _Syncing(Thread):
    """Brings the copied files to the disk while tmux opens the panes."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        self._path = path
        self._error: OSError | None = None
        self._apart = started(self)

    def run(self) -> None:
        try:
            sync_tree(self._path)
        except OSError as error:
            self._error = error

    def wait(self) -> None:
        """All of it is on the disk, or `OSError`."""
        if self._apart:
            self.join()
        else:
            self.run()
        if self._error:
            raise self._error


def wants_legacy(world: World) -> bool:
    """Whether the environment, an old marker file or a running old session asks for the single mode."""
    return world.settings.legacy or os.path.lexists(world.layout.at(".mas_session")) or world.runtime.legacy_running()


def legacy_warning(session_id: str) -> tuple[str, ...]:
    return (
        "Legacy session mode has been deprecated.",
        "Creating new isolated session instead.",
        f"Session ID: {session_id}",
        f"Workspace: sessions/{session_id}/",
    )
