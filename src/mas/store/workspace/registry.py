"""The registry: `.sessions.index`, which listings read, and `.index`, the journal of its changes.

Both change together under one lock: first a line is appended to the journal, then the index is replaced. Then,
still under the lock, `on_change` is called with it: events have the order of the journal.
The index keeps one entry per line, so that a change splices bytes and parses nothing; what others wrote in
another shape is read as JSON and put into that shape. Readers take no lock: a replaced file is whole.
"""

import json
import os
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from mas.model.errors import AlreadyThere, Corrupt
from mas.model.fields import parse_json
from mas.model.ids import free_name, is_session_id
from mas.model.session import Gone, Session, Status
from mas.store.files.atomic import has_unfinished, locked, read_file, remove_unfinished, set_aside, write_atomic
from mas.store.files.descriptors import SAFE, write_all
from mas.store.files.fingerprint import Stamp, is_settled, stamp_of
from mas.store.layout import PRIVATE_FILE, Layout

_HEAD = b'{"version":"1.0","sessions":['
_TAIL = b'\n],"lastUpdated":"%s"}\n'
_TAIL_SHAPE = re.compile(rb'\n\],"lastUpdated":"[0-9TZ:.-]*"\}\n\Z')
_LONGEST_TAIL = 80
_END = 200
_LINE = re.compile(r"([0-9a-f-]{36}):([a-z]{1,20}):([0-9TZ:.-]{1,40})")
_WORDS = {*Status, *Gone}

OnChange = Callable[[str, str], object]


class IndexEntry(NamedTuple):
    """What a listing knows of a session without opening its directory."""

    session_id: str
    status: Status
    created_at: str
    last_activity: str
    name: str | None = None
    agents: int = 0
    socket: str | None = None
    tier: str | None = None
    stopped_at: str | None = None
    lost: bool = False
    reason: str | None = None


class Change(NamedTuple):
    """One line of the journal."""

    session_id: str
    status: str
    at: str


def entry_of(session: Session) -> IndexEntry:
    return IndexEntry(
        session.id,
        session.status,
        session.created_at,
        session.last_activity,
        session.name,
        len(session.agents),
        session.socket,
        session.isolation and session.isolation.tier,
        session.stopped_at,
        session.lost,
        session.reason,
    )


def known_of(entry: IndexEntry) -> dict[str, str]:
    """What an entry still says about a session whose own files are damaged."""
    return {"createdAt": entry.created_at, "tmuxSocket": entry.socket or ""}


