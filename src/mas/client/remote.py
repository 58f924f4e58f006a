"""RemoteMas: the product wherever its server runs."""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from mas.client.connection import Connection
from mas.model.agents import AgentList, AgentOutput, LogText, RestartedAgent, Variables
from mas.model.approvals import AgentAnswer, ApprovalList
from mas.model.catalog import ProviderList, ProviderView, TeamList, TeamView
from mas.model.errors import BadInput, NoServer, NoSession, NotSignedIn
from mas.model.event import EventPage, parse_event
from mas.model.files import FileListing, FilePart
from mas.model.forwards import Forward, ForwardList, PortList
from mas.model.ids import SessionId, find_session, is_session_id, parse_reference
from mas.model.isolation import TierView
from mas.model.message import MessageCounts, MessageList, Sent, Waited, parse_message
from mas.model.network_view import NetworkChange, NetworkView, PlaceList
from mas.model.run import Run, run_body
from mas.model.self_report import AgentReport, parse_report
from mas.model.server import Health
from mas.model.session import Gone, Status, Tryable
from mas.model.shapes import unwire
from mas.model.stats import Stats
from mas.model.transcript import MOST_TURNS, Transcript
from mas.model.upkeep import Diagnosis, Migration, PrunePlan, Repair
from mas.model.views import AgentView, SessionDetail, SessionInfo, SessionList
from mas.service.mas import Progress
from mas.settings import read_token

if TYPE_CHECKING:
    from mas.service.agents.terminal import Terminal
    from mas.service.upkeep.prune import PrunePolicy

Value = TypeVar("Value")

# A server that was killed may be back in a moment; asked with the same key, it does nothing twice.
_AGAIN = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
_LARGEST_PART = 4 << 20
_MOST_LINES = 100_000
_LONGEST_WAIT = 60.0
_LOOK_AGAIN = 1.0


