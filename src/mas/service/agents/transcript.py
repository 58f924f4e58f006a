"""Transcripts: what agents and their models said, read from the files that agent programs keep.

An agent's files are in its own directory, where no other agent writes; the provider's file names them and their format.
What was read is kept, so that a look reads no more than was added since the last.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from threading import Lock

from mas.model.errors import BadInput, NotFound
from mas.model.ids import SessionId, shown
from mas.model.state import State
from mas.model.transcript import Tokens, Transcript, Turn
from mas.providers.format import TranscriptTable
from mas.providers.transcripts.readers import reader_of
from mas.service.agents.living import reported_state
from mas.service.world import World
from mas.store.agent.appended import AppendedFile, FoundFile, find_files
from mas.store.agent.directory import AgentPlace
from mas.store.layout import SessionPaths

# What all agents together may have in memory, and one of them; in characters.
_MOST_TEXT = 64 << 20
_MOST_OF_AGENT = 8 << 20
_MOST_OF_OTHERS = 64 << 10
_MOST_IDS = 1_000
_LONGEST_ID = 64
_CALLED, _NAMES_IT = b'"event":"hook"', b'"session":"'
# In these states an agent has ended its turn, whether or not its program says so.
_AT_REST = (State.IDLE, State.ERROR, State.EXITED)


class Transcripts:
    """The transcripts that this process has read. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str], _AgentFiles] = OrderedDict()

    def look(self, paths: SessionPaths, agent: str, table: TranscriptTable) -> tuple[tuple[Turn, ...], Tokens, bool]:
        """All turns that are kept, the newest last; the tokens of all, and whether there were more."""
        key = paths.root, agent
        with self._lock:
            known = self._known.get(key)
            if known is None or known.table != table:
                known = _AgentFiles(paths, agent, table)
            self._known[key] = known
            self._known.move_to_end(key)
        with known.lock:
            found = known.look()
        with self._lock:
            size = sum(one.size for one in self._known.values())
            while size > _MOST_TEXT and len(self._known) > 1:
                size -= self._known.popitem(last=False)[1].size
        return found


class _AgentFiles:
    """The files of one agent, and what was read of them."""

    def __init__(self, paths: SessionPaths, agent: str, table: TranscriptTable) -> None:
        self.lock = Lock()
        self.table = table
        self.size = 0
        self._root = paths.root
        self._place = (".mas", "agents", agent)
        self._agent = AgentPlace(paths, agent)
        log = f"agent-{agent}.events.jsonl"
        self._logs = [AppendedFile(paths.root, ("logs", name)) for name in (f"{log}.1", log)]
        self._ids: dict[str, None] = {}
        self._files: dict[tuple[str, ...], _RecordedFile] = {}
        self._seen: tuple[list[FoundFile], int] | None = None
        self._found: tuple[tuple[Turn, ...], Tokens, bool] = (), Tokens(), False

    def look(self) -> tuple[tuple[Turn, ...], Tokens, bool]:
        """All turns as they are now; if no file has changed, as they were."""
        found = [file for pattern in self.table.patterns for file in find_files(self._root, (*self._place, *pattern))]
        found.sort(key=lambda file: (file.written, file.names))
        own = self._own_ids() if self.table.conversations == "own" else None
        if self._seen != (found, len(own or ())):
            self._found = self._read(found, own)
            self._seen = found, len(own or ())
        return self._found

    def _read(self, found: list[FoundFile], own: dict[str, None] | None) -> tuple[tuple[Turn, ...], Tokens, bool]:
        self._files = {file.names: self._files.get(file.names) or self._recorded(file) for file in found}
        for one in found:
            self._files[one.names].look(one)
        counted = [
            file
            for file in self._files.values()
            if file.reader.is_main and (own is None or file.reader.conversation.name in own)
        ]
        self._shrink(counted)
        turns: dict[str, Turn] = {}
        for file in counted:
            # A conversation that goes on in another file may begin there with what was said before.
            turns |= {turn.id: turn for turn in file.reader.conversation.turns}
        spent = [turn.tokens for turn in turns.values()] + [file.reader.conversation.dropped for file in counted]
        tokens = Tokens(*map(sum, zip(*spent, strict=True)))
        is_cut = any(file.is_cut for file in counted)
        return tuple(sorted(turns.values(), key=lambda turn: turn.started_at)), tokens, is_cut

    def _recorded(self, file: FoundFile) -> _RecordedFile:
        return _RecordedFile(self._root, file.names, self.table.format)

    def _own_ids(self) -> dict[str, None]:
        """The conversations that the agent's program has reported, or was started with."""
        if uuid := self._agent.uuid():
            self._ids.setdefault(uuid)
        for log in self._logs:
            for line in log.lines():
                if _CALLED in line and _NAMES_IT in line:
                    self._ids.setdefault(_session_in(line))
        for old in list(self._ids)[:-_MOST_IDS]:
            del self._ids[old]
        return self._ids

    def _shrink(self, counted: list[_RecordedFile]) -> None:
        """Forget the oldest of what is too much, and most of what does not count, or not yet."""
        left = _MOST_OF_AGENT
        for file in reversed(self._files.values()):
            file.reader.conversation.shrink(left if file in counted else _MOST_OF_OTHERS)
            left = max(0, left - file.reader.conversation.size)
        self.size = sum(file.reader.conversation.size for file in self._files.values())


