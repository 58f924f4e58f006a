"""What a page and its server say to each other before the page sends anything else."""

from typing import NamedTuple

# The word before what a signed-in page sends with every call; no secret.
PAGE_BEARER = "mas-page"


class Place(NamedTuple):
    """Where a page is: the host and port in its address, and the address at which its server listens."""

    shown: str
    listens: str


class Greeting(NamedTuple):
    """The server's proof for each key that the page named, and a challenge to the page. The right key proves it."""

    challenge: str
    proofs: tuple[str, ...]


class PageKey(NamedTuple):
    """A new key for this browser: its name, and the key sealed with the code of the sign-in link."""

    name: str
    sealed: str


class PageAccess(NamedTuple):
    """What the page sends with every call, for how many seconds it is good, and a key if the page showed a code."""

    bearer: str
    seconds: int
    key: PageKey | None


class Ticket(NamedTuple):
    """Opens one address, once, within seconds: for what a browser opens without headers."""

    ticket: str
    seconds: int
