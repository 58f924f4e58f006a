"""What every verb works with: stores, runtime, clock and settings, built once and passed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mas.model.ids import SessionId
from mas.runtime.runtime import Runtime
from mas.settings import Settings
from mas.store.files.atomic import Progress
from mas.store.layout import Layout
from mas.store.session.logs import Logs
from mas.store.session.session_files import Records
from mas.store.workspace.archives import Archives
from mas.store.workspace.events import Events
from mas.store.workspace.intents import Intents
from mas.store.workspace.registry import Registry
from mas.store.workspace.workspace import Workspace

if TYPE_CHECKING:
    from mas.providers.provider import Providers
    from mas.service.access import Access
    from mas.service.agents.transcript import Transcripts
    from mas.service.inspect.meter import SessionMeter
    from mas.service.isolation.tiers import Tiers
    from mas.service.provider_keys import ProviderKeys
    from mas.store.session.messages import Messages
    from mas.store.workspace.idempotency import Keys

__all__ = ["Progress", "World"]


class World(NamedTuple):
    """One workspace, its disk, its tmux and its clock."""

    settings: Settings
    layout: Layout
    workspace: Workspace
    records: Records
    registry: Registry
    intents: Intents
    archives: Archives
    logs: Logs
    events: Events
    runtime: Runtime
    providers: Callable[[], Providers]
    provider_keys: Callable[[], ProviderKeys]
    keys: Callable[[], Keys]
    messages: Callable[[], Messages]
    access: Callable[[], Access]
    tiers: Callable[[], Tiers]
    meter: Callable[[], SessionMeter]
    transcripts: Callable[[], Transcripts]
    now: Callable[[], str]
    new_id: Callable[[], SessionId]
