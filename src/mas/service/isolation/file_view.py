"""What agents see of the file system and why, for people."""

from __future__ import annotations

import os

from mas.model.file_view import FileView, SeenPath
from mas.model.ids import SessionId
from mas.model.isolation import Isolation, Tier
from mas.runtime.sandbox.places import ETC, ETC_ACCOUNTS, ETC_FILES, follow, in_etc
from mas.service.isolation.enclosure import Enclosure
from mas.service.isolation.homes import is_in
from mas.service.isolation.own_config import own_config_path
from mas.service.isolation.sights import HIDE, Sight
from mas.service.world import World

# A name that no session has: what is a session's own is left out.
_NONE = SessionId("SESSION")
_WORDS = {"hide": "hidden"}
_FRESH = {
    "/dev": Sight("read", "the agent's own: a few devices; /dev/shm can be written"),
    "/proc": Sight("read", "the agent's own processes"),
    "/run": Sight("read", "empty"),
}
_COPIED = "a copy of the machine's, without tokens and passwords"
# Where each directory belongs to another program: what would be added is that directory, not all of these.
_SHELVES = ("/", "/home", "/srv", "/mnt", "/var", "/var/lib", "/var/cache", ETC)


def file_view(world: World, session_id: SessionId | None, path: str | None = None) -> FileView:
    """What the agents of a session see, or of one that was started now; or what of one path."""
    isolation = world.records.load(session_id).isolation if session_id else None
    isolation = isolation or world.tiers().choose(world.settings.isolation)
    if isolation.tier == Tier.D:
        return FileView(isolation.tier, (SeenPath("/", "write", "not isolated: all that your user can reach"),))
    rules = _rules(world, session_id, isolation)
    if path is None:
        seen = (SeenPath(place, _WORDS.get(sight.kind, sight.kind), sight.why) for place, sight in rules.items())
        return FileView(isolation.tier, tuple(sorted(seen)))
    return _one(world, isolation, rules, os.path.abspath(path))


def missed_files(world: World, used: list[str]) -> FileView:
    """Of the files that a program used outside, those that agents would not see, by the place to add."""
    isolation = world.tiers().choose(world.settings.isolation)
    if isolation.tier == Tier.D:
        return FileView(isolation.tier, ())
    rules = _rules(world, None, isolation)
    home = os.path.realpath(world.settings.environ.get("HOME", "/"))
    found: dict[str, list[str]] = {}
    for path in used:
        seen = _one(world, isolation, rules, path).paths[0]
        is_fresh = is_in(path, "/run") and isolation.tier == Tier.A
        if (seen.access == _WORDS[HIDE] or is_fresh) and os.path.isfile(path):
            found.setdefault(_to_add(os.path.realpath(path), home), []).append(path)
    rows = (SeenPath(place, _WORDS[HIDE], _used_of(place, files)) for place, files in sorted(found.items()))
    return FileView(isolation.tier, tuple(rows), _how_to_add(world) if found else "")


def _to_add(path: str, home: str) -> str:
    """The place of a file that would be added to what agents see: a directory of one program's, or the file."""
    place = path
    while (above := os.path.dirname(place)) not in (home, *_SHELVES):
        place = above
    return place


def _used_of(place: str, files: list[str]) -> str:
    if files == [place]:
        return "not listed"
    return f"not listed: {files[0]}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def _how_to_add(world: World) -> str:
    own = own_config_path(world.settings.environ)
    return f'add it to "read" of isolation in config.json, or for all workspaces to isolation.system in {own}'


def _rules(world: World, session_id: SessionId | None, isolation: Isolation) -> dict[str, Sight]:
    enclosure = Enclosure(world, session_id or _NONE, isolation)
    rules = enclosure.overview(world.settings.environ.get("PATH", os.defpath))
    if isolation.tier == Tier.A:
        rules |= _FRESH | {place: Sight("write", "temporary files of the agent's own") for place in enclosure.covered}
        if enclosure.has_copy:
            rules |= {path: Sight("read", _COPIED) for path in in_etc((*ETC_FILES, *ETC_ACCOUNTS))}
    return rules


def _one(world: World, isolation: Isolation, rules: dict[str, Sight], path: str) -> FileView:
    real = path if is_in(path, ETC) and path in rules else follow(path)[0]
    place = real
    while place not in rules and place != "/":
        place = os.path.dirname(place)
    sight = rules.get(place, Sight(HIDE, "not listed"))
    why = sight.why if place in (real, "/") else f"{sight.why}: {place}"
    seen = SeenPath(path, _WORDS.get(sight.kind, sight.kind), why)
    hint = ""
    if sight.kind == HIDE and os.path.exists(real):
        hint = _how_to_add(world)
    elif not os.path.lexists(real):
        seen = seen._replace(why=f"{why}; there is none on this machine")
    return FileView(isolation.tier, (seen,), hint)
