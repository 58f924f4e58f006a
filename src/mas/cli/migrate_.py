"""mas migrate: Copy an old shared workspace, or old sessions under ~/.mas, into isolated sessions here."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, opened
from mas.cli.entry import given_path
from mas.cli.render import Render
from mas.model.upkeep import Migration

SUMMARY = "copy old workspaces and sessions into isolated ones"
EXAMPLES = """
mas migrate --dry-run
mas migrate ~/old-project
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="?",
        type=given_path,
        metavar="DIR",
        help="an old workspace (default: this one if it is old, and ~/.mas)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")


def run(args: Arguments, out: Render) -> int:
    done = opened(args).migrate(args.source, args.dry_run, out.progress("copying"))
    for warning in done.warnings:
        out.warn(warning)
    if not done.migrated:
        out.talk("Nothing to migrate")
    out.result(done, lambda: _text(done, out))
    return 0


def _text(done: Migration, out: Render) -> None:
    if done.migrated:
        out.table(
            ("FROM", "SESSION", "WHAT"),
            [
                (item.source, (item.session_id or "-")[: 8 if out.is_terminal else None], item.note)
                for item in done.migrated
            ],
        )
