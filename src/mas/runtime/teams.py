"""Teams in tmux: opened by one invocation, read by one listing, ended with everything they started."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial

from mas.model.errors import AgentExited, AlreadyThere, Conflict, NoTmux
from mas.runtime.runtime import PanePlan, PaneSize, PaneState, Place, Snapshot, TeamPlan, WindowPlan
from mas.runtime.servers import Servers, sessions_at
from mas.runtime.sweep import MARK
from mas.runtime.tmux import Ahead, Command, Tmux, TmuxFailed, listening_sockets, quoted
from mas.settings import LEGACY_TMUX

# Ends with its terminal, even where hang-ups are ignored; two words, so that tmux runs it without the user's shell.
_PLACEHOLDER = ("cat", "-")
# Their short names: who gives the long ones another meaning, as an alias, means what a person types.
_NEW_WINDOW, _SPLIT_WINDOW = "neww", "splitw"
_PANE_WIDTH = 100
_PANE_HEIGHT = 30
# tmux halves a pane to split it; spreading them out after a few splits keeps every half large enough.
_SPLITS_BETWEEN_LAYOUTS = 3
# A tmux session's name may hold spaces, but no colon.
_STATE = "#{session_name}:#{pane_id} #{?@mas_agent,#{@mas_agent},-} #{pane_pid} #{pane_dead} #{pane_dead_status}"
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
_DEAD = "dead"
_REOPENED = "reopened"
# More words to a command slow tmux's parser down; more commands are too long for one message.
_KEYS_EACH = 256
_KEYS_AT_ONCE = 8 * _KEYS_EACH
# A client's message to the server holds 16 KiB; the options that follow a pane need some of it.
_LONGEST_MESSAGE = 13 << 10
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
            states = _states(self._opened(server, team), {team.name}).get(team.name, [])
            strays = [state.pane for state in states if not state.agent]
            if strays:
                server.run(*(["kill-pane", "-t", pane] for pane in strays))
        panes = {state.agent: state.pane for state in states if state.agent}
        if len(panes) != team.size:
            self.close(Place(socket, team.name))
            raise NoTmux(f"tmux opened {len(panes)} of {team.size} panes", "mas doctor")
        return panes

    def _opened(self, server: Tmux, team: TeamPlan) -> str:
        """The listing of a team that was opened; nothing of it is left if that failed."""
        scope = self._servers.scope_for(server, team.name)
        for _ in range(_TRIES):
            before, scope = scope, ()
            try:
                # Panes start in the directory of this client: a `-c` argument would be expanded as a format.
                first, *rest = _batches(_opening(team))
                shown = server.alone(*first, cwd=team.directory, before=before)
                return [shown, *(server.run(*batch, cwd=team.directory) for batch in rest)][-1]
            except TmuxFailed as error:
                if error.said.startswith("duplicate session"):
                    raise AlreadyThere(f"tmux already has a session {team.name}") from None
                self.close(Place(server.socket, team.name))
                failed = error
                if error.said not in _LOST and not before:
                    break
        raise failed

    def reopen(self, place: Place, pane: str, plan: PanePlan) -> None:
        ended = f"#{{&&:#{{==:#{{session_name}},{place.name}}},#{{pane_dead}}}}"
        words = " ".join(map(quoted, ("respawn-pane", "-t", pane, *_marked(plan), *plan.argv)))
        reopen = f"{words} ; display-message -p -t {pane} {_REOPENED}"
        whose = f"display-message -p -t {pane} '#{{session_name}}'"
        command: Command = ["if-shell", "-F", "-t", pane, ended, reopen, whose]
        server = self._servers.at(place.socket)
        deadline = time.monotonic() + _ENDING
        try:
            while (name := server.run(command).strip()) != _REOPENED:
                if name != place.name:
                    raise _pane_gone(pane, f"it is of {name}" if name else "there is none")
                if time.monotonic() > deadline:
                    raise Conflict(f"The program in pane {pane} has not ended", "mas show")
                # tmux may take a moment to see that a program has ended, and may have to be reminded of it.
                server.remind()
                time.sleep(_LOOK_AGAIN)
        except TmuxFailed as error:
            raise _pane_gone(pane, error.said) from None

    def close(self, place: Place) -> None:
        server = self._servers.at(place.socket)
        pid = server.pid()
        try:
            left = server.run(
                ["kill-session", "-t", f"={place.name}"],
                ["list-sessions", "-F", "#{session_name}"],
                ["show-options", "-sv", "exit-empty"],
            )
            if left.split() == ["on"]:
                _wait_for_end(server, pid)
        except TmuxFailed:
            if _has(server, place.name):
                raise
        if server.private and not server.listening():
            # tmux leaves the socket of a server that has ended.
            try:
                os.unlink(place.socket)
            except FileNotFoundError:
                return

    def alive(self, places: Iterable[Place]) -> dict[Place, bool | None]:
        found: dict[Place, bool | None] = {}
        heard = listening_sockets()
        for socket, there in _by_socket(places).items():
            if socket in heard and self._is_for_one(socket, there) and os.path.exists(socket):
                found[there[0]] = True
            else:
                found.update(self._alive_at(socket, there))
        return found

    def _is_for_one(self, socket: str, places: list[Place]) -> bool:
        """Whether the server is one session's own; such a server lives exactly as long as the session."""
        own_name = len(places) == 1 and os.path.basename(socket).endswith(f"{places[0].name}.sock")
        return own_name and self._servers.is_private(socket)

    def _alive_at(self, socket: str, places: list[Place]) -> dict[Place, bool | None]:
        server = self._servers.at(socket)
        try:
            if not server.listening():
                return dict.fromkeys(places, False)
            if self._is_for_one(socket, places):
                return {places[0]: True}
            sessions = sessions_at(server)
        except NoTmux:
            return dict.fromkeys(places, None)
        return {place: place.name in sessions for place in places}

    def panes(self, place: Place) -> list[PaneState]:
        return self._panes_at(place.socket, [place])[place]

    def panes_of(self, places: Iterable[Place]) -> dict[Place, list[PaneState] | None]:
        found: dict[Place, list[PaneState] | None] = {}
        for socket, there in _by_socket(places).items():
            try:
                found.update(self._panes_at(socket, there))
            except NoTmux:
                found.update(dict.fromkeys(there))
        return found

    def _panes_at(self, socket: str, places: list[Place]) -> dict[Place, list[PaneState]]:
        """The panes of these teams, by one look at their server."""
        server = self._servers.at(socket)
        names = {place.name for place in places}
        which = ["-a"] if len(names) > 1 else ["-s", "-t", f"={places[0].name}:"]
        listing = ["list-panes", *which, "-F", _STATE]
        states: dict[str, list[PaneState]] = {}
        try:
            if server.listening():
                states = _states(server.run(listing), names)
            if any(pane.dead and pane.exit_status is None for panes in states.values() for pane in panes):
                # Now and then a server misses that a child ended; reminded of it, it collects the status.
                server.remind()
                states = _states(server.run(listing), names)
        except TmuxFailed:
            if any(_has(server, name) for name in names):
                raise
            states = {}
        return {place: states.get(place.name, []) for place in places}

    def paste(self, place: Place, pane: str, text: str, enter: bool) -> None:
        self._type(place, pane, _pasting(place, pane, enter), text.encode())

    def begin_paste(self, place: Place, pane: str, enter: bool) -> _Paste:
        ahead = self._servers.at(place.socket).ahead(*_pasting(place, pane, enter))
        return _Paste(ahead, pane, lambda text: self.paste(place, pane, text, enter))

    def enter(self, place: Place, pane: str) -> None:
        self._type(place, pane, [["if-shell", "-F", "-t", pane, _alive_in(place), _enter(pane), _say_dead(pane)]])

    def keys(self, place: Place, pane: str, data: bytes) -> None:
        if data:
            self._type(place, pane, *_typing(place, pane, data))

    def _type(self, place: Place, pane: str, commands: list[Command], stdin: bytes | None = None) -> None:
        _typed(pane, lambda: self._servers.at(place.socket).run(*commands, stdin=stdin))

    def press(self, place: Place, pane: PaneState, key: str) -> None:
        there = f"#{{&&:{_alive_in(place)},#{{==:#{{pane_pid}},{pane.pid}}}}}"
        # A person who scrolled back would otherwise get the key.
        press = f"copy-mode -q -t {pane.pane} ; send-keys -t {pane.pane} {key}"
        self._type(place, pane.pane, [["if-shell", "-F", "-t", pane.pane, there, press, _say_dead(pane.pane)]])

    def resize(self, place: Place, pane: str, columns: int, rows: int) -> None:
        from mas.runtime.resize import FRAME, check_size, resizing

        check_size(columns, rows)
        server = self._servers.at(place.socket)
        try:
            name, *frame = server.run(["display-message", "-p", "-t", pane, FRAME]).strip().split(",")
            if name != place.name:
                raise _pane_gone(pane, f"it is of {name}")
            if commands := resizing(pane, columns, rows, list(map(int, frame)), _grid):
                ours = f"#{{==:#{{session_name}},{place.name}}}"
                server.run(["if-shell", "-F", "-t", pane, ours, commands])
        except TmuxFailed as error:
            raise _pane_gone(pane, error.said) from None

    def snapshot(self, place: Place, pane: str, history: int) -> Snapshot:
        from mas.runtime.snapshot import asking, drawn

        try:
            name, snapshot = drawn(self._servers.at(place.socket).run(*asking(pane, history)), history)
        except TmuxFailed as error:
            raise _pane_gone(pane, error.said) from None
        if name != place.name:
            raise _pane_gone(pane, f"it is of {name}")
        return snapshot

    def sizes(self, place: Place) -> list[PaneSize]:
        server = self._servers.at(place.socket)
        listing = ["list-panes", "-s", "-t", f"={place.name}:", "-F", f"{_STATE} #{{pane_width}} #{{pane_height}}"]
        try:
            found = _sizes(server.run(listing), place.name) if server.listening() else []
            if any(size.state.dead and size.state.exit_status is None for size in found):
                # As with `panes`: a server may have to be reminded that a child ended.
                server.remind()
                found = _sizes(server.run(listing), place.name)
        except TmuxFailed:
            if _has(server, place.name):
                raise
            return []
        return found

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
        argv = server.argv(*commands, [verb, "-t", f"={place.name}"])
        os.execvpe(argv[0], argv, environ)  # noqa: S606 - no shell, on purpose

    def legacy_running(self) -> bool:
        server = self._servers.user()
        try:
            return server.listening() and LEGACY_TMUX in sessions_at(server)
        except NoTmux:
            return False


