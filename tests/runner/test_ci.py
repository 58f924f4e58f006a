"""`.ci/run` checks first, stops after the first red part, and says how long each took."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from tests.runner.suite import Suite
from tests.site import REPOSITORY


@pytest.mark.parametrize(
    ("check", "test", "said"),
    [
        ("true", "true", ["make check: N s, exit code 0", "make test: N s, exit code 0"]),
        ("true", "false", ["make check: N s, exit code 0", "make test: N s, exit code 2"]),
        ("false", "true", ["make check: N s, exit code 2"]),
    ],
)
def test_the_first_red_part_ends_it(suite: Suite, check: str, test: str, said: list[str]) -> None:
    os.mkdir(os.path.join(suite.directory, ".ci"))
    run = shutil.copy(os.path.join(REPOSITORY, ".ci", "run"), os.path.join(suite.directory, ".ci"))
    suite.put("Makefile", f"check:\n\t{check}\ntest:\n\t{test}\n")
    done = subprocess.run(["bash", run], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("make ")]
    assert [re.sub(r"\d+ s", "N s", line) for line in lines] == said
    assert done.returncode == int(said[-1].split()[-1])
