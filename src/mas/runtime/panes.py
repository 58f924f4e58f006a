"""Which team a pane belongs to: by the pane's marks, even if a person moved the pane or renamed its tmux session.

A pane carries `TEAM/PID`: the tmux name of its session, the workspace's identity, and the process MAS started in it. A
person may group, link, rename, move, join, break or swap: the marks go with the pane. A pane that was respawned by
hand has another process than its mark says. Panes of an earlier version carry no mark: their processes show whose they
are, and where these do not, the name of the tmux session they are in.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mas.model.errors import AgentExited
from mas.model.ids import tmux_name
from mas.runtime.runtime import NO_PROCESS, PaneSize, PaneState, Place
from mas.runtime.tmux import Command

# Set only by the launcher, so that a person's shell with a session's environment does not count as an agent.
MARK = "MAS_PANE"
PANE_MARK = "@mas_team"
SESSION_MARK = "@mas_home"
NONE = "-"
# What the tmux session of a team carries until all its panes are there, and from then on.
OPENING = "opening"
OPEN = "open"
# What people can change comes last: a space in it moves nothing that we read.
_FIELDS = (
    "#{pane_id}",
    "#{pane_pid}",
    "#{pane_dead}",
    "#{pane_dead_status}",
    "#{window_id}",
    "#{pane_width}",
    "#{pane_height}",
    f"#{{?{PANE_MARK},#{{{PANE_MARK}}},{NONE}}}",
    f"#{{?@mas_agent,#{{@mas_agent}},{NONE}}}",
    f"#{{?{SESSION_MARK},#{{{SESSION_MARK}}},{NONE}}}",
    "#{session_name}",
)
FORMAT = " ".join(_FIELDS)
# Whose pane it is: its mark, or of one without any the name of its tmux session.
OWNER = f"#{{?{PANE_MARK},#{{{PANE_MARK}}},#{{session_name}}}}"
_DEAD = "mas-dead"
_REPLACED = "mas-replaced"
_NOT_OURS = "mas-not-ours"


class NotOurPane(AgentExited):
    """The pane is another's. Nothing is known of the agent that had it."""


class Row(NamedTuple):
    """A pane as one line of a listing describes it."""

    pane: str
    pid: int
    dead: bool
    status: int | None
    window: str
    columns: int
    rows: int
    mark: str
    agent: str
    home: str
    session: str

    def is_of(self, place: Place) -> bool:
        """Whether the pane is one of the team's."""
        if self.mark != NONE:
            return self.mark.rpartition("/")[0] == place.team
        if self.agent == NONE:
            return False
        from mas.runtime.sweep import session_and_home

        owner = session_and_home(self.pid)
        if owner is None:
            return self.session == place.name
        session_id, home = owner
        return tmux_name(session_id) == place.name and home in (place.home, "")

    def state(self, place: Place) -> PaneState:
        ours = self.is_of(place)
        other = self.mark not in (NONE, f"{place.team}/{self.pid}") and self.pid != NO_PROCESS
        replaced = ours and other
        agent = self.agent if ours and self.agent != NONE else None
        return PaneState(self.pane, agent, self.pid, self.dead or replaced, self.status, replaced)


def rows(printed: str) -> Iterator[Row]:
    """The panes of a listing; one in several tmux sessions is listed for each of them."""
    for line in printed.splitlines():
        fields = line.split(" ", len(_FIELDS) - 1)
        if len(fields) < len(_FIELDS) or not _is_pid(fields[1]) or not (fields[5] + fields[6]).isdigit():
            # Part of something a person set that has several lines.
            continue
        pane, pid, dead, status, window, columns, height, *rest = fields
        number = int(status) if status.isdigit() else None
        yield Row(pane, int(pid), dead == "1", number, window, int(columns), int(height), *rest)


def _is_pid(field: str) -> bool:
    return field.isdigit() or field == str(NO_PROCESS)


def listing(places: Iterable[Place]) -> Command:
    """Lists the panes of these teams, wherever they are, and what else is in the tmux sessions of their names."""
    places = list(places)
    if len(places) > 1:
        return everything()
    (place,) = places
    wanted = f"#{{||:#{{m:{place.team}/*,#{{{PANE_MARK}}}}},#{{==:#{{session_name}},{place.name}}}}}"
    return ["list-panes", "-a", "-f", wanted, "-F", FORMAT]