class _Paste:
    """A paste whose client is under way; what is too long for it goes by one of its own."""

    def __init__(self, ahead: Ahead | None, pane: str, anew: Callable[[str], None]) -> None:
        self._ahead = ahead
        self._pane = pane
        self._anew = anew

    def finish(self, text: str) -> None:
        data = text.encode()
        if self._ahead and len(data) <= self._ahead.MOST:
            _typed(self._pane, partial(self._ahead.finish, data))
        else:
            self.give_up()
            self._anew(text)

    def give_up(self) -> None:
        if self._ahead:
            self._ahead.give_up()


def _typed(pane: str, run: Callable[[], str]) -> None:
    try:
        ended = _DEAD in run()
    except TmuxFailed as error:
        raise _pane_gone(pane, error.said) from None
    if ended:
        raise _ended(pane)


def _pasting(place: Place, pane: str, enter: bool) -> list[Command]:
    """The commands that paste what they read; a pane that is not there is refused before anything is read."""
    buffer = f"mas-{os.urandom(8).hex()}"
    paste = f"paste-buffer -p -r -d -b {buffer} -t {pane}"
    if enter:
        paste = f"{paste} ; {_enter(pane)}"
    dead = f"delete-buffer -b {buffer} ; {_say_dead(pane)}"
    return [
        ["copy-mode", "-q", "-t", pane],
        ["load-buffer", "-b", buffer, "-"],
        ["if-shell", "-F", "-t", pane, _alive_in(place), paste, dead],
    ]


