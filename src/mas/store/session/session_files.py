"""A session's own files: `.session`, `metadata.json`, `config.json`. The directory is the truth."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mas.model.errors import BadInput, Corrupt, NoSession
from mas.model.fields import parse_json
from mas.model.ids import SessionId
from mas.model.session import Session, Status
from mas.model.views import wire
from mas.store.files.atomic import read_file, remove_unfinished, set_aside, write_atomic
from mas.store.files.fingerprint import is_settled, stamp_of
from mas.store.files.shellfile import parse_pairs, quote_pairs
from mas.store.layout import Layout, SessionPaths

if TYPE_CHECKING:
    from mas.model.run import Run

METADATA_VERSION = 1
_NEEDED = ("name", "tmuxSocket", "origin", "agents")
_MOST_SEEN = 20_000
_HEAD = b'{\n  "version": 1,\n  "sessionId": "%s",\n'


class _Seen:
    """Which files were both of a session's when they were found whole, and the session if they were parsed."""

    def __init__(self, paths: SessionPaths) -> None:
        """`OSError` if one of them cannot be looked at."""
        self._metadata, self._record = paths.metadata, paths.record
        self._stamps = stamp_of(self._metadata), stamp_of(self._record)
        self.can_be_kept = all(map(is_settled, self._stamps))
        self.session: Session | None = None

    def is_as_it_was(self) -> bool:
        try:
            return (stamp_of(self._metadata), stamp_of(self._record)) == self._stamps
        except OSError:
            return False


