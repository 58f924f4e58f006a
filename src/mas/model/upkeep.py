"""What maintenance found and did: prune, migrate, repair, doctor."""

from typing import NamedTuple


class Pruned(NamedTuple):
    """One thing a prune does: `what` is `archive` or `trash` (can be undone) or `remove` (for good).

    `reason` is which limit of a policy it is past.
    """

    session_id: str
    name: str | None
    status: str
    since: str
    what: str
    disk: int
    reason: str = ""


class PrunePlan(NamedTuple):
    """What a prune does, or would do."""

    items: tuple[Pruned, ...]
    done: bool


class Migrated(NamedTuple):
    """One old workspace or session and what became of it."""

    source: str
    session_id: str | None
    note: str


class Migration(NamedTuple):
    """What a migration found and did."""

    migrated: tuple[Migrated, ...]
    warnings: tuple[str, ...] = ()


class Finding(NamedTuple):
    """Something that was not as it should be, and what was (or would be) done."""

    what: str
    action: str


class Repair(NamedTuple):
    """What a repair found."""

    findings: tuple[Finding, ...]
    done: bool


class Check(NamedTuple):
    """One thing the doctor looked at."""

    name: str
    ok: bool
    text: str
    hint: str = ""
    absent: bool = False
    """Not there, and fine without."""


class Diagnosis(NamedTuple):
    """All the doctor looked at."""

    checks: tuple[Check, ...]
    ok: bool
