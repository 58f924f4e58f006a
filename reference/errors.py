"""The errors, from the tree of them: their codes, and what each becomes at the doors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from mas.cli.main import EXIT_CODES
from mas.http.errors import STATUSES
from mas.model import errors as tree
from mas.model.errors import MasError
from reference.markdown import code, plain, table

_BRANCH = re.compile(r"^[│├└─ ]*(\w+) {2,}(\S.*)$", re.MULTILINE)


def errors() -> str:
    """Every code once, as the tree has them."""
    meanings = dict(_BRANCH.findall(tree.__doc__ or ""))
    rows: dict[str, tuple[str, ...]] = {}
    for kind in kinds(MasError):
        exit_code = next(number for parent, number in EXIT_CODES if issubclass(kind, parent))
        status = next(number for parent, number in STATUSES if issubclass(kind, parent))
        sentence, hint = _said(kind)
        meaning = plain(meanings.get(kind.__name__, "")) + (f"<br>“{plain(sentence)}”" if sentence else "")
        row = code(kind.code), meaning, str(exit_code), str(status), code(hint) if hint else ""
        rows.setdefault(kind.code, row)
    return table(("code", "meaning", "exit code", "HTTP status", "usual next step"), rows.values())


def kinds(kind: type[MasError]) -> Iterator[type[MasError]]:
    """An error and all below it, in the order of the tree."""
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == kind.__module__:
            yield from kinds(below)


def _said(kind: type[MasError]) -> tuple[str, str]:
    """The sentence and the hint of an error that always says the same; of others, which the place says, neither."""
    if "__init__" not in vars(kind) or kind is MasError:
        return "", ""
    needed = list(inspect.signature(kind).parameters.values())
    error = kind(*(parameter.name.upper() for parameter in needed if parameter.default is parameter.empty))
    return error.message, error.hint
