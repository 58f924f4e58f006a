"""The workspace: its templates, and the session directories made from them, moved and removed."""

import errno
import json
import os
from collections.abc import Iterator
from typing import NamedTuple

import mas
from mas.model.errors import BadInput, NoSession, NotFound
from mas.model.ids import SessionId, is_session_id
from mas.store.files.atomic import Progress, ensure_directory, make_directory, open_lock, sync_directory, write_atomic
from mas.store.files.shellfile import quote_pairs
from mas.store.layout import OPEN_DIR, PRIVATE_DIR, Layout

_SHIPPED = os.path.join(os.path.dirname(mas.__file__), "templates")
_COPIED_BY_CLONE = ("unit", "workflows")
_HOME = ".home"
# SQLite opens no file whose path has more than 512 bytes; the messages of a session in the trash have the longest.
_LONGEST_ROOT = 400
# Where the path itself is the reason.
_NO_PLACE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.EEXIST}


class Trashed(NamedTuple):
    """A deleted session that can still be brought back."""

    session_id: SessionId
    deleted_at: str
    path: str


def check_root(root: str) -> None:
    """`BadInput` if the workspace's path is too long for the files deep below it."""
    length = len(os.fsencode(root))
    if length > _LONGEST_ROOT:
        raise BadInput(
            f"The workspace's path has {length} bytes; MAS can use at most {_LONGEST_ROOT}",
            "use a directory with a shorter path",
        )


