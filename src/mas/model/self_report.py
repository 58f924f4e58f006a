"""Reports: what an agent says about its own work, in a few lines at most."""

from typing import Literal, NamedTuple, get_args

from mas.model.errors import BadInput
from mas.model.ids import shown
from mas.model.state import State

LONGEST_REPORT = 2000
# The states an agent can report about itself; others know better whether it has exited.
Reported = Literal[State.WORKING, State.IDLE, State.BLOCKED, State.ERROR]
REPORTED: tuple[State, ...] = get_args(Reported)
_ALLOWED_CONTROLS = "\n\t"


class AgentReport(NamedTuple):
    """What an agent reports that it is doing."""

    session_id: str
    agent: str
    text: str
    state: str | None
    at: str


def parse_report(text: str) -> str:
    """`text` without the space around it, if people can read it."""
    report = text.strip()
    if not report:
        raise BadInput("The report is empty")
    if len(report) > LONGEST_REPORT:
        raise BadInput(f"The report has {len(report)} characters; the longest has {LONGEST_REPORT}")
    for position, character in enumerate(report):
        control = character < " " or "\x7f" <= character <= "\x9f" or "\ud800" <= character <= "\udfff"
        if control and character not in _ALLOWED_CONTROLS:
            raise BadInput(f"The report has the control character {character!r} at position {position}")
    return report


def parse_reported(state: str | None) -> str | None:
    """`state` if an agent can say it of itself."""
    if state is not None and state not in REPORTED:
        raise BadInput(f"Not a state that an agent can report: {shown(state)} (choose from: {', '.join(REPORTED)})")
    return state
