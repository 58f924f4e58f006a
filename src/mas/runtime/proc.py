"""Processes as /proc shows them: which is below which, and how much memory each has.

Imports next to nothing, because the launcher in every pane looks at processes too.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PAGE = os.sysconf("SC_PAGE_SIZE")


def living() -> Iterator[tuple[int, bytes, list[bytes]]]:
    """Every living process, by one read each: its id, its name, and the fields of its `stat` from the state on."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if not name.isdigit():
            continue
        try:
            fd = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            line = os.read(fd, 1024)
        except OSError:
            continue
        finally:
            os.close(fd)
        # The program's name stands in brackets and may hold anything, brackets too.
        program, _, rest = line.partition(b"(")[2].rpartition(b")")
        fields = rest.split()
        if fields and fields[0] != b"Z":
            yield int(name), program, fields


def trees(roots: Iterable[int], parents: Mapping[int, int]) -> dict[int, list[int]]:
    """Each of `roots` with all below it."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found = {}
    for root in roots:
        found[root] = tree = [root]
        for pid in tree:
            tree += children.get(pid, ())
    return found


def descendants(pid: int) -> dict[int, str]:
    """Every living process below `pid` and its name; nothing where there is no /proc."""
    names, parents = {}, {}
    for number, name, fields in living():
        names[number], parents[number] = name, int(fields[1])
    return {child: names[child].decode("utf-8", "replace") for child in trees((pid,), parents)[pid][1:]}


def has_children_lists() -> bool:
    """Whether the kernel keeps a list of the children of every thread; without, all processes have to be looked at."""
    return os.path.exists("/proc/thread-self/children")


def children(pid: int) -> list[int]:
    """What a process started, by the lists of the kernel; `OSError` if it has ended."""
    found: list[int] = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
        except OSError:
            # The thread has ended; its children are another one's now.
            continue
    return found


def shared_once(pid: int) -> int | None:
    """The memory of a process, what it shares counted in part; None if it may not be looked at so closely."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith(b"Pss:"))
    except (OSError, StopIteration):
        return None


def pages(pid: int) -> tuple[int, int]:
    """The pages of memory that a process has, and how many of these are from files."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            fields = file.read().split()
        return int(fields[1]), int(fields[2])
    except (OSError, IndexError):
        return 0, 0


def own_memory(pid: int) -> int:
    """The memory of a process that is not from files."""
    had, from_files = pages(pid)
    return max(0, had - from_files) * PAGE
