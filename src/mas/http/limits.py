"""Limits of the server for each caller, so that no caller blocks the others."""

from __future__ import annotations

from typing import NamedTuple

from mas.service.shares import ShareLimits


class ServerLimits(NamedTuple):
    """What is allowed at most; times are in seconds, sizes in bytes, rates in requests per second."""

    # A part of them is for agents, a smaller one for who has shown no token: see `connection_shares`.
    connections: int = 1024
    # Requests on one connection whose turn has not come yet.
    waiting: int = 64
    head_size: int = 64 << 10
    head_lines: int = 128
    # A message of 1 MiB may take six times that in JSON.
    body_size: int = 8 << 20
    head_time: float = 10.0
    # Between requests. Longer than clients and proxies keep a connection (httpx 5 s, Caddy 120 s): a request on its way
    # to one that is just closed is lost, and its client cannot know whether it was carried out.
    idle_time: int = 150
    body_time: float = 30.0
    # Requests that wait for agents, each a thread.
    waiters: ShareLimits = ShareLimits(of_agent=8, of_session=64, of_agents=384, of_all=512)
    # Events, terminals, and what tools listen to.
    streams: ShareLimits = ShareLimits(of_agent=8, of_session=128, of_agents=768, of_all=1024)
    # Threads that work for agents' requests; the owner's requests have others.
    threads_of_session: int = 4
    threads_of_agents: int = 16
    # How long a response may wait for a client that does not read it.
    unread_time: float = 60.0
    rate: float = 1000.0
    burst: float = 2000.0
    # Of requests without a good token.
    failed_rate: float = 100.0
    failed_burst: float = 200.0

    @property
    def connection_shares(self) -> ShareLimits:
        """Of 1024: 32 of an agent, 256 of its session, 768 of all agents."""
        most = self.connections
        return ShareLimits(max(1, most // 32), max(1, most // 4), max(1, most * 3 // 4), most)

    @property
    def unknown_connections(self) -> int:
        """Connections that have shown no good token; beyond that the oldest makes room for the newest."""
        return max(1, self.connections // 8)
