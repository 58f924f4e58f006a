"""The whole product as methods: what every door (command line, HTTP, …) speaks to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mas.model.ids import SessionId
    from mas.model.reports import AgentOutput, Diagnosis, Migration, PrunePlan, Repair, Sent, Stats
    from mas.model.run import Run
    from mas.model.views import SessionDetail, SessionInfo, SessionList
    from mas.service.prune import Policy

Progress = Callable[[int, int], None]


class Mas(Protocol):
    """One workspace. Every method first finishes what a killed process left half-done.

    `reference` is a UUID, a unique prefix of 4 or more, or `mas-xxxxxxxx`. Long work reports through
    `progress(done, total)`. Whatever is refused raises a `MasError`.
    """

    def resolve(self, reference: str) -> SessionId:
        """The session `reference` means."""
        ...

    def only_active(self) -> SessionId:
        """The one active session; `BadInput` if there are none or several."""
        ...

    def start(self, run: Run, legacy: bool = False, progress: Progress | None = None) -> SessionDetail:
        """A new session, whole or not at all. `legacy` marks a request for the old mode."""
        ...

    def list(self, status: str | None = None, limit: int | None = None, offset: int = 0) -> SessionList:
        """Sessions, oldest first; `archived` and `deleted` ones only by that status."""
        ...

    def show(self, session_id: SessionId) -> SessionDetail:
        """Everything about one session."""
        ...

    def stop(self, session_id: SessionId) -> SessionDetail:
        """End every process of the session, keep its directory. Stopping twice is fine."""
        ...

    def restore(self, session_id: SessionId) -> SessionDetail:
        """Bring a stopped session back with the same team in the same directory."""
        ...

    def clone(
        self, session_id: SessionId, name: str | None, run_it: bool, progress: Progress | None = None
    ) -> SessionDetail:
        """A new session with the same configuration and a copy of the files."""
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

    def prune(self, policy: Policy, dry_run: bool) -> PrunePlan:
        """Remove old sessions as `policy` says, or say what would be removed."""
        ...

    def migrate(self, source: str | None, dry_run: bool, progress: Progress | None = None) -> Migration:
        """Copy old workspaces and sessions into isolated sessions."""
        ...

    def repair(self, dry_run: bool) -> Repair:
        """Find and mend damage, or say what would be mended."""
        ...

    def doctor(self) -> Diagnosis:
        """Whether everything MAS needs is there."""
        ...

    def stats(self, session_id: SessionId | None = None) -> Stats:
        """Sessions, live agents, processes and disk."""
        ...

    def env(self, session_id: SessionId, agent: str | None) -> dict[str, str]:
        """The variables a program of the session has."""
        ...

    def send(self, session_id: SessionId, target: str, message: str, sender: str | None) -> Sent:
        """Type a message to an agent, a unit, `managers` or `all`."""
        ...

    def output(self, session_id: SessionId, agent: str, lines: int) -> AgentOutput:
        """What an agent's terminal shows."""
        ...

    def logs(self, session_id: SessionId, agent: str | None, lines: int) -> str:
        """The last lines of a log."""
        ...

    def follow_logs(self, session_id: SessionId, agent: str | None, lines: int) -> None:
        """Hand the terminal over to a growing log. Does not return."""
        ...

    def attach(self, session_id: SessionId, agent: str | None) -> None:
        """Hand the terminal over to the session. Does not return."""
        ...
