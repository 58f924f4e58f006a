"""Show: everything about one session, with the current state of its agents."""

from __future__ import annotations

import os

from mas.model.errors import Corrupt, NoTmux
from mas.model.ids import SessionId
from mas.model.session import AgentRun, Session
from mas.model.state import LAUNCHED, AgentState, State
from mas.model.views import AgentView, SessionDetail
from mas.runtime.runtime import PaneState
from mas.service.agents.living import panes_of, state_and_restarts
from mas.service.inspect.activity import last_activity
from mas.service.world import World
from mas.store.agent.self_reports import last_report


def show(world: World, session_id: SessionId) -> SessionDetail:
    """The session as its directory and tmux show it."""
    return describe(world, world.records.load(session_id))


def describe(
    world: World, session: Session, warnings: tuple[str, ...] = (), agents: tuple[AgentView, ...] | None = None
) -> SessionDetail:
    """What `show` returns, for a session (and perhaps its agents) that is already loaded."""
    paths = world.layout.session(session.id)
    try:
        agents = agents_of(world, session) if agents is None else agents
    except NoTmux as error:
        unseen = AgentState(State.UNKNOWN, "", f"could not ask tmux: {error.message}", "none")
        agents = tuple(_view(agent, unseen) for agent in session.agents)
        warnings = (*warnings, error.message)
    try:
        pairs = world.records.pairs(session.id)
    except Corrupt as error:
        pairs, warnings = {}, (*warnings, error.message)
    return SessionDetail(
        session_id=session.id,
        tmux_session=session.tmux,
        name=session.name,
        status=session.status,
        created_at=session.created_at,
        started_at=session.started_at,
        last_activity=last_activity(world, session.id, session.status, session.last_activity),
        working_dir=paths.root,
        unit_dir=paths.unit,
        workflows_dir=paths.workflows,
        unit_dirs={agent.id: os.path.join(paths.unit, agent.id) for agent in session.agents},
        config_file=paths.config,
        logs={
            "session": paths.session_log(),
            "api": paths.at("logs", "api.log"),
            **{agent.id: paths.agent_log(agent.id) for agent in session.agents},
        },
        tmux_socket=session.socket,
        origin=session.origin,
        session_file=pairs,
        agents=agents,
        warnings=warnings,
        tier=session.isolation.tier if session.isolation else None,
        isolation=session.isolation,
        limits=session.limits,
        reason=session.reason,
        stopped_at=session.stopped_at,
        lost=session.lost,
    )


def agents_of(world: World, session: Session) -> tuple[AgentView, ...]:
    """The session's agents with their live state."""
    panes = panes_of(world, session)
    return tuple(_seen(world, session, agent, panes.get(agent.id)) for agent in session.agents)


def just_opened(session: Session) -> tuple[AgentView, ...]:
    """The agents of a team whose panes tmux has this moment reported; no need to ask again."""
    launched = AgentState(State.STARTING, "", LAUNCHED, "tmux")
    return tuple(_view(agent, launched)._replace(pane=agent.pane) for agent in session.agents)


def _seen(world: World, session: Session, agent: AgentRun, pane: PaneState | None) -> AgentView:
    state, restarts = state_and_restarts(world, session.id, agent.id, pane)
    view = _view(agent, state)._replace(restarts=restarts)
    view = view._replace(report=last_report(world.layout.session(session.id), agent.id))
    return view._replace(pane=pane.pane, exit_status=pane.exit_status if pane.dead else None) if pane else view


def _view(agent: AgentRun, state: AgentState) -> AgentView:
    return AgentView(
        id=agent.id,
        unit=agent.unit,
        role=agent.role,
        provider=agent.provider,
        model=agent.model,
        state=state.state,
        state_text=state.words,
        state_source=state.source,
        pane=None,
        exit_status=None,
    )
