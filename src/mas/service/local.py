"""LocalMas: the product in this process.

Each verb is imported when it is first used: a listing must not pay for what packs archives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from mas.model.errors import BadInput, Busy, Corrupt
from mas.model.ids import SessionId
from mas.model.session import Gone, Status
from mas.service.inspect.listing import list_sessions
from mas.service.mas import Progress
from mas.service.upkeep.reconcile import finish_work, reconcile, resolve
from mas.service.world import World
from mas.settings import legacy_home
from mas.store.files.atomic import disk_errors

if TYPE_CHECKING:
    from mas.model.agents import AgentOutput, RestartedAgent
    from mas.model.approvals import AgentAnswer, ApprovalList
    from mas.model.catalog import ProviderView, TeamView
    from mas.model.event import EventPage
    from mas.model.files import FileListing, FilePart
    from mas.model.forwards import Forward, PortList
    from mas.model.isolation import TierView
    from mas.model.message import MessageList, Sent, Waited
    from mas.model.network_view import NetworkChange, NetworkView, PlaceList
    from mas.model.run import Run
    from mas.model.self_report import AgentReport
    from mas.model.session import Tryable
    from mas.model.stats import Stats
    from mas.model.transcript import Transcript
    from mas.model.upkeep import Diagnosis, Migration, PrunePlan, Repair
    from mas.model.views import AgentView, SessionDetail, SessionInfo, SessionList
    from mas.service.agents.local_terminal import WatchedTeams
    from mas.service.agents.terminal import Terminal
    from mas.service.forwards import Forwards
    from mas.service.messages.courier import Courier
    from mas.service.upkeep.prune import PrunePolicy


# How long a reader of messages waits for those that can be delivered.
_MOMENT = 1.0


class LocalMas:
    """`Mas` on the disk and the tmux of this machine."""

    def __init__(self, world: World, courier: Courier | None = None, forwards: Forwards | None = None) -> None:
        self._world = world
        self._made_forwards = forwards
        self._is_server = courier is not None
        self._made_courier = courier
        self._made_terminals: WatchedTeams | None = None
        self._making = Lock()

    def _courier(self) -> Courier:
        """Who brings messages to agents: a server's own, or one for as long as this process runs."""
        if self._made_courier is None:
            from mas.service.messages.courier import Courier

            self._made_courier = Courier(self._world, here=True)
        return self._made_courier

    def _terminals(self) -> WatchedTeams:
        """All terminals of this process: they share what is known of their sessions."""
        from mas.service.agents.local_terminal import WatchedTeams

        with self._making:
            if self._made_terminals is None:
                self._made_terminals = WatchedTeams(self._world)
            return self._made_terminals

    def _forwards(self) -> Forwards:
        """The forwards that this process keeps."""
        from mas.service.forwards import Forwards

        with self._making:
            if self._made_forwards is None:
                self._made_forwards = Forwards(self._world)
            return self._made_forwards

    @contextmanager
    def _entered(self) -> Iterator[World]:
        """The world as it is, and the disk's refusals in our words."""
        with disk_errors():
            self._world.workspace.prepare()
            yield self._world

    @contextmanager
    def _ready(self) -> Iterator[World]:
        """The world with nothing half-done left in it."""
        with self._entered() as world:
            finish_work(world)
            try:
                yield world
            except Corrupt as error:
                # What another process makes or moves just now is not damaged, only not whole.
                session_id = next((one for one in world.intents.sessions() if f"/{one}/" in error.path), None)
                if session_id is None or not world.intents.is_owned(session_id):
                    raise
                raise Busy(f"Another mas process is working on session {session_id}", "try again") from None

    def resolve(self, reference: str) -> SessionId:
        with self._ready() as world:
            return resolve(world, reference)

    def only_active(self) -> SessionId:
        with self._ready() as world:
            active = [entry.session_id for entry in reconcile(world)[0] if entry.status is Status.ACTIVE]
        if len(active) != 1:
            hint = "mas list --status active" if active else "mas list; mas start"
            raise BadInput(f"No session given, and {len(active) or 'no'} sessions are active", hint)
        return SessionId(active[0])

    def start(
        self, run: Run, legacy: bool = False, progress: Progress | None = None, key: str | None = None
    ) -> SessionDetail:
        from mas.service.lifecycle.start import start, start_once

        with self._ready() as world:
            if key is not None:
                return start_once(world, run, legacy, progress, key)
            return start(world, run, legacy, progress)

    def list(
        self, status: str | None = None, limit: int | None = None, offset: int = 0, agents: bool = False
    ) -> SessionList:
        with self._entered() as world:
            problems = finish_work(world)
            found = list_sessions(world, status, limit, offset, agents)
            return found._replace(warnings=(*problems, *found.warnings))

    def show(self, session_id: SessionId) -> SessionDetail:
        from mas.service.inspect.show import show

        with self._ready() as world:
            reconcile(world)
            return show(world, session_id)

    def agents(self, session_id: SessionId) -> tuple[AgentView, ...]:
        return self.show(session_id).agents

    def stop(self, session_id: SessionId) -> SessionDetail:
        from mas.service.lifecycle.stop import stop

        with self._ready() as world:
            return stop(world, session_id)

    def restore(self, session_id: SessionId) -> SessionDetail:
        from mas.service.lifecycle.restore import restore

        with self._ready() as world:
            reconcile(world)
            return restore(world, session_id)

    def restart_agent(self, session_id: SessionId, agent: str, force: bool = False) -> RestartedAgent:
        from mas.service.agents.restart import restart_agent

        with self._ready() as world:
            reconcile(world)
            return restart_agent(world, session_id, agent, force)

    def clone(
        self, session_id: SessionId, name: str | None, run_it: bool, progress: Progress | None = None
    ) -> SessionDetail:
        from mas.service.lifecycle.clone import clone

        with self._ready() as world:
            return clone(world, session_id, name, run_it, progress)

    def rename(self, session_id: SessionId, name: str) -> SessionDetail:
        from mas.service.lifecycle.naming import rename

        with self._ready() as world:
            return rename(world, session_id, name)

    def archive(self, session_id: SessionId, progress: Progress | None = None) -> SessionInfo:
        from mas.service.lifecycle.archive import archive

        with self._ready() as world:
            reconcile(world)
            warnings = archive(world, session_id, progress)
            return _gone(world, session_id, Gone.ARCHIVED)._replace(warnings=warnings)

    def unarchive(self, reference: str, progress: Progress | None = None) -> SessionDetail:
        from mas.service.lifecycle.archive import unarchive

        with self._ready() as world:
            return unarchive(world, reference, progress)

    def delete(self, session_id: SessionId) -> SessionInfo:
        from mas.service.lifecycle.delete import delete

        with self._ready() as world:
            delete(world, session_id)
            return _gone(world, session_id, Gone.DELETED)

    def undelete(self, reference: str) -> SessionDetail:
        from mas.service.lifecycle.delete import undelete

        with self._ready() as world:
            return undelete(world, reference)

    def dry_run(self, verb: Tryable, reference: str) -> SessionInfo:
        from mas.service.lifecycle.dry_run import dry_run

        with self._ready() as world:
            reconcile(world)
            return dry_run(world, verb, reference)

    def prune(self, policy: PrunePolicy, dry_run: bool) -> PrunePlan:
        from mas.service.upkeep.prune import prune

        with self._ready() as world:
            return prune(world, policy, dry_run)

    def migrate(self, source: str | None, dry_run: bool, progress: Progress | None = None) -> Migration:
        from mas.service.lifecycle.migrate import migrate

        with self._ready() as world:
            return migrate(world, source, legacy_home(), dry_run, progress)

    def repair(self, dry_run: bool) -> Repair:
        from mas.service.upkeep.repair import repair

        # Not `_ready`: what is half-done is the first thing a repair reports.
        with self._entered() as world:
            return repair(world, dry_run)

    def doctor(self) -> Diagnosis:
        from mas.service.upkeep.doctor import doctor

        with self._entered() as world:
            return doctor(world)

    def isolation(self) -> TierView:
        # Part of the health check, which must return whatever the disk does.
        return self._world.tiers().view(self._world.settings.isolation)

    def stats(self, session_id: SessionId | None = None) -> Stats:
        from mas.service.inspect.stats import stats

        with self._ready() as world:
            return stats(world, session_id)

    def network(
        self,
        session_id: SessionId,
        agent: str | None = None,
        refused: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> NetworkView:
        from mas.service.inspect.network import network

        with self._ready() as world:
            return network(world, session_id, agent, refused, limit, offset)

    def change_network(
        self, session_id: SessionId | None, kind: PlaceList, places: tuple[str, ...], remove: bool = False
    ) -> NetworkChange:
        from mas.service.isolation.allowing import change_network

        with self._ready() as world:
            if session_id is not None:
                reconcile(world)
            return change_network(world, session_id, kind, places, remove)

    def teams(self) -> tuple[TeamView, ...]:
        from mas.service.inspect.catalog import teams

        return teams(self._world)

    def providers(self) -> tuple[ProviderView, ...]:
        from mas.service.inspect.catalog import providers

        return providers(self._world)

    def files(self, session_id: SessionId, path: str) -> FileListing:
        from mas.service.inspect.files import list_files

        with self._entered() as world:
            return list_files(world, session_id, path)

    def file(self, session_id: SessionId, path: str, offset: int = 0, most: int = 1 << 20) -> FilePart:
        from mas.service.inspect.files import read_file_part

        with self._entered() as world:
            return read_file_part(world, session_id, path, offset, most)

    def template_file(self, path: str, offset: int = 0, most: int = 1 << 20) -> FilePart:
        from mas.service.inspect.files import read_template_part

        with self._entered() as world:
            return read_template_part(world, path, offset, most)

    def env(self, session_id: SessionId, agent: str | None) -> dict[str, str]:
        from mas.service.inspect.environment import env

        with self._ready() as world:
            return env(world, session_id, agent)

    def send(
        self,
        session_id: SessionId,
        target: str,
        message: str,
        sender: str | None = None,
        message_id: str | None = None,
        force: bool = False,
        wait: float = 0.0,
    ) -> Sent:
        from mas.service.messages.send import Order, send

        with self._ready() as world:
            order = Order(target, message, sender, message_id, force)
            return send(world, self._courier(), session_id, order, wait)

    def wait(
        self,
        session_id: SessionId,
        target: str = "all",
        until: str = "idle",
        timeout: float = 60.0,
        asker: str | None = None,
        after: str | None = None,
    ) -> Waited:
        from mas.service.messages.wait import wait

        with self._ready() as world:
            if self._is_server:
                return wait(world, session_id, target, until, timeout, asker, after)
            with self._courier().attending(session_id):
                return wait(world, session_id, target, until, timeout, asker, after)

    def messages(
        self, session_id: SessionId, agent: str | None = None, limit: int = 100, offset: int = 0, box: str = "all"
    ) -> MessageList:
        from mas.service.messages.inbox import messages

        with self._ready() as world:
            if not self._is_server:
                # There may be no server that would go on with what waits.
                self._courier().deliver_waiting(session_id, _MOMENT)
            return messages(world, session_id, agent, limit, offset, box)

    def message_counts(self) -> dict[str, int]:
        from mas.service.messages.inbox import message_counts

        with self._ready() as world:
            return message_counts(world)

    def approvals(self, session_id: SessionId | None = None) -> ApprovalList:
        from mas.service.agents.approvals import approvals

        with self._ready() as world:
            return approvals(world, session_id)

    def answer(self, session_id: SessionId, agent: str, allow: bool, by: str = "person") -> AgentAnswer:
        from mas.service.agents.approvals import answer

        with self._ready() as world:
            return answer(world, session_id, agent, allow, by)

    def output(
        self,
        session_id: SessionId,
        agent: str,
        lines: int,
        reader: str | None = None,
        screen: bool = False,
        message_id: str | None = None,
    ) -> AgentOutput:
        from mas.service.agents import output

        with self._ready() as world:
            return output.output(world, session_id, agent, lines, reader, screen, message_id)

    def transcript(self, session_id: SessionId, agent: str, limit: int = 20, offset: int = 0) -> Transcript:
        from mas.service.agents.transcript import transcript

        with self._entered() as world:
            return transcript(world, session_id, agent, limit, offset)

    def report(self, session_id: SessionId, agent: str, text: str, state: str | None = None) -> AgentReport:
        from mas.service.agents.report import report

        with self._ready() as world:
            return report(world, session_id, agent, text, state)

    def logs(self, session_id: SessionId, agent: str | None, lines: int, raw: bool = False) -> str:
        from mas.service.agents import output

        with self._ready() as world:
            return output.logs(world, session_id, agent, lines, raw)

    def follow_logs(self, session_id: SessionId, agent: str | None, lines: int) -> None:
        from mas.runtime.host import follow
        from mas.service.agents import output

        with self._ready() as world:
            follow(output.log_path(world, session_id, agent), lines)

    def events(self, after: str | None = None, most: int = 1000) -> EventPage:
        with disk_errors():
            return self._world.events.read(after, most)

    def terminal(self, session_id: SessionId, agent: str) -> Terminal:
        with self._ready():
            return self._terminals().terminal(session_id, agent)

    def attach(self, session_id: SessionId, agent: str | None) -> None:
        from mas.service.agents import output

        with self._ready() as world:
            output.attach(world, session_id, agent)

    def ports(self, session_id: SessionId) -> PortList:
        with self._ready():
            return self._forwards().ports(session_id)

    def forward(self, session_id: SessionId, port: int, local: int | None = None, any_user: bool = False) -> Forward:
        with self._ready():
            return self._forwards().open(session_id, port, local, any_user)

    def forwards(self, session_id: SessionId) -> tuple[Forward, ...]:
        with self._ready() as world:
            world.records.load(session_id)
            return self._forwards().list(session_id)

    def end_forward(self, session_id: SessionId, port: int) -> Forward:
        return self._forwards().end(session_id, port)

    def wait_for_forward(self, session_id: SessionId, port: int) -> None:
        self._forwards().wait(session_id, port)


def _gone(world: World, session_id: SessionId, status: Gone) -> SessionInfo:
    kept = list_sessions(world, status).sessions
    return next(info for info in kept if info.session_id == session_id)
