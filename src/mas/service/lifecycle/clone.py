"""Clone: a new session with the work of another."""

from __future__ import annotations

from mas.model.errors import MasError
from mas.model.fields import in_field
from mas.model.ids import SessionId, near_name, parse_new_name
from mas.model.views import SessionDetail
from mas.service.inspect.show import describe
from mas.service.lifecycle.new_copy import copied
from mas.service.lifecycle.restore import restore
from mas.service.lifecycle.start import draw_id
from mas.service.world import Progress, World


def clone(
    world: World, source_id: SessionId, name: str | None, run_it: bool, progress: Progress | None = None
) -> SessionDetail:
    """Copy a session's files and configuration into a new, stopped one; `run_it` restores that too."""
    run = world.records.load_run(source_id)
    with in_field("name"):
        run = run._replace(name=parse_new_name(name) if name else near_name(run.name or ""))
    # Owning the source keeps it from being deleted or archived under the copy.
    with world.intents.begin(source_id, "read", allowed=lambda: world.records.load_run(source_id)) as reading:
        source = world.layout.session(source_id).root
        copy_id = draw_id(world)

        def messages() -> None:
            world.messages().copy(source_id, copy_id, "it was not delivered before the session was cloned")

        session, warnings = copied(world, "clone", copy_id, run, source, progress, messages)
        reading.done()
    if run_it:
        try:
            restored = restore(world, session.id)
        except MasError as error:
            # It may be in use already, so it stays; the caller must know.
            error.hint = "; ".join([*filter(None, [error.hint]), f"mas restore {session.id} (the copy, stopped)"])
            raise
        return restored._replace(warnings=(*warnings, *restored.warnings))
    return describe(world, session, warnings)
