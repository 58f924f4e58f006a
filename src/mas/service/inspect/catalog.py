"""The catalog: what a session can be started with, the team templates and the providers."""

from __future__ import annotations

from mas.model.catalog import ProviderView, TeamView
from mas.service.world import World


def teams(world: World) -> tuple[TeamView, ...]:
    """The teams that a session can be started with."""
    from mas.store.workspace.team_files import Teams

    return Teams(world.layout).all()


def providers(world: World) -> tuple[ProviderView, ...]:
    """All providers, also those whose program is not installed or whose file cannot be read."""
    known = world.providers()
    return tuple(known.look(name, is_default=name == world.settings.provider) for name in known.names())
