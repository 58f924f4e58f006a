"""Sessions whose agents are stand-in programs of `tests/agents`."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable
from typing import Any

import psutil

from mas.model.ids import SessionId
from mas.service.local import LocalMas
from tests.site import AGENTS, Site, until

# For sessions that a test needs only to run.
ASLEEP = ("--team", "solo", "--command", "sleep 1000")


def command(program: str) -> str:
    """The command line that runs a stand-in."""
    return shlex.join([sys.executable, os.path.join(AGENTS, f"{program}.py")])


def start_body(site: Site, body: dict[str, Any], *args: str, **options: Any) -> str:
    """Start a session from a `POST /runs` body."""
    return site.start("--config", "-", *args, input=json.dumps(body), **options)


def start_unruly(site: Site, **env: str) -> str:
    """A session of one agent that misbehaves as `env` says."""
    session = start_body(site, {"team": "solo", "env": env}, "--command", command("unruly"))
    until(lambda: os.path.exists(site.session(session, "unit", "00", "pids.json")), "the agent's children")
    return session


def pids(site: Site, session: str) -> dict[str, int]:
    """The processes that an unruly agent started."""
    with open(site.session(session, "unit", "00", "pids.json"), encoding="utf-8") as file:
        found: dict[str, int] = json.load(file)
    return found


def receiver(site: Site, submit_delay: float = 0.0, ack_timeout: float = 8.0) -> None:
    """Write the provider of agents that keep what they are sent."""
    os.makedirs(site.path("providers"), exist_ok=True)
    path = json.dumps(os.path.join(AGENTS, "receiver.py"))
    with open(site.path("providers", "receiver.toml"), "w", encoding="utf-8") as file:
        file.write(
            f'provider = {{ id = "receiver" }}\n[input]\nack = "osc:working"\nsubmit_delay = {submit_delay}\n'
            f'ack_timeout = {ack_timeout}\n[launch]\nargv = ["{{python}}", {path}]\nenv_pass = ["SILENT"]\n'
            '[status]\nsources = ["osc7501"]\n'
        )


def start_receivers(site: Site, team: str = "solo") -> str:
    """A session whose agents keep what they are sent; all of them are ready for it."""
    receiver(site)
    session = site.start("--team", team, "--provider", "receiver")
    for agent in agents_of(site, session):
        wait_ready(site, session, agent)
    return session


def wait_ready(site: Site, session: str, agent: str) -> None:
    """Wait until tmux knows that the agent takes bracketed pastes, and MAS that it is idle."""
    pane = pane_of(site, session, agent)
    until(lambda: "ready" in site.tmux("capture-pane", "-p", "-t", pane), f"agent {agent}")
    local = site.local()
    until(lambda: state_of(local, session, agent) == "idle", f"agent {agent} is idle")


def state_of(mas: LocalMas, session: str, agent: str) -> str:
    (found,) = (one.state for one in mas.show(SessionId(session)).agents if one.id == agent)
    return str(found)


def agents_of(site: Site, session: str) -> list[str]:
    return [agent["id"] for agent in site.json("show", session)["agents"]]


def pane_of(site: Site, session: str, agent: str) -> str:
    panes = site.tmux("list-panes", "-s", "-t", f"={tmux_name(session)}:", "-F", "#{@mas_agent} #{pane_id}")
    return dict(line.split(" ") for line in panes.splitlines())[agent]


def pane_pids(site: Site, session: str) -> list[int]:
    """The launchers of a session."""
    panes = site.tmux("list-panes", "-s", "-t", f"={tmux_name(session)}:", "-F", "#{pane_pid}")
    return [int(line) for line in panes.splitlines()]


def living(numbers: Iterable[int]) -> list[int]:
    """Which of these processes still run; a zombie has ended."""
    return [number for number in numbers if _runs(number)]


def _runs(number: int) -> bool:
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def tmux_name(session: str) -> str:
    return f"mas-{session[:8]}"


def received(site: Site, session: str, agent: str, number: int) -> bytes:
    """The agent's message of that number, once it is there."""
    path = site.session(session, "unit", agent, f"got-{number}")
    until(lambda: os.path.exists(path), f"message {number} at agent {agent}")
    with open(path, "rb") as file:
        return file.read()


def read(*path: str) -> str:
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def write(text: str, *path: str) -> str:
    """Write a file (and its directory) and answer its path."""
    where = os.path.join(*path)
    os.makedirs(os.path.dirname(where), exist_ok=True)
    with open(where, "w", encoding="utf-8") as file:
        file.write(text)
    return where


def tree(root: str) -> dict[str, bytes | str]:
    """Everything below `root`: the content of files, where links point, `/` for directories."""
    found: dict[str, bytes | str] = {}
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            path = os.path.join(directory, name)
            key = os.path.relpath(path, root)
            if os.path.islink(path):
                found[key] = os.readlink(path)
            elif os.path.isdir(path):
                found[key] = "/"
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    found[key] = file.read()
    return found
