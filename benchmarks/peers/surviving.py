"""What is left after `kill -9`: of the server, of tmux, of an agent's program. Looked at, not assumed."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import count
from typing import NamedTuple

import psutil
from tests.site import Site

from benchmarks.peers.bare import Raw
from benchmarks.peers.cao import Orchestrator
from benchmarks.peers.product import Product
from benchmarks.peers.sides import CAO, MAS, RAW, TEAM_SIZE, Serving, place, programs
from benchmarks.peers.table import Effort, say
from benchmarks.peers.talking import open_patiently

_NUMBERS = count(1_000_000)
# The peer looks again for what is pending every 30 seconds.
_PATIENCE = 35.0
_HANDED_IN = 5
_A_MOMENT = 2.0
_DELIVERED = ("delivered", "typed", "acknowledged")
_TO_NOTICE = 10.0
# What people have; one that edits lines puts a terminal in order that a killed program left.
_SHELL = "/bin/bash"
_TAKEN = {True: "accepted", False: "refused"}
_CAME = {True: "came", False: "did not come"}


class Facts(NamedTuple):
    """What was seen of each side after one blow: the same questions, answered by each."""

    title: str
    seen: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...] = ()


def measure(effort: Effort) -> tuple[Facts, ...]:
    del effort
    return (
        Facts(
            "After `kill -9` of the server, and its restart",
            {MAS: _each(Product, _server_dies), RAW: {}, CAO: _each(Orchestrator, _server_dies)},
            (
                f"{TEAM_SIZE} agents; {_HANDED_IN} messages to as many idle agents are handed in at once, and the"
                " server is killed when the text of the first is at its program. A caller whose call was cut off knows"
                " that it has to ask again; one that was told “accepted” does not.",
            ),
        ),
        Facts(
            "After `kill -9` of tmux",
            {MAS: _each(Product, _tmux_dies), RAW: _each(Raw, _bare_tmux_dies), CAO: _each(Orchestrator, _tmux_dies)},
            (f"{TEAM_SIZE} agents; every tmux server that holds them is killed.",),
        ),
        Facts(
            "After `kill -9` of an agent's program",
            {
                MAS: _each(Product, _program_dies),
                RAW: _each(Raw, _bare_program_dies),
                CAO: _each(Orchestrator, _program_dies),
            },
            ("Then a message is sent to that agent whose text would be a command if a shell read it.",),
        ),
    )


def _each(kind: type[Product] | type[Raw] | type[Orchestrator], blow: Callable[..., dict[str, str]]) -> dict[str, str]:
    say(f"kill -9: {kind.name}{blow.__name__.replace('_', ' ')}")
    with ExitStack() as stack:
        site, reports = stack.enter_context(place(_SHELL))
        side = kind(site, reports, reports.listening)
        stack.callback(side.end)
        open_patiently(side, "team", TEAM_SIZE)
        return blow(side)


def _server_dies(side: Serving) -> dict[str, str]:
    before = programs(side.site)
    numbers = [next(_NUMBERS) for _ in range(_HANDED_IN)]
    with ThreadPoolExecutor(_HANDED_IN) as pool:
        calls = [pool.submit(side.hand_in, "team", agent, f"one [{number}]") for agent, number in enumerate(numbers)]
        side.reports.first("text", numbers)
        side.server.kill()
    accepted = [call.result() for call in calls]
    side.server.again()
    later = next(_NUMBERS)
    taken = side.hand_in("team", TEAM_SIZE - 1, f"another [{later}]")
    came_later = side.reports.came("enter", later, _PATIENCE)
    came = [side.reports.came("enter", number, _A_MOMENT) for number in numbers]
    said = [side.last_message("team", agent) for agent in range(_HANDED_IN)]
    promised = [ok or word in _DELIVERED for ok, word in zip(accepted, said, strict=True)]
    broken = sum(word and not arrived for word, arrived in zip(promised, came, strict=True))
    return {
        "agents that run on": f"{len(before & programs(side.site))} of {TEAM_SIZE}",
        "what the server says of them": _tally(Counter(side.states("team"))),
        "messages on their way: accepted before the kill": f"{sum(accepted)} of {_HANDED_IN}",
        "… text and Enter at the program in the end": f"{sum(came)} of {_HANDED_IN}",
        "… what the server says of those messages": _tally(Counter(said)),
        "… accepted or said to be delivered, but never there": f"{broken}",
        "a message sent after the restart": f"{_TAKEN[taken]}, {_CAME[came_later]}",
    }


def _tmux_dies(side: Serving) -> dict[str, str]:
    before = _tally(Counter(side.states("team")))
    _kill_tmux(side.site)
    left = _programs_left(side.site)
    said = _noticed(lambda: _tally(Counter(side.states("team"))), before)
    listed = side.list()
    again = next(_NUMBERS)
    taken = side.hand_in("team", 0, f"one [{again}]")
    seen = {
        "agents that run on": f"{left} of {TEAM_SIZE}",
        "what the server says of them": said,
        "the session is listed as running": "yes" if listed else "no",
        "a message to one of them": _TAKEN[taken],
    }
    seen["bringing the team back"] = side.bring_back("team")
    came = side.reports.came("enter", again, _A_MOMENT)
    seen["… and that message then"] = _CAME[came] if taken else "was refused"
    return seen


def _bare_tmux_dies(side: Raw) -> dict[str, str]:
    _kill_tmux(side.site)
    left = _programs_left(side.site)
    listed = side.site.run(["tmux", "-S", side.site.user_socket, "list-sessions"])
    return {
        "agents that run on": f"{left} of {TEAM_SIZE}",
        "the session is listed as running": "yes" if listed.returncode == 0 else "no",
        "bringing the team back": "nothing knows what there was",
    }


def _program_dies(side: Serving) -> dict[str, str]:
    agent = 1
    before = side.states("team")[agent]
    os.kill(side.program_of("team", agent), signal.SIGKILL)
    trace = os.path.join(side.site.directory, "a-shell-ran-it")
    said = _noticed(lambda: side.states("team")[agent], before)
    taken = side.hand_in("team", agent, f"touch {trace} # [{next(_NUMBERS)}]")
    ran = _comes(lambda: os.path.exists(trace), _A_MOMENT)
    return {
        "what the server says of the agent": said,
        "a message to it": _TAKEN[taken],
        "… run by a shell": "yes" if ran else "no",
        "… what the server says of it": side.last_message("team", agent) if taken else "–",
    }


def _bare_program_dies(side: Raw) -> dict[str, str]:
    os.kill(min(programs(side.site)), signal.SIGKILL)
    closed = _comes(lambda: len(_panes(side)) < TEAM_SIZE, _A_MOMENT)
    return {
        "what the server says of the agent": "its pane is gone" if closed else "its pane is there",
        "a message to it": "no pane to send it to",
        "… run by a shell": "no",
    }


def _panes(side: Raw) -> list[bytes]:
    return side.tmux.run(["list-panes", "-s", "-t", "=team:", "-F", "#{pane_id}"]).split()


def _comes(fact: Callable[[], bool], patience: float) -> bool:
    """Whether it comes about within so many seconds."""
    deadline = time.monotonic() + patience
    while not fact() and time.monotonic() < deadline:
        time.sleep(0.05)
    return fact()


def _kill_tmux(site: Site) -> None:
    for process in site.processes():
        with suppress(psutil.Error):
            if process.name() == "tmux: server":
                process.kill()


def _programs_left(site: Site) -> int:
    """How many agents' programs outlive tmux; a program is told of its terminal's end and needs a moment."""
    _comes(lambda: not programs(site), 2 * _A_MOMENT)
    return len(programs(site))


def _noticed(look: Callable[[], str], before: str) -> str:
    """What is said once something else is said than before, or after it had time to notice."""
    _comes(lambda: look() != before, _TO_NOTICE)
    return look()


def _tally(found: Counter[str]) -> str:
    return ", ".join(f"{number} {word}" for word, number in found.most_common())
