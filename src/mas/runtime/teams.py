"""Teams in tmux: opened with one command, read with one listing, ended with everything they started."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

from mas.model.errors import AlreadyThere, BadInput, Conflict, NoTmux
from mas.model.screen import Screen, screen_in
from mas.runtime.panes import (
    FORMAT,
    HOMES,
    MARK,
    OPEN,
    OPENING,
    OWNER,
    SESSION_MARK,
    alive_in,
    check_typed,
    everything,
    gone,
    homes,
    is_home_of,
    is_owner,
    listing,
    marking,
    not_ours,
    of_team,
    rows,
    say_why_not,
    sizes,
    unusable,
)
from mas.runtime.runtime import (
    NO_PROCESS,
    PanePlan,
    PaneSize,
    PaneState,
    Place,
    PreparedPaste,
    Snapshot,
    TeamPlan,
    WindowPlan,
)
from mas.runtime.servers import Servers, look, sessions_at
from mas.runtime.tmux import Command, PreparedClient, Tmux, TmuxFailed, listening_sockets, quoted
from mas.settings import LEGACY_TMUX

# Ends with its terminal, even where hang-ups are ignored; two words, so that tmux runs it without the user's shell.
_PLACEHOLDER = ("cat", "-")
# Their short names: an alias may give the long ones another meaning, for what a person types.
_NEW_WINDOW, _SPLIT_WINDOW = "neww", "splitw"
_MOVE_WINDOW, _KILL_WINDOW = "movew", "killw"
_SET_ENVIRONMENT = "setenv"
# A number that no window of a team gets.
_LAST_WINDOW = 9999
_PANE_WIDTH = 100
_PANE_HEIGHT = 30
# tmux halves a pane to split it; spreading them out after a few splits keeps every half large enough.
_SPLITS_BETWEEN_LAYOUTS = 3
# Hooks of the user's configuration that would run while a team is opened or spoken to: they may do anything,
# such as put a shell where an agent should be.
_SESSION_HOOKS = (
    "after-set-option",
    "after-new-window",
    "after-split-window",
    "after-select-layout",
    "after-select-window",
    "after-resize-pane",
    "after-resize-window",
    "after-display-message",
    "after-list-panes",
    "after-list-sessions",
    "after-kill-pane",
    "after-capture-pane",
    "after-copy-mode",
    "after-load-buffer",
    "after-paste-buffer",
    "after-send-keys",
    "session-created",
    "session-window-changed",
    "window-linked",
    "window-unlinked",
)
_WINDOW_HOOKS = (
    "pane-died",
    "pane-exited",
    "pane-mode-changed",
    "pane-title-changed",
    "window-layout-changed",
    "window-pane-changed",
    "window-renamed",
    "window-resized",
)
_WHAT_IS_LEFT: tuple[Command, ...] = (HOMES, ["show-options", "-sv", "exit-empty"])
_OPENED, _REOPENED = "mas-opened", "mas-reopened"
# Ends what a look prints.
_LOOKED = "mas-looked"
_OURS, _UNUSABLE = "mas-ours", "mas-unusable"
# More words to a command slow tmux's parser down; more commands are too long for one message.
_KEYS_EACH = 256
_KEYS_AT_ONCE = 8 * _KEYS_EACH
# A client's message to the server holds 16 KiB and, since tmux 3.7, 1,000 words; the options that follow a pane need
# some of both.
_LONGEST_MESSAGE = 13 << 10
_MOST_WORDS = 900
# Where a message may end, so that what follows the command fits into it too.
_LONGEST_MESSAGES = {
    _NEW_WINDOW: _LONGEST_MESSAGE,
    _SPLIT_WINDOW: _LONGEST_MESSAGE,
    _SET_ENVIRONMENT: 15 << 10,
    "if-shell": _LONGEST_MESSAGE,
}
# A server whose last session was closed goes on answering for a moment, and takes new teams with it when it ends.
_ENDING = 5.0
_SOON = 0.2
_LOOK_AGAIN = 0.002
_TRIES = 3
_LOST = ("server exited unexpectedly", "lost server")


class TmuxTeams:
    """The `Runtime` on tmux."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def place(self, name: str, panes: int) -> str:
        return self._servers.place(name, panes)

    def open(self, socket: str, team: TeamPlan) -> dict[str, str]:
        server = self._servers.at(socket)
        with self._servers.opening(server, team.size):
            place = Place(socket, team.name, team.home)
            states = [size.state for size in sizes(self._opened(server, team), [place])[place]]
            strays = [state.pane for state in states if not state.agent]
            if strays:
                server.run(*(["kill-pane", "-t", pane] for pane in strays))
        panes = {state.agent: state.pane for state in states if state.agent}
        if len(panes) != team.size:
            self.close(place)
            raise NoTmux(f"tmux opened {len(panes)} of {team.size} panes", "mas doctor")
        return panes

    def _opened(self, server: Tmux, team: TeamPlan) -> str:
        """The listing of a team that was opened; nothing of it is left if that failed."""
        scope = self._servers.scope_for(server, team.name)
        for _ in range(_TRIES):
            before, scope = scope, ()
            is_ours = False
            try:
                # Panes start in the directory of this client: a `-c` argument would be expanded as a format.
                first, *rest = _batches(_opening(team))
                shown = server.alone(*first, cwd=team.directory, before=before)
                is_ours = True
                return [shown, *(server.run(*batch, cwd=team.directory) for batch in rest)][-1]
            except TmuxFailed as error:
                if not is_ours and _OPENED not in error.printed.split() and team.name in sessions_at(server):
                    raise AlreadyThere(f"tmux already has a session {team.name}") from None
                self._close(server, Place(server.socket, team.name, team.home))
                failed = error
                if error.reason not in _LOST and not before:
                    break
        raise failed

    def reopen(self, place: Place, pane: str, plan: PanePlan, force: bool = False) -> None:
        kill, ended = (["-k"], "1") if force else ([], "#{pane_dead}")
        # A pane in which tmux could not start a program before: a second try crashes the server.
        usable = f"#{{!=:#{{pane_pid}},{NO_PROCESS}}}"
        ready = f"#{{&&:{of_team(place)},#{{&&:{ended},{usable}}}}}"
        respawn: Command = ["respawn-pane", *kill, "-t", pane, *_marked(plan), *plan.argv]
        commands = " ; ".join(" ".join(map(quoted, words)) for words in (respawn, marking(pane, place.team)))
        reopen = f"{commands} ; display-message -p -t {pane} {_REOPENED}"
        why_not = f"display-message -p -t {pane} '#{{?{of_team(place)},#{{?{usable},{_OURS},{_UNUSABLE}}},}}'"
        command: Command = ["if-shell", "-F", "-t", pane, ready, reopen, why_not]
        server = self._servers.at(place.socket)
        deadline = time.monotonic() + _ENDING
        try:
            while (printed := server.run(command).strip()) != _REOPENED:
                if printed == _UNUSABLE:
                    raise unusable(place, pane, "an earlier restart failed")
                if printed != _OURS:
                    raise not_ours(pane)
                if time.monotonic() > deadline:
                    raise Conflict(f"The program in pane {pane} is still running", "mas show")
                # tmux may take a moment to see that a program has ended, and may have to be reminded of it.
                server.remind()
                time.sleep(_LOOK_AGAIN)
        except TmuxFailed as error:
            if any(state.pane == pane and state.pid == NO_PROCESS for state in self.panes(place)):
                raise unusable(place, pane, error.reason) from None
            raise gone(pane, error.reason) from None

    def close(self, place: Place) -> None:
        server = self._servers.at(place.socket)
        with self._servers.changing(server):
            self._close(server, place)

    def _close(self, server: Tmux, place: Place) -> None:
        from mas.runtime.closing import closing

        pid = server.pid()
        for attempt in range(_TRIES):
            if pid is None:
                break
            try:
                there = list(rows(look(server, everything())))
                messages = [batch for window in closing(place, there) for batch in _batches(window)]
                *earlier, last = messages or [[]]
                *_, left = [server.alone(*message) for message in (*earlier, [*last, *_WHAT_IS_LEFT])]
                *marks, ends_when_empty = left.splitlines()
                if not marks and ends_when_empty == "on":
                    _wait_for_end(server, pid)
                mark = homes("\n".join(marks)).get(place.name)
                if mark is None or not (messages or is_home_of(mark, place)):
                    break
                # A person has opened a pane there since the look: it stays, and gives back the name.
            except TmuxFailed:
                # A pane that was there has gone by itself meanwhile, or the server has.
                pid = server.pid()
                if pid is not None and attempt == _TRIES - 1:
                    raise
        else:
            if pid is not None:
                raise NoTmux(f"The tmux session {place.name} could not be closed: it is still there", "mas list")
        if server.private:
            self._servers.closed(server, place.name)

    def alive(self, places: Iterable[Place]) -> dict[Place, bool | None]:
        with self.looking(places) as found:
            return found()

    @contextmanager
    def looking(self, places: Iterable[Place]) -> Iterator[Callable[[], dict[Place, bool | None]]]:
        by_socket = _by_socket(places)
        asked: dict[str, PreparedClient] = {}
        with ExitStack() as clients:
            for socket, there in by_socket.items():
                # A server with one session is mostly that session's own, and not asked at all.
                if len(there) > 1 and (client := self._servers.at(socket).prepare(HOMES)):
                    clients.callback(client.cancel)
                    asked[socket] = client
            yield lambda: self._alive(by_socket, asked)

    def _alive(
        self, by_socket: dict[str, list[Place]], asked: Mapping[str, PreparedClient]
    ) -> dict[Place, bool | None]:
        found: dict[Place, bool | None] = {}
        own = self._servers.own({socket: there[0].name for socket, there in by_socket.items() if len(there) == 1})
        heard = listening_sockets() if own else frozenset()
        for socket, there in by_socket.items():
            if socket in own and socket in heard:
                found[there[0]] = True
            else:
                found.update(self._alive_at(socket, there, asked.get(socket)))
        return found

    def _alive_at(self, socket: str, places: list[Place], asked: PreparedClient | None) -> dict[Place, bool | None]:
        server = self._servers.at(socket)
        try:
            if not server.listening():
                return dict.fromkeys(places, False)
            if len(places) == 1 and self._servers.is_own(socket, places[0].name):
                return {places[0]: True}
            marks = homes(look(server, HOMES, asked))
            found = {place: is_home_of(marks.get(place.name), place) for place in places}
            if not all(found.values()):
                # Before a team is called gone: a person may have given its tmux session, or its panes, another name.
                there = list(rows(look(server, everything())))
                found = {place: here or any(row.is_of(place) for row in there) for place, here in found.items()}
        except NoTmux:
            return dict.fromkeys(places, None)
        return dict(found)

    def panes(self, place: Place) -> list[PaneState]:
        return [size.state for size in self.sizes(place)]

    def panes_of(self, places: Iterable[Place]) -> dict[Place, list[PaneState] | None]:
        found: dict[Place, list[PaneState] | None] = {}
        for socket, there in _by_socket(places).items():
            try:
                seen = self._sizes_at(socket, there)
                found |= {place: [size.state for size in panes] for place, panes in seen.items()}
            except NoTmux:
                found.update(dict.fromkeys(there))
        return found

    def sizes(self, place: Place) -> list[PaneSize]:
        return self._sizes_at(place.socket, [place])[place]

    def _sizes_at(self, socket: str, places: list[Place]) -> dict[Place, list[PaneSize]]:
        """The panes of these teams, by one look at their server."""
        server = self._servers.at(socket)
        if not server.listening():
            return {place: [] for place in places}
        found = sizes(look(server, listing(places)), places)
        if any(_unreaped(size.state) for panes in found.values() for size in panes):
            # Now and then a server misses that a child ended; reminded of it, it collects the status.
            server.remind()
            found = sizes(look(server, listing(places)), places)
        return found

    def paste(self, place: Place, pane: str, text: str, enter: bool) -> None:
        self._type(place, pane, _pasting(place, pane, enter), text.encode())

    def prepare_paste(self, place: Place, pane: str, enter: bool, look: bool = False) -> PreparedPaste:
        before = [*_looking(pane), ["display-message", "-p", "-t", pane, _LOOKED]] if look else []
        client = self._servers.at(place.socket).prepare(*before, *_pasting(place, pane, enter))

        def type_text(text: str) -> None:
            data = text.encode()
            if client and len(data) <= client.MOST:
                _typed(pane, lambda: client.finish(data))
            else:
                cancel()
                self.paste(place, pane, text, enter)

        def cancel() -> None:
            if client:
                client.cancel()

        def looked() -> Screen:
            assert client is not None
            return _looked(place, pane, lambda: client.printed_before(_LOOKED))

        return PreparedPaste(type_text, cancel, looked if client and look else None)

    def enter(self, place: Place, pane: str) -> None:
        self._type(place, pane, [_if_alive(place, pane, _enter(pane))])

    def keys(self, place: Place, pane: str, data: bytes) -> None:
        if data:
            self._type(place, pane, *_typing(place, pane, data))

    def _type(self, place: Place, pane: str, commands: list[Command], stdin: bytes | None = None) -> None:
        _typed(pane, lambda: self._servers.at(place.socket).run(*commands, stdin=stdin))

    def press(self, place: Place, pane: PaneState, key: str) -> None:
        there = f"#{{&&:{alive_in(place)},#{{==:#{{pane_pid}},{pane.pid}}}}}"
        # A person who scrolled back would otherwise get the key.
        press = f"copy-mode -q -t {pane.pane} ; send-keys -t {pane.pane} {key}"
        why_not = say_why_not(place, pane.pane)
        self._type(place, pane.pane, [["if-shell", "-F", "-t", pane.pane, there, press, why_not]])

    def resize(self, place: Place, pane: str, columns: int, rows: int) -> None:
        from mas.runtime.resize import FRAME, check_size, resizing

        check_size(columns, rows)
        server = self._servers.at(place.socket)
        try:
            asked = ["display-message", "-p", "-t", pane, f"{OWNER},{FRAME}"]
            owner, *frame = server.run(asked).strip().split(",")
            if not is_owner(owner, place):
                raise not_ours(pane)
            if commands := resizing(pane, columns, rows, list(map(int, frame)), _grid):
                server.run(["if-shell", "-F", "-t", pane, of_team(place), commands])
        except TmuxFailed as error:
            raise gone(pane, error.reason) from None

    def snapshot(self, place: Place, pane: str, history: int) -> Snapshot:
        from mas.runtime.snapshot import asking, drawn

        try:
            owner, snapshot = drawn(self._servers.at(place.socket).run(*asking(pane, history)), history)
        except TmuxFailed as error:
            raise gone(pane, error.reason) from None
        if not is_owner(owner, place):
            raise not_ours(pane)
        return snapshot

    def look(self, place: Place, pane: str) -> Screen:
        return _looked(place, pane, lambda: self._servers.at(place.socket).run(*_looking(pane)))

    def watching(self, place: Place) -> AbstractContextManager[None]:
        return self._servers.watching(place.socket)

    def screen(self, place: Place, pane: str, lines: int) -> str:
        server = self._servers.at(place.socket)
        text = server.run(["capture-pane", "-p", "-J", "-t", pane, "-S", f"-{lines}"])
        return "\n".join(text.rstrip().split("\n")[-lines:])

    def attach(self, place: Place, pane: str | None) -> None:
        server = self._servers.at(place.socket)
        commands: list[Command] = []
        if pane:
            commands += [["select-window", "-t", pane], ["select-pane", "-t", pane]]
        environ = dict(self._servers.environ)
        verb = "switch-client"
        if environ.get("TMUX", "").rsplit(",", 2)[0] != place.socket:
            # A tmux inside another server's tmux is refused unless it does not know.
            environ.pop("TMUX", None)
            verb = "attach-session"
            if not os.isatty(0):
                raise BadInput("mas attach needs a terminal", "without one: mas output SESSION:AGENT")
        argv = server.argv(*commands, [verb, "-t", self._tmux_session(server, place)])
        os.execvpe(argv[0], argv, environ)  # noqa: S606 - no shell, on purpose

    def _tmux_session(self, server: Tmux, place: Place) -> str:
        """The tmux session to look at a team in: that of its name, or the one that a person has put its panes in."""
        ours = [row for row in rows(look(server, listing([place]))) if row.is_of(place)]
        if not ours or any(row.session == place.name for row in ours):
            return f"={place.name}"
        return f"={ours[0].session}"

    def ends_unattached(self) -> bool:
        server = self._servers.user()
        try:
            if not server.listening() or server.run(["show-options", "-sv", "exit-unattached"]).strip() != "on":
                return False
            return any(mark.endswith(f"/{OPEN}") for mark in homes(look(server, HOMES)).values())
        except NoTmux:
            return False

    def legacy_running(self) -> bool:
        server = self._servers.user()
        try:
            return server.listening() and LEGACY_TMUX in sessions_at(server)
        except NoTmux:
            return False


