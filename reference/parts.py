"""What a page of the reference has of the code, by the name in its marker: all of it, and the short form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from reference import calls, commands, errors, metrics, system_calls
from reference.markdown import MARKER


class Part(NamedTuple):
    """A part of the reference: as the site shows it, and as the page in the repository does."""

    whole: Callable[[], str]
    short: Callable[[], str]


PARTS: Mapping[str, Part] = MappingProxyType(
    {
        "commands": Part(commands.commands, commands.summaries),
        "common-options": Part(commands.common_options, commands.common_options),
        "errors": Part(errors.errors, errors.errors),
        "calls": Part(calls.calls, calls.call_summaries),
        "shapes": Part(calls.shapes, calls.shape_summaries),
        "metrics": Part(metrics.metrics, metrics.metrics),
        "system-calls": Part(system_calls.system_calls, system_calls.system_calls),
    }
)


def with_short_parts(page: str) -> str:
    """A page as it should be in the repository: with the short form of every part it has."""
    return MARKER.sub(
        lambda match: f"<!-- made from the code: {match[1]} -->\n{PARTS[match[1]].short().strip()}\n<!-- end -->", page
    )
