"""Allowing: names are added to what agents may reach, or removed; for a workspace, or for one session at once."""

from __future__ import annotations

from typing import Any

from mas.model.errors import BadInput
from mas.model.ids import SessionId
from mas.model.isolation import NetworkMode, Policy
from mas.model.network import ALLOW
from mas.model.network_view import NetworkChange, PlaceList, parse_places
from mas.model.session import Session, Status
from mas.service.isolation.enclosure import policy_of
from mas.service.isolation.network import SessionNetwork
from mas.service.world import World
from mas.settings import workspace_policy
from mas.store.workspace.config_file import change_policy, config_path

_NEXT = "sessions have it from their next start or restore on"
_OF_NO_USE = {
    NetworkMode.NONE: "but its network is none: agents reach MAS alone, whatever is allowed",
    NetworkMode.SHARED: "but its network is shared: agents reach all that this machine does",
}


def change_network(
    world: World, session_id: SessionId | None, kind: PlaceList, words: tuple[str, ...], remove: bool
) -> NetworkChange:
    """Add places to a list of the policy, or remove them: the workspace's, or one session's own."""
    places = parse_places(kind, words)
    if session_id is None:
        return _change_workspace(world, kind, places, remove)
    return _change_session(world, session_id, kind, places, remove)


def _change_workspace(world: World, kind: PlaceList, places: tuple[str, ...], remove: bool) -> NetworkChange:
    # Refused before anything is written, if the file is not what it should be.
    before = getattr(workspace_policy(world.layout.root), kind)
    after = before

    def change(policy: dict[str, Any]) -> bool:
        nonlocal before, after
        before = tuple(policy.get(kind) or ())
        after = _changed(before, places, remove)
        policy.pop(kind, None)
        if after:
            policy[kind] = list(after)
        return after != before

    change_policy(world.layout, change)
    mode = workspace_policy(world.layout.root).network
    note = _OF_NO_USE.get(mode, _NEXT) if mode else _NEXT
    result = _result(None, kind, config_path(world.layout), places, (before, after), remove)
    return result._replace(note=note)


def _change_session(
    world: World, session_id: SessionId, kind: PlaceList, places: tuple[str, ...], remove: bool
) -> NetworkChange:
    with world.intents.begin(session_id, "network", allowed=lambda: world.records.load(session_id)) as operation:
        run = world.records.load_run(session_id)
        before = getattr(run.isolation, kind)
        after = _changed(before, places, remove)
        if remove:
            _check_own(world, kind, tuple(place for place in places if not _is_in(place, before)))
        # From here on the session's own configuration says what holds.
        operation.no_return()
        if after != before:
            own = run.isolation
            own = own._replace(allow=after) if kind == ALLOW else own._replace(private=after)
            world.records.save_run(session_id, run._replace(isolation=own))
        session, why_not = settle_network(world, session_id)
        operation.done()
    path = world.layout.session(session_id).config
    result = _result(session_id, kind, path, places, (before, after), remove)
    verb = "no longer " if remove else ""
    if result.changed:
        world.logs.session(session_id, f"network: {verb}{kind} {', '.join(result.changed)}")
    mode = session.isolation.network if session.isolation else NetworkMode.SHARED
    if mode in _OF_NO_USE:
        return result._replace(note=_OF_NO_USE[mode])
    if mode is NetworkMode.FULL and kind == ALLOW:
        return result._replace(note="but its network is full: agents reach every public address already")
    if session.status is not Status.ACTIVE:
        return result._replace(note="the session has it when it is restored")
    if why_not:
        return result._replace(note=f"part of it only when the session is restored: {why_not}")
    return result._replace(applied=True, note="its agents have it now")


def _check_own(world: World, kind: PlaceList, others: tuple[str, ...]) -> None:
    """What the whole workspace allows is not for one session to remove."""
    shared = [place for place in others if _is_in(place, getattr(workspace_policy(world.layout.root), kind))]
    if shared:
        raise BadInput(
            f"Not of this session: {', '.join(shared)} is in {kind} of the workspace's config.json",
            f"mas network {kind} --remove {' '.join(shared)}",
        )


def settle_network(world: World, session_id: SessionId) -> tuple[Session, str]:
    """Have what is known of the session, and its running network, agree with what its configuration allows.

    Returns the session, and why not all of it holds already. The caller owns the session.
    """
    session = world.records.load(session_id)
    isolation = session.isolation
    if isolation is None:
        return session, ""
    policy = policy_of(world, world.records.load_run(session_id))
    known: Policy = isolation.policy._replace(allow=policy.allow, private=policy.private)
    if known != isolation.policy:
        isolation = isolation._replace(policy=known)
        session = session._replace(isolation=isolation)
        world.records.save(session)
    if session.status is not Status.ACTIVE or isolation.network is NetworkMode.SHARED:
        return session, ""
    if isolation.network is NetworkMode.FULL:
        # What is closed there was closed when it was made.
        return session, "its network is full"
    return session, SessionNetwork(world, session_id, isolation).apply()


def _changed(before: tuple[str, ...], places: tuple[str, ...], remove: bool) -> tuple[str, ...]:
    if remove:
        return tuple(place for place in before if place.lower() not in places)
    return (*before, *(place for place in places if not _is_in(place, before)))


def _is_in(place: str, known: tuple[str, ...]) -> bool:
    """Whether a list has a place; people also write names in capitals."""
    return any(place == one.lower() for one in known)


def _result(
    session_id: SessionId | None,
    kind: PlaceList,
    file: str,
    places: tuple[str, ...],
    lists: tuple[tuple[str, ...], tuple[str, ...]],
    remove: bool,
) -> NetworkChange:
    before, after = lists
    changed = tuple(place for place in places if _is_in(place, before) is remove)
    unchanged = tuple(place for place in places if place not in changed)
    return NetworkChange(session_id, kind, file, changed, unchanged, after, removed=remove, applied=False)
