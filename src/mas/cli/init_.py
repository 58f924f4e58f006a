"""mas init: Create a workspace, or add what is missing in one. Existing files are never overwritten."""

from __future__ import annotations

import argparse

from mas.bootstrap import init
from mas.cli.command import Arguments
from mas.cli.entry import given_path
from mas.cli.render import Render

SUMMARY = "create a workspace"
WHERE = "here"
FOR_AGENTS = "here"
EXAMPLES = """
mas init
mas init ~/teams/shop --name shop --provider shell
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", nargs="?", type=given_path, metavar="DIR", help="directory (default: this one)")
    parser.add_argument("--name", help="the workspace's name (default: the directory's)")
    parser.add_argument("--provider", help="the provider that agents run by default (default: demo)")


def run(args: Arguments, out: Render) -> int:
    made = init(args.directory or args.workspace or ".", args.name, args.provider)
    if made.made:
        out.talk(f"Created workspace {made.name} in {made.workspace} ({len(made.made)} new entries)")
    else:
        out.talk(f"Workspace {made.name} in {made.workspace} is complete")
    out.result(made, lambda: out.line(made.workspace))
    return 0
