"""What agents see of the file system, path by path."""

from typing import NamedTuple


class SeenPath(NamedTuple):
    """One path: `read`, `write` or `hidden`, and why."""

    path: str
    access: str
    why: str


class FileView(NamedTuple):
    """All that agents see; or of one path whether they see it, and how they would (`hint`)."""

    tier: str
    paths: tuple[SeenPath, ...]
    hint: str = ""
