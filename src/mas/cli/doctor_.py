"""mas doctor: Check everything MAS needs, and show how to fix what is missing."""

from __future__ import annotations

import argparse

from mas.bootstrap import examine_machine
from mas.cli.command import Arguments, looked_at
from mas.cli.file_view import show_missed, show_view
from mas.cli.render import Render
from mas.model.upkeep import Diagnosis

SUMMARY = "check everything MAS needs"
EXAMPLES = """
mas doctor
mas doctor --json
mas doctor --view
mas doctor --view /srv/data
mas doctor --trace git --version
"""
# The mark and the name come before the text.
_INDENT = 34


def arguments(parser: argparse.ArgumentParser) -> None:
    words = "show what agents see of the file system and why; with PATH, whether they see it and how they would"
    parser.add_argument("--view", nargs="?", const="", metavar="PATH", help=words)
    words = "run a command outside, under strace, and show the files it uses that agents would not see"
    parser.add_argument("--trace", nargs=argparse.REMAINDER, metavar="COMMAND", help=words)


def run(args: Arguments, out: Render) -> int:
    if args.view is not None:
        return show_view(args, out, None, args.view or None)
    if args.trace is not None:
        return show_missed(args, out, args.trace)
    found = looked_at(args, lambda mas: mas.doctor(), examine_machine)
    out.result(found, lambda: _text(found, out))
    return 0 if found.ok else 1


def _text(found: Diagnosis, out: Render) -> None:
    for check in found.checks:
        word = "absent" if check.absent else "ok" if check.ok else "failed"
        out.wrapped(f"{out.mark(word, 8)} {check.name:<24} ", _INDENT, check.text)
        if not check.ok and check.hint:
            out.wrapped(" " * _INDENT, _INDENT, f"→ {check.hint}")
