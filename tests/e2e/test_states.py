"""States: the states of agents, by what their programs report, through every door."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from typing import Any

import psutil

from tests.e2e.standin import ASLEEP, pane_pids
from tests.site import AGENTS, Site, until

TELLER = os.path.join(AGENTS, "pane_teller.py")


def provider(site: Site, *pieces: str, sources: str = '"osc7501"', more: str = "") -> str:
    """A session of one agent that reports the given states."""
    os.makedirs(site.path("providers"), exist_ok=True)
    words = json.dumps([sys.executable, TELLER, *(piece.encode().hex() for piece in pieces)])
    with open(site.path("providers", "teller.toml"), "w", encoding="utf-8") as file:
        file.write(
            f'provider = {{ id = "teller" }}\n[launch]\nargv = {words}\n[status]\nsources = [{sources}]\n{more}\n'
        )
    return site.start("--team", "solo", "--provider", "teller")


def report(body: str) -> str:
    return f"\x1b]7501;{body}\x1b\\"


def agent(site: Site, session: str) -> dict[str, Any]:
    (found,) = site.json("show", session)["agents"]
    assert isinstance(found, dict)
    return found


def state(site: Site, session: str) -> tuple[str, str, str]:
    found = agent(site, session)
    return found["state"], found["stateText"], found["stateSource"]


def expect(site: Site, session: str, *wanted: str) -> None:
    until(lambda: state(site, session) == wanted, f"{wanted}, not {state(site, session)}")


def told(site: Site, session: str) -> list[tuple[str, str, str]]:
    events = site.local().events("0", 10_000).events
    agents = [event.details for event in events if event.event == "agent" and event.session_id == session]
    return [(one["state"], one["stateText"], one["stateSource"]) for one in agents]


def test_an_agent_that_has_reported_nothing_yet_is_starting(site: Site) -> None:
    session = provider(site, "hello")
    expect(site, session, "starting", "launched", "launcher")


def test_an_agent_is_as_it_reports(site: Site) -> None:
    session = provider(site, report("state=idle"), report("state=blocked:kind=permission:msg=cm0geA=="))
    expect(site, session, "blocked", "permission: rm x", "osc7501")
    assert "permission: rm x" in site.mas("show", session).stdout
    until(lambda: len(told(site, session)) == 3, "the events")
    assert told(site, session) == [
        ("starting", "launched", "launcher"),
        ("idle", "", "osc7501"),
        ("blocked", "permission: rm x", "osc7501"),
    ]


def test_a_shell_works_while_it_runs_something(site: Site) -> None:
    session = site.start("--team", "solo", env={"SHELL": "/bin/sh"})
    expect(site, session, "idle", "", "foreground")
    pane = agent(site, session)["pane"]
    site.tmux("send-keys", "-t", pane, "sleep 1000", "Enter")
    expect(site, session, "working", "", "foreground")
    site.tmux("send-keys", "-t", pane, "C-c")
    expect(site, session, "idle", "", "foreground")


def test_a_demo_agent_says_when_it_is_ready(site: Site) -> None:
    session = site.start("--team", "solo", "--provider", "demo")
    until(lambda: state(site, session)[::2] == ("idle", "osc7501"), "the demo agent")


def test_a_program_of_ones_own_reports_no_state(site: Site) -> None:
    session = site.start(*ASLEEP)
    expect(site, session, "unknown", "running; reports no state", "tmux")


def test_an_agent_that_exited_is_exited_whatever_it_reported_last(site: Site) -> None:
    session = provider(site, report("state=working"))
    expect(site, session, "working", "", "osc7501")
    site.tmux("send-keys", "-t", agent(site, session)["pane"], "q")
    until(lambda: agent(site, session)["exitStatus"] == 0, "its end")
    assert state(site, session) == ("exited", "exit status 0", "tmux")


def test_an_agent_whose_launcher_was_killed_is_exited_and_can_be_restarted(site: Site) -> None:
    session = provider(site, report("state=working"))
    expect(site, session, "working", "", "osc7501")
    (launcher,) = pane_pids(site, session)
    os.kill(launcher, signal.SIGKILL)
    until(lambda: state(site, session)[0] == "exited", "its end")
    site.mas("stop", session)
    assert state(site, session) == ("exited", "not running", "tmux")
    restored = site.json("restore", session)
    assert restored["agents"][0]["state"] == "starting"
    expect(site, session, "working", "", "osc7501")


def test_a_restored_agent_has_no_state_of_before(site: Site) -> None:
    session = provider(site, report("state=error"))
    expect(site, session, "error", "", "osc7501")
    site.mas("stop", session)
    path = site.path("providers", "teller.toml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(report("state=error").encode().hex(), b"quiet".hex()))
    site.mas("restore", session)
    until(lambda: len(told(site, session)) == 4, "the new start")
    assert state(site, session) == ("starting", "launched", "launcher")


def test_what_a_launcher_has_yet_to_write_is_not_what_another_wrote(site: Site) -> None:
    session = provider(site, report("state=idle"))
    expect(site, session, "idle", "", "osc7501")
    path = site.session(session, "logs", "agent-00.events.jsonl")
    with open(path, encoding="utf-8") as file:
        lines = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(lines.replace('"launcher":', '"launcher":1'))
    assert state(site, session) == ("starting", "launched", "tmux")
    os.remove(path)
    assert state(site, session) == ("starting", "launched", "tmux")


def test_an_agent_that_a_signal_ended_says_so_wherever_one_asks(site: Site) -> None:
    session = provider(site, report("state=idle"))
    expect(site, session, "idle", "", "osc7501")
    (launcher,) = pane_pids(site, session)
    (agent,) = psutil.Process(launcher).children()
    agent.kill()
    until(lambda: state(site, session) == ("exited", "signal 9", "tmux"), "its end")
    assert told(site, session)[-1][:2] == ("exited", "signal 9")


HOOKS = "hook_map = { Prompt = 'working', Permission = 'blocked', Stop = 'idle', Start = 'starting', End = 'exited' }"


def hook(site: Site, session: str, *words: str, payload: str = "", **env: str) -> None:
    """Call a hook as the agent's program would."""
    inside = {"MAS_SESSION_ID": session, "MAS_SESSION_DIR": site.session(session), "MAS_AGENT_ID": "00", **env}
    done = site.mas("hook", *words, input=payload, env=inside)
    assert (done.stdout, done.stderr) == ("", "")