class Registry:
    """The sessions of one workspace, as its listings see them."""

    def __init__(
        self, layout: Layout, now: Callable[[], str], on_change: OnChange = lambda session_id, status: None
    ) -> None:
        self._layout = layout
        self._now = now
        self._on_change = on_change
        self._seen: tuple[Stamp, tuple[IndexEntry, ...]] | None = None

    def read(self) -> list[IndexEntry]:
        """All entries. `Corrupt` if the index is missing or unreadable: that is never an empty registry."""
        seen = self._seen
        try:
            stamp = stamp_of(self._layout.registry_index)
        except OSError as error:
            raise Corrupt(self._layout.registry_index, error.strerror or "unreadable") from None
        if seen and seen[0] == stamp:
            return list(seen[1])
        # Asked before it is read: what is read later is at least as new.
        settled = is_settled(stamp)
        entries = self._parsed()
        self._seen = (stamp, tuple(entries)) if settled else None
        return entries

    def _parsed(self) -> list[IndexEntry]:
        data = self._read_bytes()
        try:
            sessions = parse_json(data)["sessions"]
            if not isinstance(sessions, list):
                raise TypeError("sessions is not a list")
            return [_entry(item) for item in sessions]
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise Corrupt(self._layout.registry_index, str(error)) from None

    def put(self, entry: IndexEntry) -> None:
        """Add or replace one entry."""
        with locked(self._layout.registry_lock):
            self._change(entry.session_id, entry.status, _line_of(entry, self._layout))

    def put_named(
        self, entry: IndexEntry, elsewhere: Callable[[], Iterable[str | None]], exact: bool = False
    ) -> IndexEntry:
        """Add or replace one entry under a name that no other session has; returns the entry as it was written.

        `elsewhere` names the sessions that are kept outside the registry. A name that is taken gets a number, or with
        `exact` is refused (`AlreadyThere`). All under the lock: two at once never get the same name.
        """
        with locked(self._layout.registry_lock):
            if entry.name is not None:
                others = {known.name: known.session_id for known in self.read() if known.session_id != entry.session_id}
                taken = {*others, *elsewhere()}
                if exact and entry.name in taken:
                    whose = others.get(entry.name, "an archived session")
                    raise AlreadyThere(f"The name {entry.name} is used by {whose}", "choose another name; mas list")
                entry = entry._replace(name=free_name(entry.name, taken))
            self._change(entry.session_id, entry.status, _line_of(entry, self._layout))
        return entry

    def drop(self, session_id: str, why: Gone) -> None:
        """Take one entry out. Dropping a missing one is fine."""
        with locked(self._layout.registry_lock):
            self._change(session_id, why, None)

    def retract(self, session_id: str, why: Gone) -> None:
        """Take back what a change cut short may have written of a session that is not to be listed."""
        with locked(self._layout.registry_lock):
            remove_unfinished(self._layout.registry_index, self._layout.journal)
            listed = any(entry.session_id == session_id for entry in self.read())
            changes, _ = parse_journal(read_file(self._layout.journal))
            last = [change.status for change in changes if change.session_id == session_id][-1:]
            if listed or (last and last != [why]):
                self._change(session_id, why, None)

    def remove_unfinished(self) -> None:
        """Remove what a killed change left beside the two files; cheap where there is nothing."""
        if has_unfinished(self._layout.registry_index, self._layout.journal):
            with locked(self._layout.registry_lock):
                remove_unfinished(self._layout.registry_index, self._layout.journal)

    def rebuild(self, scan: Callable[[], Iterable[IndexEntry]]) -> list[str]:
        """Write both files again from what `scan` finds, keeping damaged ones aside; returns what was kept.

        `scan` runs under the lock, so that no change made meanwhile is lost.
        """
        kept: list[str] = []
        with locked(self._layout.registry_lock):
            wanted = list(scan())
            now = self._now()
            # The index comes last: it is by the index that the next command would see that this was cut short.
            news = self._mend_journal({entry.session_id: entry.status for entry in wanted}, now, kept)
            try:
                self.read()
            except Corrupt:
                if os.path.lexists(self._layout.registry_index):
                    kept.append(set_aside(self._layout.registry_index, now))
            self._replace(self._lines_of(wanted))
            for session_id, status in news.items():
                self._on_change(session_id, status)
        return kept

    def changes(self) -> list[Change]:
        """The journal from the beginning; `Corrupt` if it is missing or has a damaged line."""
        try:
            data = read_file(self._layout.journal)
        except OSError as error:
            raise Corrupt(self._layout.journal, error.strerror or "unreadable") from None
        good, bad = parse_journal(data)
        if bad:
            raise Corrupt(self._layout.journal, f"{bad} unreadable lines")
        return good

    def looks_sound(self) -> bool:
        """A look at the ends of both files, quick enough for every command; in doubt, no."""
        try:
            head, tail = _ends(self._layout.registry_index)
        except OSError:
            return False
        empty = head.startswith(_HEAD + b"\n]")
        return head.startswith(_HEAD) and bool(_TAIL_SHAPE.search(tail)) and self.journal_is_sound(empty)

    def journal_is_sound(self, may_be_empty: bool) -> bool:
        """A cheap look at the journal's end: enough to see a missing, empty, torn or overwritten file."""
        try:
            tail = _ends(self._layout.journal)[1]
        except OSError:
            return False
        if not tail:
            return may_be_empty
        last = tail[:-1].rpartition(b"\n")[2]
        return tail.endswith(b"\n") and parse_journal(last + b"\n")[1] == 0

    def _read_bytes(self) -> bytes:
        try:
            return read_file(self._layout.registry_index)
        except OSError as error:
            raise Corrupt(self._layout.registry_index, error.strerror or "unreadable") from None

    def _canonical(self, session_id: str) -> bytearray:
        """The index without its tail, in the shape that `_splice` needs for a session."""
        data = self._read_bytes()
        tail = _TAIL_SHAPE.search(data, max(0, len(data) - _LONGEST_TAIL))
        # An id that is there, but not at the start of a line, is in an entry that was edited by hand.
        if data.startswith(_HEAD) and tail and (_mark(session_id) in data or session_id.encode() not in data):
            lines = bytearray(data)
            del lines[tail.start() :]
            return lines
        return self._lines_of(self.read())

    def _lines_of(self, entries: Iterable[IndexEntry]) -> bytearray:
        return bytearray(_HEAD + b",".join(_line_of(entry, self._layout) for entry in entries))

    def _change(self, session_id: str, status: str, line: bytes | None) -> None:
        lines = self._canonical(session_id)
        _splice(lines, session_id, line)
        now = self._now()
        fd = os.open(
            self._layout.journal,
            os.O_RDWR | os.O_APPEND | os.O_CREAT | SAFE,
            PRIVATE_FILE,
        )
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                raise Corrupt(self._layout.journal, "the last line is cut off")
            try:
                os.fchmod(fd, PRIVATE_FILE)
                write_all(fd, f"{session_id}:{status}:{now}\n".encode())
                os.fsync(fd)
                self._replace(lines)
            except BaseException:
                os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)
        self._on_change(session_id, status)

    def _replace(self, lines: bytearray) -> None:
        lines += _TAIL % self._now().encode()
        write_atomic(self._layout.registry_index, lines)

    def _mend_journal(self, wanted: dict[str, Status], now: str, kept: list[str]) -> dict[str, str]:
        """Make the journal readable and its last line about every session true; returns the sessions new to it."""
        path = self._layout.journal
        try:
            data = read_file(path)
        except FileNotFoundError:
            data = b""
        except OSError:
            kept.append(set_aside(path, now))
            data = b""
        good, bad = parse_journal(data)
        last = {change.session_id: change.status for change in good}
        news: dict[str, str] = {
            session_id: status for session_id, status in wanted.items() if last.get(session_id) != status
        }
        for session_id, status in last.items():
            if session_id not in wanted and status not in set(Gone):
                news[session_id] = Gone.DELETED
        if bad:
            kept.append(set_aside(path, now))
        if bad or news or not data:
            lines = [*good, *(Change(session_id, status, now) for session_id, status in news.items())]
            write_atomic(path, "".join(":".join(change) + "\n" for change in lines).encode())
        return news


