"""mas doctor: Check everything MAS needs and say what to do where something is missing."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, opened
from mas.cli.render import Render
from mas.model.reports import Diagnosis

EXAMPLES = """
mas doctor
mas doctor --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none of its own."""


def run(args: Arguments, out: Render) -> int:
    found = opened(args).doctor()
    out.result(found, lambda: _text(found, out))
    return 0 if found.ok else 1


def _text(found: Diagnosis, out: Render) -> None:
    for check in found.checks:
        out.line(f"{out.mark(check.ok, 8)} {check.name:<24} {check.text}")
        if not check.ok and check.hint:
            out.line(f"{'':<8} {'':<24} → {check.hint}")
