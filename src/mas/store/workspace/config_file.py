"""The workspace's `config.json`, where MAS changes it: a part of the isolation policy, and nothing else in it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from typing import Any

from mas.settings import CONFIG, read_config
from mas.store.files.atomic import locked, write_atomic
from mas.store.layout import Layout

_MODE = 0o644


def config_path(layout: Layout) -> str:
    """Where it really is: people keep it elsewhere and link to it."""
    return os.path.realpath(layout.at(CONFIG))


def change_policy(layout: Layout, change: Callable[[dict[str, Any]], bool]) -> None:
    """Have `change` rewrite the isolation policy; if it returns False, nothing is written."""
    path = config_path(layout)
    with locked(os.path.join(layout.private, "config.lock")):
        config = dict(read_config(path))
        policy = config.get("isolation") or {}
        # One word alone says how strict it is.
        policy = {"enforce": policy} if isinstance(policy, str) else dict(policy)
        if not change(policy):
            return
        config["isolation"] = policy
        if not policy:
            del config["isolation"]
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode)
        except FileNotFoundError:
            mode = _MODE
        write_atomic(path, (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace"), mode)
