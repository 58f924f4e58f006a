"""Builds the product from settings; the only file that names concrete classes."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from mas.model.ids import SessionId, parse_name
from mas.runtime.servers import Servers
from mas.runtime.teams import TmuxTeams
from mas.service.local import LocalMas
from mas.service.mas import Mas
from mas.service.world import World
from mas.settings import CONFIG, DEFAULT_PROVIDER, Settings, load_settings, read_config
from mas.store.archive import Archives
from mas.store.atomic import disk_errors
from mas.store.intents import Intents
from mas.store.layout import Layout
from mas.store.logs import Logs
from mas.store.record import Records
from mas.store.registry import Registry
from mas.store.workspace import Workspace, init_workspace

if TYPE_CHECKING:
    from mas.providers.provider import Providers


def open_mas(workspace: str | None = None) -> Mas:
    """The product for the workspace named by the flag, the environment or the directory."""
    return LocalMas(build_world(load_settings(workspace)))


def build_world(settings: Settings) -> World:
    layout = Layout(settings.root)
    return World(
        settings=settings,
        layout=layout,
        workspace=Workspace(layout),
        records=Records(layout),
        registry=Registry(layout, utc_now),
        intents=Intents(layout, utc_now),
        archives=Archives(layout),
        logs=Logs(layout, utc_now),
        runtime=TmuxTeams(Servers(settings, layout.sockets)),
        providers=lambda: _providers(layout, settings),
        now=utc_now,
        new_id=random_id,
    )


def _providers(layout: Layout, settings: Settings) -> Providers:
    """Only what starts agents or types to them needs the providers' files."""
    from mas.providers.provider import Providers

    return Providers(layout.at("providers"), settings.environ)


def utc_now() -> str:
    """The time as ISO 8601 in UTC, to the millisecond."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


def random_id() -> SessionId:
    """A random UUIDv4; the standard module would cost a listing three milliseconds."""
    bits = bytearray(os.urandom(16))
    bits[6] = bits[6] & 0x0F | 0x40
    bits[8] = bits[8] & 0x3F | 0x80
    text = bits.hex()
    return SessionId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")


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
