"""What an agent's process may reach: computed by the service, kept in the launch file, applied by the launcher.

The longest path that covers a file decides. What is not named is read-only in tier A and not there in tier B.
"""

from __future__ import annotations

_MARK = "isolation"
_LISTS = ("write", "read", "hide")


class Rules:
    """All paths are absolute, resolved and exist."""

    __slots__ = ("account", "binds", "hide", "how", "ports", "read", "tier", "write")

    def __init__(  # noqa: PLR0913 - a record
        self,
        tier: str,
        how: str,
        *,
        write: tuple[str, ...] = (),
        binds: tuple[tuple[str, str], ...] = (),
        read: tuple[str, ...] = (),
        hide: tuple[str, ...] = (),
        ports: tuple[int, ...] | None = None,
        account: tuple[int, int] | None = None,
    ) -> None:
        self.tier = tier
        """`A` or `B`."""
        self.how = how
        """`namespaces`, `bwrap` or `landlock`."""
        self.write = write
        """Seen, and writable at their own place."""
        self.binds = binds
        """Private directories that are shown, writable, at another path; tier A only."""
        self.read = read
        """Seen, and read-only; in tier B nothing else is seen at all."""
        self.hide = hide
        """Not there, directories and files."""
        self.ports = ports
        """The TCP ports it may use; None is all."""
        self.account = account
        """Whom root runs it as: user and group."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rules) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment] # a record, never a key


def to_options(rules: Rules) -> dict[str, str]:
    """The rules as options of a launch file; a path may hold anything but NUL, so each has an option of its own."""
    options = {_MARK: f"{rules.tier} {rules.how}"}
    for name in _LISTS:
        options |= {f"{_MARK}.{name}.{number}": path for number, path in enumerate(getattr(rules, name))}
    for number, (source, target) in enumerate(rules.binds):
        options |= {f"{_MARK}.source.{number}": source, f"{_MARK}.target.{number}": target}
    if rules.ports is not None:
        options[f"{_MARK}.ports"] = ",".join(map(str, rules.ports))
    if rules.account:
        options[f"{_MARK}.account"] = f"{rules.account[0]}:{rules.account[1]}"
    return options


def from_options(options: dict[str, str]) -> Rules | None:
    """The rules that `to_options` wrote; None means no isolation."""
    if _MARK not in options:
        return None
    tier, how = options[_MARK].split(" ")
    ports, account = options.get(f"{_MARK}.ports"), options.get(f"{_MARK}.account")
    uid, _, gid = (account or "").partition(":")
    write, read, hide = (_paths(options, name) for name in _LISTS)
    return Rules(
        tier,
        how,
        write=write,
        binds=tuple(zip(_paths(options, "source"), _paths(options, "target"), strict=True)),
        read=read,
        hide=hide,
        ports=None if ports is None else tuple(int(port) for port in ports.split(",") if port),
        account=(int(uid), int(gid)) if account else None,
    )


def _paths(options: dict[str, str], name: str) -> tuple[str, ...]:
    start = f"{_MARK}.{name}."
    return tuple(value for key, value in options.items() if key.startswith(start))
