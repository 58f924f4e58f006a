"""Hooks of an agent that cannot record them itself: its launcher receives them, and cannot be fooled or stopped."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from mas.model.launch import Sign, StatePlan
from mas.store.agent.answers import ALLOW, give, waiting
from mas.store.agent.hook_spool import BELL, LARGEST, spool_path
from tests.pane.pane import Pane, pane, stand_in
from tests.site import Site, until, words_of

STATES = StatePlan(
    sources=("hooks",), hook_map=(Sign(match="Prompt", state="working"), Sign(match="Stop", state="idle"))
)
PLAN = {"spool": True, "states": STATES}
ASKING = {"spool": True, "states": STATES.but(answer_hook="Permission", answer_timeout=60)}


@contextmanager
def hooked(bare: Site, *argv: str, plan: dict[str, Any] = PLAN) -> Iterator[Pane]:
    session = os.path.join(bare.directory, "session")
    os.makedirs(os.path.join(session, ".mas", "agents", "00"), exist_ok=True)
    env = {"MAS_SESSION_DIR": session, "MAS_AGENT_ID": "00", "MAS_HOOKS": spool_path(session, "00")}
    with pane(bare, *argv, plan=plan, agent_env=env) as one:
        until(lambda: os.path.exists(spool(one, BELL)), "the bell")
        yield one


def spool(one: Pane, *names: str) -> str:
    return os.path.join(spool_path(one.session, "00"), *names)


def noted(one: Pane) -> list[str]:
    return [event["name"] for event in one.events() if event["event"] == "hook"]


def said(one: Pane) -> str:
    until(lambda: os.path.exists(one.path("done")), "the agent's hooks")
    with open(one.path("said"), encoding="utf-8") as file:
        return file.read()


def ring(one: Pane, *names: str) -> None:
    bell = until(lambda: _open_bell(spool(one, BELL)), "somebody who listens")
    try:
        os.write(bell, "".join(f"{name}\n" for name in names).encode())
    finally:
        os.close(bell)


def _open_bell(path: str) -> int | None:
    """The bell to write to; None while no process reads it, as just after it was created."""
    with suppress(OSError):
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    return None


def leave(one: Pane, name: str, data: bytes) -> None:
    with open(spool(one, name), "wb") as file:
        file.write(data)


def until_noted(one: Pane, hook: str) -> None:
    """A hook that is as it should be is noted, whatever else there is."""
    name = os.urandom(16).hex()
    leave(one, name, hook.encode() + b"\n{}")
    ring(one, name)
    until(lambda: hook in noted(one), f"{hook} among {noted(one)}")
    until(lambda: not os.path.exists(spool(one, name)), "the hook's end")


def test_hooks_are_noted_by_the_launcher_in_their_order(bare: Site) -> None:
    calls = [*(f"Prompt={json.dumps({'prompt': str(number)})}" for number in range(5)), "Stop", "Other={"]
    with hooked(bare, *stand_in("hooks"), *calls) as one:
        assert said(one) == ""
        assert noted(one) == ["Prompt"] * 5 + ["Stop", "Other"]
        prompts = [event["prompt"] for event in one.events() if event.get("prompt")]
        assert prompts == ["0", "1", "2", "3", "4"]
        states = [event["state"] for event in one.events() if event.get("source") == "hooks"]
        assert states == ["working", "idle"]
        assert os.listdir(spool(one)) == [BELL]


def test_a_question_is_answered_through_the_launcher(bare: Site) -> None:
    ask = f"Permission={json.dumps({'tool_name': 'Bash', 'tool_input': {'command': 'rm x'}})}"
    with hooked(bare, *stand_in("hooks"), ask, "Stop", plan=ASKING) as one:
        (request,) = until(lambda: waiting(one.session, "00"), "the question")
        assert not os.path.exists(one.path("done"))
        assert give(one.session, request, ALLOW)
        answer = json.loads(said(one))["hookSpecificOutput"]
        assert answer == {"hookEventName": "Permission", "decision": {"behavior": "allow"}}
        assert [event["state"] for event in one.events() if event["event"] == "state"] == ["blocked", "working", "idle"]
        until(lambda: os.listdir(spool(one)) == [BELL], "nothing left")
        assert waiting(one.session, "00") == {}


def test_a_question_ends_with_the_process_that_asks_and_others_go_on_meanwhile(bare: Site) -> None:
    with hooked(bare, "sleep", "1000", plan=ASKING) as one:
        name = os.urandom(16).hex()
        with open(spool(one, name), "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(b"Permission\n{}")
            file.flush()
            ring(one, name)
            until(lambda: waiting(one.session, "00"), "the question")
            until(lambda: os.path.exists(spool(one, f"{name}.asked")), "that it is asked")
            until_noted(one, "Meanwhile")
            assert waiting(one.session, "00")
        until(lambda: not waiting(one.session, "00"), "the end of the question")
        until(lambda: not os.path.exists(spool(one, f"{name}.asked")), "the end of the wait")
        assert not os.path.exists(spool(one, f"{name}.answer"))


def test_only_files_of_a_bearable_size_are_opened_and_no_link_is_followed(bare: Site) -> None:
    secret, other = (os.path.join(bare.directory, name) for name in ("secret", "other"))
    for path in (secret, other):
        with open(path, "w", encoding="utf-8") as file:
            file.write("Secret\n{}")
    with hooked(bare, "sleep", "1000") as one:
        bad = [os.urandom(16).hex() for _ in range(7)]
        os.symlink(secret, spool(one, bad[0]))
        os.link(other, spool(one, bad[1]))
        os.mkfifo(spool(one, bad[2]))
        os.mkdir(spool(one, bad[3]))
        with open(spool(one, bad[4]), "wb") as file2:
            file2.write(b"Huge\n")
            file2.truncate(LARGEST + 1)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(spool(one, bad[5]))
        ring(one, *bad, "../../../../secret", "x" * 32, "", f"{bad[0]}{bad[0]}", "A" * 32)
        until_noted(one, "Good")
        assert noted(one) == ["Good"]
        with open(secret, encoding="utf-8") as file3:
            assert file3.read() == "Secret\n{}"


def test_nothing_that_stands_where_an_answer_goes_is_written_through(bare: Site) -> None:
    outside = os.path.join(bare.directory, "outside")
    with hooked(bare, "sleep", "1000", plan=ASKING) as one:
        names = [os.urandom(16).hex() for _ in range(2)]
        os.symlink(outside, spool(one, f"{names[0]}.asked"))
        os.symlink(outside, spool(one, f"{names[1]}.answer"))
        leave(one, names[0], b"Permission\n{}")
        ring(one, names[0])
        until_noted(one, "After")
        with open(spool(one, names[1]), "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(b"Permission\n{}")
            file.flush()
            ring(one, names[1])
            (request,) = until(lambda: waiting(one.session, "00"), "the question")
            give(one.session, request, ALLOW)
            until(lambda: not os.path.lexists(spool(one, f"{names[1]}.asked")), "the answer")
        assert not os.path.exists(outside)
        assert "allow" in read(spool(one, f"{names[1]}.answer"))


def test_a_flood_of_hooks_and_rubbish_stops_neither_the_launcher_nor_the_agent(bare: Site) -> None:
    with hooked(bare, "cat") as one:
        for number in range(3000):
            leave(one, f"rubbish\n\x1b{number}", b"")
        leave(one, os.fsdecode(b"\xff\xfe"), b"")
        bell = os.open(spool(one, BELL), os.O_WRONLY | os.O_NONBLOCK)
        typed = 0
        while typed < 20:
            try:
                os.write(bell, os.urandom(2000) + f"\n{os.urandom(16).hex()}\n".encode() * 40)
            except BlockingIOError:
                typed += 1
                one.send(b"here%d\n" % typed)
                one.expect(b"here%d" % typed)
        os.close(bell)
        launcher = psutil.Process(one.process.pid)
        assert launcher.memory_info().rss < 64 << 20
        clerks = [child for child in launcher.children() if words_of(child) == launcher.cmdline()]
        assert len(clerks) <= 1
        # One may have done its work by now.
        with suppress(psutil.NoSuchProcess):
            assert all(clerk.memory_info().rss < 64 << 20 for clerk in clerks)
        until_noted(one, "After")


def test_what_a_former_run_left_in_the_way_is_put_away_or_done_without(bare: Site) -> None:
    place = os.path.join(bare.directory, "session", ".mas", "agents", "00")
    outside = os.path.join(bare.directory, "outside")
    os.makedirs(outside)
    os.makedirs(place)
    os.symlink(outside, os.path.join(place, "hooks"))
    with hooked(bare, "sleep", "1000") as one:
        until_noted(one, "One")
        assert os.listdir(outside) == []
        assert not os.path.islink(spool(one))
    os.unlink(os.path.join(place, "hooks", BELL))
    os.mkdir(os.path.join(place, "hooks", BELL))
    env: dict[str, Any] = {"plan": PLAN}
    with pane(bare, "echo", "I run", **env) as one:
        one.expect(b"I run")
        assert one.wait() == 0


def test_the_clerk_goes_when_all_is_quiet_and_comes_back(bare: Site) -> None:
    with hooked(bare, "sleep", "1000") as one:
        launcher = psutil.Process(one.process.pid)
        until(lambda: len(launcher.children()) == 1, "the agent")
        until_noted(one, "One")
        until(lambda: len(launcher.children()) == 1, "the clerk has left")
        until_noted(one, "Two")
        until(lambda: len(launcher.children()) == 1, "the second clerk has left, too")
    assert [event["left"] for event in one.events() if event["event"] == "exit"] == [[]]


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
