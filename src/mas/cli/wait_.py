"""mas wait: Wait until agents are idle, ask something, have written back or have ended."""

from __future__ import annotations

import argparse

from mas.cli.command import OPTIONAL_ID_HELP, Arguments, opened, seconds, session_of
from mas.cli.render import Render
from mas.model.errors import Conflict, TimedOut
from mas.model.reports import Waited
from mas.settings import inside

EXAMPLES = """
mas wait
mas wait 00 --until idle --timeout 600
mas wait --session 550e8400 development
"""
_TIMEOUT = 60.0
_UNTIL = ("idle", "replied", "blocked", "exited", "answered")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help=OPTIONAL_ID_HELP)
    parser.add_argument(
        "--until",
        choices=_UNTIL,
        default="idle",
        help="what to wait for: all idle (the default), one has replied to you, one is blocked, all have exited;"
        " answered is replied or else idle",
    )
    add_timeout(parser)
    parser.add_argument(
        "target", nargs="?", default="all", metavar="TARGET", help="an agent, a unit, managers or all (the default)"
    )


def add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=_TIMEOUT,
        metavar="SECONDS",
        help=f"at most so long (default: {_TIMEOUT:.0f})",
    )


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id = session_of(mas, args.session)
    waited = mas.wait(session_id, args.target, args.until, args.timeout, inside().agent)
    out.result(waited, lambda: show(waited, out))
    check(waited, args.timeout)
    return 0


def show(waited: Waited, out: Render) -> None:
    if waited.reply:
        out.line(waited.reply.message)
    elif waited.end == "reached":
        # One agent that is blocked is enough; it is the one to name.
        those = [one for one in waited.agents if one.state == waited.until] or waited.agents
        out.talk(f"{waited.until}: {', '.join(one.agent for one in those)}")


def check(waited: Waited, timeout: float) -> None:
    """An error where what was waited for has not come."""
    if waited.end == "reached":
        return
    those = [one for one in waited.agents if waited.end == one.state] or waited.agents
    how = "; ".join(f"agent {one.agent} is {one.state}" + (f" ({one.text})" if one.text else "") for one in those)
    if waited.end == "timeout":
        raise TimedOut(f"Not {waited.until} after {timeout:g} s: {how}", "mas show")
    raise Conflict(f"Not {waited.until}: {how}", "mas approvals" if waited.end == "blocked" else "mas show")
