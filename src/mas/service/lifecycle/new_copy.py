"""A new, stopped session filled with the work of another directory: what clone and migrate share."""

from __future__ import annotations

from collections.abc import Callable

from mas.model.ids import SessionId, shown
from mas.model.run import Run, agent_runs
from mas.model.session import Gone, Session, Status
from mas.service.isolation.enclosure import limits_of
from mas.service.lifecycle.naming import register
from mas.service.world import Progress, World
from mas.store.files.tree import sync_tree


def copied(
    world: World,
    verb: str,
    session_id: SessionId,
    run: Run,
    source: str,
    progress: Progress | None,
    more: Callable[[], object] = bool,
) -> tuple[Session, tuple[str, ...]]:
    """The session, whole or not at all, and what people should know. `more` puts in what is not a file."""
    with world.intents.begin(session_id, verb) as operation:
        world.workspace.create(session_id)
        operation.undo(lambda: world.workspace.discard(session_id))
        world.workspace.furnish(session_id)
        skipped = world.workspace.copy_session(source, session_id, progress)
        world.workspace.fill_units(session_id, [agent.id for agent in run.team.agents()])
        world.records.save_run(session_id, run)
        more()
        sync_tree(world.layout.session(session_id).root)
        now = world.now()
        origin = f"{verb}: {source}"
        session = Session(session_id, Status.STOPPED, now, now, now, run.name, None, agent_runs(run.team), origin)
        session = session._replace(limits=limits_of(world, run), stopped_at=now)
        world.records.save(session)
        operation.undo(lambda: world.registry.retract(session_id, Gone.DELETED))
        session, named = register(world, session)
        operation.done()
    world.logs.session(session_id, origin)
    return session, (*named, *(f"Not copied: {shown(path)}" for path in skipped))
