"""mas deny: Deny what an agent asks for, and wait until it has taken the answer."""

from __future__ import annotations

import argparse

from mas.cli.approve_ import answered
from mas.cli.command import Arguments, add_session_and_agent
from mas.cli.render import Render

EXAMPLES = """
mas deny 00
mas deny 550e8400 21
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "the agent that asks (two digits)")


def run(args: Arguments, out: Render) -> int:
    return answered(args, out, allow=False)
