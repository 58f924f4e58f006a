"""Limits of the server for each caller, so that no caller blocks the others."""

from __future__ import annotations

from typing import NamedTuple

from mas.service.messages.waiters import WaiterLimits


class ServerLimits(NamedTuple):
    """What is allowed at most; times are in seconds, sizes in bytes, rates in requests per second."""

    connections: int = 1024
    # Requests on one connection whose turn has not come yet.
    waiting: int = 64
    head_size: int = 64 << 10
    # A message of 1 MiB may take six times that in JSON.
    body_size: int = 8 << 20
    head_time: float = 10.0
    body_time: float = 30.0
    # Requests that wait for agents, each a thread.
    waiters: WaiterLimits = WaiterLimits()
    # How long a response may wait for a client that does not read it.
    unread_time: float = 60.0
    rate: float = 1000.0
    burst: float = 2000.0
    # Of requests without a good token.
    failed_rate: float = 100.0
    failed_burst: float = 200.0
