"""Doctor: what MAS needs, whether it is there, and what to do if not."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator

from mas.model.errors import Corrupt, MasError, Unavailable
from mas.model.isolation import Mode, shown_gaps
from mas.model.keys import name_of
from mas.model.upkeep import Check, Diagnosis
from mas.runtime.host import descriptor_limit, terminals, tmux_version
from mas.runtime.limits.cgroups import ground, leave
from mas.runtime.limits.scope import Logout, Scopes
from mas.runtime.sweep import orphans_of
from mas.service.inspect.catalog import providers
from mas.service.isolation.tiers import NAMES, WAYS
from mas.service.upkeep.repair import repair
from mas.service.world import World
from mas.settings import ServerStart
from mas.store.server.presence import Presence

_OLDEST_TMUX = (3, 2)
_LITTLE_DISK = 1 << 30
_FEW_DESCRIPTORS = 1024
_FEW_TERMINALS = 64


def doctor(world: World) -> Diagnosis:
    """Look at everything MAS stands on."""
    looks: tuple[Callable[[World], Iterator[Check]], ...] = (
        _python,
        _tmux,
        _workspace,
        _machine,
        _isolation,
        _limits,
        _providers,
        _keys,
        _registry,
        _orphans,
        _server,
    )
    return _all(world, looks)


def outside(world: World) -> Diagnosis:
    """The same as far as it can be looked at without a workspace."""
    found = _all(world, (_python, _tmux, _machine, _isolation, _limits, _providers, _keys))
    none = Check("workspace", True, "none here; to create one: mas init", absent=True)
    return Diagnosis((*found.checks, none), found.ok)


def _all(world: World, looks: tuple[Callable[[World], Iterator[Check]], ...]) -> Diagnosis:
    checks = tuple(check for look in looks for check in look(world))
    return Diagnosis(checks, all(check.ok for check in checks))


def _python(world: World) -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")


def _tmux(world: World) -> Iterator[Check]:
    try:
        text = tmux_version()
    except MasError as error:
        yield Check("tmux", False, error.message, error.hint)
        return
    numbers = tuple(int(number) for number in re.findall(r"\d+", text)[:2])
    yield Check("tmux", numbers >= _OLDEST_TMUX, text, "MAS needs tmux 3.2 or newer")
    if world.runtime.ends_unattached():
        words = "your tmux server exits when no client is attached, which would end the teams on it"
        yield Check("exit-unattached", False, words, "tmux set -s exit-unattached off; also in your tmux.conf")
    yield Check("tmux.server", True, f"{world.settings.tmux_server} (the user's own: {world.settings.user_socket})")


def _server(world: World) -> Iterator[Check]:
    presence = Presence(world.layout, world.settings.private_sockets)
    info = presence.find()
    if info is None and presence.is_held():
        yield Check("server", True, presence.says_nothing())
    elif info is None:
        comes = world.settings.server_start is ServerStart.AUTO
        yield Check("server", True, "off; starts with the next session" if comes else "off, as config.json says")
    else:
        stays = "" if info.until_idle is None else f", exits after {info.until_idle:.0f} s without use"
        yield Check("server", True, f"{info.url} (process {info.pid}{stays})")


def _workspace(world: World) -> Iterator[Check]:
    root = world.layout.root
    yield Check("workspace", os.access(root, os.W_OK), root, f"make {root} writable")
    for path, mode in ((world.layout.sessions, 0o755), (world.layout.private, 0o700)):
        found = stat.S_IMODE(os.stat(path).st_mode)
        name = os.path.relpath(path, root)
        yield Check(f"mode of {name}", found == mode, f"{found:o}", f"chmod {mode:o} {path}")
    for part in (world.layout.unit, world.layout.workflows):
        count = len(os.listdir(part)) if os.path.isdir(part) else 0
        yield Check(f"templates {os.path.basename(part)}", count > 0, f"{count} entries", f"mas init {root}")


def _machine(world: World) -> Iterator[Check]:
    free = shutil.disk_usage(world.layout.root).free
    yield Check("disk", free > _LITTLE_DISK, f"{free >> 20} MiB free", "mas prune --older-than 7d")
    limit = descriptor_limit()
    yield Check("descriptors", limit >= _FEW_DESCRIPTORS, f"{limit} for each tmux server of MAS", "ulimit -Hn 65536")
    used, most = terminals()
    if most:
        yield Check("terminals", most - used > _FEW_TERMINALS, f"{used} of {most} in use", "sysctl kernel.pty.max")


def _isolation(world: World) -> Iterator[Check]:
    """Every tier, tried again, and which of them sessions get."""
    tiers, policy = world.tiers(), world.settings.isolation
    tiers.forget()
    got = tiers.view(policy)
    if policy.enforce is Mode.OFF:
        yield Check("isolation", True, "off: agents can do everything that you can")
    elif got.tier is None:
        yield Check("isolation", False, got.problem, "see the tiers below; or set isolation to auto")
    else:
        yield Check("isolation", True, "; ".join((f"tier {got.tier} ({NAMES[got.how]})", *shown_gaps(got))))
    for tier, ways in WAYS.items():
        for how in filter(None, ways):
            why_not = tiers.why_not(how)
            text = f"not possible here: {why_not}" if why_not else "possible"
            yield Check(f"tier {tier} {how}", True, text, absent=bool(why_not))
    bwrap = shutil.which("bwrap", path=world.settings.environ.get("PATH"))
    missing = "not installed; useful if namespaces are not allowed: sudo apt-get install bubblewrap"
    yield Check("bubblewrap", True, bwrap or missing, absent=not bwrap)


def _limits(world: World) -> Iterator[Check]:
    """By what limits are held here, and whether sessions outlive the login they were started from."""
    scopes = Scopes(world.settings.environ)
    where = ground()
    if where:
        yield Check("limits", True, f"control groups, version {where.version}: {', '.join(dict(where.places))}")
        leave(where)
    elif scopes.given():
        yield Check("limits", True, "systemd scopes of your user")
    else:
        yield Check("limits", True, "by MAS itself, because it cannot use control groups here; cpu is not limited")
    stays = scopes.at_logout()
    if stays is not None:
        hint = "loginctl enable-linger, or KillUserProcesses=no in logind.conf"
        yield Check("logout", stays is not Logout.ENDS, f"a tmux server {stays}", hint)


def _providers(world: World) -> Iterator[Check]:
    for view in providers(world):
        text = view.program or view.description
        if view.version:
            text += f" {view.version}"
        if view.problem:
            text = f"{text}: {view.problem}" if view.program else view.problem
        if view.installed and not view.composer:
            text += "; its input line is not described: messages are typed by its state alone"
        # Only what sessions run here must be there.
        fine = not view.is_default or (view.installed and view.meets_minimum)
        hint = view.install and f"install it: {view.install}"
        yield Check(f"provider {view.id}", fine, text, hint, absent=fine and not view.installed)


def _keys(world: World) -> Iterator[Check]:
    """Where agents' programs get their keys from."""
    try:
        found = world.provider_keys().origins()
    except (Corrupt, Unavailable) as error:
        yield Check("keys", False, error.message, error.hint)
        return
    for variable, origin in sorted(found.items()):
        yield Check(f"key {name_of(variable)}", True, origin)


def _orphans(world: World) -> Iterator[Check]:
    """Agents of a workspace that was here before and was removed while they worked; they end by themselves, if new."""
    left = orphans_of(world.layout.root)
    if left:
        pids = " ".join(map(str, left))
        text = f"{len(left)} processes of a workspace that was removed from here are still running: {pids}"
        yield Check("removed workspace", False, text, f"kill {pids}")


def _registry(world: World) -> Iterator[Check]:
    findings = repair(world, dry_run=True).findings
    text = "agrees with the directories and tmux" if not findings else f"{len(findings)} findings: {findings[0].what}"
    yield Check("registry", not findings, text, "mas repair")
