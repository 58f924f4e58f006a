"""Screens: dialogs that programs begin with are reported, silence is, and a screen at rest is believed last of all."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

from mas.model.ids import SessionId
from mas.providers.provider import Providers
from mas.service.agents.living import reported_state
from tests.e2e.standin import living, pane_pids
from tests.site import AGENTS, Site, until

QUESTION = "Who are you?|  1. A friend of the house|> 2. Nobody"
DIALOGS = """
startup_dialogs = [
    { match = "(?i)a friend of the house", report = "blocked:trust", hint = "answer it in {workspace}" },
    { match = "cannot reach", report = "error", hint = "check the network" },
]
"""
STATES = "screen_map = { idle = '(?m)^ *READY\\Z', blocked = 'Go on\\? \\[y/n\\]\\Z', working = 'BUSY' }\nquiet = 0.3\n"


def provider(site: Site, *screens: str, sources: str = "'osc7501'", more: str = DIALOGS, **how: Any) -> str:
    """A session of one agent that shows these screens, one after the other."""
    os.makedirs(site.path("providers"), exist_ok=True)
    argv = json.dumps([sys.executable, os.path.join(AGENTS, "pane_painter.py"), *screens])
    with open(site.path("providers", "painter.toml"), "w", encoding="utf-8") as file:
        file.write(f'provider = {{ id = "painter" }}\n[launch]\nargv = {argv}\n[status]\nsources = [{sources}]\n{more}')
    return site.start("--team", "solo", "--provider", "painter", **how)


def go_on(site: Site, session: str) -> None:
    """Have the program show the next screen."""
    path = site.session(session, "unit", "00", "next")
    with open(path, "w", encoding="ascii"):
        pass
    until(lambda: not os.path.exists(path), "the next screen")


def state(site: Site, session: str) -> tuple[str, str, str]:
    """What the events report; what is recorded alone must say the same."""
    (found,) = site.json("show", session)["agents"]
    return found["state"], found["stateText"], found["stateSource"]


def expect(site: Site, session: str, *wanted: str) -> None:
    until(lambda: state(site, session) == wanted, f"{wanted}, not {state(site, session)}")
    alone = reported_state(site.world(), SessionId(session), "00")
    assert (alone.state, alone.words, alone.source) == wanted


def told(site: Site, session: str) -> list[tuple[str, str, str]]:
    events = site.local().events("0", 10_000).events
    agents = [event.details for event in events if event.event == "agent" and event.session_id == session]
    return [(one["state"], one["stateText"], one["stateSource"]) for one in agents]


def said(site: Site, session: str, source: str) -> list[str]:
    with open(site.session(session, "logs", "agent-00.events.jsonl"), encoding="utf-8") as file:
        return [event["state"] for event in map(json.loads, file) if event.get("source") == source]


def title(site: Site, session: str) -> str:
    """The title of the agent's pane: what its program prints gets as far as tmux."""
    (found,) = site.json("show", session)["agents"]
    return site.tmux("display-message", "-p", "-t", found["pane"], "#{pane_title}")


def spying_tmux(site: Site, then: str = 'exec "$real" "$@"') -> str:
    """Put a `tmux` before the real one that notes each look at a screen; answers where it notes them."""
    place = os.path.join(site.directory, "bin")
    noted = os.path.join(site.directory, "looks")
    os.mkdir(place)
    path = os.path.join(place, "tmux")
    real = shutil.which("tmux", path=site.env["PATH"])
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nreal={real}\ncase \" $* \" in *' capture-pane '*)\n")
        file.write(f'echo $$ >> {noted}\n{then}\n;; esac\nexec "$real" "$@"\n')
    os.chmod(path, 0o755)
    site.env["PATH"] = f"{place}:{site.env['PATH']}"
    return noted


def looks(noted: str) -> list[int]:
    try:
        with open(noted, encoding="ascii") as file:
            return [int(line) for line in file]
    except FileNotFoundError:
        return []


def test_a_dialog_is_reported_and_withdrawn_and_then_a_better_source_decides(site: Site) -> None:
    session = provider(site, f"still={QUESTION}", "still=Welcome!", "report=state=idle", "still=A friend of the house")
    asks = ("blocked", f"trust: 1. A friend of the house; answer it in {site.root}", "screen")
    expect(site, session, *asks)
    assert "A friend of the house" in site.mas("show", session).stdout
    go_on(site, session)
    expect(site, session, "starting", "launched", "launcher")
    go_on(site, session)
    expect(site, session, "idle", "", "osc7501")
    assert told(site, session) == [
        ("starting", "launched", "launcher"), asks, ("starting", "launched", "launcher"), ("idle", "", "osc7501"),
    ]  # fmt: skip


