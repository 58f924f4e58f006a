"""A launcher's share in its session's network, when the disk is full as it starts the egress process."""

from __future__ import annotations

import os
import sys

import pytest

from tests.site import Site
from tests.torture.round import isolates

# Files cannot grow, as on a full disk.
_START = """
import resource, sys
from mas.model.launch import NetworkPlan
from mas.runtime.network.hold import Network
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    Network(NetworkPlan(directory=sys.argv[1], listen=()), "21")
except OSError as error:
    print(error.strerror)
"""


def test_an_egress_process_that_cannot_be_started_leaves_nothing(bare: Site) -> None:
    if not isolates(bare):
        pytest.skip("this machine cannot isolate agents")
    directory = os.path.join(bare.directory, "network")
    os.mkdir(directory)
    done = bare.run([sys.executable, "-c", _START, directory])
    assert done.stdout == "File too large\n", done.stderr
    assert os.listdir(directory) == ["lock"]
