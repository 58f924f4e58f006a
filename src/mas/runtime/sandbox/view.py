"""What an agent sees of the file system in tier A: the mounts that make this view."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mas.model.launch import Rules

LISTED = "listed"
# What to do with a path (`hide`, `read`, `write`, `bind` or `copy`), the path, and what is shown there.
Step = tuple[str, str, str]
# Mounted new before any other step: nothing of the machine's own is seen below /dev; below /proc all names are.
_FRESH = {"/dev": "hide", "/proc": "proc"}
# What every agent has of its own, whatever its rules say.
PRIVATE = ("/proc", "/dev/pts", "/dev/shm")  # noqa: S108 - not the machine's
# Below what is shown from elsewhere, the machine's own files are not there to be hidden. What is shown there again
# needs directories on the way, and those that are named as hidden are covered: an agent could write in them.
_FROM_ELSEWHERE = ("bind", "copy")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# What its owner may read or change without any capability, and an agent of root owns it.
_OF_ROOT = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/kernel/debug",
    "/sys/kernel/security",
    "/sys/kernel/tracing",
    "/var/spool/cron",
)
_OF_ROOT_IN_PROC = (
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/slabinfo",
    "/proc/timer_list",
    "/proc/vmallocinfo",
)
_HOST_KEYS = "/etc/ssh"


def steps(rules: Rules) -> list[Step]:
    """What to do, in this order."""
    named = kinds(rules)
    sources = {target: source for source, target in (*rules.binds, *rules.copies)}
    base = "hide" if rules.root == LISTED else "read"
    shown = [path for path, kind in named.items() if kind != "hide"]
    found = {}
    for path in named:
        kind, above = named[path], _above(path, named) or base
        if kind == "hide" and above in _FROM_ELSEWHERE:
            needed = has_below(path, shown)
        else:
            needed = kind in _FROM_ELSEWHERE or kind != above
        if needed:
            found[path] = kind, path, sources.get(path, path)
        if needed and above == "write":
            found |= {pin: ("write", pin, pin) for pin in _between(path, named)}
    return [found[path] for path in sorted(found, key=lambda path: (path.count("/"), path))]


def split(rules: Rules) -> tuple[list[Step], list[Step]]:
    """The steps that agents with the same rules but for their own paths have in common, and those of this agent alone.

    Whatever is below something of its own is its own, too. So is a directory that hides other agents' paths and gets a
    place for this one's.
    """
    named = kinds(rules)
    tops = {*PRIVATE, *rules.own, *(target for _, target in rules.binds)}
    for path in rules.own:
        above = _nearest(path, named)
        if named.get(above) == "hide":
            tops.add(above)
    below = tuple(f"{top}/" for top in tops)
    common: list[Step] = []
    own: list[Step] = []
    for step in steps(rules):
        (own if step[1] in tops or step[1].startswith(below) else common).append(step)
    return common, own


def kinds(rules: Rules) -> dict[str, str]:
    """Every path the rules name and what it is; where they name one twice, the stricter counts."""
    named = dict.fromkeys(rules.write, "write") | dict.fromkeys(rules.read, "read") | dict.fromkeys(rules.hide, "hide")
    named |= {target: "bind" for _, target in rules.binds} | {target: "copy" for _, target in rules.copies}
    if "/" in named and named["/"] != "read":
        raise OSError(22, "/ is neither writable nor hidden as a whole")
    return named


def of_root(tier: str) -> tuple[str, ...]:
    """What is hidden from an agent that is root, if without a capability."""
    import os

    found = [os.path.realpath(path) for path in _OF_ROOT if os.path.exists(path)]
    try:
        keys = (name for name in os.listdir(_HOST_KEYS) if name.endswith("_key"))
        found += [os.path.realpath(f"{_HOST_KEYS}/{name}") for name in keys]
    except OSError:
        pass
    # By Landlock nothing can be hidden in /proc: it would take rights away from processes that are yet to come.
    return (*found, *(path for path in _OF_ROOT_IN_PROC if tier == "A" and os.path.exists(path)))


def is_below(path: str, above: str) -> bool:
    return path != above and path.startswith(above.rstrip("/") + "/")


def has_below(path: str, others: Iterable[str]) -> bool:
    return any(is_below(other, path) for other in others)


def _between(path: str, named: dict[str, str]) -> list[str]:
    """The directories above a path, up to the next that is named.

    In a writable one an agent could rename them: what is hidden below would have another name at the next start. A
    directory that is a mount of its own cannot be renamed.
    """
    found = []
    while (path := path.rpartition("/")[0]) and path not in named:
        found.append(path)
    return found


def _above(path: str, named: dict[str, str]) -> str | None:
    """What the nearest named path above this one is; None if there is none."""
    above = _nearest(path, named)
    return (_FRESH.get(above) or named[above]) if above else None


def _nearest(path: str, named: dict[str, str]) -> str:
    """The nearest named path above this one; empty if there is none."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        if path in _FRESH or path in named:
            return path
    return ""
