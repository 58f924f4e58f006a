"""mas approve: Allow what an agent asks for, and wait until it has taken the answer."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, add_session_and_agent, opened, session_and_agent
from mas.cli.render import Render
from mas.model.errors import BadInput

EXAMPLES = """
mas approve 00
mas approve 550e8400 21
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "the agent that asks (two digits)")


def run(args: Arguments, out: Render) -> int:
    return answered(args, out, allow=True)


def answered(args: Arguments, out: Render, allow: bool) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    if agent is None:
        raise BadInput("Which agent?", f"mas approvals; mas {args.command} {session_id[:8]} 00")
    found = mas.answer(session_id, agent, allow)
    asked = f": {found.text}" if found.text else ""
    out.talk(f"{'Approved' if allow else 'Denied'} {agent}{asked} (now {found.state})")
    if out.as_json:
        out.result(found, lambda: None)
    return 0
