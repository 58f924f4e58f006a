"""Transcripts: what an agent's program records is the agent's conversation, for every door."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator

import httpx
import pytest

from mas.client import RemoteMas
from mas.mcp.tools import Speaker, call
from mas.model.ids import SessionId
from mas.model.transcript import Tokens
from tests.e2e.standin import agents_of, read, wait_ready
from tests.e2e.test_events import told
from tests.served import Served
from tests.site import AGENTS, Site, until

_PROVIDER = """
provider = {{ id = "talker" }}
input    = {{ ack = "osc:working", submit_delay = 0.0 }}

[launch]
argv      = ["{{python}}", {program}, "{{state_dir}}", "{{agent_uuid}}"]
resume    = ["{{python}}", {program}, "{{state_dir}}", "{{agent_uuid}}"]

[status]
sources  = ["osc7501"]
hook_map = {{ SessionStart = "starting" }}

[transcript]
format        = "claude"
files         = ["{{state_dir}}/projects/*/*.jsonl"]
conversations = "own"
"""


def talkers(site: Site, team: str = "solo") -> str:
    """A session whose agents record what they say, each ready for input."""
    os.makedirs(site.path("providers"), exist_ok=True)
    with open(site.path("providers", "talker.toml"), "w", encoding="utf-8") as file:
        file.write(_PROVIDER.format(program=json.dumps(os.path.join(AGENTS, "talker.py"))))
    session = site.start("--team", team, "--provider", "talker")
    for agent in agents_of(site, session):
        wait_ready(site, session, agent)
    return session


def say(site: Site, session: str, text: str, agent: str = "00") -> None:
    """Send a message, and wait until the agent has recorded its answer."""
    before = site.local().transcript(SessionId(session), agent).total
    site.mas("send", "--session", session, agent, text)

    def answered() -> bool:
        found = site.local().transcript(SessionId(session), agent)
        return found.total > before and found.turns[-1].finished and f"You said: {text}" == found.turns[-1].answer

    until(answered, f"the answer of {agent}")


def recorded(site: Site, session: str, agent: str = "00") -> str:
    """The file with the agent's conversation."""
    place = site.session(session, ".mas", "agents", agent)
    with open(os.path.join(place, "uuid"), encoding="ascii") as file:
        return os.path.join(place, "projects", "-here", f"{file.read().strip()}.jsonl")


def test_a_conversation_is_shown_as_text_markdown_and_json(site: Site) -> None:
    session = talkers(site)
    assert site.mas("transcript", session, "00").stderr == "No turns yet\n"
    say(site, session, "use a tool")
    say(site, session, "and\nagain")
    text = site.mas("transcript", f"{session}:00").stdout
    assert '> use a tool\n* Bash {"command": "date"}\n    Tuesday\nYou said: use a tool\n' in text
    assert site.mas("transcript", session, "00", "-n", "1").stdout.endswith("> again\nYou said: and\nagain\n")
    assert '**Bash**\n\n```\n{"command": "date"}\n```' in site.mas("transcript", session, "00", "--markdown").stdout
    found = site.json("transcript", session, "00", "-n", "1", "--offset", "1")
    assert (found["agent"], found["format"], found["total"], found["cut"]) == ("00", "claude", 2, False)
    (turn,) = found["turns"]
    assert turn["answer"] == "You said: use a tool"
    assert [part["kind"] for part in turn["parts"]] == ["tool", "text"]
    assert turn["tokens"] == {"input": 6, "output": 10, "cacheRead": 14, "cacheWrite": 4, "reasoning": 0}
    assert found["tokens"]["output"] == 15
    # What was recorded stays when the session stops.
    site.mas("stop", session)
    assert site.json("transcript", session, "00")["total"] == 2


def test_only_the_agents_own_conversations_count(site: Site) -> None:
    session = talkers(site)
    say(site, session, "run a child")
    say(site, session, "now clear it")
    say(site, session, "after that")
    found = site.local().transcript(SessionId(session), "00")
    answers = [turn.answer for turn in found.turns]
    assert answers == ["You said: run a child", "You said: now clear it", "You said: after that"]
    assert len({turn.conversation for turn in found.turns}) == 2
    assert found.turns[1].conversation == found.turns[2].conversation


