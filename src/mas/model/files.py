"""A session's files as people see them."""

from typing import NamedTuple


class FileEntry(NamedTuple):
    """One entry of a directory; `kind` is `file`, `directory`, `link` or `other`."""

    name: str
    kind: str
    size: int
    modified_at: str


class FileListing(NamedTuple):
    """A directory of a session; `path` is relative to the session's directory."""

    path: str
    entries: tuple[FileEntry, ...]


class FilePart(NamedTuple):
    """Some bytes of a file of `size` bytes."""

    path: str
    size: int
    data: bytes