def init_workspace(root: str, name: str, provider: str) -> list[str]:
    """Make what a workspace needs and does not have; returns what was made, never overwrites."""
    if not root.isprintable():
        raise BadInput("The path of a workspace must not have control characters")
    check_root(root)
    made = []
    layout = Layout(root)
    _make_root(root)
    for part in ("unit", "workflows"):
        made += _fill(os.path.join(_SHIPPED, part), layout.at(part), part)
    for part, mode in (("templates", OPEN_DIR), ("logs", PRIVATE_DIR), ("sessions", OPEN_DIR)):
        if ensure_directory(layout.at(part), mode):
            made.append(f"{part}/")
    config = {"version": 1, "name": name, "provider": provider, "tmux": {"server": "auto"}, "recover": False}
    files = {
        "config.json": (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode(),
        # The marker comes last: a directory with it is a whole workspace.
        ".masrc": quote_pairs({"MAS_WORKSPACE_VERSION": "1"}),
    }
    for file, data in files.items():
        if not os.path.lexists(layout.at(file)):
            write_atomic(layout.at(file), data, 0o644)
            made.append(file)
    return made


def _make_root(root: str) -> None:
    """Make the workspace's directory, or say why none can be there."""
    if os.path.lexists(root) and not os.path.isdir(root):
        raise BadInput(f"Not a directory: {root}", "mas init DIR, where DIR is a directory or does not exist yet")
    try:
        os.makedirs(root, exist_ok=True)
    except OSError as error:
        if error.errno in _NO_PLACE:
            raise BadInput(f"Cannot create the directory {root}: {error.strerror}", "mas init DIR") from None
        raise


def _fill(shipped: str, target: str, label: str) -> list[str]:
    """Copy each shipped entry that `target` lacks."""
    from mas.store.files.tree import copy_tree, remove_tree

    made = [f"{label}/"] if ensure_directory(target, OPEN_DIR) else []
    for name in sorted(os.listdir(shipped)):
        source, wanted = os.path.join(shipped, name), os.path.join(target, name)
        if os.path.lexists(wanted):
            continue
        if os.path.isdir(source):
            # A half-copied unit would pass for a whole one: copy aside, then rename.
            half = os.path.join(target, f".{name}.tmp")
            remove_tree(half)
            copy_tree(source, half)
            os.rename(half, wanted)
        else:
            with open(source, "rb") as file:
                write_atomic(wanted, file.read(), 0o644)
        made.append(f"{label}/{name}")
    return made


class Workspace:
    """Makes, moves and removes session directories. Never touches anything but its own sessions."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def prepare(self) -> None:
        """See to MAS's own directories; cheap enough for every command."""
        layout = self._layout
        ensure_directory(layout.sessions, OPEN_DIR)
        for path in (
            layout.private,
            layout.intents,
            layout.trash,
            layout.doomed,
            layout.archive,
            layout.sockets,
        ):
            ensure_directory(path, PRIVATE_DIR)
        # There before any server is: isolated agents are shown this directory once, at their start.
        ensure_directory(layout.address, OPEN_DIR)

    def create(self, session_id: SessionId) -> None:
        """Make the session's directory; `FileExistsError` if there is one, which is left as it is."""
        check_root(self._layout.root)
        make_directory(self._layout.session(session_id).root, PRIVATE_DIR)

    def furnish(self, session_id: SessionId) -> None:
        """Put into a new directory what every session has."""
        paths = self._layout.session(session_id)
        os.close(open_lock(paths.lock))
        make_directory(paths.logs, OPEN_DIR)
        # There from the start, so that scripts can follow it; requests about the session come to be in it.
        os.close(open_lock(paths.at("logs", "api.log")))
        make_directory(paths.private, PRIVATE_DIR)
        make_directory(paths.at(".mas", "launch"), PRIVATE_DIR)

    def copy_templates(self, session_id: SessionId, lazy: bool, progress: Progress | None) -> None:
        """Give the session its own unit and workflow files; with `lazy` the units come when agents start."""
        from mas.store.files.tree import copy_tree

        paths = self._layout.session(session_id)
        for source, target in ((self._layout.unit, paths.unit), (self._layout.workflows, paths.workflows)):
            if not os.path.isdir(source):
                raise NotFound(f"The workspace has no templates at {source}", f"mas init {self._layout.root}")
            if lazy and source == self._layout.unit:
                make_directory(target, OPEN_DIR)
            else:
                copy_tree(source, target, progress)
                os.chmod(target, OPEN_DIR)

    def fill_units(self, session_id: SessionId, agents: list[str]) -> None:
        """Make sure that every agent has a directory, also where the templates know none of its id."""
        for agent in agents:
            ensure_directory(os.path.join(self._layout.session(session_id).unit, agent), OPEN_DIR)

    def lazy_source(self, session_id: SessionId, agent: str) -> str | None:
        """The template a lazily made unit is still to be copied from."""
        source = os.path.join(self._layout.unit, agent)
        target = os.path.join(self._layout.session(session_id).unit, agent)
        return source if os.path.isdir(source) and not os.path.isdir(target) else None

    def copy_session(self, source: str, session_id: SessionId, progress: Progress | None) -> list[str]:
        """Fill a new session with the work of another directory; returns what was left out."""
        from mas.store.files.tree import copy_tree

        paths = self._layout.session(session_id)
        skipped = []
        for part in _COPIED_BY_CLONE:
            origin = os.path.join(source, part)
            if os.path.isdir(origin) and not os.path.islink(origin):
                skipped += [f"{part}/{path}" for path in copy_tree(origin, paths.at(part), progress, open_up=True)]
            else:
                make_directory(paths.at(part), OPEN_DIR)
            os.chmod(paths.at(part), OPEN_DIR)
        home = os.path.join(source, _HOME)
        if os.path.isdir(home) and not os.path.islink(home):
            skipped += [f"{_HOME}/{path}" for path in copy_tree(home, paths.home, progress, open_up=True)]
            os.chmod(paths.home, PRIVATE_DIR)
        return skipped

    def discard(self, session_id: str) -> None:
        """Remove a session directory for good: out of sight in one step, then its content."""
        path = self._layout.session(session_id).root
        if os.path.lexists(path):
            self.doom(path)

    def doom(self, path: str) -> None:
        """Remove anything below `sessions/`; cut short, the next command goes on with it."""
        from mas.store.files.tree import remove_tree

        doomed = os.path.join(self._layout.doomed, os.path.basename(path))
        remove_tree(doomed)
        os.rename(path, doomed)
        sync_directory(os.path.dirname(path))
        remove_tree(doomed)

    def clear_doomed(self, session_id: str) -> None:
        """Go on with removing what an interrupted removal of the session left."""
        from mas.store.files.tree import remove_tree

        for name in os.listdir(self._layout.doomed):
            if name.startswith((session_id, ".deep-")):
                remove_tree(os.path.join(self._layout.doomed, name))

    def trash(self, session_id: SessionId, now: str) -> Trashed:
        """Move a session's directory to the trash in one step."""
        path = self._layout.session(session_id).root
        if os.path.islink(path) or not os.path.isdir(path):
            raise NoSession(session_id)
        there = os.path.join(self._layout.trash, f"{session_id}@{now}")
        os.rename(path, there)
        sync_directory(self._layout.sessions)
        sync_directory(self._layout.trash)
        return Trashed(session_id, now, there)

    def untrash(self, trashed: Trashed) -> None:
        """Bring a deleted session's directory back."""
        path = self._layout.session(trashed.session_id).root
        if os.path.lexists(path):
            raise FileExistsError(17, "exists", path)
        os.rename(trashed.path, path)
        sync_directory(self._layout.sessions)
        sync_directory(self._layout.trash)

    def trashed(self) -> Iterator[Trashed]:
        """What is in the trash, newest first."""
        names = [name.partition("@") for name in os.listdir(self._layout.trash)]
        for session_id, _, at in sorted(names, key=lambda parts: parts[2], reverse=True):
            if is_session_id(session_id):
                yield Trashed(SessionId(session_id), at, os.path.join(self._layout.trash, f"{session_id}@{at}"))
