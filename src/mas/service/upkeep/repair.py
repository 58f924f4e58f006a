"""Repair: look at everything, say what is wrong and repair it, or only say it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator

from mas.model.errors import Busy, Corrupt, MasError
from mas.model.ids import SessionId, tmux_name
from mas.model.isolation import Isolation, Tier
from mas.model.run import GENERIC, Run
from mas.model.session import Session, Status
from mas.model.team import CUSTOM, Agent, Team, Unit
from mas.model.upkeep import Finding, Repair
from mas.runtime.runtime import Place
from mas.service.isolation.account import find_account
from mas.service.isolation.enclosure import policy_of
from mas.service.lifecycle.stop import TMUX_GONE, set_status
from mas.service.upkeep.reconcile import rebuild_registry
from mas.service.upkeep.unfinished import finish
from mas.service.world import World
from mas.store.agent.launch_plan import launch_path, read_plan
from mas.store.files.atomic import set_aside
from mas.store.workspace.registry import entry_of, known_of


def repair(world: World, dry_run: bool) -> Repair:
    """Find and repair damage to sessions and registry. Nothing is thrown away: damaged files are kept aside."""
    findings = [*_unfinished(world, dry_run)]
    for name in sorted(world.layout.directories() - world.intents.sessions()):
        findings += _look_at_session(world, SessionId(name), dry_run)
    findings += _registry(world, dry_run)
    return Repair(tuple(findings), done=not dry_run)


def _unfinished(world: World, dry_run: bool) -> Iterator[Finding]:
    for operation in world.intents.unfinished():
        intent = operation.intent
        yield Finding(f"an interrupted {intent.verb} of session {intent.session_id}", "finished or undone")
    if not dry_run:
        if _unreadable(world.registry.read):
            rebuild_registry(world)
        for problem in finish(world):
            yield Finding(problem, "left as it is")


def _look_at_session(world: World, session_id: SessionId, dry_run: bool) -> Iterator[Finding]:
    """Repair one session's own files, then its status."""
    damage = []
    try:
        session = world.records.load(session_id)
    except Corrupt as error:
        damage.append(error)
        session = world.records.rebuild(session_id, _known(world, session_id), world.now())
    damage += world.records.damage(session)
    if newer := next((error for error in damage if error.is_newer), None):
        # What this MAS does not know of it would be lost.
        yield Finding(f"session {session_id}: {newer.message}", "left as it is")
        return
    true_status = _status(world, session)
    told = _with_isolation(world, session) if true_status is Status.ACTIVE else session
    is_untold, session = told != session, told
    for damaged in damage:
        kept = "kept aside and written again" if os.path.lexists(damaged.path) else "written again"
        yield Finding(f"session {session_id}: {damaged.message}", kept)
    if session.status is not true_status and not damage:
        yield Finding(f"session {session_id} is {session.status}, tmux says {true_status}", f"set to {true_status}")
    if is_untold and not damage:
        yield Finding(f"session {session_id} has no record of how its agents are isolated", "written again")
    if dry_run or not (damage or is_untold or session.status is not true_status):
        return
    try:
        with world.intents.begin(session_id, "repair") as operation:
            _repair_session(world, session, damage, true_status)
            operation.done()
    except Busy as error:
        yield Finding(error.message, "left to that process")


def _repair_session(world: World, session: Session, damage: list[Corrupt], status: Status) -> None:
    paths = world.layout.session(session.id)
    for error in damage:
        if os.path.lexists(error.path):
            set_aside(error.path, world.now())
        if error.path == paths.config:
            world.records.save_run(session.id, _run_of(world, session))
    for directory in (paths.logs, paths.unit, paths.workflows):
        os.makedirs(directory, exist_ok=True)
    os.makedirs(paths.private, mode=0o700, exist_ok=True)
    lost = session.status is Status.ACTIVE and status is Status.STOPPED
    repaired = session.to(Status.STOPPED, world.now())
    set_status(world, repaired, status, TMUX_GONE if lost else session.reason, lost or session.lost)


