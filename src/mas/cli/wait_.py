"""mas wait: Wait until agents are idle or blocked, or have replied or exited."""

from __future__ import annotations

import argparse

from mas.cli.command import opened, seconds
from mas.cli.render import Render
from mas.cli.target import Arguments, add_as, add_session_option, session_and_target, speaker
from mas.model.errors import Conflict, TimedOut
from mas.model.message import UNTIL, Waited

SUMMARY = "wait until agents are idle or blocked, reply or exit"
FOR_AGENTS = "server"
OF_STATUS = "active"
EXAMPLES = """
mas wait
mas wait 00 --until idle --timeout 600
mas wait web:development
"""
_TIMEOUT = 60.0
_SHOWN = 1000


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_option(parser)
    add_as(parser, "the agent that a reply is for (default: the agent you run as, else people)")
    parser.add_argument(
        "--until",
        choices=UNTIL,
        default="idle",
        help="what to wait for: idle (all are idle; the default), replied (one has replied to you), blocked (one is),"
        " exited (all have exited), answered (one has replied, or all are idle)",
    )
    add_timeout(parser)
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="an agent, a unit, managers or all (the default); or SESSION:TARGET, or SESSION: for all agents",
    )


def add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=_TIMEOUT,
        metavar="SECONDS",
        help=f"wait at most this long (default: {_TIMEOUT:.0f}; up to 604800, 7 days)",
    )


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, target = session_and_target(mas, args)
    waited = mas.wait(session_id, target or "all", args.until, args.timeout, speaker(args, session_id))
    out.result(waited, lambda: show(waited, out))
    if waited.until == "answered" and waited.end == "reached" and not waited.reply and len(waited.agents) == 1:
        found = mas.output(session_id, waited.agents[0].agent, _SHOWN)
        if found.source == "transcript" and not out.as_json:
            out.text(found.text)
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
