"""mas hook: Record what an agent's program reports about itself; that program calls this inside its pane.

Reads JSON from standard input. Never fails, so that it cannot disturb an agent. Prints nothing, except the answer to a
question if the agent's provider asks its questions through this hook.
"""

from __future__ import annotations

import argparse
import os
import select
import time

from mas.cli.render import Render
from mas.settings import inside

SUMMARY = "record what an agent's program reports; called by that program"
WHERE = "own"
EXAMPLES = """
mas hook UserPromptSubmit < prompt.json
"""
_LARGEST = 1 << 20
# A program that keeps its end open, or passes us its terminal, reports nothing but the name.
_PATIENCE = 1.0


def arguments(parser: argparse.ArgumentParser) -> None:
    # Any number: to some programs an exit code for bad arguments would mean that the agent must not go on.
    parser.add_argument("name", metavar="NAME", nargs="*", help="the hook that was called, such as UserPromptSubmit")


def run(args: argparse.Namespace, out: Render) -> int:
    where = inside()
    if where.directory and where.agent and args.name:
        from mas.service.agents.hook import hook

        hook(where, args.name[0], _payload(), lambda answer: _say(answer, out))
    return 0


def _say(answer: str, out: Render) -> None:
    out.line(answer)
    out.flush()


def _payload() -> bytes:
    data = b""
    try:
        if os.isatty(0):
            return b""
        deadline = time.monotonic() + _PATIENCE
        while len(data) < _LARGEST and select.select([0], [], [], max(0.0, deadline - time.monotonic()))[0]:
            block = os.read(0, _LARGEST - len(data))
            if not block:
                break
            data += block
    except (OSError, ValueError):
        pass
    return data
