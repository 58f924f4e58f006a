"""mas keys: Keep the keys of model providers, for the agents' programs that need them."""

from __future__ import annotations

import argparse
import sys

from mas.bootstrap import open_provider_keys
from mas.cli.command import Arguments
from mas.cli.entry import everything
from mas.cli.render import Render
from mas.model.errors import BadInput
from mas.model.keys import NAMES, KeyList, KeyTest, KeyView

SUMMARY = "keep the keys of model providers"
WHERE = "here"
EXAMPLES = """
mas keys set anthropic
mas keys set openai --user < key.txt
mas keys list
mas keys test
mas keys delete anthropic
"""
_LARGEST = 1 << 14


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", choices=("list", "set", "test", "delete"), default="list", help="default: list"
    )
    parser.add_argument(
        "key", nargs="?", metavar="NAME", help=f"{', '.join(NAMES)}, or a variable that ends in _KEY or _TOKEN"
    )
    parser.add_argument(
        "--user", action="store_true", help="for all your workspaces, in the desktop's keyring or your configuration"
    )


def run(args: Arguments, out: Render) -> int:
    keys = open_provider_keys(args.workspace, args.user)
    if args.action == "list":
        found = keys.list()
        out.result(KeyList(found), lambda: _table(found, out))
    elif args.action == "test":
        tested = keys.test(args.key)
        out.result({"tests": tested}, lambda: _tested(tested, out))
        return 0 if all(one.ok for one in tested) else 1
    elif args.key is None:
        raise BadInput("No name given", f"mas keys {args.action} anthropic")
    elif args.action == "set":
        view = keys.set(args.key, _typed_key(args.key), args.user)
        out.result(view, lambda: out.talk(f"Kept the key of {view.variable} (…{view.tail}) in {view.place}"))
        if not view.used:
            out.warn(f"Agents do not get it: {view.variable} is also in the environment or the workspace, which win")
    else:
        places = keys.delete(args.key, args.user)
        out.result({"deleted": places}, lambda: out.talk(f"Deleted from {', '.join(places)}"))
    return 0


def _typed_key(name: str) -> str:
    """The key, typed without being shown, or from standard input; never an argument, which all users can see."""
    if sys.stdin is not None and sys.stdin.isatty():
        from getpass import getpass

        return getpass(f"Key of {name}: ")
    data = everything("key")
    if len(data) > _LARGEST:
        raise BadInput("That is too long to be a key")
    return data.decode("utf-8", "replace")


def _table(found: tuple[KeyView, ...], out: Render) -> None:
    rows = [
        (view.name, view.variable, f"…{view.tail}", out.time(view.set_at), "yes" if view.used else "no", view.place)
        for view in found
    ]
    out.table(("NAME", "VARIABLE", "KEY", "SET", "USED", "KEPT IN"), rows)


def _tested(tested: tuple[KeyTest, ...], out: Render) -> None:
    for one in tested:
        out.line(f"{one.name}: {one.message}")