def test_thirteen_agents_have_each_their_own(site: Site) -> None:
    session = talkers(site, "default")
    agents = agents_of(site, session)
    assert len(agents) == 13
    for agent in agents:
        site.mas("send", "--session", session, agent, f"you are {agent}")
    local = site.local()

    def prompts() -> dict[str, list[str]]:
        found = {agent: local.transcript(SessionId(session), agent).turns for agent in agents}
        return {agent: [turn.prompt.partition("\n")[2] for turn in turns] for agent, turns in found.items()}

    until(lambda: all(prompts().values()), "a turn of each")
    assert prompts() == {agent: [f"you are {agent}"] for agent in agents}


def test_a_program_that_records_nothing_says_what_to_do_instead(site: Site) -> None:
    session = site.start("--team", "solo", "--command", "cat")
    refused = site.mas("transcript", session, "00", code=3)
    assert "records no conversation that MAS can read" in refused.stderr
    assert f"mas output {session[:8]}:00" in refused.stderr
    assert "No agent given" in site.mas("transcript", session, code=2).stderr
    assert site.mas("transcript", session, "77", code=3).stdout == ""


def test_what_an_agent_puts_in_place_of_its_transcript_leads_nowhere(site: Site) -> None:
    session = talkers(site)
    say(site, session, "hello")
    path = recorded(site, session)
    secret = os.path.join(site.directory, "secret.jsonl")
    shutil.move(path, secret)
    os.symlink(secret, path)
    assert site.json("transcript", session, "00")["turns"] == []
    os.unlink(path)
    os.mkfifo(path)
    assert site.json("transcript", session, "00")["turns"] == []
    os.unlink(path)
    with open(path, "wb") as file:
        file.write(b"[" * 200_000 + b"\n\xff\n{}\n")
    os.truncate(path, 1 << 34)
    assert site.json("transcript", session, "00")["turns"] == []
    os.unlink(path)
    os.makedirs(path)
    assert site.json("transcript", session, "00")["turns"] == []