class Records:
    """Reads and writes what each session directory says about its session.

    Whole files that are looked at again and again are read again only after they were changed. With `remember`, for a
    process that stays, that is so from the first look on, and what they say is kept too.
    """

    def __init__(self, layout: Layout, remember: bool = False) -> None:
        self._layout = layout
        self._remember = remember
        self._seen: dict[str, _Seen | None] = {}

    def paths(self, session_id: str) -> SessionPaths:
        return self._layout.session(session_id)

    def save(self, session: Session) -> None:
        """Write both files of the session; the caller holds its lock."""
        paths = self.paths(session.id)
        write_atomic(paths.metadata, _dump(_metadata(session, paths)))
        write_atomic(paths.record, quote_pairs(_pairs(session, paths)))

    def remove_unfinished(self, session_id: str) -> None:
        """Remove what a killed `save` or `save_run` left; the caller holds the session's lock."""
        paths = self.paths(session_id)
        remove_unfinished(paths.metadata, paths.record, paths.config)

    def load(self, session_id: SessionId) -> Session:
        """The session as its directory describes it; `NoSession` if there is none, `Corrupt` if it cannot be read."""
        return self._remembered(session_id) or self.load_from(self.paths(session_id), session_id)

    def load_from(self, paths: SessionPaths, session_id: SessionId) -> Session:
        """The same for a session kept elsewhere, such as in the trash."""
        try:
            return _session(_read(paths.metadata, METADATA_VERSION), session_id)
        except FileNotFoundError:
            if not os.path.isdir(paths.root):
                raise NoSession(session_id) from None
            raise Corrupt(paths.metadata, "it is missing") from None
        except (ValueError, KeyError, TypeError, AttributeError, OSError, BadInput) as error:
            raise Corrupt(paths.metadata, _reason(error)) from None

    def pairs(self, session_id: SessionId) -> dict[str, str]:
        """The fields of `.session`."""
        path = self.paths(session_id).record
        try:
            return parse_pairs(read_file(path))
        except (ValueError, OSError) as error:
            raise Corrupt(path, _reason(error)) from None

    def save_run(self, session_id: SessionId, run: Run) -> None:
        from mas.model.run import CONFIG_VERSION, run_body

        asked = {} if run.request is None else {"request": run.request}
        body = run_body(run) | {"version": CONFIG_VERSION} | asked
        write_atomic(self.paths(session_id).config, _dump(body))

    def load_run(self, session_id: SessionId) -> Run:
        """The configuration the session was created with."""
        from mas.model.run import CONFIG_VERSION, parse_run
        from mas.model.team import TEAMS, Team

        path = self.paths(session_id).config
        try:
            # Its agents are written out: what the team of that name is by now does not matter.
            run = parse_run(_read(path, CONFIG_VERSION), lambda name: TEAMS.get(name) or Team(name, ()))
            if not run.team.units:
                raise ValueError("it names no agents")
            return run
        except (ValueError, OSError, BadInput) as error:
            if not self._layout.is_session(session_id):
                raise NoSession(session_id) from None
            raise Corrupt(path, _reason(error)) from None

    def is_whole(self, session_id: SessionId) -> bool:
        """Whether both files can be read: by a look quick enough for every listing, by parsing in doubt."""
        if not self._remember and session_id not in self._seen:
            # Most processes look once: to note which files these were would be for nothing.
            self._keep(session_id, None)
            return self._looks_whole(session_id) or self._read_whole(session_id) is not None
        seen = self._seen.get(session_id)
        if seen and seen.is_as_it_was():
            return True
        self._keep(session_id, None)
        try:
            seen = _Seen(self.paths(session_id))
        except OSError:
            return False
        if self._remember or not self._looks_whole(session_id):
            seen.session = self._read_whole(session_id)
            if not seen.session:
                return False
        if seen.can_be_kept:
            self._keep(session_id, seen)
        return True

    def _keep(self, session_id: SessionId, seen: _Seen | None) -> None:
        self._seen[session_id] = seen
        while len(self._seen) > _MOST_SEEN:
            # Deleted sessions are not asked for any more.
            self._seen.pop(next(iter(self._seen)), None)

    def _read_whole(self, session_id: SessionId) -> Session | None:
        try:
            session = self.load_from(self.paths(session_id), session_id)
            self.pairs(session_id)
        except (Corrupt, NoSession):
            return None
        return session

    def just_seen(self, session_id: SessionId) -> Session | None:
        """The session as `is_whole` last found it, if that is remembered; for callers that have just called it."""
        seen = self._seen.get(session_id)
        return seen.session if seen else None

    def _remembered(self, session_id: SessionId) -> Session | None:
        """The session as it was read last, if both files are still the same."""
        seen = self._seen.get(session_id)
        return seen.session if seen and seen.session and seen.is_as_it_was() else None

    def _looks_whole(self, session_id: SessionId) -> bool:
        """Missing, empty, torn and overwritten files show; so do whole ones that others reformatted."""
        paths = self.paths(session_id)
        try:
            metadata, record = read_file(paths.metadata), read_file(paths.record)
        except OSError:
            return False
        return (
            metadata.startswith(_HEAD % session_id.encode())
            and metadata.endswith(b"\n}\n")
            and record.startswith(b"SESSION_ID=%s\n" % session_id.encode())
            and record.endswith(b"\n")
        )

    def damage(self, session: Session) -> list[Corrupt]:
        """What of the session's files cannot be read or disagrees with `session`."""
        found = []
        try:
            pairs = self.pairs(session.id)
            wanted = _pairs(session, self.paths(session.id))
            if pairs != wanted:
                wrong = next(key for key in {**wanted, **pairs} if wanted.get(key) != pairs.get(key))
                found.append(Corrupt(self.paths(session.id).record, f"{wrong} disagrees with metadata.json"))
        except Corrupt as error:
            found.append(error)
        try:
            self.load_run(session.id)
        except Corrupt as error:
            found.append(error)
        return found

    def is_called_damaged(self, session_id: SessionId) -> bool:
        """Whether `.session` says that the session is damaged, or is not to: a newer MAS wrote the rest."""
        try:
            if self.pairs(session_id).get("STATUS") == Status.ERROR:
                return True
            self.load(session_id)
        except (Corrupt, NoSession) as error:
            return isinstance(error, Corrupt) and error.is_newer
        return False

    def call_damaged(self, session_id: SessionId, known: Mapping[str, str], now: str) -> None:
        """Have `.session` say `error`; an unreadable one is set aside and written with what is known."""
        paths = self.paths(session_id)
        try:
            pairs = self.pairs(session_id)
        except Corrupt:
            pairs = _pairs(self.rebuild(session_id, known, now), paths)
            if os.path.lexists(paths.record):
                set_aside(paths.record, now)
        write_atomic(paths.record, quote_pairs(pairs | {"STATUS": Status.ERROR}))

    def rebuild(self, session_id: SessionId, known: Mapping[str, str], now: str) -> Session:
        """A session from what can still be read: `.session`, `config.json`, `known` (the registry)."""
        from mas.model.run import agent_runs

        try:
            pairs = self.pairs(session_id)
        except Corrupt:
            pairs = {}
        try:
            run = self.load_run(session_id)
            agents, name = agent_runs(run.team), run.name
        except Corrupt:
            agents, name = (), None
        made = os.stat(self.paths(session_id).root).st_mtime
        created = pairs.get("CREATED_AT") or known.get("createdAt") or _stamp(made)
        status = pairs.get("STATUS") or known.get("status") or Status.STOPPED
        return Session(
            id=session_id,
            status=Status(status) if status in set(Status) else Status.STOPPED,
            created_at=created,
            started_at=created,
            last_activity=now,
            name=name,
            socket=pairs.get("TMUX_SOCKET") or known.get("tmuxSocket") or None,
            agents=agents,
        )


