"""mas approvals: Show every agent that is waiting for your decision, and what it asks."""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.listing import add_limit, add_output, add_utc, add_watch, watched
from mas.cli.render import Render
from mas.cli.target import SESSION_HELP, Arguments, add_session, given_session
from mas.model.approvals import ApprovalList

SUMMARY = "list agents that are waiting for your decision"
OF_STATUS = "active"
EXAMPLES = """
mas approvals
mas approvals web
mas approvals --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session(parser, f"{SESSION_HELP}; default: all active sessions")
    add_limit(parser, "show only the N agents that have waited longest")
    add_output(parser, "SESSION:AGENT", "only SESSION:AGENT")
    add_utc(parser)
    add_watch(parser)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    given = given_session(args)
    session_id = None if given is None else mas.resolve(given)

    def look() -> ApprovalList:
        found = mas.approvals(session_id)
        return found._replace(approvals=found.approvals[: args.limit])

    return watched(args.watch, out, look, lambda found: _show(found, args, out))


def _show(found: ApprovalList, args: Arguments, out: Render) -> None:
    for warning in found.warnings:
        out.warn(warning)
    if args.quiet or args.output == "name":
        out.raw("".join(f"{one.session_id}:{one.agent}\n" for one in found.approvals))
        return
    out.result(found, lambda: _text(found, out))


def _text(found: ApprovalList, out: Render) -> None:
    if not found.approvals:
        out.talk("No agent is waiting for a decision")
        return
    more = ("ROLE", "PROVIDER") if out.is_wide else ()
    out.table(
        ("SESSION", "AGENT", *more, out.heading("SINCE"), "KIND", "QUESTION"),
        [
            (
                one.session_id if out.is_wide else one.session_id[:8],
                one.agent,
                *((one.role, one.provider) if out.is_wide else ()),
                *(out.time(one.since), one.kind or "-", one.text or "-"),
            )
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
