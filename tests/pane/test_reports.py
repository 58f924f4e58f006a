"""What an agent reports about itself: taken from its output, recorded, sent to the workspace as events."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import psutil

from mas.model.launch import Sign, StatePlan
from mas.model.state import State, fold
from mas.pane.logs import AgentLogs
from mas.pane.states import States
from mas.store.agent.agentlog import AgentLog
from tests.pane.pane import Pane, pane, stand_in
from tests.site import Site, until

BUSY_OR_FREE = (Sign(match="^busy", state="working"), Sign(match="^free", state="idle"))

QUERY = b"\x1b]7501;?\x1b\\"
# What a person types who starts a program that exits once there is a file.
UNTIL_GO = b"sh -c 'until test -e go; do sleep 0.01; done'\r"


def report(body: str) -> bytes:
    return f"\x1b]7501;{body}\x1b\\".encode()


def told(one: Pane) -> list[tuple[str, str, str, str]]:
    """The states that were written down: source, state, kind, text."""
    return [
        (event["source"], event["state"], event["kind"], event["text"])
        for event in one.events()
        if event["event"] == "state"
    ]


def news(one: Pane) -> list[dict[str, Any]]:
    """The workspace's events about the agent."""
    directory = os.path.join(one.site.directory, ".mas", "events")
    found = []
    for name in sorted(os.listdir(directory)):
        if name.endswith(".jsonl"):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                found += [json.loads(line) for line in file if line.strip()]
    return found


def workspace(site: Site) -> None:
    os.makedirs(os.path.join(site.directory, ".mas"))


def test_reports_are_recorded_and_not_shown(bare: Site) -> None:
    pieces = (
        b"one" + report("state=idle:app=x"),
        report("state=working") + b"two" + report("state=working"),
        report("state=blocked:kind=permission:msg=YXBwcm92ZQ==") + b"three",
    )
    with pane(bare, *stand_in("teller"), *(piece.hex() for piece in pieces)) as one:
        one.expect(b"three")
        until(lambda: len(told(one)) == 3, "the states")
        one.send(b"q")
        assert one.wait() == 0
        assert one.output.startswith(b"onetwothree\x1b")
        assert one.log() == b"onetwothree"
        assert told(one) == [
            ("osc7501", "idle", "", ""),
            ("osc7501", "working", "", ""),
            ("osc7501", "blocked", "permission", "approve"),
        ]


def test_a_report_that_comes_byte_by_byte_is_read(bare: Site) -> None:
    stream = b"<" + report("state=working:msg=aGk=") + b">"
    with pane(bare, *stand_in("teller"), *(f"{byte:02x}" for byte in stream)) as one:
        until(lambda: told(one) == [("osc7501", "working", "", "hi")], "the state")
        one.expect(b"<>")


def test_what_was_kept_back_is_shown_when_the_agent_ends(bare: Site) -> None:
    for end in (b"\x1b", b"\x1b]7501;state=id"):
        with pane(bare, "printf", "%b", "last" + "".join(f"\\0{byte:03o}" for byte in end)) as one:
            assert one.wait() == 0
            assert one.output.startswith(b"last" + end)
            assert one.log().endswith(b"last" + end)
            assert told(one) == []


def test_a_query_is_answered_at_once_and_not_shown(bare: Site) -> None:
    with pane(bare, *stand_in("teller"), QUERY.hex(), b"\x1b]7501;?\x07ready".hex()) as one:
        one.expect(b"ready")
        until(lambda: read(one, "typed") == QUERY + b"\x1b]7501;?\x07", "the answers")
        assert bytes(one.output) == b"ready"


