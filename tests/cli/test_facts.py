"""What a command is stands in its file: a summary, examples, where it works, who may use it."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from importlib import import_module
from types import ModuleType
from typing import cast

import pytest

import mas.cli
from mas.cli.main import COMMANDS, HIDDEN, load, summary
from mas.model.session import LISTED

FACTS = {"SUMMARY", "EXAMPLES", "WHERE", "FOR_AGENTS", "OF_STATUS", "WORDS"}


def test_every_command_file_is_a_command_and_the_other_way_round() -> None:
    files = {
        name[: -len("_.py")].replace("_", "-") for name in os.listdir(mas.cli.__path__[0]) if name.endswith("_.py")
    }
    files.discard("--init-")
    assert sorted(files) == sorted([*COMMANDS, *HIDDEN])


@pytest.mark.parametrize("command", [*COMMANDS, *HIDDEN])
def test_a_command_file_has_its_facts_and_none_that_no_code_reads(command: str) -> None:
    module = load(command)
    assert (module.__doc__ or "").startswith(f"mas {command}: ")
    assert 0 < len(module.SUMMARY) < 80
    assert summary(command) == module.SUMMARY
    assert module.EXAMPLES.strip()
    assert callable(module.arguments)
    assert callable(module.run)
    assert getattr(module, "WHERE", "here") in ("here", "own", "nowhere")
    assert getattr(module, "FOR_AGENTS", "server") in ("server", "here")
    assert getattr(module, "OF_STATUS", "active") in LISTED
    source = inspect.getsource(cast(ModuleType, module))
    assert set(re.findall("^([A-Z][A-Z_]*) = ", source, re.MULTILINE)) <= FACTS


@pytest.mark.parametrize(("line", "command"), [("list --help", "list"), ("--help", ""), ("complete -- st", "complete")])
def test_a_command_line_imports_no_other_command(line: str, command: str) -> None:
    script = "import sys; from mas.cli.main import run; run(sys.argv[1:]); print(*sys.modules)"
    args = [sys.executable, "-c", script, *line.split()]
    names = subprocess.run(args, check=True, capture_output=True, text=True).stdout.split()
    commands = [name for name in names if name.startswith("mas.cli.") and name.endswith("_")]
    assert commands == ([f"mas.cli.{command}_"] if command else [])


def test_named_tuples_that_every_listing_imports_have_no_postponed_annotations() -> None:
    """Each field would be compiled again at every start."""
    script = "import sys; from mas.cli.main import run; run(['list', '--workspace', '/']); print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    postponed = set()
    for name in names:
        source = inspect.getsource(sys.modules.get(name) or import_module(name)) if name.startswith("mas.") else ""
        if "(NamedTuple):" in source and "\nfrom __future__ import annotations\n" in source:
            postponed.add(name)
    # The types of their fields are imported for checking only.
    assert postponed == {"mas.bootstrap", "mas.service.world"}