def _typed(pane: str, run: Callable[[], str]) -> None:
    try:
        printed = run()
    except TmuxFailed as error:
        raise gone(pane, error.reason) from None
    check_typed(pane, printed)


def _looking(pane: str) -> list[Command]:
    """The commands whose output `_looked` reads; run in one step, so that the cursor is where the text is."""
    cursor = f"{OWNER},#{{cursor_y}},#{{cursor_x}}"
    return [["display-message", "-p", "-t", pane, cursor], ["capture-pane", "-p", "-e", "-t", pane]]


def _looked(place: Place, pane: str, run: Callable[[], str]) -> Screen:
    try:
        head, _, drawn = run().partition("\n")
    except TmuxFailed as error:
        raise gone(pane, error.reason) from None
    owner, row, column = head.rsplit(",", 2)
    if not is_owner(owner, place):
        raise not_ours(pane)
    return screen_in(drawn, int(row), int(column))


def _pasting(place: Place, pane: str, enter: bool) -> list[Command]:
    """The commands that paste what they read; a missing pane is refused before anything is read."""
    buffer = f"mas-{os.urandom(8).hex()}"
    paste = f"paste-buffer -p -r -d -b {buffer} -t {pane}"
    if enter:
        paste = f"{paste} ; {_enter(pane)}"
    return [
        ["if-shell", "-F", "-t", pane, alive_in(place), _leave_scrolling(pane)],
        ["load-buffer", "-b", buffer, "-"],
        _if_alive(place, pane, paste, f"delete-buffer -b {buffer} ; "),
    ]


