"""Approvals: one inbox of every agent that waits for an answer, and each answer given once, to the right question."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from mas.model.approvals import AgentAnswer
from mas.model.errors import AgentExited, Conflict, NoAgent, NoSession
from mas.model.ids import SessionId
from mas.model.launch import StatePlan
from mas.model.state import fold
from mas.service.agents import approvals as service
from mas.service.local import LocalMas
from mas.store.agent.agentlog import last_run
from mas.store.agent.launch_plan import read_plan, write_plan
from tests.e2e.standin import ASLEEP, read, write
from tests.served import Served
from tests.site import AGENTS, Site, until

QUICK = 'method = "key", key = "Enter", deny_key = "n", key_min_wait = 0.0'
HOOKED = 'method = "hook:PermissionRequest", hook_timeout = {}'


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def provide(site: Site, name: str, program: str, *words: str, approve: str, status: str) -> str:
    """A session of one agent that is the stand-in `program`."""
    argv = json.dumps([sys.executable, os.path.join(AGENTS, f"{program}.py"), *words])
    text = f'provider = {{ id = "{name}" }}\napprove = {{ {approve} }}\n[launch]\nargv = {argv}\n[status]\n{status}\n'
    write(text, site.path("providers", f"{name}.toml"))
    return site.start("--team", "solo", "--provider", name)


def asker(site: Site, *questions: str, keys: int = 1, kind: str = "permission", approve: str = QUICK) -> SessionId:
    """An agent that asks these questions, each answered by this many keys; it asks the first."""
    words = (str(keys), kind, *questions)
    session = provide(site, "asker", "asker", *words, approve=approve, status='sources = ["osc7501"]')
    until(lambda: asked(site.local(), session) == questions[:1], "the first question")
    return SessionId(session)


def hook_asker(site: Site, *words: str, timeout: float = 300) -> SessionId:
    status = 'sources = ["hooks"]\n[status.hook_map]\nPermissionRequest = "blocked"\nStop = "idle"'
    status += '\n"PermissionRequest:AskUserQuestion" = "blocked:question"'
    approve = HOOKED.format(timeout)
    session = provide(site, "hooked", "hook_asker", *(words or ("rm x",)), approve=approve, status=status)
    return SessionId(session)


def asked(mas: LocalMas, session: str | None = None) -> tuple[str, ...]:
    return tuple(one.text for one in mas.approvals(SessionId(session) if session else None).approvals)


def unit(site: Site, session: str, *names: str) -> str:
    return site.session(session, "unit", "00", *names)


def keys(site: Site, session: str) -> str:
    # A carriage return is kept as what it is.
    with open(unit(site, session, "keys"), newline="", encoding="utf-8") as file:
        return file.read()


def demo(site: Site, *args: str) -> str:
    """A session of demo agents, the first of them idle."""
    session = site.start(*(args or ("--team", "solo")), "--provider", "demo")
    until(lambda: state(site, session) == "idle", "the demo agent")
    return session


def state(site: Site, session: str) -> str:
    return str(site.local().show(SessionId(session)).agents[0].state)


def ask(site: Site, session: str, question: str) -> None:
    site.mas("send", "--session", session, "00", f"/ask {question}")
    until(lambda: state(site, session) == "blocked", "the question")


# Through the command line, with an agent that behaves like a real one.


def test_what_agents_ask_is_in_one_inbox_and_answered_from_the_command_line(site: Site) -> None:
    first, second = demo(site), demo(site, "--team", "pair", "--name", "Ann")
    assert site.json("approvals")["approvals"] == []
    assert site.mas("approvals").stderr == "No agent is waiting for a decision\n"
    ask(site, first, "remove it all")
    (found,) = site.json("approvals")["approvals"]
    since = found.pop("since")
    assert found == {
        "sessionId": first,
        "sessionName": None,
        "agent": "00",
        "unit": "meta",
        "role": "Meta manager",
        "provider": "demo",
        "kind": "permission",
        "text": "remove it all",
        "source": "osc7501",
        "canAnswer": True,
        "whyNot": "",
        "hint": f"mas approve {first} 00; mas deny {first} 00",
        "screen": "",
    }
    table = site.mas("approvals").stdout
    assert all(word in table for word in (first[:8], "00", "permission", "remove it all", since[:10]))
    assert site.json("approvals", "--session", second)["approvals"] == []
    answer = site.json("approve", first, "00")
    assert answer.pop("state") in ("working", "idle")
    assert (answer["allowed"], answer["text"]) == (True, "remove it all")
    until(lambda: "(demo) allowed" in site.mas("output", first, "00").stdout, "the answer")
    assert site.json("approvals")["approvals"] == []
    assert "approve 00 by=person: permission: remove it all" in read(site.session(first, "logs", "session.log"))


def test_an_answer_can_be_no_and_needs_no_session_where_there_is_one(site: Site) -> None:
    session = demo(site)
    ask(site, session, "drop a table")
    assert site.mas("deny", "00").stderr.startswith("Denied 00: drop a table (now ")
    until(lambda: "(demo) denied" in site.mas("output", "00").stdout, "the answer")
    done = site.mas("deny", "00", code=4)
    assert "Agent 00 is not waiting for a decision: it is idle" in done.stderr
    assert f"mas approve {session[:8]}:00" in site.mas("approve", session, code=2).stderr
    events = [event for event in site.local().events("0", 10_000).events if event.event == "approval"]
    assert [(event.session_id, event.agent, event.details) for event in events] == [
        (session, "00", {"allowed": False, "by": "person", "kind": "permission", "text": "drop a table"})
    ]


# Through a server.


def test_the_api_lists_and_answers_questions_for_its_owner_alone(served: Served) -> None:
    site, client = served.site, served.client()
    session = demo(site)
    ask(site, session, "go on")
    token = site.mas("token", "--session", session, "--agent", "00").stdout.strip()
    paths = [f"/sessions/{session}/agents/00/{word}" for word in ("approve", "deny")]
    for path in paths:
        assert served.client(token).post(path).status_code == 403
    assert served.client(token).get("/approvals").status_code == 403
    assert [one["text"] for one in client.get("/approvals").json()["approvals"]] == ["go on"]
    assert len(client.get("/approvals", params={"sessionId": session}).json()["approvals"]) == 1
    assert client.get("/approvals", params={"sessionId": "x"}).status_code == 404
    assert client.get("/approvals", params={"sessionId": "x/y"}).status_code == 422
    answer = client.post(paths[0])
    assert (answer.status_code, answer.json()["allowed"]) == (200, True)
    until(lambda: state(site, session) == "idle", "the agent goes on")
    refused = client.post(paths[1])
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong-state")
    assert "approve 00 by=owner: permission: go on" in read(site.session(session, "logs", "session.log"))
    ask(site, session, "once more")
    assert served.mas("approvals").stdout.count("once more") == 1
    served.mas("deny", "00")
    assert site.json("approvals")["approvals"] == []


# What is not answered.


def test_an_agent_that_asks_nothing_has_exited_or_is_unknown_gets_no_key(site: Site) -> None:
    mas = site.local()
    session = SessionId(site.start("--team", "solo", "--command", "true"))
    until(lambda: state(site, session) == "exited", "its end")
    with pytest.raises(AgentExited, match="has exited"):
        mas.answer(session, "00", True)
    with pytest.raises(NoAgent):
        mas.answer(session, "99", True)
    other = SessionId(site.start(*ASLEEP))
    until(lambda: state(site, other) == "unknown", "its start")
    with pytest.raises(Conflict, match="is not waiting for a decision: it is unknown"):
        mas.answer(other, "00", True)
    site.mas("stop", other)
    with pytest.raises(Conflict, match="not running"):
        mas.answer(other, "00", True)
    with pytest.raises(NoSession):
        mas.approvals(SessionId("00000000-0000-4000-8000-000000000000"))
    assert asked(mas, other) == ()


@pytest.mark.parametrize(
    ("kind", "approve", "why"),
    [
        ("auth", QUICK, "only a person at its terminal can decide this"),
        ("trust", QUICK, "only a person at its terminal can decide this"),
        ("question", QUICK, "only a person at its terminal can decide this"),
        ("permission", 'method = "none"', "the provider asker does not support it"),
        ("permission", 'method = "hook:Ask"', "its program takes the answer only"),
    ],
)
def test_what_only_a_person_may_answer_is_reported_and_no_key_pressed(
    site: Site, kind: str, approve: str, why: str
) -> None:
    session = asker(site, "be trusted", kind=kind, approve=approve)
    (found,) = site.local().approvals().approvals
    assert (found.can_answer, found.hint) == (False, f"mas attach {session} 00")
    assert why in found.why_not
    done = site.mas("approve", "00", code=4)
    assert why in done.stderr
    assert f"mas attach {session[:8]} 00" in done.stderr
    assert why in site.mas("approvals").stderr
    assert keys(site, session) == ""


def test_a_dialog_that_only_a_title_reports_is_looked_at_first(site: Site) -> None:
    status = 'sources = ["title"]\ntitle_map = { blocked = "^ask" }\n[[status.startup_dialogs]]\nmatch = "trust"\n'
    piece = b"\x1b]2;ask\x07Do you trust it?".hex()
    session = SessionId(
        provide(
            site, "titled", "pane_teller", piece, approve=QUICK, status=f'{status}report = "blocked:trust"\nhint = "x"'
        )
    )
    until(lambda: state(site, session) == "blocked", "the dialog")
    with pytest.raises(Conflict, match="only a person at its terminal"):
        site.local().answer(session, "00", True)
    assert read(unit(site, session, "typed")) == ""


# Once, and to the right question.


def answering(pool: ThreadPoolExecutor, site: Site, session: SessionId, allow: bool = True) -> Future[AgentAnswer]:
    return pool.submit(site.local().answer, session, "00", allow)


def begun(pool: ThreadPoolExecutor, site: Site, session: SessionId) -> Future[AgentAnswer]:
    """An answer that waits for the moment to press its key: it has seen the question, and keeps others from typing."""
    waits = answering(pool, site, session)
    until(lambda: not is_free(site, session), "the answer is under way")
    return waits


def is_free(site: Site, session: SessionId) -> bool:
    with site.world().messages().nobody_typing(session, "00") as free:
        return free


def is_waited_for(lock: str) -> bool:
    """Whether a process waits for a lock that another has."""
    number = os.stat(lock).st_ino
    return any("->" in line and f":{number} " in line for line in read("/proc/locks").splitlines())


def test_two_people_answering_at_once_press_one_key(site: Site, pool: ThreadPoolExecutor) -> None:
    session = asker(site, "begin", approve=QUICK.replace("0.0", "1.0"))
    both = [answering(pool, site, session), answering(pool, site, session, allow=False)]
    failed = [error for error in (one.exception(60) for one in both) if error]
    assert len(failed) == 1
    assert isinstance(failed[0], Conflict)
    assert "Agent 00 was already answered" in str(failed[0])
    assert keys(site, session) in ("\r", "n")


def test_a_question_that_changed_meanwhile_is_not_answered(site: Site, pool: ThreadPoolExecutor) -> None:
    session = asker(site, "look", "delete", approve=QUICK.replace("0.0", "600"))
    waits = begun(pool, site, session)
    write("", unit(site, session, "next"))
    with pytest.raises(Conflict, match=r"now asks something else .permission: delete.; MAS did not answer it"):
        waits.result(60)
    assert keys(site, session) == ""
    assert asked(site.local()) == ("delete",)


def test_an_agent_that_ends_meanwhile_gets_no_answer(site: Site, pool: ThreadPoolExecutor) -> None:
    session = asker(site, "look", approve=QUICK.replace("0.0", "600"))
    waits = begun(pool, site, session)
    write("", unit(site, session, "die"))
    with pytest.raises(AgentExited, match=r"Agent 00 has exited .exit status 3."):
        waits.result(60)


def test_an_agent_whose_launcher_is_killed_meanwhile_gets_no_answer(site: Site, pool: ThreadPoolExecutor) -> None:
    session = asker(site, "look", approve=QUICK.replace("0.0", "2"))
    waits = begun(pool, site, session)
    pid = int(site.tmux("list-panes", "-a", "-F", "#{pane_pid}"))
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(AgentExited):
        waits.result(60)


def test_nothing_is_typed_to_an_agent_while_it_is_answered(site: Site, pool: ThreadPoolExecutor) -> None:
    session = asker(site, "look")
    with site.world().messages().typing(session, "00"):
        waits = answering(pool, site, session)
        until(lambda: is_waited_for(site.session(session, ".mas", "typing-00.lock")), "the answer waits for its turn")
        write("", unit(site, session, "next"))
        until(lambda: state(site, session) == "idle", "the agent goes on by itself")
    with pytest.raises(Conflict, match="it is idle"):
        waits.result(60)
    assert keys(site, session) == ""


def test_a_key_that_is_not_taken_is_pressed_once_more(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_ANSWERED", 0.5)
    session = asker(site, "begin", keys=2)
    assert site.local().answer(session, "00", True).state in ("working", "idle")
    assert keys(site, session) == "\r\r"


def test_an_answer_that_is_not_taken_is_an_error_with_the_screen(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_ANSWERED", 0.5)
    session = asker(site, "begin", keys=9)
    with pytest.raises(Conflict, match=r"is still asking .permission: begin.: Enter was pressed twice") as caught:
        site.local().answer(session, "00", True)
    assert "may it begin?" in caught.value.message
    assert caught.value.hint == f"mas attach {session} 00"
    assert keys(site, session) == "\r\r"


# By a hook.


def decision(site: Site, session: str) -> Any:
    """The exit code of the hook and what it printed."""
    until(lambda: os.path.exists(unit(site, session, "decision")), "the decision")
    code, _, text = read(unit(site, session, "decision")).partition(" ")
    return int(code), json.loads(text) if text else None


@pytest.mark.parametrize("word", ["approve", "deny"])
def test_a_hook_that_waits_is_answered_without_a_key(site: Site, word: str) -> None:
    session = hook_asker(site)
    until(lambda: asked(site.local()) == ("approve Bash: rm x",), "the question")
    (found,) = site.local().approvals().approvals
    assert (found.can_answer, found.kind, found.source) == (True, "permission", "hooks")
    answer = site.json(word, "00")
    assert answer["state"] == "working"
    behaviour = {"behavior": "allow" if word == "approve" else "deny"}
    wanted = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": behaviour}}
    assert decision(site, session) == (0, wanted)
    assert asked(site.local()) == ()
    assert os.listdir(site.session(session, ".mas", "answers")) == []


@pytest.mark.parametrize("word", ["approve", "deny"])
def test_a_question_with_options_is_no_permission(site: Site, word: str) -> None:
    hook_asker(site, "Which files may go?", "all of them", "none")
    until(lambda: asked(site.local()) == ("Which files may go?",), "the question")
    (found,) = site.local().approvals().approvals
    assert (found.can_answer, found.kind, found.source) == (False, "question", "hooks")
    assert "only a person at its terminal can decide this" in site.mas(word, "00", code=4).stderr
    # The program's own dialog is there at once: its hook does not wait.
    assert decision(site, found.session_id) == (0, None)


def test_two_people_answering_a_hook_at_once_answer_it_once(site: Site, pool: ThreadPoolExecutor) -> None:
    session = hook_asker(site)
    until(lambda: asked(site.local()), "the question")
    both = [answering(pool, site, session, allow=allow) for allow in (True, False)]
    failed = [error for error in (one.exception(60) for one in both) if error]
    assert [type(error) for error in failed] == [Conflict]
    (taken,) = [one.result() for one in both if not one.exception()]
    said = decision(site, session)[1]["hookSpecificOutput"]["decision"]["behavior"]
    assert said == ("allow" if taken.allowed else "deny")


def test_a_hook_without_an_answer_in_time_prints_nothing(site: Site) -> None:
    session = hook_asker(site, timeout=0.1)
    assert decision(site, session) == (0, None)
    (found,) = site.local().approvals().approvals
    assert not found.can_answer
    with pytest.raises(Conflict, match="takes the answer only at its terminal"):
        site.local().answer(session, "00", True)


def test_a_hook_says_nothing_once_a_person_answered_at_the_terminal(site: Site) -> None:
    session = hook_asker(site)
    until(lambda: asked(site.local()), "the question")
    inside = {"MAS_SESSION_ID": session, "MAS_SESSION_DIR": site.session(session), "MAS_AGENT_ID": "00"}
    # The program reports that it goes on.
    site.mas("hook", "Stop", env=inside)
    assert decision(site, session) == (0, None)
    assert os.listdir(site.session(session, ".mas", "answers")) == []


def test_a_hook_that_cannot_wait_still_reports_that_the_agent_does(site: Site) -> None:
    session = SessionId(site.start(*ASLEEP))
    until(lambda: state(site, session) == "unknown", "the agent")
    launch = site.session(session, ".mas", "launch", "00")
    asking = StatePlan(sources=("hooks",), answer_hook="Ask", answer_timeout=300)
    write_plan(launch, read_plan(launch).but(states=asking))
    write("in the way", site.session(session, ".mas", "answers"))
    inside = {"MAS_SESSION_ID": session, "MAS_SESSION_DIR": site.session(session), "MAS_AGENT_ID": "00"}
    assert site.mas("hook", "Ask", env=inside).stdout == ""
    events = site.session(session, "logs", "agent-00.events.jsonl")
    assert fold(last_run(events), ("hooks",)).state == "blocked"


def test_a_killed_hook_leaves_no_waiting_request(site: Site) -> None:
    session = hook_asker(site)
    until(lambda: asked(site.local()), "the question")
    os.kill(int(read(unit(site, session, "pid"))), signal.SIGKILL)
    decided = until(lambda: os.path.exists(unit(site, session, "decision")), "its end")
    assert decided
    with pytest.raises(Conflict, match="takes the answer only at its terminal"):
        site.local().answer(session, "00", True)
    assert os.listdir(site.session(session, ".mas", "answers")) == []


def test_where_a_program_does_not_say_what_it_asks_its_screen_is_shown(site: Site) -> None:
    script = write(
        "printf 'Allow: rm -rf x\\n> yes  no\\n\\033]7501;state=blocked:kind=permission\\033\\\\'\nexec sleep 1000\n",
        site.directory, "asks.sh",
    )  # fmt: skip
    text = f'provider = {{ id = "mute" }}\n[launch]\nargv = ["sh", "{script}"]\n[status]\nsources = ["osc7501"]\n'
    write(text, site.path("providers", "mute.toml"))
    session = site.start("--team", "solo", "--provider", "mute")
    (one,) = until(lambda: site.local().approvals(SessionId(session)).approvals, "its question")
    assert (one.text, one.screen) == ("", "Allow: rm -rf x\n> yes  no")
    assert "\n  Allow: rm -rf x\n  > yes  no\n" in site.mas("approvals").stdout


def test_a_wait_names_the_agent_that_is_blocked_and_no_other(site: Site) -> None:
    session = demo(site, "--team", "pair")
    site.mas("send", "--session", session, "--wait", "20", "23", "/ask may I?")
    done = site.mas("wait", "--session", session, "--until", "blocked", "--timeout", "60")
    assert done.stderr.splitlines()[-1] == "blocked: 23"
