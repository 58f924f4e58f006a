"""What a tier leaves open on a kernel, and what agents in it have to do without."""

from __future__ import annotations

_PORTS_SINCE = 4
_SINCE = {
    3: "files outside can be cut short (truncate)",
    _PORTS_SINCE: "TCP ports cannot be restricted",
    5: "devices it can open can be controlled (ioctl)",
}
_SCOPES_SINCE = 6


def not_enforced(tier: str, abi: int, seen: str = "") -> tuple[str, ...]:
    """What this tier does not enforce on this kernel, a line each; empty for a tier that enforces all.

    `seen` is why processes in tier A see all others; empty if they do not.
    """
    if tier == "D":
        return ("file modes only: every agent can reach whatever its user can",)
    lines = []
    if tier == "B":
        lines += [
            "mode and times of files outside can be changed where the user owns them",
            "what files outside there are, and when they change, can be seen, but not their content",
            "names and arguments of other processes can be seen",
            "UDP ports can be used",
        ]
    lines += [words for since, words in _SINCE.items() if abi < since and (tier == "B" or since == _PORTS_SINCE)]
    if abi < _SCOPES_SINCE:
        lines.append("abstract unix sockets outside can be reached")
        if tier == "B":
            lines.append("processes of the same user can be sent signals")
    if tier == "A" and seen:
        lines.append(f"names and arguments of other processes can be seen: {seen}")
    return tuple(lines)


def not_available(tier: str, abi: int) -> tuple[str, ...]:
    """What agents in this tier cannot use on this kernel, though programs expect it."""
    lines = []
    if tier == "B":
        lines += [
            "new terminals",
            "Unix sockets",
            "shared memory",
            "/tmp",  # noqa: S108 - a name to be read
            "listening on TCP ports other than those in `ports`",
        ]
    # The first version of Landlock refuses it everywhere; without Landlock it works.
    if tier != "D" and abi == 1:
        lines.append("moving files between directories")
    return tuple(lines)
