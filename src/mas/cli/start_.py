"""mas start: Start a session: a new directory with a copy of the templates, and a team of agents in tmux."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from mas.cli.command import Arguments, add_no_server, opened, summon_server
from mas.cli.entry import content, everything, given_path
from mas.cli.render import Render, count, short_path
from mas.model.errors import BadInput
from mas.model.ids import SessionId, parse_name, parse_session_id, shown
from mas.model.isolation import Mode
from mas.model.run import Run, as_asked, asks_for_legacy, parse_run
from mas.model.team import Team
from mas.model.teamfile import team_in
from mas.model.views import SessionDetail
from mas.settings import legacy_asked

SUMMARY = "start a session"
EXAMPLES = """
mas start
mas start --team solo --provider shell --attach
mas start --command 'python3 -i' --name calculators
mas start --config run.json --json
mas start --isolation off
mas start --id 550e8400-e29b-41d4-a716-446655440000
"""
_LARGEST_RUN = 1 << 24


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--team", metavar="TEAM", help="the team to start (mas teams lists them; default: default)")
    what.add_argument(
        "--config", type=given_path, metavar="FILE", help="a POST /runs body as JSON; - reads standard input"
    )
    parser.add_argument("--provider", help="the provider that agents run (default: the workspace's)")
    parser.add_argument("--model", help="the model for agents that name none (if their provider takes one)")
    parser.add_argument(
        "--command",
        dest="program",
        metavar="CMD",
        help="run this command as every agent, without a shell",
    )
    parser.add_argument("--name", help="a name for the session")
    parser.add_argument("--id", metavar="UUID", help="the session's id: an unused UUID v4 (default: a new one)")
    parser.add_argument("--lazy-units", action="store_true", help="copy a unit's files when its agent starts")
    parser.add_argument(
        "--isolation",
        choices=[mode.value for mode in Mode],
        metavar="MODE",
        help="isolation of agents: auto (the best this machine can do), require (tier A, or fail), off",
    )
    add_no_server(parser)
    parser.add_argument("--attach", action="store_true", help="open it in tmux at once")


def run(args: Arguments, out: Render) -> int:
    if args.attach and args.server:
        raise BadInput("A session opens in tmux only on its own machine", "mas start; on that machine: mas attach")
    if args.attach and not out.can_ask:
        raise BadInput("--attach needs a terminal", "mas start; then on a terminal: mas attach")
    body = _read(args.config) if args.config else {}
    mas = opened(args)
    wanted, legacy = _wanted(args, body, lambda name: team_in(mas.teams(), name))
    session = mas.start(wanted, legacy, out.progress("copying templates"))
    tell_started(session, out)
    summon_server(args, out)
    if args.attach:
        mas.attach(SessionId(session.session_id), None)
    return 0


def _wanted(args: Arguments, body: object, named: Callable[[str], Team]) -> tuple[Run, bool]:
    """The run that was asked for, and whether the old mode was asked for with it."""
    wanted = parse_run(body, named)
    if args.team:
        wanted = wanted._replace(team=named(args.team))
    return (
        wanted._replace(
            session_id=parse_session_id(args.id.lower()) if args.id is not None else wanted.session_id,
            request=_asked(args, body if isinstance(body, dict) else {}),
            name=parse_name(args.name) if args.name is not None else wanted.name,
            provider=args.provider or wanted.provider,
            model=args.model or wanted.model,
            command=args.program,
            lazy_units=args.lazy_units or wanted.lazy_units,
            isolation=wanted.isolation._replace(
                enforce=Mode(args.isolation) if args.isolation else wanted.isolation.enforce
            ),
        ),
        # The environment is this program's: a server would not see it.
        legacy_asked() or asks_for_legacy(body),
    )


def _asked(args: Arguments, body: dict[str, Any]) -> dict[str, Any]:
    """What was asked for in the file and by options, which are called as a run's fields are."""
    inner = body.get("isolation")
    isolation = {**inner, "enforce": args.isolation} if args.isolation and isinstance(inner, dict) else args.isolation
    said = {
        "team": args.team,
        "provider": args.provider,
        "model": args.model,
        "command": args.program,
        "name": args.name,
        "sessionId": args.id,
        "lazyUnits": args.lazy_units or None,
        "isolation": isolation,
    }
    return as_asked(body) | {key: value for key, value in said.items() if value is not None}


def _read(path: str) -> object:
    try:
        if path == "-":
            return json.loads(everything("run"))
        return json.loads(content(path, _LARGEST_RUN))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{shown(path)} is not JSON: {error}") from None


def tell_started(session: SessionDetail, out: Render) -> None:
    for warning in session.warnings:
        out.talk(warning)
    prefix = session.session_id[:8]
    providers = ", ".join(sorted({agent.provider for agent in session.agents}))
    out.talk(f"Started {session.tmux_session}: {count(len(session.agents), 'agent')} ({providers})")
    out.talk(f"files: {short_path(session.working_dir)}")
    first = session.agents[0].id
    out.talk(f"next:  mas attach {prefix}  ·  mas send {prefix}:{first} hello  ·  mas stop {prefix}")
    out.result(session, lambda: out.line(session.session_id))
