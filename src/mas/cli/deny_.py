"""mas deny: Deny what an agent asks for, and wait until the agent has received the answer."""

from __future__ import annotations

import argparse

from mas.cli.approve_ import answered
from mas.cli.render import Render
from mas.cli.target import Arguments, add_agents

SUMMARY = "deny what an agent asks for"
OF_STATUS = "active"
EXAMPLES = """
mas deny 00
mas deny web:21
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_agents(parser, "one or more waiting agents (two digits each)")


def run(args: Arguments, out: Render) -> int:
    return answered(args, out, allow=False)
