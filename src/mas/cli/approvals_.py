"""mas approvals: Show every agent that waits for somebody to decide, and what it asks."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, opened
from mas.cli.render import Render, when
from mas.model.approvals import ApprovalList

EXAMPLES = """
mas approvals
mas approvals --session 550e8400
mas approvals --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help="only of this session (default: of all active ones)")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    found = mas.approvals(mas.resolve(args.session) if args.session is not None else None)
    for warning in found.warnings:
        out.warn(warning)
    out.result(found, lambda: _text(found, out))
    return 0


def _text(found: ApprovalList, out: Render) -> None:
    if not found.approvals:
        out.talk("No agent waits for an answer")
        return
    out.table(
        ("SESSION", "AGENT", "ROLE", "PROVIDER", "SINCE", "KIND", "QUESTION"),
        [
            (one.session_id[:8], one.agent, one.role, one.provider, when(one.since), one.kind or "-", one.text or "-")
            for one in found.approvals
        ],
    )
    for one in found.approvals:
        if one.screen:
            out.line(f"\n{one.session_id[:8]} {one.agent} shows:")
            for line in one.screen.splitlines():
                out.line(f"  {line}")
        if not one.can_answer:
            out.talk(f"{one.session_id[:8]} {one.agent}: {one.why_not} ({one.hint})")
    if any(one.can_answer for one in found.approvals):
        out.talk("next:  mas approve ID AGENT  ·  mas deny ID AGENT")
