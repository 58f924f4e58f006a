"""The whole product as methods, which every door (command line, HTTP, …) calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mas.model.agents import AgentOutput, RestartedAgent
    from mas.model.approvals import AgentAnswer, ApprovalList
    from mas.model.catalog import ProviderView, TeamView
    from mas.model.event import EventPage
    from mas.model.files import FileListing, FilePart
    from mas.model.forwards import Forward, PortList
    from mas.model.ids import SessionId
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
    from mas.service.agents.terminal import Terminal
    from mas.service.upkeep.prune import PrunePolicy

Progress = Callable[[int, int], None]


class Mas(Protocol):
    """One workspace. Every method first finishes what a killed process left half-done.

    `reference` is a UUID, a name, a unique prefix of 4 or more, or `mas-xxxxxxxx`. Long work reports through
    `progress(done, total)`. Whatever is refused raises a `MasError`.
    """

    def resolve(self, reference: str) -> SessionId:
        """The session `reference` means."""
        ...

    def only_active(self) -> SessionId:
        """The one active session; `BadInput` if there are none or several."""
        ...

    def start(
        self, run: Run, legacy: bool = False, progress: Progress | None = None, key: str | None = None
    ) -> SessionDetail:
        """A new session, whole or not at all. `legacy` marks a request for the old mode.

        Asked again with the same `key`, it answers with the session that the first call started.
        """
        ...

    def list(
        self, status: str | None = None, limit: int | None = None, offset: int = 0, agents: bool = False
    ) -> SessionList:
        """Sessions, oldest first; archived and deleted ones only by that status. With `agents` also their agents."""
        ...

    def show(self, session_id: SessionId) -> SessionDetail:
        """Everything about one session."""
        ...

    def agents(self, session_id: SessionId) -> tuple[AgentView, ...]:
        """The session's agents and their current state."""
        ...

    def stop(self, session_id: SessionId) -> SessionDetail:
        """End every process of the session, keep its directory. Stopping twice is fine."""
        ...

    def restore(self, session_id: SessionId) -> SessionDetail:
        """Start a stopped session again, with the same team in the same directory."""
        ...

    def restart_agent(self, session_id: SessionId, agent: str, force: bool = False) -> RestartedAgent:
        """Run an agent that ended again in its pane; with `force` one that runs is ended first."""
        ...

    def clone(
        self, session_id: SessionId, name: str | None, run_it: bool, progress: Progress | None = None
    ) -> SessionDetail:
        """A new session with the same configuration and a copy of the files."""
        ...

    def rename(self, session_id: SessionId, name: str) -> SessionDetail:
        """Give the session another name; `AlreadyThere` if another that is not deleted has it. Its programs go on."""
        ...

    def archive(self, session_id: SessionId, progress: Progress | None = None) -> SessionInfo:
        """Pack a stopped session into one verified file."""
        ...

    def unarchive(self, reference: str, progress: Progress | None = None) -> SessionDetail:
        """Bring an archived session back, stopped."""
        ...

    def delete(self, session_id: SessionId) -> SessionInfo:
        """Stop the session and move it to the trash."""
        ...

    def undelete(self, reference: str) -> SessionDetail:
        """Bring a deleted session back, stopped."""
        ...

    def dry_run(self, verb: Tryable, reference: str) -> SessionInfo:
        """The session as it is now, if the verb would be done to it; else the verb's own refusal. Changes nothing."""
        ...

    def prune(self, policy: PrunePolicy, dry_run: bool) -> PrunePlan:
        """Remove old sessions as `policy` says, or say what would be removed."""
        ...

    def migrate(self, source: str | None, dry_run: bool, progress: Progress | None = None) -> Migration:
        """Copy old workspaces and sessions into isolated sessions."""
        ...

    def repair(self, dry_run: bool) -> Repair:
        """Find and repair damage, or report what would be repaired."""
        ...

    def doctor(self) -> Diagnosis:
        """Check that everything MAS needs is available."""
        ...

    def isolation(self) -> TierView:
        """How far the agents of a session started now would be isolated."""
        ...

    def stats(self, session_id: SessionId | None = None) -> Stats:
        """Sessions, live agents, and what they take of processor, memory and disk."""
        ...

    def network(
        self,
        session_id: SessionId,
        agent: str | None = None,
        refused: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> NetworkView:
        """What the session's agents reach, and what they asked for: of all or of one, or what was refused only."""
        ...

    def change_network(
        self, session_id: SessionId | None, kind: PlaceList, places: tuple[str, ...], remove: bool = False
    ) -> NetworkChange:
        """Add names to what agents may reach, or remove them: of one session, at once; with None of the workspace."""
        ...

    def teams(self) -> tuple[TeamView, ...]:
        """The teams that a session can be started with."""
        ...

    def providers(self) -> tuple[ProviderView, ...]:
        """All providers, and which of them can be used on this machine."""
        ...

    def files(self, session_id: SessionId, path: str) -> FileListing:
        """What is in a directory of the session; the empty path names those that are shown."""
        ...

    def file(self, session_id: SessionId, path: str, offset: int = 0, most: int = 1 << 20) -> FilePart:
        """Up to `most` bytes of a file of the session, from `offset` on."""
        ...

    def template_file(self, path: str, offset: int = 0, most: int = 1 << 20) -> FilePart:
        """The same of a file that the workspace has for new sessions, below `unit` or `workflows`."""
        ...

    def env(self, session_id: SessionId, agent: str | None) -> dict[str, str]:
        """The variables a program of the session has."""
        ...

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
        """Keep a message for an agent, a unit, `managers`, `all` or `person`, and have it typed to each idle agent.

        It waits while an agent is not idle; with `force` only while the agent waits for an answer. One that cannot
        reach anybody raises, and is kept as undelivered. Sent again with the same `message_id`, nothing is typed, and
        the answer is what became of the first. `wait` is how many seconds to wait for it to arrive or to be held.
        """
        ...

    def wait(
        self,
        session_id: SessionId,
        target: str = "all",
        until: str = "idle",
        timeout: float = 60.0,
        asker: str | None = None,
        after: str | None = None,
    ) -> Waited:
        """Wait until the agents of `target` are `idle`, have `answered` or `replied`, are `blocked` or `exited`.

        A reply is what one of them wrote to `asker` (None: to people) since the message `after`, or since now;
        answered is replied or, without that, idle. It ends early where only a person can help.
        """
        ...

    def messages(
        self, session_id: SessionId, agent: str | None = None, limit: int = 100, offset: int = 0, box: str = "all"
    ) -> MessageList:
        """The `limit` messages before the `offset` newest, newest last: of the session or of an agent.

        `box` says which of an agent's: `inbox` those to it, `sent` those from it, `all` both.
        """
        ...

    def message_counts(self) -> dict[str, int]:
        """How many deliveries in active sessions are in each state."""
        ...

    def approvals(self, session_id: SessionId | None = None) -> ApprovalList:
        """Every agent of the active sessions, or of one, that waits for an answer; the longest first."""
        ...

    def answer(self, session_id: SessionId, agent: str, allow: bool, by: str = "person") -> AgentAnswer:
        """Allow or deny what an agent asks for, once it has taken the answer; `by` is for the log.

        `Conflict` if it asks for nothing, asks something else by now, or only a person at its terminal may answer.
        """
        ...

    def output(
        self,
        session_id: SessionId,
        agent: str,
        lines: int,
        reader: str | None = None,
        screen: bool = False,
        message_id: str | None = None,
    ) -> AgentOutput:
        """What an agent said last, or answered to a message, if its program records that; else what its terminal shows.

        With `screen`, and of an agent that is blocked or in error, always what its terminal shows. Another agent,
        `reader`, sees it where it may write to that one.
        """
        ...

    def transcript(self, session_id: SessionId, agent: str, limit: int = 20, offset: int = 0) -> Transcript:
        """The `limit` turns before the `offset` newest of an agent's conversations, newest last.

        `NotFound` if its program records none that MAS can read. Nothing half-done is finished first, so that it can
        be asked often.
        """
        ...

    def report(self, session_id: SessionId, agent: str, text: str, state: str | None = None) -> AgentReport:
        """What an agent of a running session reports about itself: shown with it, and sent to listeners as an event."""
        ...

    def logs(self, session_id: SessionId, agent: str | None, lines: int, raw: bool = False) -> str:
        """The last lines of a log; of an agent whose program records its conversation, of that unless `raw`."""
        ...

    def follow_logs(self, session_id: SessionId, agent: str | None, lines: int) -> None:
        """Hand the terminal over to a growing log. Does not return."""
        ...

    def events(self, after: str | None = None, most: int = 1000) -> EventPage:
        """What happened after the event called `after`: None from now on, `0` from the oldest kept.

        Only reads: nothing half-done is finished first, so that it can be asked at any rate.
        """
        ...

    def terminal(self, session_id: SessionId, agent: str) -> Terminal:
        """An agent's terminal to watch and to type to; close it when done."""
        ...

    def attach(self, session_id: SessionId, agent: str | None) -> None:
        """Hand the terminal over to the session. Does not return."""
        ...

    def ports(self, session_id: SessionId) -> PortList:
        """The ports that programs of the session listen at; `Conflict` if it is not running."""
        ...

    def forward(self, session_id: SessionId, port: int, local: int | None = None, any_user: bool = False) -> Forward:
        """Have a port of this machine, on loopback, lead to a port inside the session's network.

        It is `local`, or any free one, and only for programs of this user unless `any_user`. It ends with the session,
        and with the process that keeps it. Asked for the same port again, it returns the one that is open.
        """
        ...

    def forwards(self, session_id: SessionId) -> tuple[Forward, ...]:
        """The open forwards of a session that this process keeps."""
        ...

    def end_forward(self, session_id: SessionId, port: int) -> Forward:
        """Close a forward and all its connections; `NotFound` if there is none."""
        ...

    def wait_for_forward(self, session_id: SessionId, port: int) -> None:
        """Wait until a forward that this process keeps has ended."""
        ...
