"""Unfinished: finish or undo what a killed process left half-done."""

from __future__ import annotations

from collections.abc import Callable

from mas.model.errors import BadInput, Conflict, Corrupt, MasError, NoProgram, NoSession, NotFound
from mas.model.ids import SessionId, tmux_name
from mas.model.session import Gone, Status
from mas.runtime.sweep import wait_for_clients
from mas.service.agents.living import place_of
from mas.service.agents.team import close_team
from mas.service.lifecycle.naming import register, save_named
from mas.service.lifecycle.stop import TMUX_GONE, set_status, stop_owned
from mas.service.world import World
from mas.store.workspace.intents import Intent
from mas.store.workspace.registry import entry_of

# How long a tmux client whose process was killed may take to get its answer.
_PATIENCE = 5.0


def finish(world: World) -> list[str]:
    """See to every piece of unfinished work; returns what could not be finished, and why."""
    problems = []
    for operation in world.intents.unfinished():
        intent = operation.intent
        # What the killed process asked of tmux may still be on its way, and would come as a surprise later.
        wait_for_clients(tmux_name(intent.session_id), _PATIENCE)
        if intent.verb not in _FINISH:
            problems.append(f"Another version of MAS left a {intent.verb} of {intent.session_id} unfinished")
            continue
        try:
            _FINISH[intent.verb](world, intent, SessionId(intent.session_id))
            world.workspace.clear_doomed(intent.session_id)
            world.records.remove_unfinished(intent.session_id)
        except (MasError, OSError) as error:
            problems.append(f"Could not finish an interrupted {intent.verb} of {intent.session_id}: {error}")
            continue
        operation.done()
        text = f"finished an interrupted {intent.verb} of {intent.session_id}"
        world.logs.workspace(text)
        world.events.add("warning", intent.session_id, text=text[0].upper() + text[1:])
    return problems


def _finish_making(world: World, intent: Intent, session_id: SessionId) -> None:
    """A session whose start was killed before it was reported is removed."""
    close_team(world, session_id, intent.socket)
    world.registry.retract(session_id, Gone.DELETED)
    world.workspace.discard(session_id)


def _finish_stop(world: World, intent: Intent, session_id: SessionId, lost: str | None = None) -> None:
    """`lost` says why it no longer runs, if it was not stopped on purpose."""
    if not world.layout.is_session(session_id):
        return
    try:
        session = stop_owned(world, session_id, lost, lost is not None)
    except Corrupt:
        close_team(world, session_id, intent.socket)
        return
    if session.status is not Status.ERROR:
        set_status(world, session, Status.STOPPED, session.reason, session.lost)


def _finish_lost(world: World, intent: Intent, session_id: SessionId) -> None:
    """Lost, unless it was restored before it was marked: the listing was killed while it looked again."""
    if not _may_live(world, session_id):
        _finish_stop(world, intent, session_id, lost=TMUX_GONE)


def _may_live(world: World, session_id: SessionId) -> bool:
    try:
        session = world.records.load(session_id)
    except (Corrupt, NoSession):
        return False
    place = place_of(world, session)
    return place is not None and world.runtime.alive([place])[place] is not False


def _finish_restore(world: World, intent: Intent, session_id: SessionId) -> None:
    """Stopped as before; lost, if it was marked active already: it was meant to run."""
    close_team(world, session_id, intent.socket)
    _finish_stop(world, intent, session_id, lost="its restore was interrupted")


def _finish_restart(world: World, intent: Intent, session_id: SessionId) -> None:
    """An agent that was ended to be started again is started; where that cannot be, it has ended."""
    from mas.service.agents.restart import start_ended

    if intent.agent is None or not world.layout.is_session(session_id):
        return
    try:
        start_ended(world, session_id, intent.agent, intent.at)
    except (BadInput, Conflict, Corrupt, NoProgram, NotFound) as error:
        world.logs.session(session_id, f"agent {intent.agent} was not started again: {error.message}")


def _finish_archive(world: World, intent: Intent, session_id: SessionId) -> None:
    if world.archives.has(session_id):
        world.workspace.discard(session_id)
        world.registry.drop(session_id, Gone.ARCHIVED)
    world.archives.drop_half(session_id)


def _finish_unarchive(world: World, intent: Intent, session_id: SessionId) -> None:
    if _registered(world, session_id):
        # Its name may not have come to its files.
        register(world, world.records.load(session_id))
        world.archives.remove(session_id)
    else:
        world.registry.retract(session_id, Gone.ARCHIVED)
        world.workspace.discard(session_id)


def _finish_delete(world: World, intent: Intent, session_id: SessionId) -> None:
    if world.layout.is_session(session_id):
        _finish_stop(world, intent, session_id)
    else:
        world.registry.drop(session_id, Gone.DELETED)


def _finish_undelete(world: World, intent: Intent, session_id: SessionId) -> None:
    if world.layout.is_session(session_id):
        try:
            session = world.records.load(session_id)._replace(socket=None)
        except Corrupt:
            return
        world.records.save(session)
        register(world, session)


def _finish_rename(world: World, intent: Intent, session_id: SessionId) -> None:
    """Use the name in the session's own files, whatever the rename had done."""
    try:
        session = world.records.load(session_id)
    except (Corrupt, NoSession):
        return
    save_named(world, register(world, session)[0])


def _finish_network(world: World, intent: Intent, session_id: SessionId) -> None:
    """What the session's own configuration allows holds, whatever of it was done."""
    from mas.service.isolation.allowing import settle_network

    try:
        settle_network(world, session_id)
    except (Corrupt, NoSession):
        return


def _finish_purge(world: World, intent: Intent, session_id: SessionId) -> None:
    world.archives.drop_half(session_id)


def _finish_repair(world: World, intent: Intent, session_id: SessionId) -> None:
    """As far as the session can be read, say the same of it everywhere."""
    try:
        session = world.records.load(session_id)
    except (Corrupt, NoSession):
        return
    world.records.save(session)
    world.registry.put(entry_of(session))


def _nothing(world: World, intent: Intent, session_id: SessionId) -> None:
    """Nothing can be half-done beyond what every recovery sees to."""


def _registered(world: World, session_id: SessionId) -> bool:
    return any(entry.session_id == session_id for entry in world.registry.read())


_FINISH: dict[str, Callable[[World, Intent, SessionId], None]] = {
    "start": _finish_making,
    "clone": _finish_making,
    "migrate": _finish_making,
    "stop": _finish_stop,
    "lost": _finish_lost,
    "restore": _finish_restore,
    "restart": _finish_restart,
    "archive": _finish_archive,
    "unarchive": _finish_unarchive,
    "delete": _finish_delete,
    "undelete": _finish_undelete,
    "rename": _finish_rename,
    "network": _finish_network,
    "purge": _finish_purge,
    "read": _nothing,
    "damage": _finish_repair,
    "repair": _finish_repair,
}
