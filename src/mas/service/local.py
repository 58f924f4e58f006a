"""LocalMas: the product in this very process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mas.model.errors import BadInput
from mas.model.ids import SessionId
from mas.model.run import Run
from mas.model.session import Gone, Status
from mas.model.views import (
    AgentOutput,
    Diagnosis,
    Migration,
    PrunePlan,
    Repair,
    Sent,
    SessionDetail,
    SessionInfo,
    SessionList,
    Stats,
)
from mas.runtime.host import follow
from mas.service import talk
from mas.service.archive import archive, unarchive
from mas.service.clone import clone
from mas.service.delete import delete, undelete
from mas.service.doctor import doctor
from mas.service.environment import env
from mas.service.listing import list_sessions
from mas.service.mas import Progress
from mas.service.migrate import migrate
from mas.service.prune import Policy, prune
from mas.service.reconcile import reconcile, resolve, settle
from mas.service.repair import repair
from mas.service.restore import restore
from mas.service.show import show
from mas.service.start import start
from mas.service.stats import stats
from mas.service.stop import stop
from mas.service.world import World
from mas.settings import legacy_home
from mas.store.atomic import disk_errors


class LocalMas:
    """`Mas` on the disk and the tmux of this machine."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._problems: list[str] = []

    @contextmanager
    def _ready(self) -> Iterator[World]:
        """The world with nothing half-done left in it, and the disk's refusals in our words."""
        with disk_errors():
            self._world.workspace.prepare()
            self._problems = settle(self._world)
            yield self._world

    def resolve(self, reference: str) -> SessionId:
        with self._ready() as world:
            return resolve(world, reference)

    def only_active(self) -> SessionId:
        with self._ready() as world:
            active = [entry.session_id for entry in reconcile(world)[0] if entry.status is Status.ACTIVE]
        if len(active) != 1:
            hint = "mas list --status active" if active else "mas list; mas start"
            raise BadInput(f"Which session? {len(active)} are active", hint)
        return SessionId(active[0])

    def start(self, run: Run, legacy: bool = False, progress: Progress | None = None) -> SessionDetail:
        with self._ready() as world:
            return start(world, run, legacy, progress)

    def list(self, status: str | None = None, limit: int | None = None, offset: int = 0) -> SessionList:
        with self._ready() as world:
            found = list_sessions(world, status, limit, offset)
            return found._replace(warnings=(*self._problems, *found.warnings))

    def show(self, session_id: SessionId) -> SessionDetail:
        with self._ready() as world:
            reconcile(world)
            return show(world, session_id)

    def stop(self, session_id: SessionId) -> SessionDetail:
        with self._ready() as world:
            return stop(world, session_id)

    def restore(self, session_id: SessionId) -> SessionDetail:
        with self._ready() as world:
            reconcile(world)
            return restore(world, session_id)

    def clone(
        self, session_id: SessionId, name: str | None, run_it: bool, progress: Progress | None = None
    ) -> SessionDetail:
        with self._ready() as world:
            return clone(world, session_id, name, run_it, progress)

    def archive(self, session_id: SessionId, progress: Progress | None = None) -> SessionInfo:
        with self._ready() as world:
            reconcile(world)
            archive(world, session_id, progress)
            return _gone(world, session_id, Gone.ARCHIVED)

    def unarchive(self, reference: str, progress: Progress | None = None) -> SessionDetail:
        with self._ready() as world:
            return unarchive(world, reference, progress)

    def delete(self, session_id: SessionId) -> SessionInfo:
        with self._ready() as world:
            delete(world, session_id)
            return _gone(world, session_id, Gone.DELETED)

    def undelete(self, reference: str) -> SessionDetail:
        with self._ready() as world:
            return undelete(world, reference)

    def prune(self, policy: Policy, dry_run: bool) -> PrunePlan:
        with self._ready() as world:
            return prune(world, policy, dry_run)

    def migrate(self, source: str | None, dry_run: bool, progress: Progress | None = None) -> Migration:
        with self._ready() as world:
            return migrate(world, source, legacy_home(), dry_run, progress)

    def repair(self, dry_run: bool) -> Repair:
        # Not `_ready`: what is half-done is the first thing a repair tells of.
        with disk_errors():
            self._world.workspace.prepare()
            return repair(self._world, dry_run)

    def doctor(self) -> Diagnosis:
        with disk_errors():
            self._world.workspace.prepare()
            return doctor(self._world)

    def stats(self, session_id: SessionId | None = None) -> Stats:
        with self._ready() as world:
            return stats(world, session_id)

    def env(self, session_id: SessionId, agent: str | None) -> dict[str, str]:
        with self._ready() as world:
            return env(world, session_id, agent)

    def send(self, session_id: SessionId, target: str, message: str, sender: str | None) -> Sent:
        with self._ready() as world:
            return talk.send(world, session_id, target, message, sender)

    def output(self, session_id: SessionId, agent: str, lines: int) -> AgentOutput:
        with self._ready() as world:
            return talk.output(world, session_id, agent, lines)

    def logs(self, session_id: SessionId, agent: str | None, lines: int) -> str:
        with self._ready() as world:
            return talk.logs(world, session_id, agent, lines)

    def follow_logs(self, session_id: SessionId, agent: str | None, lines: int) -> None:
        with self._ready() as world:
            follow(talk.log_path(world, session_id, agent), lines)

    def attach(self, session_id: SessionId, agent: str | None) -> None:
        with self._ready() as world:
            talk.attach(world, session_id, agent)


def _gone(world: World, session_id: SessionId, status: Gone) -> SessionInfo:
    kept = list_sessions(world, status).sessions
    return next(info for info in kept if info.session_id == session_id)
