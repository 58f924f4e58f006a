"""Messages: text for agents, its recipients, and how far it came."""

import re
from enum import StrEnum
from typing import Literal, NamedTuple, get_args

from mas.model.errors import BadInput, Conflict
from mas.model.ids import shown
from mas.model.transcript import Source

LARGEST = 1 << 20
_ALLOWED_CONTROLS = {"\n", "\t"}
_ID = re.compile(r"m-[0-9a-f]{16}")
# The recipient and the sender that stand for people.
PERSON = "person"
# What one can wait for: `answered` is replied or, without a reply, idle.
Until = Literal["idle", "replied", "answered", "blocked", "exited"]
UNTIL: tuple[str, ...] = get_args(Until)


class DeliveryState(StrEnum):
    """The state of a message's delivery to one agent."""

    QUEUED = "queued"
    TYPED = "typed"
    ACKNOWLEDGED = "acknowledged"
    UNDELIVERED = "undelivered"


class Box(StrEnum):
    """Which messages of an agent are meant."""

    ALL = "all"
    INBOX = "inbox"
    SENT = "sent"


_NEXT: dict[DeliveryState, set[DeliveryState]] = {
    DeliveryState.QUEUED: {DeliveryState.TYPED, DeliveryState.UNDELIVERED},
    DeliveryState.TYPED: {DeliveryState.ACKNOWLEDGED, DeliveryState.UNDELIVERED},
    DeliveryState.ACKNOWLEDGED: set(),
    # Some messages may have arrived without proof; if the agent answers one, it has it.
    DeliveryState.UNDELIVERED: {DeliveryState.ACKNOWLEDGED},
}


class Delivery(NamedTuple):
    """The delivery of a message to one agent. `at` is when it reached this state."""

    agent: str
    state: DeliveryState
    at: str
    reason: str | None = None

    def to(self, state: DeliveryState, at: str, reason: str | None = None) -> "Delivery":
        """The same delivery in `state`, or `Conflict` if that step is not allowed."""
        if state not in _NEXT[self.state]:
            raise Conflict(f"A message to agent {self.agent} is {self.state} and cannot become {state}", "mas inbox")
        return self._replace(state=state, at=at, reason=reason)


class Message(NamedTuple):
    """A message of a session. `from` is an agent, or null for a person."""

    id: str
    sender: str | None
    target: str
    message: str
    created_at: str
    deliveries: tuple[Delivery, ...]

    def says_the_same(self, other: "Message") -> bool:
        """Whether both are the same words from and to the same, whenever they were sent and however far they came."""
        return (self.sender, self.target, self.message) == (other.sender, other.target, other.message)

    @property
    def header(self) -> str:
        """The line every message begins with at the agent: by it, no text is taken for a command or a key."""
        return f"[MAS from={_word(self.sender or PERSON)} to={_word(self.target)} id={self.id}]"

    @property
    def typed(self) -> str:
        """What is typed to the agent: the header, and the text with all that looks like another header escaped."""
        from mas.model.forged import escaped

        return f"{self.header}\n{escaped(self.message)}"


class MessageList(NamedTuple):
    """A page of messages, newest last, of `total` in all."""

    messages: tuple[Message, ...]
    total: int
    warnings: tuple[str, ...] = ()


class Sent(NamedTuple):
    """A message and the state of its delivery to each agent."""

    session_id: str
    target: str
    agents: tuple[str, ...]
    bytes: int
    id: str
    deliveries: tuple[Delivery, ...]


class Standing(NamedTuple):
    """An agent's state at the end of a wait, and the text that goes with it."""

    agent: str
    state: str
    text: str


class Waited(NamedTuple):
    """How a wait ended: `reached`, `timeout`, or an agent is `blocked` or `exited`; and the reply, if any."""

    until: str
    end: str
    agents: tuple[Standing, ...]
    reply: Message | None = None


class Asked(NamedTuple):
    """A question and its answer: the reply, or without one what the agent said, or else its screen: see `source`."""

    sent: Sent
    waited: Waited
    output: str | None
    source: Source | None = None


class MessageCounts(NamedTuple):
    """How many deliveries are in each state."""

    counts: dict[str, int]


def _word(name: str) -> str:
    """A name as one word, without the brackets and spaces that end a header's field."""
    return re.sub(r"[\s\[\]]", "_", name)


def parse_message_id(text: str) -> str:
    """`text` if it can be a message's id: `m-` and 16 hexadecimal digits."""
    if not _ID.fullmatch(text):
        raise BadInput(f"Not a message id: {shown(text)} (m- and 16 of 0-9 a-f)", "mas inbox")
    return text


def parse_message(text: str) -> str:
    """`text` if it can be pasted exactly: valid UTF-8, 1 MiB at most, no control but newline and tab."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadInput("A message must be valid UTF-8") from None
    if size == 0:
        raise BadInput("The message is empty")
    if size > LARGEST:
        raise BadInput(f"The message has {size} bytes; the largest is {LARGEST} (1 MiB)")
    for position, character in enumerate(text):
        # C0, DEL and C1: one of them (ESC) would end the bracketed paste that keeps text from being keys.
        if (character < " " or "\x7f" <= character <= "\x9f") and character not in _ALLOWED_CONTROLS:
            raise BadInput(f"The message has the control character {character!r} at position {position}")
    return text
