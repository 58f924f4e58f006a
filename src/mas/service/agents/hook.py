"""Hook: what an agent's program reports by calling `mas hook`.

Runs inside the agent's pane, many times an hour, between two steps of the agent. An isolated agent hands it to its
launcher; any other writes it down itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from mas.model.errors import MasError
from mas.model.ids import is_agent_id, is_session_id
from mas.settings import Inside


def hook(here: Inside, name: str, payload: bytes, say: Callable[[str], None]) -> None:
    """Have the hook noted, and `say` the answer where it is a question that gets one. It is never an error."""
    with suppress(MasError, OSError):
        if here.hooks:
            from mas.store.agent.hook_spool import hand_over

            hand_over(here.hooks, name, payload, say)
        elif here.directory and here.agent and _can_be(here.directory, here.agent):
            from mas.store.agent.hooks import hear_answer, note_hook

            question = note_hook(here.directory, here.agent, name, payload)
            if question:
                hear_answer(question, say)


def _can_be(directory: str, agent: str) -> bool:
    return os.path.isabs(directory) and is_session_id(os.path.basename(directory)) and is_agent_id(agent)
