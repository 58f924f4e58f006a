"""A change of the registry, small and large."""

from __future__ import annotations

from tests.site import Site

from benchmarks.arena import arena
from benchmarks.measure import Effort, Group, Row, in_turns, timed
from mas.bootstrap import random_id
from mas.model.session import Status
from mas.store.workspace.registry import IndexEntry, Registry

_MOST_MORE = 0.010


def measure(effort: Effort) -> Group:
    with arena() as small, arena() as large:
        few, many = _filled(small, 10), _filled(large, 10_000)
        short, long = in_turns(effort.repeats(30), few, many)
    return Group(
        "Registry change",
        (
            Row("with 10 entries", short),
            Row("with 10,000 entries", long, "with 10 entries", short, "floor + 10 ms", short + _MOST_MORE),
        ),
        ("An existing entry in the middle changes its status: journal line, new index, both on the disk.",),
    )


class _filled:  # noqa: N801 - used like a function
    """A registry of `count` entries, of which each call changes one."""

    def __init__(self, site: Site, count: int) -> None:
        world = site.world()
        world.workspace.prepare()
        now = world.now()
        entries = [
            IndexEntry(random_id(), Status.STOPPED, now, now, f"session {number}", 13, site.user_socket)
            for number in range(count)
        ]
        self._registry: Registry = world.registry
        self._registry.rebuild(lambda: entries)
        self._entry = entries[count // 2]

    def __call__(self) -> float:
        turned = Status.ACTIVE if self._entry.status is Status.STOPPED else Status.STOPPED
        self._entry = self._entry._replace(status=turned)
        return timed(lambda: self._registry.put(self._entry))
