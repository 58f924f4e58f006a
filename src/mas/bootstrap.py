"""Builds the product from settings; the only file that names concrete classes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mas.model.errors import NoServer, NoWorkspace
from mas.model.ids import SessionId, parse_name
from mas.runtime.servers import Servers
from mas.runtime.teams import TmuxTeams
from mas.service.local import LocalMas
from mas.service.mas import Mas
from mas.service.world import World
from mas.settings import (
    CONFIG,
    DEFAULT_PROVIDER,
    Inside,
    ServerAddress,
    Settings,
    load_settings,
    read_config,
    settings_of,
)
from mas.store.files.atomic import disk_errors
from mas.store.files.descriptors import utc_now as utc_now
from mas.store.layout import Layout
from mas.store.session.logs import Logs
from mas.store.session.session_files import Records
from mas.store.workspace.archives import Archives
from mas.store.workspace.events import Events
from mas.store.workspace.intents import Intents
from mas.store.workspace.registry import Registry
from mas.store.workspace.workspace import Workspace, init_workspace

if TYPE_CHECKING:
    from mas.model.catalog import CopiedProvider
    from mas.model.file_view import FileView
    from mas.model.upkeep import Diagnosis
    from mas.providers.provider import Providers
    from mas.runtime.control import Connections
    from mas.service.access import Access
    from mas.service.agents.transcript import Transcripts
    from mas.service.browsers import Browsers
    from mas.service.inspect.meter import SessionMeter
    from mas.service.isolation.tiers import Tiers
    from mas.service.messages.courier import Courier
    from mas.service.provider_keys import ProviderKeys
    from mas.service.serving import Serving
    from mas.store.server.presence import Presence
    from mas.store.session.messages import Messages
    from mas.store.workspace.idempotency import Keys

Made = TypeVar("Made")
_OUTSIDE = "outside, in the workspace: mas serve --detach"


def open_mas(workspace: str | None = None) -> Mas:
    """The product for the workspace named by the flag, the environment or the directory."""
    return LocalMas(build_world(load_settings(workspace)))


def open_remote(server: ServerAddress) -> Mas:
    """The product behind a server; of an agent's token, what that agent has of it."""
    from mas.client import OwnSession, RemoteMas
    from mas.model.principal import named_by

    agent = named_by(server.token or "")
    if agent:
        return OwnSession(server.url, server.token, agent, server.certificate, server.ca)
    return RemoteMas(server.url, server.token, ca=server.ca)


def own_server(here: Inside) -> ServerAddress | None:
    """The address of the workspace's server, for an agent's program; None if no server is running.

    `NoServer` if the agent can use MAS only through a server. Reads nothing but the address.
    """
    from mas.store.server.address import find

    found = find(here.directory or "")
    if found is None and here.is_isolated:
        raise NoServer("No server is running for this workspace, and an isolated agent needs one", _OUTSIDE)
    if found and here.port:
        # Its own network leads from there to the server's socket for agents.
        return ServerAddress(f"http://127.0.0.1:{here.port}", here.token)
    return ServerAddress(found.url, here.token, found.certificate) if found else None


class ServerParts(NamedTuple):
    """What a server has of its workspace."""

    mas: Mas
    courier: Courier
    access: Access
    browsers: Browsers
    presence: Presence
    events: str
    log: Callable[[str | None, str], None]
    watch_disk: Callable[[], None]
    finish_work: Callable[[], None]
    """Finish what a killed or failed command left half-done."""
    tidy_forwards: Callable[[], None]
    """Forget the forwards that have ended."""
    retain: Callable[[], None]
    """Do what the retention policy says, as it is in `config.json` by now."""
    tell_turns: Callable[[SessionId, str], bool]
    """Add the events of turns that an agent has finished; whether nothing more is expected."""


