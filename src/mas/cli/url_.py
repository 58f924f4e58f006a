"""mas url: Print an address that signs in a browser; it works once, within five minutes."""

from __future__ import annotations

import argparse

from mas.bootstrap import open_access, open_serving
from mas.cli.command import Arguments
from mas.cli.render import Render

SUMMARY = "print an address that signs in a browser"
WHERE = "here"
EXAMPLES = """
mas url
xdg-open "$(mas url)"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    return


def run(args: Arguments, out: Render) -> int:
    from mas.client.connection import login_code

    server = open_serving(args.workspace).need()
    code = login_code(server.socket, open_access(args.workspace).owner_token())
    out.talk("It works once, within five minutes")
    out.result(code, lambda: out.line(code.url))
    return 0