def _alive_in(place: Place) -> str:
    """A format that is true of a living pane of the team.

    A paste into a dead pane crashes some servers, and a pane's number may be another team's since tmux was started
    again: typing is one step with this look at the pane.
    """
    return f"#{{&&:#{{==:#{{session_name}},{place.name}}},#{{?pane_dead,,1}}}}"


def _enter(pane: str) -> str:
    return f"copy-mode -q -t {pane} ; send-keys -t {pane} Enter"


def _say_dead(pane: str) -> str:
    return f"display-message -p -t {pane} {_DEAD}"


def _pane_gone(pane: str, why: str) -> AgentExited:
    return AgentExited(f"The pane {pane} is gone: {why}", "mas show")


def _ended(pane: str) -> AgentExited:
    return AgentExited(f"The program in pane {pane} has ended", "mas show")


def _typing(place: Place, pane: str, data: bytes) -> tuple[list[Command], bytes | None]:
    """The commands that type raw bytes, and what they read: few bytes are keys, many a buffer."""
    # A person who scrolled back would otherwise get the keys.
    back = f"copy-mode -q -t {pane}"
    dead = _say_dead(pane)
    check = ["if-shell", "-F", "-t", pane, _alive_in(place)]
    if len(data) <= _KEYS_AT_ONCE:
        pieces = [data[start : start + _KEYS_EACH] for start in range(0, len(data), _KEYS_EACH)]
        return [[*check, f"{back} ; send-keys -t {pane} -H {piece.hex(' ')}", dead] for piece in pieces], None
    buffer = f"mas-{os.urandom(8).hex()}"
    paste = f"paste-buffer -r -d -b {buffer} -t {pane}"
    return [
        back.split(" "),
        ["load-buffer", "-b", buffer, "-"],
        [*check, paste, f"delete-buffer -b {buffer} ; {dead}"],
    ], data


