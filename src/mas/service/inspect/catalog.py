"""The catalog: what a session can be started with, the team templates and the providers."""

from __future__ import annotations

import os

from mas.model.catalog import CopiedProvider, ProviderView, TeamView
from mas.model.errors import AlreadyThere
from mas.service.world import World
from mas.store.files.atomic import disk_errors, ensure_directory, write_atomic
from mas.store.layout import OPEN_DIR

# Nothing in it is secret, and people edit it.
_READABLE = 0o644


def teams(world: World) -> tuple[TeamView, ...]:
    """The teams that a session can be started with."""
    from mas.store.workspace.team_files import Teams

    return Teams(world.layout).all()


def providers(world: World) -> tuple[ProviderView, ...]:
    """All providers, also those whose program is not installed or whose file cannot be read."""
    known = world.providers()
    return tuple(known.look(name, is_default=name == world.settings.provider) for name in known.names())


def copy_provider(world: World, name: str, force: bool) -> CopiedProvider:
    """Copy a built-in provider's file and its templates into the workspace.

    `AlreadyThere` if others are in their place, unless `force` replaces them.
    """
    place = world.layout.at("providers")
    files = {os.path.join(place, file): data for file, data in world.providers().built_in(name).items()}
    with disk_errors():
        there = [path for path, data in files.items() if os.path.lexists(path) and _content(path) != data]
        if there and not force:
            raise AlreadyThere(f"The workspace has its own {', '.join(there)}", f"mas providers copy {name} --force")
        for path, data in files.items():
            for directory in dict.fromkeys((place, os.path.dirname(path))):
                ensure_directory(directory, OPEN_DIR)
            write_atomic(path, data, _READABLE)
    return CopiedProvider(name, tuple(files))


def _content(path: str) -> bytes | None:
    """What a file holds; None if it is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