def test_nothing_is_typed_into_a_dialog(site: Site) -> None:
    session = provider(site, QUESTION, "title=over", "still=Welcome!")
    until(lambda: state(site, session)[0] == "blocked", "the question")
    site.mas("send", "--session", session, "00", "yes", code=None)
    assert state(site, session)[0] == "blocked"
    site.tmux("send-keys", "-t", site.json("show", session)["agents"][0]["pane"], "-l", "mine")
    typed = site.session(session, "unit", "00", "typed")
    until(lambda: os.path.exists(typed), "what was typed")
    with open(typed, encoding="utf-8") as file:
        assert file.read() == "mine"


def test_a_dialog_is_seen_though_its_screen_never_comes_to_rest(site: Site) -> None:
    session = provider(site, QUESTION, "now it cannot reach|anybody", "done")
    until(lambda: state(site, session)[0] == "blocked", "the question")
    go_on(site, session)
    expect(site, session, "error", "now it cannot reach; check the network", "screen")
    go_on(site, session)
    expect(site, session, "starting", "launched", "launcher")


def test_a_sentence_that_a_narrow_pane_breaks_is_found(site: Site) -> None:
    session = provider(site, "still=│ 1. A friend│|│ of the house│")
    expect(site, session, "blocked", f"trust: A friend of the house; answer it in {site.root}", "screen")


def test_the_screen_of_a_program_that_reports_by_itself_is_not_read(site: Site) -> None:
    noted = spying_tmux(site)
    session = provider(site, "report=state=idle", QUESTION, "report=state=working", "still=more")
    expect(site, session, "idle", "", "osc7501")
    go_on(site, session)
    expect(site, session, "working", "", "osc7501")
    assert said(site, session, "screen") == []
    # One may have been on its way when the program spoke.
    assert len(looks(noted)) <= 1


def test_demo_agents_and_shells_pay_nothing_for_it(site: Site) -> None:
    noted = spying_tmux(site)
    for name in ("demo", "shell"):
        session = site.start("--team", "solo", "--provider", name)
        until(lambda session=session: state(site, session)[0] == "idle", "the agent")  # type: ignore[misc]
        (launcher,) = pane_pids(site, session)
        with open(f"/proc/{launcher}/environ", "rb") as file:
            assert os.path.dirname(noted).encode() + b"/bin:" in file.read()
        site.mas("send", "--session", session, "00", "echo hello")
        site.mas("stop", session)
    assert looks(noted) == []
    # The same way does see a look where there is one.
    provider(site, QUESTION)
    until(lambda: looks(noted), "a look")


def test_a_tmux_that_hangs_stops_nothing_and_is_asked_once_at_a_time(site: Site) -> None:
    noted = spying_tmux(site, "exec sleep 1000")
    session = provider(site, QUESTION, "title=another", "still=another screen", "report=state=idle", "still=x")
    until(lambda: looks(noted), "a look")
    go_on(site, session)
    until(lambda: "another" in title(site, session), "the next screen")
    # It ends when the program does, and it is not taken for something the agent left.
    until(lambda: len(looks(noted)) == 2, "another look, after the first was given up")
    first, second = looks(noted)
    assert living((first, second)) == [second]
    go_on(site, session)
    expect(site, session, "idle", "", "osc7501")
    go_on(site, session)
    until(lambda: state(site, session)[0] == "exited", "its end")
    with open(site.session(session, "logs", "agent-00.events.jsonl"), encoding="utf-8") as file:
        assert json.loads(file.readlines()[-1])["left"] == []
    assert living(looks(noted)) == []


def test_a_program_that_says_nothing_is_unknown_until_it_speaks(site: Site) -> None:
    session = provider(site, "still=hello", "report=state=idle", "x", more="start_timeout = 0.5\n")
    expect(site, session, "unknown", "has reported nothing for 0.5 s since it started", "launcher")
    go_on(site, session)
    expect(site, session, "idle", "", "osc7501")
    assert [one[0] for one in told(site, session)] == ["starting", "unknown", "idle"]


