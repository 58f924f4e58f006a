"""mas providers: List the agent programs that MAS knows, or copy the file of one into the workspace to change it.

A file in the workspace's providers directory wins over the built-in one of that name. The copy stays as it is when MAS
is upgraded.
"""

from __future__ import annotations

import argparse

from mas.bootstrap import copy_provider
from mas.cli.command import Arguments, opened
from mas.cli.listing import add_output
from mas.cli.render import Render, short_path
from mas.model.catalog import ProviderList, ProviderView
from mas.model.errors import BadInput

SUMMARY = "list the providers, or copy one to change it"
EXAMPLES = """
mas providers
mas providers copy codex
mas providers copy claude --force
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "copy"), default="list", help="default: list")
    parser.add_argument("provider", nargs="?", metavar="NAME", help="the built-in provider to copy")
    parser.add_argument("--force", action="store_true", help="replace files that are already in the workspace")
    add_output(parser, "names")


def run(args: Arguments, out: Render) -> int:
    if args.action == "copy":
        if args.provider is None:
            raise BadInput("No provider given", "mas providers; mas providers copy codex")
        if args.server:
            raise BadInput("A provider can be copied only on the machine of its workspace", "mas providers copy NAME")
        copied = copy_provider(args.workspace, args.provider, args.force)
        out.result(copied, lambda: out.text("\n".join(map(short_path, copied.files))))
        return 0
    if args.provider is not None or args.force:
        raise BadInput("A list takes no name and no --force", f"mas providers copy {args.provider or 'codex'}")
    found = opened(args).providers()
    if args.quiet or args.output == "name":
        out.raw("".join(f"{view.id}\n" for view in found))
    else:
        out.result(ProviderList(found), lambda: _table(found, out))
    return 0


def _table(found: tuple[ProviderView, ...], out: Render) -> None:
    out.table(
        ("PROVIDER", "INSTALLED", "VERSION", "FROM", "DESCRIPTION"),
        [
            (
                f"{view.id} (default)" if view.is_default else view.id,
                "yes" if view.installed else "no",
                view.version or "-",
                view.origin,
                view.problem or view.description,
            )
            for view in found
        ],
    )
