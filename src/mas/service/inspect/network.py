"""Network: what the agents of a session reach, why, and what they asked for."""

from __future__ import annotations

from collections.abc import Iterable

from mas.model.ids import SessionId
from mas.model.isolation import Isolation, Mode, NetworkMode, Tier
from mas.model.network import shown_place
from mas.model.network_view import NetworkRequest, NetworkView, Outcome
from mas.model.session import Session
from mas.service.world import World
from mas.store.session.network_log import Line, read_network_log

_RANK = {Outcome.REFUSED: 0, Outcome.FAILED: 1}
_Key = tuple[str | None, str, int | None]


def network(
    world: World, session_id: SessionId, agent: str | None, refused: bool, limit: int, offset: int
) -> NetworkView:
    """The session's network, running or not, with a page of the requests: of one agent, or refused ones only."""
    session = world.records.load(session_id)
    if agent is not None:
        session.agent(agent)
    isolation = session.isolation or Isolation(Tier.D)
    requests = _requests(read_network_log(world.layout.session(session_id)))
    meant = [one for one in requests if agent in (None, one.agent) and (not refused or one.result is Outcome.REFUSED)]
    return NetworkView(
        session_id=session_id,
        mode=isolation.network,
        reason=_why(world, session),
        is_recorded=isolation.network is not NetworkMode.SHARED,
        allow=isolation.policy.allow,
        private=isolation.policy.private,
        requests=tuple(meant[offset : offset + limit]),
        total=len(meant),
        refused=sum(one.result is Outcome.REFUSED for one in meant),
    )


def _requests(lines: Iterable[Line]) -> list[NetworkRequest]:
    """One for each agent, name and port, with the last result; refused ones first, then the newest."""
    found: dict[_Key, NetworkRequest] = {}
    for line in lines:
        key = (line.agent, line.name, line.port)
        before = found.pop(key, None)
        found[key] = NetworkRequest(
            agent=line.agent,
            name=line.name,
            port=line.port,
            result=line.result,
            reason=line.reason,
            times=(before.times if before else 0) + line.before + 1,
            last_at=line.at,
            place=shown_place(line.name, line.port),
            remedy=line.remedy if line.result is Outcome.REFUSED else None,
        )
    # Before every connection the name is looked up: that says nothing more.
    connecting = {(one.agent, one.name) for one in found.values() if one.port}
    kept = [one for one in found.values() if one.port or not (one.result is Outcome.FOUND and _who(one) in connecting)]
    kept.sort(key=lambda one: one.last_at, reverse=True)
    return sorted(kept, key=lambda one: _RANK.get(one.result, len(_RANK)))


def _who(request: NetworkRequest) -> tuple[str | None, str]:
    return request.agent, request.name


def _why(world: World, session: Session) -> str:
    """Why a session has the network it has."""
    isolation = session.isolation
    if isolation is None:
        return "it was started by an earlier version of MAS"
    mode, policy = isolation.network, isolation.policy
    if policy.enforce is Mode.OFF:
        return "isolation is off"
    if isolation.tier != Tier.A:
        return f"isolation is tier {isolation.tier}"
    if policy.network is mode:
        own = world.records.load_run(session.id).policy.network is mode
        return "its run or team says so" if own else "config.json says so"
    if mode is NetworkMode.SHARED:
        return world.tiers().why_not("network") or "it was started by an earlier version of MAS"
    return "the default"
