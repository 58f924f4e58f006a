"""A suite of little tests in a directory of its own, for the real pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil

from tests.site import REPOSITORY

# Fails in the first run, in whatever process, and passes from then on.
ONCE = """
import os, pathlib

def first(name):
    try:
        pathlib.Path(__file__).with_name(f"{name}.tried").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
"""


class Suite:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "MAS_"))}
        # pytest's last lines are as long as the failures there.
        for name in ("CI", "BUILD_NUMBER"):
            kept.pop(name, None)
        # Without plugins that these tests do not need it starts in half the time.
        self.env = {
            **kept,
            "PYTHONPATH": REPOSITORY,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            # So that this run is red if they leave a process.
            "MAS_TEST_RUN": str(os.getpid()),
        }
        self.begun: list[subprocess.Popen[str]] = []
        self.put("pytest.ini", "[pytest]\naddopts = -p xdist -ra --import-mode=importlib\nfilterwarnings = error\n")
        self.put("once.py", ONCE)

    def put(self, name: str, text: str) -> None:
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write(text)

    def text(self, *names: str) -> str:
        with open(os.path.join(self.directory, *names), encoding="utf-8") as file:
            return file.read()

    def has(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.directory, name))

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start one of the runners, as the leader of a process group."""
        child = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.begun.append(child)
        return child

    def run(self, *words: str) -> tuple[int, list[str]]:
        """Run one of the runners to its end; returns its exit code and the lines it printed."""
        child = self.begin(*words)
        output, _ = child.communicate(timeout=120)
        return child.returncode, output.splitlines()

    def close(self) -> None:
        """End what a test that failed left running."""
        for process in self.processes():
            process.kill()
        for child in self.begun:
            child.communicate()

    def processes(self) -> Iterator[psutil.Process]:
        """All that was started in the directory and is running."""
        for process in psutil.process_iter():
            try:
                if process.cwd() == self.directory and process.status() != psutil.STATUS_ZOMBIE:
                    yield process
            except (psutil.Error, OSError):
                continue
