"""A launcher's share in its session's network, when the disk is full as it starts the egress process."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from tests.site import Site
from tests.torture.round import isolates

# Files cannot grow, as on a full disk; a second launcher comes, and finds what the first has made.
_START = """
import os, resource, sys
from mas.model.launch import NetworkPlan
from mas.runtime.network.hold import Network
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
found = [Network(NetworkPlan(directory=sys.argv[1], listen=()), agent) for agent in ("21", "23")]
print(len({os.fstat(one.space.net).st_ino for one in found}))
"""


@pytest.mark.parametrize("left", [False, True])
def test_a_full_disk_keeps_no_agent_from_its_network(bare: Site, left: bool) -> None:
    if not isolates(bare):
        pytest.skip("this machine cannot isolate agents")
    directory = os.path.join(bare.directory, "network")
    os.mkdir(directory)
    if left:
        # Of one that was killed on its way.
        os.symlink("half", os.path.join(directory, ".space.tmp"))
    done = bare.run([sys.executable, "-c", _START, directory])
    assert done.stdout == "1\n", done.stderr
    assert ".space.tmp" not in os.listdir(directory)


# The process that was started is killed before it serves; then somebody in its namespace tries to take its port.
_KILL = """
import os, signal, socket, sys
from mas.model.launch import NetworkPlan
from mas.runtime.network.hold import Network
from mas.runtime.network.space import DOOR_PORT
network = Network(NetworkPlan(directory=sys.argv[1], listen=()), "21")
os.kill(int(os.readlink(os.path.join(sys.argv[1], "space")).split()[0]), signal.SIGKILL)
child = os.fork()
if child == 0:
    network.space.join()
    try:
        socket.socket().bind(("127.0.0.1", DOOR_PORT))
        os._exit(0)
    except OSError as error:
        os._exit(error.errno)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_no_agent_takes_a_port_of_an_egress_process_that_is_killed_before_it_serves(bare: Site) -> None:
    if not isolates(bare):
        pytest.skip("this machine cannot isolate agents")
    directory = os.path.join(bare.directory, "network")
    os.mkdir(directory)
    done = bare.run([sys.executable, "-c", _KILL, directory])
    assert done.stdout == f"{errno.EADDRINUSE}\n", done.stderr


# The first one waits before it serves, and then reads its rules, for which it waits for ever here.
_MARKED = """
import os, signal, sys, time
from mas.model.launch import NetworkPlan
from mas.runtime.network import hold
hold._AFTER_THE_START = 1 << 30
os.mkfifo(os.path.join(sys.argv[1], "rules.json"))
network = hold.Network(NetworkPlan(directory=sys.argv[1], listen=()), "21")
pid = int(os.readlink(os.path.join(sys.argv[1], "space")).split()[0])
def mark():
    with open(f"/proc/{pid}/environ", "rb") as file:
        # It has none for a moment while it becomes another program.
        return next((line for line in file.read().split(b"\\0") if line.startswith(b"MAS_PANE=")), b"")
deadline = time.monotonic() + 60
while mark() in (b"", b"MAS_PANE=session/21/home") and time.monotonic() < deadline:
    time.sleep(0.01)
print(mark().decode())
os.kill(pid, signal.SIGKILL)
"""


def test_an_egress_process_that_waits_to_serve_is_no_single_agents(bare: Site) -> None:
    """It would end with the agent whose launcher has started it, when that agent is restarted."""
    if not isolates(bare):
        pytest.skip("this machine cannot isolate agents")
    directory = os.path.join(bare.directory, "network")
    os.mkdir(directory)
    done = bare.run([sys.executable, "-c", _MARKED, directory], env={"MAS_PANE": "session/21/home"}, timeout=120)
    assert done.stdout == "MAS_PANE=session//home\n", done.stderr
