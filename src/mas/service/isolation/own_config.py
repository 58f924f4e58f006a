"""What the user's own configuration says about agents' view of the machine, in all workspaces.

It is not in the workspace: an agent's template, or a project from elsewhere, must not ask for more of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from mas.model.errors import BadInput, Corrupt
from mas.model.fields import Rule, parse_json
from mas.model.ids import shown
from mas.model.proxy import NO_PROXY, BadProxy, ProxyRules, parse_proxy, proxies_of
from mas.model.shapes import read

_ABSOLUTE = Rule("an absolute path", test=lambda path: path.startswith("/") and path.strip("/"))


class SystemView(NamedTuple):
    """Which part of the machine agents see, listed or all that is not hidden; and how it reaches the outside."""

    root: Literal["listed", "all"] = "listed"
    system: tuple[Annotated[str, _ABSOLUTE], ...] = ()
    """What agents see of the machine beside the usual list, read-only."""
    proxy: str = ""
    """The proxy that leads outside; by default what the usual variables name."""
    straight: tuple[str, ...] = ()
    """Hosts that are reached without the proxy, beside those of NO_PROXY."""


class _Own(NamedTuple):
    isolation: SystemView = SystemView()


def own_config_path(environ: Mapping[str, str]) -> str:
    """Where the user's own configuration is, for all workspaces."""
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", "/"), ".config")
    return os.path.join(base, "mas", "config.json")


def system_view(environ: Mapping[str, str]) -> SystemView:
    """What the user's own configuration says; a missing file means defaults."""
    path = own_config_path(environ)
    try:
        with open(path, "rb") as file:
            body = parse_json(file.read())
    except FileNotFoundError:
        return SystemView()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Corrupt(path, why or "unreadable", f"correct it, or: mv {path} {path}.bad") from None
    # Others may keep more in this file.
    found = read(_Own, body, called=path, newer=True).isolation
    for one in found.system:
        if not os.path.exists(one):
            raise BadInput(f"isolation.system in {path}: there is no {shown(one)}", f"edit {path}", "isolation.system")
    try:
        if found.proxy and found.proxy != NO_PROXY:
            parse_proxy(found.proxy)
    except BadProxy as error:
        raise BadInput(f"isolation.proxy in {path}: {error}", f"edit {path}", "isolation.proxy") from None
    return found


def proxies(environ: Mapping[str, str]) -> tuple[ProxyRules, tuple[str, ...]]:
    """The proxies by which this machine reaches the outside, and what is named as one but cannot be used."""
    view = system_view(environ)
    return proxies_of(environ, view.proxy, view.straight)
