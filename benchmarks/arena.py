"""A workspace to measure in: its own home, its own tmux sockets, nothing left when it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.site import Site, short_directory, until

from mas.model.views import SessionDetail

BIN = os.path.dirname(os.path.abspath(sys.executable))


@contextmanager
def arena() -> Iterator[Site]:
    """A fresh workspace; every process started in it has ended when the block has."""
    with short_directory() as directory:
        site = Site(directory)
        site.mas("init", site.root, "--provider", "shell")
        try:
            yield site
        finally:
            site.close()
            # A crowd of thousands takes its time to end.
            until(lambda: not site.processes(), "the end of everything that was started", patience=60)


def until_started(site: Site, session: SessionDetail) -> None:
    """Wait until every agent's program runs: what is measured next has the machine for itself."""
    logs = [site.session(session.session_id, "logs", f"agent-{agent.id}.events.jsonl") for agent in session.agents]
    until(lambda: all(os.path.exists(log) for log in logs), "13 programs started")
