"""mas prune: Move old sessions to the trash and remove old trash for good; shows first what it would do."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, add_dry_run, add_yes, opened
from mas.cli.listing import add_status
from mas.cli.render import Render, count, size
from mas.model.errors import BadInput
from mas.model.ids import shown
from mas.model.retention import AGE, parse_age
from mas.model.upkeep import PrunePlan
from mas.service.upkeep.prune import PRUNABLE, PrunePolicy

SUMMARY = "remove old sessions"
EXAMPLES = """
mas prune --older-than 7d --dry-run
mas prune --keep 20
mas prune --older-than 30d --status archived --yes
mas prune --policy --dry-run
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than", metavar="AGE", help="sessions without activity for longer than this: 12h, 7d, 2w"
    )
    parser.add_argument("--keep", type=int, metavar="N", help="keep the N newest of each status")
    add_status(
        parser,
        tuple(map(str, PRUNABLE)),
        f"only sessions with this status: {', '.join(PRUNABLE)}; several with commas (default: all but archived)",
    )
    parser.add_argument(
        "--policy", action="store_true", help="follow the retention policy in the workspace's config.json instead"
    )
    add_dry_run(parser)
    add_yes(parser)


def run(args: Arguments, out: Render) -> int:
    older = None if args.older_than is None else _age(args.older_than)
    policy = PrunePolicy(older, args.keep, tuple(args.status), args.policy)
    mas = opened(args)
    plan = mas.prune(policy, dry_run=True)
    if not plan.items:
        out.talk("Nothing to prune")
    elif not args.dry_run:
        if not out.as_json:
            _table(plan, out)
        if not args.yes and (out.as_json or not out.can_ask):
            raise BadInput(
                "Confirmation is needed, and there is no terminal (or --json was given)", "the same command with --yes"
            )
        if not args.yes and not out.ask("Prune these?"):
            out.talk("Nothing was pruned")
            return 1
        plan = mas.prune(policy, dry_run=False)
        out.talk(f"Pruned {count(len(plan.items), 'session')}, {size(sum(item.disk for item in plan.items))}")
        if not out.as_json:
            return 0
    out.result(plan, lambda: _table(plan, out))
    return 0


def _table(plan: PrunePlan, out: Render) -> None:
    words = {"archive": "archived", "trash": "to the trash", "remove": "removed for good"}
    if plan.items:
        out.table(
            ("SESSION", "NAME", "STATUS", out.heading("SINCE"), "DISK", "WHAT"),
            [
                (
                    item.session_id[:8],
                    item.name or "-",
                    item.status,
                    out.time(item.since),
                    size(item.disk),
                    words[item.what],
                )
                for item in plan.items
            ],
        )


def _age(text: str) -> float:
    try:
        return parse_age(text)
    except ValueError:
        raise BadInput(f"--older-than is {shown(text)}; it must be {AGE.must_be}") from None
