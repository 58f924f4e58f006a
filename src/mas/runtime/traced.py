"""Which files a program uses: it is run under strace, as the user, outside of every sandbox."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

from mas.model.errors import NoProgram

# What a call names, after the directory that it is relative to; and where a file that was opened really is.
_NAMED = re.compile(r'^\d+ +\w+\((?:[^"<(]*<(/[^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_OPENED = re.compile(r" = \d+<(/.*)>$")
_STRACE = ("strace", "-f", "-qq", "-z", "-y", "-s", "4096", "-e", "trace=%file")


def files_used(argv: Sequence[str]) -> list[str]:
    """The paths that exist and that a program and all it started asked for, in that order. Its output is talk."""
    missing = next((name for name in (_STRACE[0], argv[0]) if not shutil.which(name)), None)
    if missing:
        hint = "apt install strace" if missing == _STRACE[0] else ""
        raise NoProgram(f"{missing} is not installed, or not on PATH", hint)
    with tempfile.TemporaryDirectory() as directory:
        record = os.path.join(directory, "calls")
        subprocess.run([*_STRACE, "-o", record, *argv], check=False, stdout=2)
        with open(record, encoding="utf-8", errors="surrogateescape") as file:
            return list(dict.fromkeys(filter(os.path.isabs, map(_path_in, file))))


def _path_in(line: str) -> str:
    """The path that a line of strace's record is about; empty if there is none."""
    if opened := _OPENED.search(line):
        return _unquoted(opened[1]).removesuffix(" (deleted)")
    named = _NAMED.match(line)
    return os.path.normpath(os.path.join(_unquoted(named[1] or ""), _unquoted(named[2]))) if named else ""


def _unquoted(text: str) -> str:
    """Bytes that are not plain text are written as in C."""
    return os.fsdecode(text.encode("utf-8", "surrogateescape").decode("unicode_escape").encode("latin-1"))