def _read(path: str, version: int) -> Any:  # noqa: ANN401 - raw JSON
    """What a file says; `Corrupt` if a newer MAS than one that writes `version` wrote it."""
    body = parse_json(read_file(path))
    written = body.get("version") if isinstance(body, dict) else None
    if isinstance(written, int) and written > version:
        raise Corrupt.newer(path, written)
    return body


def _metadata(session: Session, paths: SessionPaths) -> dict[str, Any]:
    from mas.model.shapes import write

    written = write(session)
    isolation = session.isolation and wire(session.isolation) | {"policy": written["isolation"].get("policy", {})}
    return {
        "version": METADATA_VERSION,
        "sessionId": session.id,
        "sessionName": session.tmux,
        "name": session.name,
        "workingDir": paths.root,
        "unitDir": paths.unit,
        "workflowsDir": paths.workflows,
        "status": session.status,
        "createdAt": session.created_at,
        "startedAt": session.started_at,
        "lastActivity": session.last_activity,
        "tmuxSocket": session.socket,
        "origin": session.origin,
        "isolation": isolation,
        "limits": written.get("limits", {}),
        "reason": session.reason,
        "stoppedAt": session.stopped_at,
        "lost": session.lost,
        "agents": wire(session.agents),
    }


def _session(body: Any, session_id: SessionId) -> Session:  # noqa: ANN401 - raw JSON
    from mas.model.shapes import read

    if body["version"] != METADATA_VERSION:
        raise ValueError(f"version {body['version']} is unknown to this MAS")
    if body["sessionId"] != session_id:
        raise ValueError(f"it belongs to session {body['sessionId']}")
    for key in _NEEDED:
        if key not in body:
            raise ValueError(f"{key} is missing")
    return read(Session, body | {"id": session_id, "socket": body["tmuxSocket"]}, newer=True)


def _pairs(session: Session, paths: SessionPaths) -> dict[str, str]:
    return {
        "SESSION_ID": session.id,
        "TMUX_SESSION": session.tmux,
        "STATUS": session.status,
        "CREATED_AT": session.created_at,
        "UNIT_DIR": paths.unit,
        "WORKFLOWS_DIR": paths.workflows,
        "TMUX_SOCKET": session.socket or "",
    }


def _dump(body: dict[str, Any]) -> bytes:
    # A byte of a path or command that is no text becomes an escape that JSON reads back as the same byte.
    return (json.dumps(body, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "it is missing"
    if isinstance(error, OSError):
        return error.strerror or "unreadable"
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


def _stamp(seconds: float) -> str:
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
