"""What maintenance found and did: prune, migrate, repair, doctor."""

from typing import NamedTuple


class Pruned(NamedTuple):
    """One thing a prune does: `what` is `archive` or `trash` (can be undone) or `remove` (for good).

    `reason` is the limit of the policy that it exceeds.
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
    """One old workspace or session, and what was done with it."""

    source: str
    session_id: str | None
    note: str


class Migration(NamedTuple):
    """What a migration found and did."""

    migrated: tuple[Migrated, ...]
    warnings: tuple[str, ...] = ()


class Finding(NamedTuple):
    """Something wrong, and what was (or would be) done about it."""

    what: str
    action: str


class Repair(NamedTuple):
    """What a repair found."""

    findings: tuple[Finding, ...]
    done: bool


class Check(NamedTuple):
    """One check of `mas doctor`."""

    name: str
    ok: bool
    text: str
    hint: str = ""
    absent: bool = False
    """It is missing, and that is fine."""


class Diagnosis(NamedTuple):
    """All checks of `mas doctor`."""

    checks: tuple[Check, ...]
    ok: bool
