"""Migrate: old shared workspaces and old global sessions become isolated sessions here. Copies, never moves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from mas.model.errors import BadInput, Corrupt, NotFound
from mas.model.ids import SessionId, is_session_id, near_name, shown
from mas.model.run import Run, parse_run
from mas.model.upkeep import Migrated, Migration
from mas.service.lifecycle.new_copy import copied
from mas.service.lifecycle.start import draw_id
from mas.service.upkeep.reconcile import entries_of
from mas.service.world import Progress, World
from mas.settings import LEGACY_TMUX
from mas.store.files.safe_open import opened_beneath

_LARGEST_CONFIG = 1 << 20
_VERB = "migrate"


def migrate(
    world: World, source: str | None, legacy_home: str, dry_run: bool, progress: Progress | None = None
) -> Migration:
    """Migrate `source`, or without it all old sessions of this workspace and of the home directory."""
    sources = list(_sources(world, source, legacy_home))
    if source and not sources:
        raise NotFound(f"Nothing to migrate at {source} (no unit/ directory, no sessions/ with one)")
    known = _origins(world)
    migrated, warnings = [], list[str]()
    for path in sources:
        if f"{_VERB}: {path}" in known:
            migrated.append(Migrated(path, known[f"{_VERB}: {path}"], "already migrated"))
        elif dry_run:
            migrated.append(Migrated(path, None, "would be copied"))
        else:
            session_id, to_know = _bring(world, path, progress)
            warnings += to_know
            migrated.append(Migrated(path, session_id, "copied; the original is unchanged"))
    if world.runtime.legacy_running():
        warnings.append(
            f"The old tmux session {LEGACY_TMUX} is still running; its files were copied as they are now. "
            f"Ended by: tmux kill-session -t {LEGACY_TMUX}"
        )
    return Migration(tuple(migrated), tuple(warnings))


def _sources(world: World, source: str | None, legacy_home: str) -> Iterator[str]:
    """The old workspaces and sessions there are, each a directory with `unit/` in it."""
    if source is not None:
        roots = [os.path.realpath(_named(source))]
        if roots[0] == world.layout.root and not _is_old(world.layout.root):
            raise BadInput(f"{source} is this workspace, which is not an old one")
    else:
        roots = [legacy_home, *([world.layout.root] if _is_old(world.layout.root) else [])]
    for root in roots:
        if os.path.isdir(os.path.join(root, "unit")):
            yield root
        sessions = os.path.join(root, "sessions")
        if root == world.layout.root or not os.path.isdir(sessions):
            continue
        for name in sorted(os.listdir(sessions)):
            path = os.path.join(sessions, name)
            if os.path.isdir(os.path.join(path, "unit")) and not os.path.islink(path):
                yield path


def _named(source: str) -> str:
    """`source`, if that can be the name of a directory at all."""
    try:
        if b"\0" not in os.fsencode(source):
            return source
    except UnicodeEncodeError:
        pass
    raise BadInput(f"Not a path: {shown(source)}")


def _is_old(root: str) -> bool:
    return os.path.lexists(os.path.join(root, ".mas_session"))


def _origins(world: World) -> dict[str, str]:
    found = {}
    for entry in entries_of(world):
        try:
            origin = world.records.load(SessionId(entry.session_id)).origin
        except Corrupt:
            continue
        if origin:
            found[origin] = entry.session_id
    return found


def _bring(world: World, path: str, progress: Progress | None) -> tuple[SessionId, tuple[str, ...]]:
    """One old directory as a stopped session, under its old id where that is one and is free; and what to know."""
    name = os.path.basename(path)
    free = is_session_id(name) and not os.path.lexists(world.layout.session(name).root)
    session_id = SessionId(name) if free and not world.archives.has(name) else draw_id(world)
    run = _old_run(path)._replace(name=near_name(name))
    session, to_know = copied(world, _VERB, session_id, run.settled(world.settings.provider), path, progress)
    return session.id, to_know


def _old_run(path: str) -> Run:
    """The old configuration if MAS can still read it, otherwise the default team."""
    try:
        with opened_beneath(path, ("config.json",)) as fd:
            body = json.loads(os.read(fd, _LARGEST_CONFIG))
        return parse_run({"agents": body.get("agents") or {}})
    except (OSError, ValueError, AttributeError, RecursionError, BadInput, NotFound):
        return Run()