def read(one: Pane, name: str) -> bytes:
    try:
        with open(one.path(name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def test_an_answer_that_comes_back_as_a_query_does_not_go_round_for_ever(bare: Site) -> None:
    # A terminal that echoes, and does not write control characters as `^[`.
    script = "stty -echoctl -icanon; printf '\\033]7501;?\\033\\\\'; cat > typed; echo end"
    with pane(bare, "sh", "-c", script) as one:
        until(lambda: len(read(one, "typed")) >= len(QUERY), "an answer")
        launcher = psutil.Process(one.process.pid)
        until(lambda: is_quiet(launcher), "the launcher at rest")
        assert len(read(one, "typed")) <= 64 * len(QUERY)


def is_quiet(process: psutil.Process, moment: float = 0.2) -> bool:
    """Whether a process does nothing for a moment."""
    before = process.num_ctx_switches()
    return bool(process.cpu_percent(interval=moment) == 0 and process.num_ctx_switches() == before)


def test_an_agent_that_asks_and_does_not_read_is_not_answered_without_end(bare: Site) -> None:
    ask = r"printf '\033]7501;?\a'"
    script = f"stty -echo -icanon; i=0; while [ $i -lt 300 ]; do {ask}; i=$((i+1)); done; echo end"
    with pane(bare, "sh", "-c", script) as one:
        assert one.wait() == 0
        assert one.output.startswith(b"end\r\n")


def test_the_state_that_decides_is_an_event_of_the_workspace(bare: Site) -> None:
    workspace(bare)
    pieces = (
        b"\x1b]2;busy\x07",
        report("state=idle"),
        b"\x1b]2;free\x07",
        report("state=blocked:kind=permission:msg=aGk="),
    )
    # One after the other: of what comes in one piece, reports are read before titles.
    words = [word for number, piece in enumerate(pieces) for word in (f"@{number}", piece.hex())]
    plan = {"states": StatePlan(sources=("osc7501", "title"), title_map=BUSY_OR_FREE)}
    with pane(bare, *stand_in("teller"), *words, plan=plan) as one:
        for number in range(len(pieces)):
            with open(one.path(str(number)), "w", encoding="ascii"):
                pass
            until(lambda wanted=number + 1: len(told(one)) == wanted, "the state")  # type: ignore[misc]
        one.send(b"q")
        assert one.wait() == 0
        assert [state[:2] for state in told(one)] == [
            *(("title", "working"), ("osc7501", "idle"), ("title", "idle"), ("osc7501", "blocked")),
        ]
        seen = [tuple(event[key] for key in ("state", "stateText", "stateSource", "kind")) for event in news(one)]
        assert seen == [
            ("starting", "launched", "launcher", ""),
            ("working", "busy", "title", ""),
            ("idle", "", "osc7501", ""),
            ("blocked", "permission: hi", "osc7501", "permission"),
            ("exited", "exit status 0", "launcher", ""),
        ]
        assert {(event["event"], event["sessionId"], event["agent"]) for event in news(one)} == {
            ("agent", "session", "00")
        }


def test_a_title_that_only_moves_is_no_news(bare: Site) -> None:
    pieces = [f"\x1b]0;{frame} Working\x07".encode() for frame in "⠋⠙⠹⠸⠼⠴"] + [b"\x1b]0;done\x07end"]
    signs = (Sign(match="^[⠀-⣿]", state="working"), Sign(match="^done", state="idle"))
    plan = {"states": StatePlan(sources=("title",), title_map=signs)}
    with pane(bare, *stand_in("teller"), *(piece.hex() for piece in pieces), plan=plan) as one:
        one.expect(b"end")
        until(lambda: len(told(one)) == 2, "the states")
        assert told(one) == [("title", "working", "", "⠋ Working"), ("title", "idle", "", "done")]
        # Titles are tmux's too.
        assert bytes(one.output) == b"".join(pieces)


def test_titles_can_count_from_when_a_hook_was_called(bare: Site) -> None:
    workspace(bare)
    pieces = (b"\x1b]0;busy\x07", b"\x1b]0;free\x07" + report("state=working"))
    plan = {"states": StatePlan(sources=("title", "hooks"), title_map=BUSY_OR_FREE, titles_wait=True)}
    with pane(bare, *stand_in("teller"), *(piece.hex() for piece in pieces), plan=plan) as one:
        until(lambda: told(one) == [("osc7501", "working", "", "")], "what is no title")
        with AgentLog(os.path.join(one.session, "logs", "agent-00.events.jsonl")) as log:
            log.add({"event": "hook", "name": "SessionStart"})
        # Of what was reported too soon the last counts.
        until(lambda: [state[:2] for state in told(one)][1:] == [("title", "idle")], "the title")


def test_no_time_that_passes_stands_for_a_hook(bare: Site) -> None:
    session = os.path.join(bare.directory, "session")
    os.makedirs(os.path.join(session, "logs"))
    path = os.path.join(session, "logs", "agent-00.events.jsonl")
    states = States(AgentLogs(session, "00"), ("title", "hooks"), 0.0, patience=60.0, titles_wait=True)
    states.say("title", "idle", "", "", 1.0)
    assert states.due == 1.1
    states.look(59.9)
    assert not os.path.exists(path)
    states.look(60.0)
    assert fold(lines_of(path), ("title", "hooks")).state is State.UNKNOWN
    # It goes on waiting, less often.
    assert states.due == 61.0
    with AgentLog(path) as log:
        log.add({"event": "hook", "name": "SessionStart"})
    states.look(600.0)
    assert fold(lines_of(path), ("title", "hooks")).state is State.IDLE
    assert not states.due


def test_titles_wait_for_a_dialog_to_be_answered(bare: Site) -> None:
    session = os.path.join(bare.directory, "session")
    os.makedirs(os.path.join(session, "logs"))
    path = os.path.join(session, "logs", "agent-00.events.jsonl")
    states = States(AgentLogs(session, "00"), ("title", "hooks", "screen"), 0.0, titles_wait=True)
    states.say("title", "idle", "", "", 1.0)
    assert not states.know_better("screen")
    states.say("screen", "blocked", "auth", "", 2.0)
    with AgentLog(path) as log:
        log.add({"event": "hook", "name": "SessionStart"})
    states.look(100.0)
    assert fold(lines_of(path), ("title", "hooks", "screen")).state is State.BLOCKED
    states.say("screen", "starting", "", "", 101.0)
    states.look(101.1)
    assert states.know_better("screen")
    assert fold(lines_of(path), ("title", "hooks", "screen")).state is State.IDLE


def lines_of(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return file.readlines()


def test_an_agent_without_a_source_has_an_unknown_state_and_its_reports_decide_nothing(bare: Site) -> None:
    workspace(bare)
    with pane(bare, *stand_in("teller"), report("state=idle").hex()) as one:
        until(lambda: told(one), "the state")
        one.send(b"q")
        assert one.wait() == 0
        assert [event["state"] for event in news(one)] == ["unknown", "exited"]


def test_a_flood_of_states_is_thinned_and_its_last_is_reported(bare: Site) -> None:
    flood = b"".join(report(f"state={state}") for _ in range(1000) for state in ("idle", "working"))
    with pane(bare, *stand_in("teller"), (flood + report("state=error")).hex()) as one:
        until(lambda: told(one)[-1:] == [("osc7501", "error", "", "")], "the last state")
        assert len(told(one)) < 200


def test_states_that_wait_are_written_when_there_is_room(bare: Site) -> None:
    session = os.path.join(bare.directory, "session")
    os.makedirs(os.path.join(session, "logs"))
    states = States(AgentLogs(session, "00"), ("osc7501",), 0.0)
    for number in range(100):
        states.say("osc7501", "working", "", str(number), 0.0)
    assert states.due == 1 / 8
    states.look(0.1)
    assert states.due == 1 / 8
    states.look(1 / 8)
    assert not states.due
    with open(os.path.join(session, "logs", "agent-00.events.jsonl"), encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    assert texts == [*map(str, range(40)), "99"]


def test_a_shell_works_while_it_runs_a_program(bare: Site) -> None:
    plan = {"states": StatePlan(sources=("foreground",))}
    with pane(bare, "sh", "-i", agent_env={"PS1": "$ ", "ENV": ""}, plan=plan) as one:
        until(lambda: told(one) == [("foreground", "idle", "", "")], "the idle shell")
        one.send(b"sleep 1000\r")
        until(lambda: told(one)[-1][1] == "working", "the working shell")
        launcher = psutil.Process(one.process.pid)
        one.send(b"\x03")
        until(lambda: told(one)[-1][1] == "idle", "the shell at its prompt")
        until(lambda: is_quiet(launcher, 1.5), "no look without a reason")
        one.send(UNTIL_GO)
        until(lambda: told(one)[-1][1] == "working", "the next program")
        with open(one.path("go"), "w", encoding="ascii"):
            pass
        until(lambda: [state[1] for state in told(one)] == ["idle", "working", "idle", "working", "idle"], "the end")


def test_a_program_that_ends_in_silence_is_seen_to_end(bare: Site) -> None:
    plan = {"states": StatePlan(sources=("foreground",))}
    with pane(bare, "sh", "-i", agent_env={"PS1": "", "ENV": ""}, plan=plan) as one:
        one.send(b"stty -echo\r")
        until(lambda: told(one)[-1:] == [("foreground", "idle", "", "")], "the idle shell")
        one.send(UNTIL_GO)
        until(lambda: told(one)[-1][1] == "working", "the program")
        with open(one.path("go"), "w", encoding="ascii"):
            pass
        until(lambda: [state[1] for state in told(one)][-2:] == ["working", "idle"], "the end of the program")


def test_the_last_state_before_the_end_is_written_however_many_came(bare: Site) -> None:
    flood = b"".join(report(f"state=working:msg={'QUFB' * number}") for number in range(100))
    with pane(bare, "printf", "%b", "".join(f"\\0{byte:03o}" for byte in flood + report("state=error"))) as one:
        assert one.wait() == 0
        assert told(one)[-1][1] == "error"
        assert one.events()[-1]["event"] == "exit"


def test_a_launcher_that_is_killed_leaves_whole_lines(bare: Site) -> None:
    pieces = [report(f"state=working:msg={'QUFB' * 500}")] + [report("state=idle"), report("state=working")] * 10
    with pane(bare, *stand_in("teller"), *(piece.hex() for piece in pieces)) as one:
        until(lambda: told(one), "a state")
        os.kill(one.process.pid, signal.SIGKILL)
        one.process.wait()
        assert one.events()[0]["event"] == "start"
        assert all(event["event"] in ("start", "state") for event in one.events())


def test_the_start_says_by_what_the_state_is_known(bare: Site) -> None:
    with pane(bare, "true", plan={"states": StatePlan(sources=("osc7501", "hooks"))}) as one:
        assert one.event("start")["sources"] == ["osc7501", "hooks"]
        assert one.wait() == 0
