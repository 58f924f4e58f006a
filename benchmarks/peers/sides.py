"""The sides of the comparison: what each is asked to do, in the words that are its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import psutil
from tests.site import Site, short_directory, until

from benchmarks.floor import TEAM, RawTmux, Windows
from benchmarks.peers.reports import LISTENING, Reports
from benchmarks.peers.server import Server

MAS, RAW, LIBTMUX, TMUXP, CAO = "MAS", "raw tmux", "libtmux", "tmuxp", "CAO"
SIDES = (MAS, RAW, LIBTMUX, TMUXP, CAO)
TEAM_SIZE = sum(panes for _, panes in TEAM)
ONE: Windows = (("meta", 1),)


class Side(ABC):
    """A tool that opens sessions of agents, all of which run the same program."""

    name: str

    def __init__(self, site: Site, reports: Reports, program: Sequence[str]) -> None:
        self.site = site
        self.reports = reports
        self.program = program

    @abstractmethod
    def open(self, session: str, agents: int) -> None:
        """Open a session of 1 or 13 agents; answers when the tool does."""

    @abstractmethod
    def close(self, session: str) -> None:
        """End it."""

    def end(self) -> None:
        """End what the tool itself runs: most leave only tmux."""
        return


class Talking(Side):
    """One that can also list its sessions and bring text to an agent."""

    @abstractmethod
    def list(self) -> int:
        """Ask for all sessions, and count them."""

    @abstractmethod
    def send(self, session: str, agent: int, text: str) -> None:
        """Bring `text` and an Enter to the n-th agent; answers when the tool does."""

    def settle(self, session: str) -> None:
        """Wait until every agent can take a message, as far as the tool knows."""


class Serving(Talking):
    """One with a server, that can say what it knows and be asked again after something died."""

    server: Server
    variable: str
    """Of an agent's environment, that holds its id."""

    @abstractmethod
    def ids(self, session: str) -> Sequence[str]:
        """The ids of a session's agents."""

    @abstractmethod
    def hand_in(self, session: str, agent: int, text: str) -> bool:
        """Whether a message is accepted; waits for no more than that."""

    @abstractmethod
    def states(self, session: str) -> Sequence[str]:
        """What the server says of each agent."""

    @abstractmethod
    def last_message(self, session: str, agent: int) -> str:
        """What the server says of the last message to an agent."""

    @abstractmethod
    def bring_back(self, session: str) -> str:
        """Have the agents of a session whose tmux died run again, and say how that went."""

    def program_of(self, session: str, agent: int) -> int:
        """The process id of an agent's own program."""
        wanted = self.ids(session)[agent]
        (found,) = (pid for pid in programs(self.site) if psutil.Process(pid).environ().get(self.variable) == wanted)
        return found

    def end(self) -> None:
        self.server.stop()


def programs(site: Site) -> set[int]:
    """The process ids of the agents' own programs."""
    found = set()
    for process in site.processes():
        with suppress(psutil.Error):
            if any(word.endswith(LISTENING) for word in process.cmdline()):
                found.add(process.pid)
    return found


def windows(agents: int) -> Windows:
    return TEAM if agents == TEAM_SIZE else ONE


@contextmanager
def place(shell: str = "/bin/sh") -> Iterator[tuple[Site, Reports]]:
    """A site with a home, a tmux server and a pipe of its own; nothing of it runs on."""
    with short_directory() as directory:
        site = Site(directory)
        site.env["SHELL"] = shell
        raw = RawTmux(site, site.user_socket)
        reports = Reports(site)
        try:
            # Nobody's time holds the start of a tmux server.
            site.run(["mkdir", "-m", "700", "-p", raw.socket.rpartition("/")[0]])
            raw.keep()
            yield site, reports
        finally:
            site.close()
            until(lambda: not site.processes(), "the end of everything that was started", patience=60)
            reports.close()
