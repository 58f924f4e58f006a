"""A message to a whole team: until the last of 13 agents has it, and what that does to everybody else's requests."""

from __future__ import annotations

import threading
import time
from statistics import quantiles

import httpx
from tests.served import Served

from benchmarks.arena import arena
from benchmarks.measure import Effort, Group, Row
from benchmarks.serving import serving

_PATIENCE = 60.0
_BETWEEN = 0.005


def measure(effort: Effort) -> Group:
    with arena() as site, serving(site) as served:
        session = str(site.json("start", "--provider", "demo")["sessionId"])
        took, others = [], []
        for number in range(effort.repeats(10)):
            # All idle again: one that works has its message held until it is done.
            site.mas("wait", "--session", session, "--timeout", f"{_PATIENCE:.0f}", timeout=2 * _PATIENCE)
            seconds, latencies = _broadcast(served, session, f"broadcast {number}")
            took.append(seconds)
            others += latencies
        site.mas("stop", session)
    p95 = quantiles(others, n=20)[-1]
    return Group(
        "A broadcast to 13 agents",
        (
            Row("POST …/messages to all: the last one acknowledged (worst of all)", max(took), bound="1 s", limit=1.0),
            Row("GET /sessions meanwhile: p95", p95, bound="50 ms", limit=0.05),
        ),
        (f"The demo team through the server; {len(others)} other requests during {len(took)} broadcasts.",),
    )


def _broadcast(served: Served, session: str, text: str) -> tuple[float, list[float]]:
    """How long until all have it, and how long other requests took until then."""
    latencies: list[float] = []
    over = threading.Event()
    other = threading.Thread(target=_ask, args=(served.client(), latencies, over))
    other.start()
    try:
        began = time.perf_counter()
        body = {"target": "all", "message": text, "wait": _PATIENCE}
        answer = served.client().post(f"/sessions/{session}/messages", json=body).json()
        took = time.perf_counter() - began
    finally:
        over.set()
        other.join()
    states = {delivery["state"] for delivery in answer["deliveries"]}
    if states != {"acknowledged"}:
        raise RuntimeError(f"not all agents have it: {answer['deliveries']}")
    return took, latencies


def _ask(client: httpx.Client, latencies: list[float], over: threading.Event) -> None:
    while not over.wait(_BETWEEN):
        began = time.perf_counter()
        client.get("/sessions").raise_for_status()
        latencies.append(time.perf_counter() - began)