class RemoteMas:
    """`Mas` over HTTP. It returns and raises the same values as `LocalMas`; `progress` is never called.

    A session can also be given by its name or by the start of its id.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        certificate: str | None = None,
        *,
        ca: str | None = None,
        token_file: str | None = None,
    ) -> None:
        """The server at `url`: `http://…`, `https://…`, or `unix:/path` for its socket file.

        At a socket file the token is read from the file beside it, unless one is given.

        With a `certificate` (PEM) it must show that very one, whatever that is good for elsewhere. `ca` is the path of
        a file (PEM) with the certificates to trust instead of the usual ones; `token_file` of one that holds the token.
        """
        if token is None and token_file is not None:
            token = read_token(token_file)
        self._connection = Connection(url, token, certificate, ca)

    def close(self) -> None:
        """Let go of the connection. Closing twice is fine."""
        self._connection.close()

    def __enter__(self) -> RemoteMas:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def resolve(self, reference: str) -> SessionId:
        return SessionId(self._get(SessionInfo, "/resolve", reference=reference).session_id)

    def only_active(self) -> SessionId:
        active = self.list(status=Status.ACTIVE).sessions
        if len(active) != 1:
            hint = "mas list --status active" if active else "mas list; mas start"
            raise BadInput(f"No session given, and {len(active) or 'no'} sessions are active", hint)
        return SessionId(active[0].session_id)

    def start(
        self, run: Run, legacy: bool = False, progress: Progress | None = None, key: str | None = None
    ) -> SessionDetail:
        """As with `LocalMas`; where the connection breaks, it is asked again, and still one session is started."""
        key = f"start-{os.urandom(16).hex()}" if key is None else key
        if not key or not key.isascii() or not key.isprintable():
            raise BadInput("An idempotency key must be ASCII characters")
        body = run_body(_commands_written_out(run)) | ({"sessionMode": "legacy"} if legacy else {})
        if run.session_id is not None:
            body["sessionId"] = run.session_id
        return self._post(SessionDetail, "/runs", body, headers={"Idempotency-Key": key}, again=_AGAIN)

    def list(
        self, status: str | None = None, limit: int | None = None, offset: int = 0, agents: bool = False
    ) -> SessionList:
        found = self._get(SessionList, "/sessions", status=status, limit=limit, offset=offset)
        if agents:
            return found
        return found._replace(sessions=tuple(info._replace(agents=()) for info in found.sessions))

    def show(self, session_id: SessionId) -> SessionDetail:
        return self._get(SessionDetail, _session(session_id))

    def agents(self, session_id: SessionId) -> tuple[AgentView, ...]:
        return self._get(AgentList, _session(session_id, "agents")).agents

    def stop(self, session_id: SessionId) -> SessionDetail:
        return self._post(SessionDetail, _session(session_id, "stop"))

    def restore(self, session_id: SessionId) -> SessionDetail:
        return self._post(SessionDetail, _session(session_id, "restore"))

    def restart_agent(self, session_id: SessionId, agent: str, force: bool = False) -> RestartedAgent:
        return self._post(RestartedAgent, _session(session_id, "agents", agent, "restart"), {"force": force})

    def clone(
        self, session_id: SessionId, name: str | None, run_it: bool, progress: Progress | None = None
    ) -> SessionDetail:
        return self._post(SessionDetail, _session(session_id, "clone"), {"name": name, "start": run_it})

    def rename(self, session_id: SessionId, name: str) -> SessionDetail:
        return self._post(SessionDetail, _session(session_id, "rename"), {"name": name})

    def archive(self, session_id: SessionId, progress: Progress | None = None) -> SessionInfo:
        return self._post(SessionInfo, _session(session_id, "archive"))

    def unarchive(self, reference: str, progress: Progress | None = None) -> SessionDetail:
        return self._post(SessionDetail, _session(self._gone(reference, Gone.ARCHIVED), "unarchive"))

    def delete(self, session_id: SessionId) -> SessionInfo:
        return self._ask(SessionInfo, "DELETE", _session(session_id))

    def undelete(self, reference: str) -> SessionDetail:
        return self._post(SessionDetail, _session(self._gone(reference, Gone.DELETED), "undelete"))

    def dry_run(self, verb: Tryable, reference: str) -> SessionInfo:
        gone = {"unarchive": Gone.ARCHIVED, "undelete": Gone.DELETED}.get(verb)
        session_id = self._gone(reference, gone) if gone else reference
        return self._get(SessionInfo, _session(session_id, "dry-run"), verb=verb)

    def prune(self, policy: PrunePolicy, dry_run: bool) -> PrunePlan:
        body = {
            "olderThan": policy.older_than,
            "keep": policy.keep,
            "statuses": list(policy.statuses),
            "dryRun": dry_run,
        }
        if policy.by_config:
            body["policy"] = True
        return self._post(PrunePlan, "/prune", body)

    def migrate(self, source: str | None, dry_run: bool, progress: Progress | None = None) -> Migration:
        if source is not None and not source.startswith("/"):
            # It would mean a directory relative to where the server runs.
            raise BadInput("Give the absolute path of what to migrate, on the server's machine", "mas migrate /…")
        return self._post(Migration, "/migrate", {"source": source, "dryRun": dry_run})

    def repair(self, dry_run: bool) -> Repair:
        return self._post(Repair, "/repair", {"dryRun": dry_run})

    def doctor(self) -> Diagnosis:
        return self._get(Diagnosis, "/doctor")

    def isolation(self) -> TierView:
        isolation = self._get(Health, "/health").isolation
        if isolation is None:
            raise NotSignedIn("The server shows its isolation only to callers with a token", "mas token")
        return isolation

    def stats(self, session_id: SessionId | None = None) -> Stats:
        return self._get(Stats, "/stats", sessionId=session_id and parse_reference(session_id))

    def network(
        self,
        session_id: SessionId,
        agent: str | None = None,
        refused: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> NetworkView:
        path = _session(session_id, "network")
        return self._get(
            NetworkView, path, agent=agent, refused="true" if refused else None, limit=limit, offset=offset
        )

    def change_network(
        self, session_id: SessionId | None, kind: PlaceList, places: tuple[str, ...], remove: bool = False
    ) -> NetworkChange:
        path = "/network" if session_id is None else _session(session_id, "network")
        return self._post(NetworkChange, path, {"kind": kind, "places": list(places), "remove": remove})

    def teams(self) -> tuple[TeamView, ...]:
        return self._get(TeamList, "/teams").teams

    def providers(self) -> tuple[ProviderView, ...]:
        return self._get(ProviderList, "/providers").providers

    def files(self, session_id: SessionId, path: str) -> FileListing:
        return self._get(FileListing, _session(session_id, "files"), path=path)

    def file(self, session_id: SessionId, path: str, offset: int = 0, most: int = 1 << 20) -> FilePart:
        return self._part(_session(session_id, "file"), path, offset, most)

    def template_file(self, path: str, offset: int = 0, most: int = 1 << 20) -> FilePart:
        return self._part("/template-file", path, offset, most)

    def _part(self, call: str, path: str, offset: int, most: int) -> FilePart:
        params = {"path": path, "offset": offset, "most": min(most, _LARGEST_PART)}
        found = self._connection.raw("GET", call, params=params)
        try:
            size = int(found.headers["X-File-Size"])
        except (KeyError, ValueError) as error:
            raise _not_understood(error) from None
        return FilePart("/".join(name for name in path.split("/") if name not in ("", ".")), size, found.content)

    def env(self, session_id: SessionId, agent: str | None) -> dict[str, str]:
        return self._get(Variables, _session(session_id, "env"), agent=agent).variables

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
        # With an id of its own it can be sent again where the connection breaks: nothing is typed twice.
        name = f"m-{os.urandom(8).hex()}" if message_id is None else message_id
        body: dict[str, Any] = {"target": target, "message": parse_message(message), "from": sender, "id": name}
        body |= {"force": force, "wait": min(wait, _LONGEST_WAIT)}
        return self._post(Sent, _session(session_id, "messages"), body, again=_AGAIN)

    def wait(
        self,
        session_id: SessionId,
        target: str = "all",
        until: str = "idle",
        timeout: float = 60.0,
        asker: str | None = None,
        after: str | None = None,
    ) -> Waited:
        deadline = time.monotonic() + timeout
        if after is None and until in ("answered", "replied"):
            # The same "now" for every part of the wait.
            newest = self.messages(session_id, limit=1).messages
            after = newest[0].id if newest else None
        while True:
            left = max(0.0, deadline - time.monotonic())
            query = {
                "target": target,
                "until": until,
                "timeout": min(left, _LONGEST_WAIT),
                "asker": asker,
                "after": after,
            }
            waited = self._get(Waited, _session(session_id, "wait"), **query)
            if waited.end != "timeout" or time.monotonic() >= deadline:
                return waited

    def messages(
        self, session_id: SessionId, agent: str | None = None, limit: int = 100, offset: int = 0, box: str = "all"
    ) -> MessageList:
        path = _session(session_id, "messages")
        return self._get(MessageList, path, agent=agent, limit=limit, offset=offset, box=str(box))

    def message_counts(self) -> dict[str, int]:
        return self._get(MessageCounts, "/message-counts").counts

    def approvals(self, session_id: SessionId | None = None) -> ApprovalList:
        return self._get(ApprovalList, "/approvals", sessionId=session_id and parse_reference(session_id))

    def answer(self, session_id: SessionId, agent: str, allow: bool, by: str = "person") -> AgentAnswer:
        """As with `LocalMas`; the token says who gives the answer."""
        return self._post(AgentAnswer, _session(session_id, "agents", agent, "approve" if allow else "deny"))

    def output(
        self,
        session_id: SessionId,
        agent: str,
        lines: int,
        reader: str | None = None,
        screen: bool = False,
        message_id: str | None = None,
    ) -> AgentOutput:
        path = _session(session_id, "agents", agent, "output")
        query = {"lines": min(lines, _MOST_LINES), "reader": reader, "message": message_id}
        return self._get(AgentOutput, path, **query, screen=True if screen else None)

    def transcript(self, session_id: SessionId, agent: str, limit: int = 20, offset: int = 0) -> Transcript:
        path = _session(session_id, "agents", agent, "transcript")
        return self._get(Transcript, path, limit=min(limit, MOST_TURNS), offset=offset)

    def report(self, session_id: SessionId, agent: str, text: str, state: str | None = None) -> AgentReport:
        path = _session(session_id, "agents", agent, "report")
        return self._post(AgentReport, path, {"text": parse_report(text), "state": state})

    def logs(self, session_id: SessionId, agent: str | None, lines: int, raw: bool = False) -> str:
        query = {"agent": agent, "lines": min(lines, _MOST_LINES), "raw": True if raw else None}
        return self._get(LogText, _session(session_id, "logs"), **query).text

    def follow_logs(self, session_id: SessionId, agent: str | None, lines: int) -> None:
        """Write a log's last lines to standard output, and then whatever is added, until interrupted."""
        from mas.client.follow import follow

        # An unknown agent is refused; a log that does not exist yet is waited for.
        self.logs(session_id, agent, 1)
        name = "session.log" if agent is None else f"agent-{agent}.log"
        follow(self, session_id, f"logs/{name}", lines)

    def events(self, after: str | None = None, most: int = 1000) -> EventPage:
        body = self._connection.ask("GET", "/events/page", params=_given(after=after, most=most))
        try:
            return EventPage(tuple(map(parse_event, body["events"])), str(body["last"]), bool(body["gap"]))
        except (LookupError, TypeError, ValueError) as error:
            raise _not_understood(error) from None

    def terminal(self, session_id: SessionId, agent: str) -> Terminal:
        from mas.client.terminal import RemoteTerminal

        log = self.show(session_id).logs.get(agent, "")
        path = _session(session_id, "agents", agent, "terminal")
        return RemoteTerminal(lambda: self._connection.websocket(path), log)

    def attach(self, session_id: SessionId, agent: str | None) -> None:
        """`BadInput`: a terminal cannot be handed over to another machine."""
        words = f"{session_id} {agent}" if agent else session_id
        raise BadInput(
            "A session opens in tmux only on its own machine", f"on the server's machine: mas attach {words}"
        )

    def ports(self, session_id: SessionId) -> PortList:
        return self._get(PortList, _session(session_id, "ports"))

    def forward(self, session_id: SessionId, port: int, local: int | None = None, any_user: bool = False) -> Forward:
        """As with `LocalMas`, on the server's machine; the server keeps it."""
        body = {"port": port, "local": local, "anyUser": any_user}
        return self._post(Forward, _session(session_id, "forwards"), body)

    def forwards(self, session_id: SessionId) -> tuple[Forward, ...]:
        return self._get(ForwardList, _session(session_id, "forwards")).forwards

    def end_forward(self, session_id: SessionId, port: int) -> Forward:
        return self._ask(Forward, "DELETE", _session(session_id, "forwards", str(port)))

    def wait_for_forward(self, session_id: SessionId, port: int) -> None:
        """Ask until the server keeps it no longer."""
        while any(one.port == port for one in self.forwards(session_id)):
            time.sleep(_LOOK_AGAIN)

    def _gone(self, reference: str, status: Gone) -> SessionId:
        """The archived or deleted session that `reference` means."""
        if is_session_id(reference):
            return SessionId(reference)
        try:
            return find_session(reference, ((info.session_id, info.name) for info in self.list(status).sessions))
        except NoSession:
            raise NoSession(reference, f"mas list --status {status}") from None

    def _get(self, kind: type[Value], path: str, /, **params: object) -> Value:
        return self._ask(kind, "GET", path, params=_given(**params))

    def _post(self, kind: type[Value], path: str, body: dict[str, Any] | None = None, **options: Any) -> Value:  # noqa: ANN401 - the connection's own
        return self._ask(kind, "POST", path, json={} if body is None else body, **options)

    def _ask(self, kind: type[Value], method: str, path: str, **options: Any) -> Value:  # noqa: ANN401 - the connection's own
        body = self._connection.ask(method, path, **options)
        try:
            return unwire(kind, body)
        except ValueError as error:
            raise _not_understood(error) from None


def _session(session_id: str, *words: str) -> str:
    """The path of a session, or of something of it."""
    return "/sessions/" + "/".join(quote(word, safe="") for word in (parse_reference(session_id), *words))


def _given(**params: object) -> dict[str, str]:
    """The parameters that were given."""
    return {name: str(value) for name, value in params.items() if value is not None}


def _commands_written_out(run: Run) -> Run:
    """The same run with its one command for all written into every agent that has none: bodies know no other place."""
    if run.command is None:
        return run
    units = tuple(
        unit._replace(agents=tuple(agent._replace(command=agent.command or run.command) for agent in unit.agents))
        for unit in run.team.units
    )
    return run._replace(team=run.team._replace(units=units), command=None)


def _not_understood(error: Exception) -> NoServer:
    return NoServer(f"The server's answer is not what this version of MAS expects: {error}", "mas version")