class _RecordedFile:
    """One file, and what was read of it."""

    def __init__(self, root: str, names: tuple[str, ...], format_: str) -> None:
        self._file = AppendedFile(root, names)
        self._format = format_
        self._name = names[-1]
        self._seen: tuple[int, int, int] | None = None
        self.reader = reader_of(format_, self._name)

    @property
    def is_cut(self) -> bool:
        return self._file.is_cut or self.reader.conversation.is_cut

    def look(self, found: FoundFile) -> None:
        """Read what was added, if something has changed."""
        if found.which == self._seen:
            return
        self._seen = found.which
        lines = self._file.lines()
        first = next(lines, None)
        if self._file.is_new:
            self.reader = reader_of(self._format, self._name)
        if first is not None:
            self.reader.read(first)
            for line in lines:
                self.reader.read(line)
            self.reader.flush()


def transcript_table(world: World, session_id: SessionId, agent: str) -> TranscriptTable:
    """What the program of an agent records; its format is empty if that is nothing that MAS can read."""
    world.records.load(session_id).agent(agent)
    (one,) = world.records.load_run(session_id).team.targets(agent)
    try:
        return world.providers().of(one.provider or "", one.command).transcript
    except BadInput:
        # Its provider's file was removed or damaged since it was started.
        return TranscriptTable()


def turns_of(world: World, session_id: SessionId, agent: str, table: TranscriptTable) -> tuple[Turn, ...]:
    """All turns of an agent that are kept, the newest last."""
    return _looked(world, session_id, agent, table)[0]


def transcript(world: World, session_id: SessionId, agent: str, limit: int, offset: int) -> Transcript:
    """The `limit` turns before the `offset` newest; `NotFound` if the agent's program records none that MAS reads."""
    table = transcript_table(world, session_id, agent)
    if not table.format:
        provider = world.records.load(session_id).agent(agent).provider
        why = f"{shown(provider)}, the provider of agent {agent}, records no conversation that MAS can read"
        raise NotFound(why, f"mas output {session_id[:8]}:{agent}; mas logs {session_id[:8]}:{agent}")
    turns, tokens, is_cut = _looked(world, session_id, agent, table)
    end = max(0, len(turns) - offset)
    return Transcript(agent, table.format, turns[max(0, end - limit) : end], len(turns), tokens, is_cut)


def _looked(
    world: World, session_id: SessionId, agent: str, table: TranscriptTable
) -> tuple[tuple[Turn, ...], Tokens, bool]:
    turns, tokens, is_cut = world.transcripts().look(world.layout.session(session_id), agent, table)
    if turns and not turns[-1].finished:
        state = reported_state(world, session_id, agent)
        # What it reported before the turn began says nothing about the turn.
        if state.state in _AT_REST and state.at >= turns[-1].started_at:
            turns = (*turns[:-1], turns[-1]._replace(finished=True))
    return turns, tokens, is_cut


def _session_in(line: bytes) -> str:
    try:
        name = json.loads(line).get("session")
    except (ValueError, RecursionError, AttributeError):
        return ""
    return name if isinstance(name, str) and len(name) <= _LONGEST_ID else ""
