"""A small workspace with a session in every state, to cut verbs short in, and the scenes to do it in."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable
from itertools import chain, count
from typing import Any, NamedTuple

from mas.model.ids import SessionId
from mas.model.run import Run
from mas.model.team import team_named
from mas.service.local import LocalMas
from mas.service.upkeep.prune import PrunePolicy
from mas.settings import ServerMode
from mas.store.files.descriptors import remove_file
from tests.checker import MARKER, World, check_world, tree_hash
from tests.e2e.standin import start_receivers
from tests.faults.driver import Cut, Driver, Ended, Fault
from tests.seed import dice
from tests.site import Site

# The files of a session that every listing looks at.
LISTED = ("metadata.json", ".session")
_PATIENCE = 60.0
RUN = Run(team=team_named("solo"), command="sleep 1000")


class Field:
    """The workspace, its bystanders, and what must never be lost of it."""

    def __init__(self, site: Site, server: ServerMode = ServerMode.DEFAULT) -> None:
        self.site = site
        self.mas: LocalMas = site.local(server)
        self.kept: dict[str, str] = {}
        _shrink_templates(site)
        self.templates = self._templates()
        self.bystander = self.started()
        self.mas.archive(self.stopped())
        self.mas.delete(self.stopped())
        self.pane = check_world(site, self.kept).pane_of(self.bystander)

    def started(self) -> SessionId:
        """A running session with a marker in its unit directory."""
        return self.marked(self.mas.start(RUN).session_id)

    def marked(self, session_id: str) -> SessionId:
        self.kept[session_id] = f"the work of {session_id}\n"
        with open(self.site.session(session_id, MARKER), "w", encoding="utf-8") as file:
            file.write(self.kept[session_id])
        return SessionId(session_id)

    def stopped(self) -> SessionId:
        session_id = self.started()
        self.mas.stop(session_id)
        return session_id

    def copied(self, source: SessionId) -> SessionId:
        """A stopped session with the work of another; cheaper than starting one."""
        session_id = SessionId(self.mas.clone(source, None, run_it=False).session_id)
        self.kept[session_id] = self.kept[source]
        return session_id

    def settled(self) -> World:
        """Run one ordinary command, then look at everything."""
        warnings = self.mas.list().warnings
        assert not warnings, warnings
        return self.check()

    def check(self) -> World:
        world = check_world(self.site, self.kept)
        assert self._templates() == self.templates, "the templates changed"
        assert world.pane_of(self.bystander) == self.pane, "a session that nobody touched was restarted"
        return world

    def _templates(self) -> str:
        return tree_hash(self.site.path("unit"), self.site.path("workflows"))


def _shrink_templates(site: Site) -> None:
    """One small file each, so that a start has few steps."""
    for part, path in (("unit", "unit/00/role.md"), ("workflows", "workflows/00.md")):
        shutil.rmtree(site.path(part))
        os.makedirs(os.path.dirname(site.path(path)))
        with open(site.path(path), "w", encoding="utf-8") as file:
            file.write("Do good work.\n")


class Act(NamedTuple):
    """A verb's next run: `again` makes everything ready for it and answers its arguments, `settle` puts the
    world in order after it was cut short and looks at everything."""

    again: Callable[[], tuple[Any, ...]]
    settle: Callable[[], object]


class Scene(NamedTuple):
    """A verb and the setting for it."""

    verb: str
    ready: Callable[[Field], Act]


def _of_session(status: str, *rest: Any) -> Callable[[Field], Act]:
    def ready(field: Field) -> Act:
        session_id = field.stopped()

        def again() -> tuple[Any, ...]:
            bring(field, status, session_id)
            return (session_id, *rest)

        return Act(again, field.settled)

    return ready


def bring(field: Field, status: str, session_id: SessionId) -> None:
    """Bring a session into `status` by ordinary commands, from wherever it is now."""
    mas = field.mas
    now = next((info.status for info in mas.list().sessions if info.session_id == session_id), None)
    if now is None:
        deleted = {info.session_id for info in mas.list("deleted").sessions}
        now = "deleted" if session_id in deleted else "archived"
    if now == status:
        return
    away: dict[str, Callable[[SessionId], object]] = {
        "active": mas.stop, "deleted": mas.undelete, "archived": mas.unarchive, "stopped": str,
    }  # fmt: skip
    towards: dict[str, Callable[[SessionId], object]] = {
        "active": mas.restore, "deleted": mas.delete, "archived": mas.archive, "stopped": str,
    }  # fmt: skip
    away[now](session_id)
    towards[status](session_id)


def _clone(field: Field) -> Act:
    source = field.marked(start_receivers(field.site))
    field.mas.send(source, "00", "hello", wait=_PATIENCE)
    field.mas.stop(source)
    before = field.check().directories

    def settle() -> None:
        for copy in field.settled().directories - before:
            assert [one.message for one in field.mas.messages(SessionId(copy)).messages] == ["hello"], (
                "an empty mailbox"
            )

    return Act(lambda: (source, "a copy", False), settle)


def _rename(field: Field) -> Act:
    session_id = field.started()
    names = count(1)

    def settle() -> None:
        field.settled()
        config, metadata = (
            json.loads(read_text(field.site.session(session_id, name))) for name in ("config.json", "metadata.json")
        )
        listed = {info.session_id: info.name for info in field.mas.list().sessions}
        assert config.get("name") == metadata["name"] == listed[session_id], "two names"

    return Act(lambda: (session_id, f"name {next(names)}"), settle)


def _network(field: Field) -> Act:
    session_id = field.started()
    names = count(1)

    def settle() -> None:
        field.settled()
        config, metadata = (
            json.loads(read_text(field.site.session(session_id, name))) for name in ("config.json", "metadata.json")
        )
        # A policy that says only how strict it is may be one word.
        policies = [config.get("isolation", ""), metadata["isolation"]["policy"]]
        own, known = ([] if isinstance(policy, str) else policy.get("allow", []) for policy in policies)
        assert own == known, "two lists"

    return Act(lambda: (session_id, "allow", (f"n{next(names)}.example.com",)), settle)


def read_text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _start(field: Field) -> Act:
    return Act(lambda: (RUN,), field.settled)


def _refused_restore(field: Field) -> Act:
    session_id = field.started()
    pane = field.check().pane_of(session_id)

    def settle() -> None:
        assert field.settled().pane_of(session_id) == pane, "an active session was ended by a restore"

    return Act(lambda: (session_id,), settle)


def _migrate(field: Field) -> Act:
    number = 0

    def again() -> tuple[Any, ...]:
        nonlocal number
        number += 1
        old = os.path.join(field.site.directory, f"old{number}")
        os.makedirs(os.path.join(old, "unit", "00"))
        with open(os.path.join(old, "unit", "00", "notes.md"), "w", encoding="utf-8") as file:
            file.write("Old work.\n")
        return old, False

    return Act(again, field.settled)


def _prune(status: str) -> Callable[[Field], Act]:
    def ready(field: Field) -> Act:
        for_good = status != "stopped"
        for info in field.mas.list(status).sessions if for_good else ():
            # It will be pruned with the others.
            del field.kept[info.session_id]

        def again() -> tuple[Any, ...]:
            doomed = field.copied(field.bystander)
            if for_good:
                del field.kept[doomed]
            bring(field, status, doomed)
            return PrunePolicy(keep=0, statuses=(status,)), False

        return Act(again, field.settled)

    return ready


def _tmux_gone(field: Field) -> Act:
    session_id = field.stopped()

    def again() -> tuple[Any, ...]:
        bring(field, "active", session_id)
        field.site.tmux("kill-session", "-t", f"=mas-{session_id[:8]}")
        return ()

    return Act(again, field.settled)


def _directory_gone(field: Field) -> Act:
    def again() -> tuple[Any, ...]:
        session_id = field.copied(field.bystander)
        del field.kept[session_id]
        shutil.rmtree(field.site.session(session_id))
        return ()

    return Act(again, field.settled)


def _registry_damaged(name: str, content: str | None) -> Callable[[Field], Act]:
    """The file cut off or overwritten; None: removed."""

    def ready(field: Field) -> Act:
        path = field.site.path("sessions", name)

        def again() -> tuple[Any, ...]:
            if content is None:
                os.unlink(path)
            else:
                with open(path, "a", encoding="utf-8") as file:
                    file.write(content)
            return ()

        return Act(again, field.settled)

    return ready


def _damaged(name: str, *args: Any) -> Callable[[Field], Act]:
    """A session with an unreadable file, which takes a repair to be whole again."""

    def ready(field: Field) -> Act:
        session_id = field.stopped()

        def again() -> tuple[Any, ...]:
            with open(field.site.session(session_id, name), "w", encoding="utf-8") as file:
                file.write("{")
            if args:
                # What must be repaired has been seen before and is called `error`.
                field.mas.list()
            return args

        def settle() -> None:
            warned = field.mas.list().warnings
            if not warned and name in LISTED:
                field.check()
            assert not list(World(field.site).litter())
            field.mas.repair(dry_run=False)
            field.settled()

        return Act(again, settle)

    return ready


def _send(first: bool) -> Callable[[Field], Act]:
    """A message to an agent; `first` means that none was sent in the session before."""

    def ready(field: Field) -> Act:
        session_id = SessionId(start_receivers(field.site))
        kept: set[str] = set()
        headers = field.site.session(session_id, "unit", "00", "headers")

        def again() -> tuple[Any, ...]:
            if first:
                kept.clear()
                remove_file(field.site.session(session_id, ".mas", "messages.db"))
                remove_file(headers)
            return (session_id, "00", "hello", None, None, False, _PATIENCE)

        def settle() -> None:
            field.mas.send(session_id, "00", "hello", wait=_PATIENCE)
            field.settled()
            found = field.mas.messages(session_id, limit=1000)
            there = {message.id for message in found.messages}
            assert kept <= there, "a message was lost"
            assert not found.warnings, found.warnings
            assert {message.message for message in found.messages} <= {"hello"}
            states = [message.deliveries[0] for message in found.messages]
            assert {delivery.state for delivery in states} == {"acknowledged"}, states
            with open(headers, encoding="utf-8") as file:
                assert [line.rstrip("]\n").rpartition("id=")[2] for line in file] == [one.id for one in found.messages]
            kept.update(there)

        return Act(again, settle)

    return ready


SCENES: dict[str, Scene] = {
    "start": Scene("start", _start),
    "stop": Scene("stop", _of_session("active")),
    "restore": Scene("restore", _of_session("stopped")),
    "restore of an active session": Scene("restore", _refused_restore),
    "restart of an agent": Scene("restart_agent", _of_session("active", "00", True)),
    "clone": Scene("clone", _clone),
    "rename": Scene("rename", _rename),
    "allowing a name": Scene("change_network", _network),
    "archive": Scene("archive", _of_session("stopped")),
    "unarchive": Scene("unarchive", _of_session("archived")),
    "delete": Scene("delete", _of_session("stopped")),
    "delete of an active session": Scene("delete", _of_session("active")),
    "undelete": Scene("undelete", _of_session("deleted")),
    "send": Scene("send", _send(first=False)),
    "send of the first message": Scene("send", _send(first=True)),
    "migrate": Scene("migrate", _migrate),
    "prune of sessions": Scene("prune", _prune("stopped")),
    "prune of the trash": Scene("prune", _prune("deleted")),
    "prune of archives": Scene("prune", _prune("archived")),
    "list after tmux ended": Scene("list", _tmux_gone),
    "list after a directory was removed": Scene("list", _directory_gone),
    "list without an index": Scene("list", _registry_damaged(".sessions.index", None)),
    "list with a damaged index": Scene("list", _registry_damaged(".sessions.index", "{")),
    "list with a torn journal": Scene("list", _registry_damaged(".index", "torn")),
    "list with a damaged session": Scene("list", _damaged("metadata.json")),
    "list with a session half damaged": Scene("list", _damaged(".session")),
    "repair of metadata.json": Scene("repair", _damaged("metadata.json", False)),
    "repair of .session": Scene("repair", _damaged(".session", False)),
    "repair of config.json": Scene("repair", _damaged("config.json", False)),
}


def cut_at_every_step(
    field: Field, driver: Driver, scene: str, cut: Cut, judge: Callable[[Ended], None], one_in: int
) -> int:
    """Run a scene's verb again and again, cut at a later step each time, until it is cut no more.

    After each cut: one ordinary command, and a look at everything. Answers the last step that was tried.
    """
    act = SCENES[scene].ready(field)
    last = 0
    for step in steps(one_in):
        args = act.again()
        ended = driver.call(SCENES[scene].verb, *args, fault=Fault(cut, step))
        if ended.what is None:
            assert ended.error is None or "Conflict" in ended.kinds, ended.trace
            act.settle()
            break
        try:
            judge(ended)
            act.settle()
        except Exception as error:
            raise AssertionError(f"{scene}, step {step} ({ended.what}): {error}\n{ended.trace}") from error
        last = step
    return last


def steps(one_in: int) -> Iterable[int]:
    """The steps of a verb to try: the first, and of the others one in so many, which ones follows from the run's seed;
    all of them with `MAS_TEST_EVERY_STEP=1`."""
    one_in = 1 if os.environ.get("MAS_TEST_EVERY_STEP") else one_in
    return chain((1,), count(1 + dice().randint(1, one_in), one_in))
