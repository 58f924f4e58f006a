"""Quit: let agents exit by the quit keys of their provider, before they get signals.

Their launchers type the keys, all at the same time, and only where the agent itself has its terminal. Nothing
is typed to an agent that is asking a question: a key could be taken for the answer.
"""

from __future__ import annotations

import signal

from mas.model.errors import NoTmux
from mas.model.ids import SessionId
from mas.model.session import Session
from mas.model.state import State
from mas.runtime.runtime import PaneState
from mas.runtime.sweep import signal_and_wait
from mas.service.agents.living import last_start, panes_of, state_of
from mas.service.world import World
from mas.store.agent.launch_plan import launch_path, read_plan

# What a launcher needs beyond the time of its agent: signals, and what the agent left.
_MORE = 5.0
_NOT_NOW = (State.BLOCKED, State.STARTING)


def quit_agents(world: World, session: Session, agents: tuple[str, ...]) -> None:
    """Let these agents exit by their quit keys where they can; the caller ends those that still run after this.

    Costs nothing where no provider names such keys, and no more than the longest time that one allows.
    """
    patience = {agent: seconds for agent in agents if (seconds := _patience(world, session.id, agent)) is not None}
    if not patience:
        return
    try:
        panes = [pane for agent, pane in panes_of(world, session).items() if agent in patience and not pane.dead]
    except NoTmux:
        # Reported by the caller, which ends them.
        return
    signals = {pane.pid: _signal(world, session.id, pane) for pane in panes if _is_ours(world, session.id, pane)}
    if signals:
        signal_and_wait(signals, max(patience.values()) + _MORE)


def _patience(world: World, session_id: SessionId, agent: str) -> float | None:
    """How long the agent may take to end by itself; None if it was not started with keys for that."""
    try:
        plan = read_plan(launch_path(world.layout.session(session_id).root, agent))
    except (OSError, ValueError):
        return None
    return plan.quit_timeout if plan.quit_keys else None


def _is_ours(world: World, session_id: SessionId, pane: PaneState) -> bool:
    """Whether the pane's program is a launcher of ours that runs its agent: no other knows what the signal means."""
    return last_start(world, session_id, pane.agent or "").get("launcher") == pane.pid


def _signal(world: World, session_id: SessionId, pane: PaneState) -> int:
    state = state_of(world, session_id, pane.agent or "", pane).state
    return signal.SIGHUP if state in _NOT_NOW else signal.SIGUSR1
