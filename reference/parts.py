"""What a page of the reference can have put in, by the name that its marker says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from reference import calls, commands, errors, metrics

PARTS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "commands": commands.commands,
        "common-options": commands.common_options,
        "errors": errors.errors,
        "calls": calls.calls,
        "shapes": calls.shapes,
        "metrics": metrics.metrics,
    }
)
