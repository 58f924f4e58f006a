"""Which panes are closed with a team. A person's own panes and windows stay, even if they were linked or joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mas.runtime.panes import NONE, OPENING, SESSION_MARK, Row, is_home_of, of_team
from mas.runtime.runtime import Place
from mas.runtime.tmux import Command


def closing(place: Place, there: Sequence[Row]) -> Iterator[list[Command]]:
    """The messages that end a team's panes, given all that is on its server: one for each window.

    A window that goes gives its session another current window, which tmux tells its control clients once the message
    is done. If the same message has ended the session by then, tmux crashes, and every team on that server with it.
    """
    ours = {row.pane for row in there if row.is_of(place)}
    homes = (NONE,) if ours else ()
    named = [row for row in there if row.session == place.name and (is_home_of(row.home, place) or row.home in homes)]
    # One that was not opened to its end holds nothing of a person's yet, and panes that have no mark.
    ours |= {row.pane for row in named if row.home.endswith(OPENING)}
    windows: dict[str, dict[str, int]] = {}
    for row in there:
        if row.pane in ours:
            windows.setdefault(row.window, {})[row.pane] = row.pid
    for panes in windows.values():
        yield [_ending(place, pane, pid) for pane, pid in sorted(panes.items())]
    if any(row.pane not in ours for row in named):
        # A person's own panes stay. They give back the name, which the team needs when it is restored.
        name = _free_name(place.name, {row.session for row in there})
        yield [
            ["rename-session", "-t", f"={place.name}", name],
            ["set-option", "-u", "-t", f"={name}:", SESSION_MARK],
        ]


def _ending(place: Place, pane: str, pid: int) -> Command:
    # Never a whole window: a person may have split it since. One that is empty goes, wherever it is linked to.
    # Should tmux have been started again since, the pane of that number is another's.
    same = f"#{{||:{of_team(place)},#{{==:#{{pane_pid}},{pid}}}}}"
    return ["if-shell", "-F", "-t", pane, same, f"kill-pane -t {pane}"]


def _free_name(name: str, taken: set[str]) -> str:
    names = (f"left-of-{name}{suffix}" for suffix in ("", *(f"-{number}" for number in range(2, len(taken) + 3))))
    return next(free for free in names if free not in taken)
