"""The guard: looks at an agent's screen before anything is typed to it, and before Enter.

Only a program whose input line its provider describes is looked at. What is there instead of an empty input line, or of
one with exactly our text, is reported as the agent's state (blocked), until the input line is back.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from mas.providers.composer import Seen, dialog_on, input_rows, seen_on
from mas.store.agent.reports import report_composer

if TYPE_CHECKING:
    from collections.abc import Callable

    from mas.model.screen import Screen
    from mas.providers.format import Provider
    from mas.store.layout import SessionPaths

# A program draws its screen in steps, and may report that it is idle before it has drawn its input line.
_SETTLES = 2.0
_SOONEST, _SELDOM = 0.01, 0.2


class View(NamedTuple):
    """A screen, and what it shows in respect of a message."""

    seen: Seen
    screen: Screen
    words: str = ""


class Guard:
    """Looks at one agent's screen for a process that has the right to type to it."""

    def __init__(self, provider: Provider, look: Callable[[], Screen], paths: SessionPaths, agent: str) -> None:
        self._composer = provider.composer
        self._sources = provider.status.sources
        known = (*provider.composer.dialogs, *provider.status.startup_dialogs)
        workspace = os.path.dirname(os.path.dirname(paths.root))
        self._dialogs = tuple(sign.but(hint=sign.hint.replace("{workspace}", workspace)) for sign in known)
        self._look = look
        self._session_dir = paths.root
        self._agent = agent

    def view(self, text: str, *wanted: Seen, patient: Callable[[], bool] = lambda: False, longest: float = 0.0) -> View:
        """What the screen shows once it shows what is wanted, or has not done so for long enough.

        An input line that stays empty may yet show a text: it is waited for while the caller is `patient`, for up to
        `longest` seconds.
        """
        began = time.monotonic()
        pause = _SOONEST
        while True:
            screen = self._look()
            seen = seen_on(self._composer, screen, text)
            waited = time.monotonic() - began
            may_come = seen is Seen.REST and waited < longest and patient()
            if seen in wanted or (waited >= _SETTLES and not may_come):
                return self._reported(seen, screen)
            time.sleep(pause)
            pause = min(pause * 2, _SELDOM)

    def _reported(self, seen: Seen, screen: Screen) -> View:
        """The view, reported as the agent's state where nothing may be typed into it."""
        kind = words = ""
        if seen is Seen.DIALOG:
            kind, words = dialog_on(screen, self._dialogs)
        elif seen is Seen.DRAFT:
            text = " ".join(input_rows(self._composer, screen) or ())
            kind, words = seen, f"its input line has a text: {' '.join(text.split())}"
        report_composer(self._session_dir, self._agent, self._sources, kind, words)
        return View(seen, screen, words)