def _run_of(world: World, session: Session) -> Run:
    """A configuration to restore the session with, where its own was lost: the agents it is known to have."""
    units: dict[str, list[Agent]] = {}
    for agent in session.agents:
        known = Agent(agent.id, agent.role, agent.provider or None, agent.model)
        units.setdefault(agent.unit, []).append(_with_command(world, known, session))
    team = tuple(Unit(name, tuple(agents)) for name, agents in units.items())
    run = Run(team=Team(CUSTOM, team)) if team else Run()
    return run._replace(name=session.name).settled(world.settings.provider)


def _with_command(world: World, agent: Agent, session: Session) -> Agent:
    """An agent that ran a command, rebuilt from its launch file; if that is lost too, a default agent."""
    if agent.provider != GENERIC:
        return agent
    try:
        argv = read_plan(launch_path(world.layout.session(session.id).root, agent.id)).argv
    except (OSError, ValueError):
        return agent._replace(provider=None)
    return agent._replace(command=shlex.join(argv))


def _with_isolation(world: World, session: Session) -> Session:
    """The session with its isolation, read from its launch files if only those still have it."""
    if session.isolation or not session.agents:
        return session
    try:
        path = launch_path(world.layout.session(session.id).root, session.agents[0].id)
        rules = read_plan(path).isolation
        policy = policy_of(world, world.records.load_run(session.id))
    except (OSError, ValueError, MasError):
        return session
    if rules is None:
        return session._replace(isolation=Isolation(Tier.D, policy=policy))
    account = find_account(str(rules.account[0])) if rules.account else None
    found = Isolation(rules.tier, rules.how, account=account.name if account else None, policy=policy)
    return session._replace(isolation=found)


def _status(world: World, session: Session) -> Status:
    """What the session should be called, going by tmux; as it is where tmux cannot be asked."""
    if not session.socket:
        return Status.STOPPED
    place = Place(session.socket, tmux_name(session.id), world.layout.home())
    alive = world.runtime.alive([place])[place]
    if alive is None:
        return session.status
    return Status.ACTIVE if alive else Status.STOPPED


def _known(world: World, session_id: SessionId) -> dict[str, str]:
    try:
        entry = next(entry for entry in world.registry.read() if entry.session_id == session_id)
    except (Corrupt, StopIteration):
        return {}
    return known_of(entry)


def _registry(world: World, dry_run: bool) -> Iterator[Finding]:
    """Compare both files of the registry with the directories, and write them again if they differ."""
    files = (world.layout.registry_index, world.layout.journal)
    if not any(map(os.path.lexists, files)) and not world.layout.directories():
        # A workspace that has not been used yet.
        return
    found = [
        Finding(error.message, "kept aside and rebuilt")
        for error in (_unreadable(world.registry.read), _unreadable(world.registry.changes))
        if error
    ]
    if not found:
        found = list(_differences(world))
    yield from found
    if found and not dry_run:
        for aside in rebuild_registry(world):
            yield Finding(f"{aside} has the part that could not be read", "kept")


def _differences(world: World) -> Iterator[Finding]:
    listed = {entry.session_id: entry for entry in world.registry.read()}
    journal = {change.session_id: change.status for change in world.registry.changes()}
    for name in sorted(world.layout.directories() - world.intents.sessions()):
        try:
            wanted = entry_of(world.records.load(SessionId(name)))
        except MasError:
            continue
        if name not in listed:
            yield Finding(f"session {name} is not in the registry", "added")
        elif listed[name].status != wanted.status:
            yield Finding(f"the registry calls session {name} {listed[name].status}", f"set to {wanted.status}")
        elif listed[name].name != wanted.name:
            yield Finding(f"the registry names session {name} {listed[name].name!r}", f"set to {wanted.name!r}")
        if journal.get(name) != wanted.status:
            yield Finding(f"the journal's last entry on session {name} is {journal.get(name)}", "added a line")
    for name in sorted(set(listed) - world.layout.directories() - world.intents.sessions()):
        yield Finding(f"session {name} is in the registry but has no directory", "taken out")


def _unreadable(read: Callable[[], object]) -> Corrupt | None:
    try:
        read()
    except Corrupt as error:
        return error
    return None