def test_a_hook_ends_the_silence_too(site: Site) -> None:
    more = "start_timeout = 0.5\nhook_map = { Stop = 'idle' }\n"
    session = provider(site, "still=hello", sources="'hooks'", more=more)
    expect(site, session, "unknown", "has reported nothing for 0.5 s since it started", "launcher")
    inside = {"MAS_SESSION_ID": session, "MAS_SESSION_DIR": site.session(session), "MAS_AGENT_ID": "00"}
    site.mas("hook", "Stop", env=inside)
    expect(site, session, "idle", "", "hooks")
    assert [one[0] for one in told(site, session)] == ["starting", "unknown", "idle"]


def test_the_start_timeout_counts_from_the_close_of_a_dialog(site: Site) -> None:
    session = provider(site, f"still={QUESTION}", "still=Welcome!", more=f"start_timeout = 2\n{DIALOGS}")
    until(lambda: state(site, session)[0] == "blocked", "the question")
    go_on(site, session)
    expect(site, session, "unknown", "has reported nothing for 2 s since its dialog closed", "launcher")
    assert [one[0] for one in told(site, session)] == ["starting", "blocked", "starting", "unknown"]


def test_a_screen_at_rest_shows_the_state_if_nothing_else_does(site: Site) -> None:
    screens = (
        "loading",
        "still=READY",
        "working on it",
        "still=Tell me more|Go on? [y/n]",
        "still=BUSY",
        "still=READY",
    )
    session = provider(site, *screens, sources="'screen'", more=STATES + DIALOGS)
    go_on(site, session)
    expect(site, session, "idle", "", "screen")
    assert said(site, session, "screen") == ["idle"]
    go_on(site, session)
    expect(site, session, "working", "", "screen")
    go_on(site, session)
    expect(site, session, "blocked", "question: Go on? [y/n]", "screen")
    go_on(site, session)
    until(lambda: said(site, session, "screen")[-1] == "working", "the work")
    go_on(site, session)
    expect(site, session, "idle", "", "screen")


def test_after_a_dialog_the_screen_decides_again(site: Site) -> None:
    session = provider(site, f"still={QUESTION}", "still=READY", sources="", more=STATES + DIALOGS)
    until(lambda: state(site, session)[0] == "blocked", "the question")
    go_on(site, session)
    expect(site, session, "idle", "", "screen")
    # In between it may have been seen on its way.
    assert [one for one in said(site, session, "screen") if one != "starting"] == ["blocked", "idle"]


def test_a_screen_at_rest_is_never_idle_once_a_better_source_has_spoken(site: Site) -> None:
    for sources in ("'osc7501','screen'", "'screen','osc7501'"):
        screens = ("still=READY", "report=state=working", "rest=READY", "report=state=error", "still=READY")
        session = provider(site, *screens, sources=sources, more=STATES)
        expect(site, session, "idle", "", "screen")
        go_on(site, session)
        expect(site, session, "error", "", "osc7501")
        assert [one[::2] for one in told(site, session)] == [
            ("starting", "launcher"), ("idle", "screen"), ("working", "osc7501"), ("error", "osc7501"),
        ]  # fmt: skip
        # The report came before what was drawn, so not even that it changed counts.
        assert said(site, session, "screen") == ["idle"]
        site.mas("stop", session)


def test_messages_reach_an_agent_that_is_known_by_its_screen_alone_one_by_one(site: Site) -> None:
    """With the rules for aider, whose prompt this is."""
    status = Providers("/nowhere", {}).get("aider").status
    rules = "\n".join(f"{sign.state} = {json.dumps(sign.match)}" for sign in status.screen_map)
    os.makedirs(site.path("providers"))
    with open(site.path("providers", "prompter.toml"), "w", encoding="utf-8") as file:
        argv = json.dumps([sys.executable, os.path.join(AGENTS, "pane_prompter.py")])
        file.write(f'provider = {{ id = "prompter" }}\n[launch]\nargv = {argv}\n[status]\nquiet = 0.5\n')
        file.write(f"sources = ['screen']\n[status.screen_map]\n{rules}\n")
    session = site.start("--team", "solo", "--provider", "prompter")
    expect(site, session, "idle", "", "screen")
    for text in ("one\nmore", "two", "three"):
        site.mas("send", "--session", session, "--wait", "50", "00", text)
    took = site.session(session, "unit", "00", "took")
    until(lambda: len(lines(took)) == 3, "the messages")
    assert [line.partition("]")[2] for line in lines(took)] == [
        r"\none\nmore\x1b[201~\r'", r"\ntwo\x1b[201~\r'", r"\nthree\x1b[201~\r'",
    ]  # fmt: skip
    expect(site, session, "idle", "", "screen")
    assert not os.path.exists(site.session(session, "unit", "00", "early"))


def lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []
