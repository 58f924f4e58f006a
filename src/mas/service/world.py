"""What every verb works with, handed in once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mas.model.ids import SessionId
from mas.runtime.runtime import Runtime
from mas.settings import Settings
from mas.store.archive import Archives
from mas.store.events import Events
from mas.store.intents import Intents
from mas.store.layout import Layout
from mas.store.logs import Logs
from mas.store.record import Records
from mas.store.registry import Registry
from mas.store.tree import Progress
from mas.store.workspace import Workspace

if TYPE_CHECKING:
    from mas.providers.provider import Providers
    from mas.service.access import Access
    from mas.service.meter import SessionMeter
    from mas.service.tiers import Tiers
    from mas.store.keys import Keys
    from mas.store.messages import Messages

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
    keys: Callable[[], Keys]
    messages: Callable[[], Messages]
    access: Callable[[], Access]
    tiers: Callable[[], Tiers]
    meter: Callable[[], SessionMeter]
    now: Callable[[], str]
    new_id: Callable[[], SessionId]