def everything() -> Command:
    """Lists the panes of a whole server."""
    return ["list-panes", "-a", "-F", FORMAT]


def sizes(printed: str, places: Iterable[Place]) -> dict[Place, list[PaneSize]]:
    """The panes of each team, and those of others in the tmux session of its name."""
    found: dict[Place, dict[str, PaneSize]] = {place: {} for place in places}
    by_name = {place.name: place for place in found}
    by_team = {place.team: place for place in found}
    for row in rows(printed):
        place = by_team.get(row.mark.rpartition("/")[0]) or by_name.get(row.session)
        if place:
            found[place].setdefault(row.pane, PaneSize(row.state(place), row.columns, row.rows))
    return {place: list(panes.values()) for place, panes in found.items()}


def homes(printed: str) -> dict[str, str]:
    """The mark of every tmux session, by its name; see `HOMES`."""
    pairs = (line.split(" ", 1) for line in printed.splitlines())
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


# A condition in the format would take tmux a fifth longer; without a mark the line begins with a space.
HOMES: Command = ["list-sessions", "-F", f"#{{{SESSION_MARK}}} #{{session_name}}"]


def is_home_of(mark: str | None, place: Place) -> bool:
    """Whether a tmux session of the team's name, with this mark, is the team's."""
    return mark is not None and mark.rpartition("/")[0] == place.team


def is_owner(owner: str, place: Place) -> bool:
    """Whether the output of `OWNER` names the team."""
    return owner.rpartition("/")[0] == place.team or owner == place.name


def marking(pane: str, team: str) -> Command:
    """Marks a pane as the team's, with the process that it runs."""
    return ["set-option", "-p", "-F", "-t", pane, PANE_MARK, f"{team}/#{{pane_pid}}"]


def of_team(place: Place) -> str:
    """A format that is true of a pane of the team, whatever runs in it."""
    named = f"#{{==:#{{session_name}},{place.name}}}"
    return f"#{{?{PANE_MARK},#{{m:{place.team}/*,#{{{PANE_MARK}}}}},{named}}}"


def alive_in(place: Place) -> str:
    """A format that is true of a pane of the team in which the process lives that MAS started there.

    A paste into a dead pane crashes some servers, and a pane's number may be another team's since tmux was started
    again: typing is one step with this look at the pane.
    """
    named = f"#{{==:#{{session_name}},{place.name}}}"
    ours = f"#{{?{PANE_MARK},#{{==:#{{{PANE_MARK}}},{place.team}/#{{pane_pid}}}},{named}}}"
    return f"#{{&&:{ours},#{{?pane_dead,,1}}}}"


def say_why_not(place: Place, pane: str) -> str:
    """A command that prints why nothing is typed to the pane."""
    why = f"#{{?{of_team(place)},#{{?pane_dead,{_DEAD},{_REPLACED}}},{_NOT_OURS}}}"
    return f"display-message -p -t {pane} '{why}'"


def check_typed(pane: str, printed: str) -> None:
    """`AgentExited` if `say_why_not` was printed; `NotOurPane` if the pane is another's."""
    if _NOT_OURS in printed:
        raise not_ours(pane)
    if _REPLACED in printed:
        raise AgentExited(f"Another program is running in the agent's pane {pane}", "mas restart-agent --force")
    if _DEAD in printed:
        raise AgentExited(f"The program in pane {pane} has exited", "mas show")


def not_ours(pane: str) -> NotOurPane:
    return NotOurPane(f"The pane {pane} is not this session's", "mas list")


def gone(pane: str, why: str) -> AgentExited:
    return AgentExited(f"The pane {pane} is gone: {why}", "mas show")


def unusable(place: Place, pane: str, why: str) -> AgentExited:
    session = place.name.removeprefix("mas-")
    return AgentExited(
        f"tmux could not start a process in pane {pane} and cannot use the pane again: {why}",
        f"mas stop {session}; mas restore {session}",
    )
