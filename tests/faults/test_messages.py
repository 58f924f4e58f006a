"""A thousand messages whose senders are killed at any moment: each comes once, in its order."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest

from tests.e2e.standin import read, received, receiver, start_receivers
from tests.site import Site

# Sends one numbered message after the other, from a number on, and prints those that were accepted.
_SENDER = """
import sys
from mas.bootstrap import open_mas
from mas.model.ids import SessionId

mas = open_mas()
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    mas.send(SessionId(sys.argv[1]), "00", f"message {number}", message_id=f"m-{number:016x}", wait=30.0)
    print(number, flush=True)
"""


def send_from(site: Site, session: str, first: int, count: int, life: float | None = None) -> int:
    """Send from a number on, and be killed after this many seconds; returns the first not reported as accepted."""
    argv = [sys.executable, "-c", _SENDER, session, str(first), str(count)]
    with subprocess.Popen(argv, env=site.env, cwd=site.root, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout
        if life is not None:
            # Not before it has begun: only then is every moment of sending as likely as any other.
            line = sender.stdout.readline()
            time.sleep(life)
            sender.send_signal(signal.SIGKILL)
            told = [line, *sender.stdout]
        else:
            told = list(sender.stdout)
    return int(told[-1]) + 1 if told[-1:] and told[-1].endswith("\n") else first


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("count", "submit_delay"), [(800, 0.0), (200, 0.005)], ids=["at once", "in two steps"])
def test_a_thousand_messages_all_arrive_once(site: Site, count: int, submit_delay: float) -> None:
    session = start_receivers(site)
    receiver(site, submit_delay=submit_delay)
    moments = random.Random(7)
    first = 0
    for _ in range(30):
        # However quick the machine is, some are left for a sender that is not killed.
        if first < count * 3 // 4:
            first = send_from(site, session, first, count, moments.uniform(0, 0.1))
    assert 0 < first < count
    assert send_from(site, session, first, count) == count
    assert received(site, session, "00", count) == f"message {count - 1}".encode()
    headers = read(site.session(session, "unit", "00", "headers")).splitlines()
    assert headers == [f"[MAS from=person to=00 id=m-{number:016x}]" for number in range(count)]
    assert site.json("inbox", session, "--limit", "1")["total"] == count
    assert site.local().message_counts() == {"queued": 0, "typed": 0, "acknowledged": count, "undelivered": 0}
