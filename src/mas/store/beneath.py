"""Opens what lies beneath a directory and nowhere else: no link is followed, no `..` taken.

For everything that is read out of a place where agents can write.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from mas.model.errors import BadInput, NotFound
from mas.model.ids import shown

_LONGEST_PATH = 4096
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: a pipe would have us wait for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def parse_path(path: str) -> tuple[str, ...]:
    """The names a relative path is made of; `BadInput` for anything that could lead elsewhere."""
    if len(path) > _LONGEST_PATH or "\0" in path or path.startswith("/"):
        raise BadInput(f"Not a relative path: {shown(path)}")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in names:
        raise BadInput(f"A path cannot lead upwards: {shown(path)}")
    return names


@contextmanager
def opened_beneath(root: str, names: tuple[str, ...]) -> Iterator[int]:
    """A descriptor of the file or directory; `NotFound` where there is none, or a link or a device instead."""
    fd = -1
    try:
        fd = os.open(root, _DIRECTORY)
        for position, name in enumerate(names):
            last = position == len(names) - 1
            inner = os.open(name, _FILE if last else _DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = inner
        mode = os.fstat(fd).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise NotFound(f"Not a file or directory: {shown('/'.join(names))}")
        yield fd
    except PermissionError:
        raise
    except OSError:
        raise NotFound(f"No file {shown('/'.join(names))}") from None
    finally:
        if fd >= 0:
            os.close(fd)