def _ends(path: str) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file."""
    with open(path, "rb") as file:
        head = file.read(_END)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END))
        return head, file.read()


def parse_journal(data: bytes) -> tuple[list[Change], int]:
    """The changes in `data` and how many lines are none. The time may hold colons: split at the first two."""
    good, bad = [], 0
    *lines, rest = data.split(b"\n")
    for line in lines:
        match = _LINE.fullmatch(line.decode("ascii", "replace"))
        if match and is_session_id(match[1]) and match[2] in _WORDS:
            good.append(Change(match[1], match[2], match[3]))
        else:
            bad += 1
    return good, bad + (1 if rest else 0)


def _line_of(entry: IndexEntry, layout: Layout) -> bytes:
    body = {
        "sessionId": entry.session_id,
        "tmuxSession": f"mas-{entry.session_id[:8]}",
        "status": entry.status,
        "createdAt": entry.created_at,
        "lastActivity": entry.last_activity,
        "workingDir": layout.session(entry.session_id).root,
        "name": entry.name,
        "agents": entry.agents,
        "tmuxSocket": entry.socket,
        "tier": entry.tier,
        "stoppedAt": entry.stopped_at,
        "lost": entry.lost,
        "reason": entry.reason,
    }
    return b"\n" + json.dumps(body, separators=(",", ":")).encode()


def _entry(item: Any) -> IndexEntry:  # noqa: ANN401 - raw JSON
    if not is_session_id(item["sessionId"]):
        raise ValueError(f"not a session id: {item['sessionId']!r}")
    return IndexEntry(
        item["sessionId"],
        Status(item["status"]),
        str(item["createdAt"]),
        str(item["lastActivity"]),
        _text(item.get("name")),
        int(item.get("agents", 0)),
        _text(item.get("tmuxSocket")),
        _text(item.get("tier")),
        _text(item.get("stoppedAt")),
        item.get("lost") is True,
        _text(item.get("reason")),
    )


def _text(value: Any) -> str | None:  # noqa: ANN401 - raw JSON
    if value is not None and not isinstance(value, str):
        raise TypeError(f"not text: {value!r}")
    return value


def _mark(session_id: str) -> bytes:
    return b'\n{"sessionId":"%s"' % session_id.encode()


def _span(lines: bytearray, session_id: str) -> slice | None:
    """Where the line of `session_id` is, its line feed included."""
    start = lines.find(_mark(session_id))
    if start < 0:
        return None
    end = lines.find(b",\n", start)
    return slice(start, len(lines) if end < 0 else end)


def _splice(lines: bytearray, session_id: str, line: bytes | None) -> None:
    """Replace, add or (for None) remove the line of `session_id`; in place, because copies of megabytes add up."""
    span = _span(lines, session_id)
    if span and line is not None:
        lines[span] = line
    elif line is not None:
        lines += b"," + line if len(lines) > len(_HEAD) else line
    elif span:
        first = span.start == len(_HEAD)
        # One comma goes with it: the one after it, or for all but the first the one before.
        del lines[span.start if first else span.start - 1 : span.stop + 1 if first else span.stop]