def _if_alive(place: Place, pane: str, then: str, otherwise: str = "") -> Command:
    """Does something to a live pane of the team, checked in the same step; otherwise says why not."""
    return ["if-shell", "-F", "-t", pane, alive_in(place), then, f"{otherwise}{say_why_not(place, pane)}"]


def _enter(pane: str) -> str:
    return f"{_leave_scrolling(pane)} ; send-keys -t {pane} Enter"


def _leave_scrolling(pane: str) -> str:
    """A person who scrolled back would otherwise get the keys."""
    return f"copy-mode -q -t {pane}"


def _typing(place: Place, pane: str, data: bytes) -> tuple[list[Command], bytes | None]:
    """The commands that type raw bytes, and what they read: few bytes are keys, many a buffer."""
    back = _leave_scrolling(pane)
    if len(data) <= _KEYS_AT_ONCE:
        pieces = [data[start : start + _KEYS_EACH] for start in range(0, len(data), _KEYS_EACH)]
        return [_if_alive(place, pane, f"{back} ; send-keys -t {pane} -H {piece.hex(' ')}") for piece in pieces], None
    buffer = f"mas-{os.urandom(8).hex()}"
    paste = f"paste-buffer -r -d -b {buffer} -t {pane}"
    return [
        ["if-shell", "-F", "-t", pane, alive_in(place), back],
        ["load-buffer", "-b", buffer, "-"],
        _if_alive(place, pane, paste, f"delete-buffer -b {buffer} ; "),
    ], data