@contextmanager
def open_server(workspace: str | None = None) -> Iterator[ServerParts]:
    """The product for a process that stays: it keeps its connections to shared tmux servers meanwhile."""
    from mas.runtime.control import Connections, end_orphans
    from mas.runtime.servers import raise_descriptor_limit
    from mas.service.agents.turns import tell_turns
    from mas.service.browsers import Browsers
    from mas.service.forwards import Forwards
    from mas.service.isolation.disk import watch
    from mas.service.messages.courier import Courier
    from mas.service.upkeep.reconcile import finish_work
    from mas.service.upkeep.retention import retain_quietly
    from mas.store.server.browsers import BrowserFile
    from mas.store.server.secrets import Secrets
    from mas.store.workspace.known import KnownWorkspaces

    settings = load_settings(workspace)
    # Every client is a file; the usual limit is one that a few browsers reach.
    raise_descriptor_limit()
    connections = Connections()
    world = build_world(settings, connections)
    # Those of a server that was killed.
    end_orphans(settings.user_socket, settings.private_sockets, world.layout.sockets)
    courier = Courier(world)
    forwards = Forwards(world)

    def finish() -> None:
        finish_work(world)

    try:
        world.workspace.prepare()
        access = open_access(workspace)
        # Now, rather than when the first request comes.
        access.make_secrets()
        KnownWorkspaces(settings.environ).add(settings.root)
        yield ServerParts(
            mas=LocalMas(world, courier, forwards),
            courier=courier,
            access=access,
            browsers=Browsers(Secrets(world.layout), BrowserFile(world.layout), time.time, elapsed),
            presence=_presence(settings),
            events=world.layout.events,
            log=world.logs.api,
            watch_disk=lambda: watch(world),
            finish_work=finish,
            tidy_forwards=forwards.tidy,
            retain=lambda: retain_quietly(world._replace(settings=load_settings(settings.root))),
            tell_turns=partial(tell_turns, world),
        )
    finally:
        forwards.close()
        courier.close()
        connections.close()


def open_access(workspace: str | None = None) -> Access:
    """Who may use the server of a workspace."""
    return _access(Layout(load_settings(workspace).root))


def open_serving(workspace: str | None = None) -> Serving:
    """The server of a workspace, seen from outside it."""
    from mas.service.serving import Serving

    settings = load_settings(workspace)
    logs = Logs(Layout(settings.root), utc_now)
    return Serving(settings, _presence(settings), lambda line: logs.api(None, line), utc_now)


def examine_machine() -> Diagnosis:
    """What MAS needs of this machine, where there is no workspace to look at."""
    from tempfile import TemporaryDirectory

    from mas.service.upkeep.doctor import outside

    # Empty, so that nothing of the directory people happen to be in is taken for MAS's.
    with TemporaryDirectory() as empty:
        return outside(build_world(settings_of(empty, {})))


def copy_provider(workspace: str | None, name: str, force: bool) -> CopiedProvider:
    """Copy a built-in provider into the workspace, to be changed there."""
    from mas.service.inspect.catalog import copy_provider as copy

    return copy(build_world(load_settings(workspace)), name, force)


def view_files(workspace: str | None, session_id: SessionId | None, path: str | None = None) -> FileView:
    """What agents see of this machine's file system."""
    from mas.service.isolation.file_view import file_view

    return file_view(build_world(load_settings(workspace)), session_id, path)


def find_missed_files(workspace: str | None, argv: list[str]) -> FileView:
    """Run a program outside, and find what it uses that agents would not see."""
    from mas.runtime.traced import files_used
    from mas.service.isolation.file_view import missed_files

    world = build_world(load_settings(workspace))
    return missed_files(world, files_used(argv))


def _presence(settings: Settings) -> Presence:
    from mas.store.server.presence import Presence

    return Presence(Layout(settings.root), settings.private_sockets)


def build_world(settings: Settings, connections: Connections | None = None) -> World:
    layout = Layout(settings.root)
    events = Events(layout, utc_now)
    logs = Logs(layout, utc_now)
    return World(
        settings=settings,
        layout=layout,
        workspace=Workspace(layout),
        records=Records(layout, remember=connections is not None),
        registry=Registry(layout, utc_now, events.status),
        intents=Intents(layout, utc_now),
        archives=Archives(layout),
        logs=logs,
        events=events,
        runtime=TmuxTeams(Servers(settings, layout.sockets, connections)),
        providers=_once(lambda: _providers(layout, settings)),
        keys=lambda: _keys(layout),
        provider_keys=lambda: _provider_keys(layout, settings.environ),
        messages=_once(lambda: _messages(layout, logs, events)),
        access=_once(lambda: _access(layout)),
        tiers=_once(lambda: _tiers(layout, settings)),
        meter=_once(lambda: _meter(layout)),
        transcripts=_once(_transcripts),
        now=utc_now,
        new_id=random_id,
    )


