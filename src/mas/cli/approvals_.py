"""mas approvals: Show every agent that waits for somebody to decide, and what it asks."""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.render import Render, when
from mas.cli.target import SESSION_HELP, Arguments, add_session, given_session
from mas.model.approvals import ApprovalList

EXAMPLES = """
mas approvals
mas approvals web
mas approvals --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session(parser, f"{SESSION_HELP}; left out: all that are active")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    given = given_session(args)
    found = mas.approvals(None if given is None else mas.resolve(given))
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
    answerable = next((one for one in found.approvals if one.can_answer), None)
    if answerable:
        target = f"{answerable.session_id[:8]}:{answerable.agent}"
        out.talk(f"next:  mas approve {target}  ·  mas deny {target}")