def _has(server: Tmux, name: str) -> bool:
    """Whether the server is there and has the tmux session."""
    return server.listening() and name in sessions_at(server)


def _wait_for_end(server: Tmux, pid: int | None) -> None:
    began = time.monotonic()
    helped = False
    while server.pid() == pid and (waited := time.monotonic() - began) < _ENDING:
        if waited > _SOON and not helped:
            from mas.runtime.control import end_orphans

            end_orphans()
            helped = True
        time.sleep(_LOOK_AGAIN)


def _opening(team: TeamPlan) -> Iterator[Command]:
    """All of a team as one chain of commands."""
    width, height = _window_size(max(len(window.panes) for window in team.windows))
    # Hooks on new sessions run before they can be taken away; the window they find is replaced by the first of ours.
    yield ["new-session", "-d", "-s", team.name, "-x", str(width), "-y", str(height), *_PLACEHOLDER]
    yield from _session_options(team.name)
    for number, window in enumerate(team.windows):
        there = f"={team.name}:={window.name}"
        for position, pane in enumerate(window.panes):
            if position == 0:
                where = ["-k", "-t", f"={team.name}:^"] if number == 0 else ["-t", f"={team.name}:"]
                yield [_NEW_WINDOW, *where, "-n", window.name, *_marked(pane), *pane.argv]
                yield from _window_options(there)
            else:
                yield [_SPLIT_WINDOW, "-t", there, *_marked(pane), *pane.argv]
            yield ["set-option", "-p", "-t", there, "@mas_agent", pane.agent]
            yield ["set-option", "-p", "-t", there, "@mas_label", pane.label]
            if position and position % _SPLITS_BETWEEN_LAYOUTS == 0:
                yield ["select-layout", "-t", there, "tiled"]
        yield from _arranged(there, window)
    yield ["select-window", "-t", f"={team.name}:={team.windows[0].name}"]
    yield ["list-panes", "-s", "-t", f"={team.name}:", "-F", _STATE]


def _marked(pane: PanePlan) -> Command:
    """Has the pane's own process carry the mark too, not only what it starts."""
    return ["-e", f"{MARK}={pane.mark}"]


def _batches(commands: Iterable[Command]) -> Iterator[list[Command]]:
    """The commands in as few messages as they fit in; a pane and its options stay together."""
    batch: list[Command] = []
    size = 0
    for command in commands:
        length = sum(len(os.fsencode(word)) + 1 for word in (*command, ";"))
        if command[0] in (_NEW_WINDOW, _SPLIT_WINDOW) and size + length > _LONGEST_MESSAGE:
            yield batch
            batch, size = [], 0
        batch.append(command)
        size += length
    yield batch


def _session_options(name: str) -> Iterator[Command]:
    """What the user's configuration must not decide for a team."""
    yield ["set-option", "-t", f"={name}:", "destroy-unattached", "off"]
    for hook in _SESSION_HOOKS:
        # -q: not every tmux has every hook.
        yield ["set-option", "-q", "-t", f"={name}:", hook, ""]


def _window_options(window: str) -> Iterator[Command]:
    yield ["set-option", "-w", "-t", window, "remain-on-exit", "on"]
    yield ["set-option", "-w", "-t", window, "pane-border-status", "top"]
    yield ["set-option", "-w", "-t", window, "pane-border-format", " #{@mas_agent} #{@mas_label} "]
    for hook in _WINDOW_HOOKS:
        yield ["set-option", "-q", "-w", "-t", window, hook, ""]


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


def _states(printed: str, names: Container[str]) -> dict[str, list[PaneState]]:
    """The panes of each tmux session that was asked for; of others' nothing is read."""
    found: dict[str, list[PaneState]] = {}
    for line in printed.splitlines():
        name, _, fields = line.partition(":")
        if name in names:
            pane, agent, pid, dead, status = fields.split(" ")
            known = None if agent == "-" else agent
            state = PaneState(pane, known, int(pid), dead == "1", int(status) if status else None)
            found.setdefault(name, []).append(state)
    return found


def _sizes(printed: str, name: str) -> list[PaneSize]:
    found = []
    for line in printed.splitlines():
        state, columns, rows = line.rsplit(" ", 2)
        found += [PaneSize(one, int(columns), int(rows)) for one in _states(state, {name}).get(name, [])]
    return found


def _by_socket(places: Iterable[Place]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for place in places:
        found.setdefault(place.socket, []).append(place)
    return found