def _providers(layout: Layout, settings: Settings) -> Providers:
    """Only what starts agents or types to them needs the providers' files."""
    from mas.providers.provider import Providers
    from mas.runtime.host import version_text
    from mas.store.files.matching import is_any

    def stored() -> dict[str, str]:
        return _provider_keys(layout, settings.environ).values()

    return Providers(layout.at("providers"), settings.environ, version_text, is_any, stored)


def open_provider_keys(workspace: str | None, for_user: bool = False) -> ProviderKeys:
    """The keys of a workspace and its user; `for_user` needs no workspace."""
    try:
        settings = load_settings(workspace)
    except NoWorkspace:
        if not for_user:
            raise
        return _provider_keys(None, settings_of("/", {}).environ)
    return _provider_keys(Layout(settings.root), settings.environ)


def _provider_keys(layout: Layout | None, environ: Mapping[str, str]) -> ProviderKeys:
    from mas.service.provider_keys import ProviderKeys
    from mas.store.server.keys import user_keys, workspace_keys

    kept = workspace_keys(layout) if layout else None
    return ProviderKeys(kept, lambda: user_keys(environ), environ, utc_now)


def _once(make: Callable[[], Made]) -> Callable[[], Made]:
    """Makes a thing when it is first wanted, and gives the same ever after."""
    kept: list[Made] = []

    def get() -> Made:
        if not kept:
            kept.append(make())
        return kept[0]

    return get


def _tiers(layout: Layout, settings: Settings) -> Tiers:
    """Only code that starts agents, or reports how they would run, needs to know what the machine can do."""
    from mas.runtime.sandbox.probe import landlock_abi, probe
    from mas.service.isolation.tiers import Machine, Tiers, circumstances
    from mas.store.workspace.machine import Probed

    machine = Machine(probe, landlock_abi)
    return Tiers(machine, Probed(layout, circumstances(settings.environ)), settings.forced_tier)


def _access(layout: Layout) -> Access:
    from mas.service.access import Access
    from mas.store.server.secrets import Secrets

    return Access(Secrets(layout))


def _meter(layout: Layout) -> SessionMeter:
    from mas.service.inspect.meter import SessionMeter

    return SessionMeter(layout)


def _transcripts() -> Transcripts:
    from mas.service.agents.transcript import Transcripts

    return Transcripts()


def _keys(layout: Layout) -> Keys:
    from mas.store.workspace.idempotency import Keys

    return Keys(layout)


def _messages(layout: Layout, logs: Logs, events: Events) -> Messages:
    """Only what sends messages or reads them needs a database."""
    from mas.store.session.messages import Messages

    def warn(session_id: str, text: str) -> None:
        logs.session(session_id, text)
        events.add("warning", session_id, text=text)

    return Messages(layout, utc_now, warn)


def elapsed() -> float:
    """Seconds on a clock that is never set, and that keeps running while the machine sleeps, if it has such a clock."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


def random_id() -> SessionId:
    """A random UUIDv4; the standard module would cost a listing three milliseconds."""
    bits = bytearray(os.urandom(16))
    bits[6] = bits[6] & 0x0F | 0x40
    bits[8] = bits[8] & 0x3F | 0x80
    text = bits.hex()
    return SessionId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")


def need_tmux() -> None:
    """`NoTmux` where tmux is not installed: for what would make something first and fail then."""
    from mas.runtime.host import tmux_version

    tmux_version()


class Initialised(NamedTuple):
    """A workspace and what was made in it."""

    workspace: str
    name: str
    made: tuple[str, ...]


def init(directory: str, name: str | None, provider: str | None) -> Initialised:
    """Make a workspace, or add what one lacks; a name or provider given is used where there was none."""
    root = os.path.realpath(directory)
    called = parse_name(name) if name is not None else os.path.basename(root) or "workspace"
    with disk_errors():
        made = init_workspace(root, called, provider or DEFAULT_PROVIDER)
    config = read_config(os.path.join(root, CONFIG))
    return Initialised(root, str(config.get("name", called)), tuple(made))
