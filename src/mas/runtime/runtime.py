"""The interface between the product and the place where its teams run."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from mas.model.screen import Screen


class PanePlan(NamedTuple):
    """One pane to open: which agent it is for, what to run in it, and the mark its processes carry."""

    agent: str
    label: str
    argv: tuple[str, ...]
    mark: str = ""


class WindowPlan(NamedTuple):
    """One window of a team."""

    name: str
    panes: tuple[PanePlan, ...]


class TeamPlan(NamedTuple):
    """A whole team to open: `name` is the tmux session, `directory` where it starts, `home` whose workspace it is.

    `environment` is for windows that people open in it; agents have one of their own.
    """

    name: str
    directory: str
    windows: tuple[WindowPlan, ...]
    home: str = ""
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        return sum(len(window.panes) for window in self.windows)


# Instead of a process, in a pane whose last program was ended and whose next one could not be started.
NO_PROCESS = -1


class PaneState(NamedTuple):
    """A pane as it is now. `agent` is None for a pane that is not ours.

    `replaced` means that a person has started another program in it: the agent is as dead as in a dead pane.
    """

    pane: str
    agent: str | None
    pid: int
    dead: bool
    exit_status: int | None
    replaced: bool = False


class PaneSize(NamedTuple):
    """A pane as it is now, and how large it is."""

    state: PaneState
    columns: int
    rows: int


class Snapshot(NamedTuple):
    """What to write to a new terminal of that size so that it shows what a pane shows.

    `pastes`: whether the program takes bracketed pastes; None if tmux does not say.
    """

    data: bytes
    columns: int
    rows: int
    pastes: bool | None


class Place(NamedTuple):
    """A team and the server it was opened on. `home` is the workspace's identity, which a copy does not share."""

    socket: str
    name: str
    home: str = ""

    @property
    def team(self) -> str:
        """What the team's panes are marked with, wherever they are and whatever their tmux session is called."""
        return f"{self.name}/{self.home}"


class PreparedPaste(NamedTuple):
    """A paste that waits for its text: `type` does what `Runtime.paste` does, `cancel` is fine at any time.

    `look` is what `Runtime.look` returns, as the pane was when the paste began to wait; it can be called once.
    """

    type: Callable[[str], None]
    cancel: Callable[[], None]
    look: Callable[[], Screen] | None = None


class Runtime(Protocol):
    """Where programs run. `NoTmux` means that it could not be looked at, never that something is gone."""

    def place(self, name: str, panes: int) -> str:
        """Decide where a team of `panes` agents runs: the socket of a server with room for it."""
        ...

    def open(self, socket: str, team: TeamPlan) -> dict[str, str]:
        """Open the whole team or nothing; returns the pane of every agent. `AlreadyThere` if the name is in use."""
        ...

    def reopen(self, place: Place, pane: str, plan: PanePlan, force: bool = False) -> None:
        """Run something else in a pane whose program has ended; `Conflict` if it has not, or is not the team's.

        With `force` the program that runs there is ended.
        """
        ...

    def close(self, place: Place) -> None:
        """End the team's panes, wherever they are, and no others. Closing twice is fine."""
        ...

    def alive(self, places: Iterable[Place]) -> dict[Place, bool | None]:
        """Which teams are there, under whatever name; None where it could not be found out."""
        ...

    def looking(self, places: Iterable[Place]) -> AbstractContextManager[Callable[[], dict[Place, bool | None]]]:
        """Begin to ask which teams are there; the function waits for what `alive` returns. Other work fits between."""
        ...

    def panes(self, place: Place) -> list[PaneState]:
        """The panes of one team, wherever they are, and others in its tmux session; none if that does not exist."""
        ...

    def panes_of(self, places: Iterable[Place]) -> dict[Place, list[PaneState] | None]:
        """The panes of many teams, by one look at each server; None where it could not be looked at."""
        ...

    def paste(self, place: Place, pane: str, text: str, enter: bool) -> None:
        """Type `text` into a pane, byte for byte, and Enter if asked for; `AgentExited` if it is dead.

        `NotOurPane`, an `AgentExited`, if it is another's. All of it is one step: nothing else is typed in
        between.
        """
        ...

    def prepare_paste(self, place: Place, pane: str, enter: bool, look: bool = False) -> PreparedPaste:
        """Prepare a paste, and a `look` at the pane, while its text is being stored; it must be typed or cancelled.

        Should this process be killed before that, nothing is typed.
        """
        ...

    def enter(self, place: Place, pane: str) -> None:
        """Press Enter in a pane; `AgentExited` if it is dead or not the team's."""
        ...

    def screen(self, place: Place, pane: str, lines: int) -> str:
        """The last lines the pane shows, scroll-back included."""
        ...

    def look(self, place: Place, pane: str) -> Screen:
        """What the pane shows at this moment; `AgentExited` if it is gone or not the team's."""
        ...

    def snapshot(self, place: Place, pane: str, history: int) -> Snapshot:
        """The pane with up to `history` lines above it; `AgentExited` if it is gone or not the team's."""
        ...

    def sizes(self, place: Place) -> list[PaneSize]:
        """The panes of one team with their sizes; none if the team is not running."""
        ...

    def keys(self, place: Place, pane: str, data: bytes) -> None:
        """Type raw bytes into a pane, exactly; `AgentExited` if it is dead or not the team's."""
        ...

    def press(self, place: Place, pane: PaneState, key: str) -> None:
        """Press a key, as tmux calls it; `AgentExited` if the pane is dead, not the team's, or runs another process."""
        ...

    def resize(self, place: Place, pane: str, columns: int, rows: int) -> None:
        """Give a pane that size, as far as its neighbours leave room; `BadInput` if no terminal can have it."""
        ...

    def watching(self, place: Place) -> AbstractContextManager[None]:
        """Announces that the team will be read often from now on."""
        ...

    def attach(self, place: Place, pane: str | None) -> None:
        """Hand the caller's terminal over to the team. Does not return."""
        ...

    def ends_unattached(self) -> bool:
        """Whether the user's own server has teams, and exits with them once no client is attached."""
        ...

    def legacy_running(self) -> bool:
        """Whether the old single session is running on the user's own server."""
        ...
