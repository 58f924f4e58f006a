"""mas network: Show which names agents reach and asked for, and allow more of them."""

from __future__ import annotations

import argparse
from typing import cast

from mas.cli.command import opened
from mas.cli.listing import add_limit, add_output, add_utc, add_watch, watched
from mas.cli.render import Render
from mas.cli.target import Arguments, add_session_and_agent, session_and_agent, session_of
from mas.model.errors import BadInput, Forbidden
from mas.model.isolation import NetworkMode
from mas.model.network import ALLOW, PRIVATE
from mas.model.network_view import NetworkChange, NetworkRequest, NetworkView, Outcome, PlaceList
from mas.settings import as_agent

SUMMARY = "show which names agents reach, and allow more"
WORDS = {ALLOW: "let agents reach names", PRIVATE: "let agents reach hosts of private networks"}
EXAMPLES = """
mas network
mas network web:21 --refused
mas network web --watch
mas network allow registry.example.com db.example.com:5432
mas network allow api.example.com --session web
mas network private git.corp localhost:5432
mas network allow --remove api.example.com
"""
_MEANING = {
    NetworkMode.NAMES: "agents reach every public name at the ports 22, 80 and 443",
    NetworkMode.LIST: "agents reach the names that are allowed, and no other",
    NetworkMode.FULL: "agents reach every public address; only what goes through MAS is recorded",
    NetworkMode.NONE: "agents reach MAS alone",
    NetworkMode.SHARED: "agents reach all that this machine does, its own services too; nothing is recorded",
}
_MOST_NAMED = 3
_USAGE = """mas network [SESSION:AGENT] [AGENT] [--refused] [-n N] [-o FORMAT | -q]
                   [--utc] [--watch [SECONDS]]
       mas network allow NAME[:PORT]… [--remove] [--session SESSION]
       mas network private NAME[:PORT]… [--remove] [--session SESSION]"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = _USAGE
    add_session_and_agent(parser, "with an agent (two digits), only what it asked for")
    parser.add_argument(
        "places",
        nargs="*",
        metavar="NAME[:PORT]",
        help="after allow or private: git.example.com, '*.example.com', db.example.com:5432",
    )
    parser.add_argument("--refused", action="store_true", help="only what was refused")
    parser.add_argument("--remove", action="store_true", help="after allow or private: remove names from that list")
    add_limit(parser, "show at most N requests (default: 100)", default=100)
    add_output(parser, "the names, as allow and private take them")
    add_utc(parser)
    add_watch(parser)


def run(args: Arguments, out: Render) -> int:
    if args.session in WORDS:
        return _change(args, out)
    if args.remove or args.places:
        raise BadInput("Names can be given after allow or private only", "mas network allow example.com")
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    return watched(
        args.watch,
        out,
        lambda: mas.network(session_id, agent, args.refused, args.limit),
        lambda found: _show(found, args, out),
    )


def _change(args: Arguments, out: Render) -> int:
    kind = cast("PlaceList", args.session)
    # A server would see that by the token.
    if not args.server and as_agent(None, args.workspace):
        raise Forbidden("An agent cannot change what agents reach", f"outside, in the workspace: mas network {kind}")
    mas = opened(args)
    session_id = session_of(mas, args.named) if args.named else None
    places = tuple(word for word in (args.agent, *args.places) if word is not None)
    done = mas.change_network(session_id, kind, places, args.remove)
    out.result(done, lambda: _changed(done, out))
    return 0


def _changed(done: NetworkChange, out: Render) -> None:
    verb, already = ("Removed", "Not in") if done.removed else ("Added", "Already in")
    where = f"{done.kind} of isolation in {done.file}"
    for word, places in ((f"{verb} {'from' if done.removed else 'to'}", done.changed), (already, done.unchanged)):
        if places:
            out.line(f"{word} {where}: {', '.join(places)}")
    if done.note:
        out.talk(done.note[0].upper() + done.note[1:])
    if done.session_id is None and done.changed:
        words = f"{done.kind} {'--remove ' if done.removed else ''}{' '.join(done.changed)}"
        out.talk(f"For one session, at once: mas network {words} --session SESSION")


def _show(found: NetworkView, args: Arguments, out: Render) -> None:
    for warning in found.warnings:
        out.warn(warning)
    if args.quiet or args.output == "name":
        out.raw("".join(f"{place}\n" for place in dict.fromkeys(one.place for one in found.requests)))
    else:
        out.result(found, lambda: _text(found, args, out))


def _text(found: NetworkView, args: Arguments, out: Render) -> None:
    out.line(f"network {found.mode} ({found.reason}): {_MEANING[found.mode]}")
    for name, places in (("allow", found.allow), ("private", found.private)):
        if places:
            out.line(f"{name:<7} {', '.join(places)}")
    if found.requests:
        out.line()
        out.table(
            ("AGENT", "NAME", "PORT", "RESULT", "TIMES", out.heading("LAST"), "WHY"),
            [_row(one, out) for one in found.requests],
        )
        if found.total > len(found.requests):
            out.talk(f"{len(found.requests)} of {found.total} requests; more: -n {found.total}")
    elif found.is_recorded:
        out.talk("No request was refused" if args.refused else "No agent has asked for a name")
    for hint in _hints(found):
        out.talk(hint)


def _row(one: NetworkRequest, out: Render) -> tuple[str, ...]:
    return (
        one.agent or "?",
        one.name,
        str(one.port or "-"),
        one.result,
        str(one.times),
        out.time(one.last_at),
        one.reason or "-",
    )


def _hints(found: NetworkView) -> list[str]:
    """How what was refused can be allowed."""
    refused = [one for one in found.requests if one.result is Outcome.REFUSED]
    hints = []
    for kind in WORDS:
        places = list(dict.fromkeys(one.place for one in refused if one.remedy == kind))
        if places:
            names = " ".join(places[:_MOST_NAMED]) + (" …" if len(places) > _MOST_NAMED else "")
            hints.append(f"to allow:  mas network {kind} --session {found.session_id[:8]} {names}")
    if hints:
        hints.append("for all sessions, from their next start on: the same without --session")
    if refused and found.mode is NetworkMode.NONE:
        hints.append('to allow names: set "network" of isolation to "names" or "list" in config.json')
    return hints
