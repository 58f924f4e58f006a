"""Where a comparison was made, and with which versions of everything."""

from __future__ import annotations

import os
import subprocess

from benchmarks.peers import cao
from benchmarks.report import machine as usual


def machine() -> list[str]:
    python = os.path.join(cao.BIN, "python")
    asked = "from importlib.metadata import version as v; print(v('cli-agent-orchestrator'), v('libtmux'))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    orchestrator, libtmux = done.stdout.split()
    return [*usual(), f"CAO is cli-agent-orchestrator {orchestrator}, which brings libtmux {libtmux} for itself"]
