"""An agent's terminal as its viewers see it, on this machine or through a server."""

from typing import NamedTuple, Protocol


class Look(NamedTuple):
    """How a terminal is now. Another `run` is another program: what was shown before is not its screen."""

    run: str
    columns: int
    rows: int
    ended: bool
    exit_status: int | None


class Screen(NamedTuple):
    """What to write to a fresh terminal of that size, and the position in the stream it stands for.

    It is `exact` if nothing was printed around the moment it was taken; else some of what follows is in it already.
    """

    data: bytes
    columns: int
    rows: int
    position: int
    exact: bool


class Piece(NamedTuple):
    """Bytes of the stream, where the next ones begin, and how many of those are there already."""

    data: bytes
    position: int
    lag: int


class Terminal(Protocol):
    """One viewer of one agent's terminal.

    The agent's launcher records what the agent prints, and viewers read what is recorded. A viewer owns nothing
    but a position, so none can slow an agent down or make anything grow. Positions are good for this object only.
    """

    @property
    def log_path(self) -> str:
        """The file that grows when the agent prints; its neighbour `*.events.jsonl` when it starts or ends."""
        ...

    def look(self, fresh: bool = False) -> Look:
        """The current state of the terminal; unless `fresh`, it may be up to a second old."""
        ...

    def snapshot(self) -> Screen:
        """The screen with some of what scrolled off it, and where the stream goes on.

        Bytes are recorded before tmux draws them, so screen and stream agree only while the agent is quiet. This waits
        for that, up to a fifth of a second; if the agent goes on printing, it returns a position that tmux has surely
        passed. Bytes may come twice, but none is lost. For an agent without a pane it is the end of the recorded
        output.
        """
        ...

    def read(self, position: int, most: int) -> Piece:
        """The next bytes, or none. Does not wait."""
        ...

    def type(self, data: bytes) -> None:
        """Type raw bytes, exactly; `AgentExited` if there is no program to get them."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Ask for a size; others watching see it too."""
        ...

    def close(self) -> None:
        """Let go of it. Closing twice is fine."""
        ...
