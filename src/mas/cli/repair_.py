"""mas repair: Check every session and the registry, show what is wrong, and repair it."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, opened
from mas.cli.render import Render
from mas.model.upkeep import Repair

SUMMARY = "find and repair damage"
EXAMPLES = """
mas repair --dry-run
mas repair
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only show what is wrong; exit code 1 if anything is")


def run(args: Arguments, out: Render) -> int:
    found = opened(args).repair(args.dry_run)
    if not found.findings:
        out.talk("Nothing is wrong")
    out.result(found, lambda: _text(found, out))
    return 1 if args.dry_run and found.findings else 0


def _text(found: Repair, out: Render) -> None:
    for finding in found.findings:
        out.line(f"{finding.what}: {finding.action if found.done else 'would be ' + finding.action}")