def events(site: Site, session: str) -> list[dict[str, Any]]:
    with open(site.session(session, "logs", "agent-00.events.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_hooks_are_recorded_and_report_states(site: Site) -> None:
    session = provider(site, "hello", sources='"osc7501","hooks"', more=HOOKS)
    expect(site, session, "starting", "launched", "launcher")
    hook(site, session, "Start")
    expect(site, session, "starting", "", "hooks")
    hook(site, session, "Prompt", payload=json.dumps({"prompt": "[MAS id=1]\n" + "é" * 500, "session_id": "abc"}))
    assert state(site, session) == ("working", "", "hooks")
    hook(site, session, "Other", payload="{")
    hook(site, session, "Prompt")
    hook(
        site, session, "Permission", payload=json.dumps({"tool_name": "Bash", "tool_input": {"command": "rm\x1b[0m x"}})
    )
    assert state(site, session) == ("blocked", "permission: approve Bash: rm [0m x", "hooks")
    hook(site, session, "Permission", payload=json.dumps({"message": "which one?"}))
    assert state(site, session) == ("blocked", "question: which one?", "hooks")
    hook(site, session, "End")
    hook(site, session, "Stop")
    assert state(site, session) == ("idle", "", "hooks")
    noted = [event for event in events(site, session) if event["event"] == "hook"]
    assert [event["name"] for event in noted] == [
        *("Start", "Prompt", "Other", "Prompt", "Permission", "Permission", "End", "Stop")
    ]
    assert noted[1]["prompt"] == "[MAS id=1] " + "é" * 94
    assert (noted[1]["session"], noted[4]["tool"]) == ("abc", "Bash")
    assert [one[0] for one in told(site, session)] == ["starting", "starting", "working", "blocked", "blocked", "idle"]


def test_a_better_source_than_hooks_decides(site: Site) -> None:
    session = provider(site, report("state=working"), sources='"osc7501","hooks"', more=HOOKS)
    expect(site, session, "working", "", "osc7501")
    hook(site, session, "Stop")
    assert state(site, session) == ("working", "", "osc7501")
    assert [one[0] for one in told(site, session)] == ["starting", "working"]
    assert [event["state"] for event in events(site, session) if event.get("source") == "hooks"] == ["idle"]


def test_a_title_says_nothing_to_the_workspace_once_hooks_have_spoken(site: Site) -> None:
    more = f"title_map = {{ working = '^busy' }}\n{HOOKS}"
    session = provider(site, "hello", sources='"hooks","title"', more=more)
    expect(site, session, "starting", "launched", "launcher")
    hook(site, session, "Stop")
    tty = site.run(["sh", "-c", f"ps -o tty= -p {events(site, session)[0]['pid']}"]).stdout.strip()
    with open(f"/dev/{tty}", "wb", buffering=0) as terminal:
        terminal.write(b"\x1b]2;busy\x07")
    until(lambda: [event for event in events(site, session) if event.get("source") == "title"], "the title")
    assert state(site, session) == ("idle", "", "hooks")
    assert [one[2] for one in told(site, session)] == ["launcher", "hooks"]


def test_a_hook_never_fails_whatever_it_gets(site: Site) -> None:
    session = provider(site, "hello", sources='"hooks"', more=HOOKS)
    expect(site, session, "starting", "launched", "launcher")
    for payload in ("", "null", "[]", "{", '{"prompt": 1, "tool_input": [], "tool_name": {}}', "[" * 200_000, "\x00"):
        hook(site, session, "Stop", payload=payload)
    hook(site, session, "Stop", payload='{"prompt": "' + "x" * (2 << 20) + '"}')
    hook(site, session)
    hook(site, session, "Stop", "and", "more")
    hook(site, session, "a\nb" * 100)
    for wrong in ("", "relative", site.directory, site.session(session) + "/..", site.session("x")):
        hook(site, session, "Stop", MAS_SESSION_DIR=wrong)
    for wrong in ("", "../00", "0", "99"):
        hook(site, session, "Stop", MAS_AGENT_ID=wrong)
    assert state(site, session) == ("idle", "", "hooks")
    assert max(len(event.get("name", "")) for event in events(site, session)) <= 64
    assert sorted(name for name in os.listdir(site.session(session, "logs")) if name.endswith(".jsonl")) == [
        "agent-00.events.jsonl"
    ]


def test_a_hook_touches_nothing_but_its_agent_s_file(site: Site) -> None:
    session = provider(site, "hello", sources='"hooks"', more=HOOKS)
    expect(site, session, "starting", "launched", "launcher")
    path = site.session(session, "logs", "agent-00.events.jsonl")
    os.rename(path, f"{path}.aside")
    target = os.path.join(site.directory, "target")
    os.symlink(target, path)
    hook(site, session, "Stop")
    assert not os.path.exists(target)


def test_a_hook_is_called_by_an_agent_with_what_it_has(site: Site) -> None:
    """The real way: the agent's own environment, its own `mas`."""
    script = f"{shlex.quote(sys.executable)} -m mas hook Stop </dev/null; exec sleep 1000"
    os.makedirs(site.path("providers"), exist_ok=True)
    with open(site.path("providers", "hooked.toml"), "w", encoding="utf-8") as file:
        file.write(
            'provider = { id = "hooked" }\n[launch]\n'
            f"argv = {json.dumps(['sh', '-c', script])}\n[status]\nsources = ['hooks']\n{HOOKS}\n"
        )
    session = site.start("--team", "solo", "--provider", "hooked")
    expect(site, session, "idle", "", "hooks")