def _unreaped(state: PaneState) -> bool:
    return state.dead and not state.replaced and state.exit_status is None and state.pid != NO_PROCESS


def _wait_for_end(server: Tmux, pid: int | None) -> None:
    began = time.monotonic()
    helped = False
    while server.pid() == pid and (waited := time.monotonic() - began) < _ENDING:
        if waited > _SOON and not helped:
            from mas.runtime.control import end_orphans

            end_orphans(server.socket)
            helped = True
        time.sleep(_LOOK_AGAIN)


def _opening(team: TeamPlan) -> Iterator[Command]:
    """All of a team as one chain of commands."""
    width, height = _window_size(max(len(window.panes) for window in team.windows))
    # Hooks on new sessions run before they can be taken away; the window they find goes once ours is there.
    size = ["-x", str(width), "-y", str(height)]
    yield ["new-session", "-d", "-P", "-F", _OPENED, "-s", team.name, *size, *_PLACEHOLDER]
    mark = Place("", team.name, team.home).team
    # At once: if anything fails after this, it shows whose the tmux session is.
    yield ["set-option", "-t", f"={team.name}:", SESSION_MARK, f"{mark}/{OPENING}"]
    yield from _session_options(team.name)
    # Out of the way of ours, which get the first numbers. Not replaced by the first of them (`neww -k`): a server that
    # then cannot start a process crashes, and every team on it ends.
    aside = f"={team.name}:{_LAST_WINDOW}"
    yield [_MOVE_WINDOW, "-s", f"={team.name}:^", "-t", aside]
    for number, window in enumerate(team.windows):
        there = f"={team.name}:={window.name}"
        for position, pane in enumerate(window.panes):
            if position == 0:
                yield [_NEW_WINDOW, "-t", f"={team.name}:", "-n", window.name, *_marked(pane), *pane.argv]
                yield from _window_options(there)
                if number == 0:
                    yield [_KILL_WINDOW, "-t", aside]
            else:
                yield [_SPLIT_WINDOW, "-t", there, *_marked(pane), *pane.argv]
            yield marking(there, mark)
            # With the pane, not with the window it is in at first: a person may move it.
            yield ["set-option", "-pt", there, "remain-on-exit", "on"]
            yield ["set-option", "-pt", there, "@mas_agent", pane.agent]
            yield ["set-option", "-pt", there, "@mas_label", pane.label]
            if position and position % _SPLITS_BETWEEN_LAYOUTS == 0:
                yield ["select-layout", "-t", there, "tiled"]
        yield from _arranged(there, window)
    # After the panes, so that no launcher has it.
    for name, value in team.environment:
        yield [_SET_ENVIRONMENT, "-t", f"={team.name}", name, value]
    yield ["select-window", "-t", f"={team.name}:={team.windows[0].name}"]
    yield ["set-option", "-t", f"={team.name}:", SESSION_MARK, f"{mark}/{OPEN}"]
    yield ["list-panes", "-s", "-t", f"={team.name}:", "-F", FORMAT]


