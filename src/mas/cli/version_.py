"""mas version: Print the version."""

from __future__ import annotations

import argparse

from mas import __version__
from mas.cli.render import Render

SUMMARY = "print the version"
WHERE = "nowhere"
EXAMPLES = """
mas version
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none of its own."""


def run(args: argparse.Namespace, out: Render) -> int:
    out.result({"version": __version__}, lambda: out.line(f"mas {__version__}"))
    return 0