def test_turns_are_followed_as_they_are_finished(site: Site) -> None:
    session = talkers(site)
    say(site, session, "first")
    argv = [sys.executable, "-m", "mas", "--json", "transcript", session, "00", "--follow"]
    with subprocess.Popen(argv, env=site.env, cwd=site.root, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert json.loads(process.stdout.readline())["answer"] == "You said: first"
            site.mas("send", "--session", session, "00", "second")
            assert json.loads(process.stdout.readline())["answer"] == "You said: second"
        finally:
            process.send_signal(signal.SIGINT)


def test_the_answer_to_a_question_is_what_the_agent_said_and_not_its_screen(site: Site) -> None:
    session = talkers(site)
    assert site.mas("ask", "--session", session, "00", "one\nand two").stdout == "You said: one\nand two\n"
    # Recorded only after the agent has reported that it is idle.
    asked = site.json("ask", "--session", session, "00", "come late")
    assert (asked["output"], asked["source"]) == ("You said: come late", "transcript")
    shown = site.json("output", session, "00")
    assert shown == {"agent": "00", "text": "You said: come late", "source": "transcript"}
    assert site.json("output", session, "00", "--screen")["source"] == "screen"
    assert site.mas("output", session, "00", "--screen").stdout.startswith("THE SCREEN\n")
    assert site.mas("ask", "--session", session, "00", "a\nb\nc").stdout == "You said: a\nb\nc\n"
    assert site.mas("output", session, "00", "-n", "1").stdout == "c\n"
    assert site.mas("wait", f"{session}:00", "--until", "answered").stdout == "You said: a\nb\nc\n"


def test_what_a_blocked_agent_asks_is_on_its_screen(site: Site) -> None:
    session = talkers(site)
    site.mas("ask", "--session", session, "00", "hello")
    site.mas("send", "--session", session, "00", "block now")
    until(lambda: site.local().agents(SessionId(session))[0].state == "blocked", "the question")
    assert site.json("output", session, "00")["source"] == "screen"


def test_an_agent_without_a_transcript_shows_its_screen_and_then_its_log(site: Site) -> None:
    session = site.start("--team", "solo", "--command", "sh -c 'echo ready; exec cat'")
    until(lambda: "ready" in site.mas("output", session, "00").stdout, "its screen")
    assert site.json("output", session, "00")["source"] == "screen"
    site.mas("stop", session)
    assert site.json("output", session, "00")["source"] == "log"


def test_the_log_of_an_agent_is_its_conversation_and_raw_what_it_printed(site: Site) -> None:
    session = talkers(site)
    # Before the first turn there is nothing else.
    assert "ready" in site.mas("logs", session, "00").stdout
    say(site, session, "use a tool")
    text = site.mas("logs", session, "00").stdout
    assert text.endswith('> use a tool\n* Bash {"command": "date"}\n    Tuesday\nYou said: use a tool\n')
    assert site.mas("logs", session, "00", "-n", "1").stdout == "You said: use a tool\n"
    raw = site.mas("logs", session, "00", "--raw").stdout
    assert "THE SCREEN" in raw
    assert "You said" not in raw
    assert "start 1 agents" in site.mas("logs", session).stdout


@pytest.fixture
def served(site: Site) -> Iterator[Served]:
    server = Served(site)
    try:
        yield server
    finally:
        server.close()


def turn_events(site: Site, session: str) -> list[str]:
    return [event.details["text"] for event in told(site, "turn", session)]


def test_every_finished_turn_is_one_event_also_after_the_server_was_killed(served: Served) -> None:
    site = served.site
    session = talkers(site)
    say(site, session, "use a tool")
    until(lambda: turn_events(site, session) == ["You said: use a tool"], "its event")
    (event,) = told(site, "turn", session)
    turn = site.local().transcript(SessionId(session), "00").turns[-1]
    assert (event.agent, event.details["turn"], event.details["conversation"]) == ("00", turn.id, turn.conversation)
    assert (event.details["model"], event.details["tools"]) == ("stand-in", 1)
    assert Tokens(*event.details["tokens"].values()) == turn.tokens
    assert (event.details["startedAt"], event.details["endedAt"]) == (turn.started_at, turn.ended_at)
    # Its end is written after it has reported that it is idle.
    say(site, session, "late")
    until(lambda: turn_events(site, session)[1:] == ["You said: late"], "its event")
    # Killed before that is written, a server would tell of it once more.
    late = site.local().transcript(SessionId(session), "00").turns[-1].id
    until(lambda: read(site.session(session, ".mas", "turns", "00")) == f"{late}\n", "what was told")
    served.kill()
    say(site, session, "while nobody listens")
    served.restart()
    until(lambda: turn_events(site, session)[2:] == ["You said: while nobody listens"], "its event")
    say(site, session, "last")
    until(lambda: turn_events(site, session)[3:] == ["You said: last"], "its event")


def test_agents_read_answers_of_those_they_may_write_to_by_tool_and_by_call(served: Served) -> None:
    site = served.site
    session = talkers(site, "pair")
    with RemoteMas(served.url, served.token) as owner:
        sent = owner.send(SessionId(session), "23", "hello", wait=30.0)
        until(lambda: owner.transcript(SessionId(session), "23").total == 1, "the turn")
        assert owner.output(SessionId(session), "23", 10, message_id=sent.id).text == "You said: hello"
        assert owner.output(SessionId(session), "23", 10, screen=True).source == "screen"
        assert "You said: hello" in owner.logs(SessionId(session), "23", 10)
        assert "THE SCREEN" in owner.logs(SessionId(session), "23", 10, raw=True)
    token = site.mas("token", "--session", session, "--agent", "21").stdout.strip()
    with RemoteMas(served.url, token) as agent:
        speaker = Speaker(agent, SessionId(session), "21")
        found = call("read_output", speaker, {"agent": "23"})
        assert found == {"agent": "23", "text": "You said: hello", "source": "transcript"}
        assert call("read_output", speaker, {"agent": "23", "screen": True})["source"] == "screen"


def test_an_agent_reads_its_own_transcript_and_no_other(served: Served) -> None:
    site = served.site
    session = talkers(site, "pair")
    say(site, session, "hello", "21")

    def asked(agent: str, of: str) -> httpx.Response:
        token = site.mas("token", "--session", session, "--agent", agent).stdout.strip()
        return served.client(token).get(f"/sessions/{session}/agents/{of}/transcript")

    assert asked("21", "21").json()["total"] == 1
    assert asked("21", "23").status_code == 403
    owner = served.client()
    path = f"/sessions/{session}/agents/21/transcript"
    assert owner.get(path, params={"limit": 0}).json()["turns"] == []
    assert owner.get(path, params={"limit": 501}).status_code == 422
    assert owner.get(f"/sessions/{session}/agents/77/transcript").status_code == 404
    assert owner.get(f"/sessions/{uuid.uuid4()}/agents/21/transcript").status_code == 404
