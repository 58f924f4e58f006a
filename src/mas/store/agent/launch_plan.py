"""Launch files: the plan of each agent's launcher. Written at every start, read by `mas.pane`, hooks, stop and repair.

Imports next to nothing, because the launcher starts once per agent.
"""

from __future__ import annotations

import os

from mas.model.launch import LaunchPlan, fields_in, plan_in, plan_text
from mas.store.files.descriptors import SAFE

_VERSION = "2"
# The verbs that open a team.
_OPENING = ("start", "restore")


def launch_path(session_dir: str, agent: str) -> str:
    return os.path.join(session_dir, ".mas", "launch", agent)


def gate_path(session_dir: str) -> str:
    return os.path.join(session_dir, ".mas", "launch", "gate")


def was_cut_short(session_dir: str, opener: int) -> bool:
    """Whether the process that opened this team died before its session was whole: its intent is still there."""
    sessions, session_id = os.path.split(session_dir)
    try:
        with open(os.path.join(sessions, ".mas", "intents", session_id), "rb") as file:
            intent = fields_in(os.fsdecode(file.read()))
    except (OSError, ValueError):
        return False
    return intent.get("verb") in _OPENING and intent.get("pid") == opener


def write_plan(path: str, plan: LaunchPlan) -> None:
    """Keep a plan: a line with the version, and a line of JSON."""
    # Not blocking: a pipe in its place would have us wait for ever.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | SAFE | os.O_NONBLOCK
    fd = os.open(path, flags, 0o600)
    with open(fd, "wb") as file:
        os.fchmod(fd, 0o600)
        file.write(os.fsencode(f"{_VERSION}\n{plan_text(plan)}\n"))


def read_plan(path: str) -> LaunchPlan:
    """The plan as it was written, by this or the version before; `ValueError` if it is of another, or damaged."""
    with open(path, "rb") as file:
        text = os.fsdecode(file.read())
    version, _, plan = text.partition("\n")
    if version == _VERSION:
        return plan_in(plan)
    if text.startswith("="):
        from mas.store.agent.old_launch import plan_of_old

        return plan_of_old(text)
    raise ValueError("its launch file is damaged, or of a newer MAS")
