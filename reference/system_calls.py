"""The system calls of isolated agents, from the table that the filter is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mas.model.system_calls import ABSENT, ALLOWED, NEVER, OPENABLE, REFUSED_IN_B, UNSUPPORTED_IN_B
from reference.markdown import code, table


def system_calls() -> str:
    """What happens to every call that the table knows."""
    return table(("calls", "tier A", "tier B"), _rows())


def _rows() -> Iterator[tuple[str, str, str]]:
    closed_in_b = {*REFUSED_IN_B, *UNSUPPORTED_IN_B}
    for group, calls in ALLOWED.items():
        if open_ := [name for name in calls if name not in closed_in_b]:
            yield f"{group}: {_names(open_)}", "open", "open"
    yield _names(REFUSED_IN_B), "open", "`EPERM`"
    yield _names(UNSUPPORTED_IN_B), "open", "`EOPNOTSUPP`"
    openable = "`EPERM`, if the provider does not open it"
    yield _names(OPENABLE), openable, openable
    yield _names(NEVER), "`EPERM`", "`EPERM`"
    yield f"{_names(ABSENT)}, and every call that is not listed here", "`ENOSYS`", "`ENOSYS`"


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))