def _marked(pane: PanePlan) -> Command:
    """Has the pane's own process carry the mark too, not only what it starts."""
    return ["-e", f"{MARK}={pane.mark}"]


def _batches(commands: Iterable[Command]) -> Iterator[list[Command]]:
    """The commands in as few messages as they fit in; a pane and its options stay together."""
    batch: list[Command] = []
    size = words = 0
    for command in commands:
        length = sum(len(os.fsencode(word)) + 1 for word in (*command, ";"))
        longest = _LONGEST_MESSAGES.get(command[0])
        if longest is not None and (size + length > longest or words + len(command) > _MOST_WORDS):
            yield batch
            batch, size, words = [], 0, 0
        batch.append(command)
        size += length
        words += len(command) + 1
    yield batch


def _session_options(name: str) -> Iterator[Command]:
    """What the user's configuration must not decide for a team."""
    yield ["set-option", "-t", f"={name}:", "destroy-unattached", "off"]
    # Of the whole server: it would end with the client that opens the team.
    yield ["set-option", "-s", "exit-unattached", "off"]
    for hook in _SESSION_HOOKS:
        # -q: not every tmux has every hook.
        yield ["set-option", "-qt", f"={name}:", hook, ""]


def _window_options(window: str) -> Iterator[Command]:
    yield ["set-option", "-wt", window, "pane-border-status", "top"]
    yield ["set-option", "-wt", window, "pane-border-format", " #{@mas_agent} #{@mas_label} "]
    for hook in _WINDOW_HOOKS:
        yield ["set-option", "-qwt", window, hook, ""]


def _arranged(window: str, plan: WindowPlan) -> Iterator[Command]:
    if len(plan.panes) > 1:
        yield ["select-layout", "-t", window, "tiled"]


def _window_size(panes: int) -> tuple[int, int]:
    """A window in which the tiled layout gives every pane its size, with a title line above each."""
    columns, rows = _grid(panes)
    # Between two panes is a line; above the first row of panes is one more, for their titles.
    return columns * (_PANE_WIDTH + 1), rows * (_PANE_HEIGHT + 2) - 1


def _grid(panes: int) -> tuple[int, int]:
    """How many panes the tiled layout puts beside and below each other."""
    rows = columns = 1
    while rows * columns < panes:
        rows += 1
        if rows * columns < panes:
            columns += 1
    return columns, rows


def _by_socket(places: Iterable[Place]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for place in places:
        found.setdefault(place.socket, []).append(place)
    return found
