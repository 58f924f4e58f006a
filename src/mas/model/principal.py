"""Who asks: the owner of the workspace, or one agent of one session."""

# No postponed annotations here: NamedTuple would compile the type of every field anew at each start.
from typing import NamedTuple


class Principal(NamedTuple):
    """The owner, unless it names a session and an agent."""

    session_id: str | None = None
    agent: str | None = None

    @property
    def is_owner(self) -> bool:
        return self.session_id is None

    def __str__(self) -> str:
        return "owner" if self.is_owner else f"agent {self.agent} of {self.session_id}"


OWNER = Principal()
NOBODY = Principal("", "")
