"""The contract of `Mas`: the same tests for the product in this process and for the product behind a server."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mas.client import RemoteMas
from mas.model.approvals import ApprovalList
from mas.model.errors import (
    AgentExited,
    Archived,
    BadInput,
    Conflict,
    Forbidden,
    MasError,
    NoAgent,
    NoProgram,
    NoSession,
    NotFound,
)
from mas.model.ids import SessionId
from mas.model.isolation import NetworkMode
from mas.model.message import Delivery, DeliveryState
from mas.model.run import Run, parse_run
from mas.model.session import Tryable
from mas.model.stats import AgentStats, SessionStats, Stats
from mas.model.team import TEAMS, team_named
from mas.model.transcript import Tokens, Transcript
from mas.model.views import SessionDetail
from mas.service.local import LocalMas
from mas.service.mas import Mas
from mas.service.upkeep.prune import PrunePolicy
from tests.served import Served
from tests.site import Site, until

UNKNOWN = SessionId("00000000-0000-4000-8000-000000000000")
SOLO = Run(team=team_named("solo"), command="cat")
PAIR = Run(team=team_named("pair"), command="cat")
# Longer than any message takes to an agent that is there.
WAIT = 30.0
DEMO = Run(team=team_named("solo"), provider="demo")
ONCE = "m-0123456789abcdef"


class Both(NamedTuple):
    """One workspace, seen from both sides."""

    local: Mas
    remote: RemoteMas
    site: Site


@pytest.fixture(params=["local", "remote"])
def mas(request: pytest.FixtureRequest, site: Site) -> Iterator[Mas]:
    """The product for the site: in this process, or behind a real server."""
    if request.param == "local":
        yield here(site)
        return
    served = Served(site)
    try:
        with RemoteMas(served.url, served.token) as remote:
            yield remote
    finally:
        served.close()


@pytest.fixture
def both(served: Served) -> Iterator[Both]:
    with RemoteMas(served.url, served.token) as remote:
        yield Both(here(served.site), remote, served.site)


def here(site: Site) -> LocalMas:
    return LocalMas(site.world(provider="shell"))


def started(mas: Mas, run: Run = SOLO) -> SessionId:
    return SessionId(mas.start(run).session_id)


def listed(mas: Mas, status: str | None = None) -> list[str]:
    return [info.session_id for info in mas.list(status).sessions]


def config_of(session: SessionDetail) -> dict[str, Any]:
    with open(session.config_file, encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


# The life of a session.


def test_a_session_is_started_seen_stopped_and_restored(mas: Mas, site: Site) -> None:
    session = mas.start(PAIR)
    session_id = SessionId(session.session_id)
    assert (session.status, session.name, session.warnings) == ("active", None, ())
    assert [(agent.id, agent.state) for agent in session.agents] == [("21", "starting"), ("23", "starting")]
    assert mas.resolve(session_id[:8]) == mas.resolve(session.tmux_session) == mas.only_active() == session_id
    assert listed(mas) == listed(mas, "active") == [session_id]
    assert mas.show(session_id).working_dir == site.session(session_id)
    assert mas.stop(session_id).status == "stopped"
    again = mas.stop(session_id)
    assert (again.status, [agent.state for agent in again.agents]) == ("stopped", ["exited", "exited"])
    assert site.tmux_sessions() == set()
    back = mas.restore(session_id)
    assert (back.session_id, back.status) == (session_id, "active")
    assert site.four_places(session_id) == {"active"}


def test_a_session_is_cloned_archived_deleted_and_brought_back(mas: Mas, site: Site) -> None:
    first = started(mas, SOLO._replace(name="first"))
    with open(site.session(first, "unit", "00", "note"), "w", encoding="utf-8") as file:
        file.write("mine")
    running = mas.clone(first, "zweiter ✓", run_it=True)
    assert (running.status, running.name) == ("active", "zweiter ✓")
    mas.stop(first)
    copy = mas.clone(first, None, run_it=False)
    assert copy.status == "stopped"
    copied = SessionId(copy.session_id)
    assert mas.file(copied, "unit/00/note").data == b"mine"

    kept = mas.archive(copied)
    assert (kept.session_id, kept.status) == (copied, "archived")
    assert listed(mas, "archived") == [copied]
    assert copied not in listed(mas)
    with pytest.raises(Archived, match="is archived") as caught:
        mas.resolve(copied)
    assert (caught.value.code, caught.value.hint) == ("archived", f"mas unarchive {copied}")
    assert mas.unarchive(copied[:8]).status == "stopped"

    gone = mas.delete(copied)
    assert (gone.session_id, gone.status) == (copied, "deleted")
    assert listed(mas, "deleted") == [copied]
    with pytest.raises(NoSession) as missing:
        mas.resolve(copied)
    assert missing.value.hint == f"mas undelete {copied}"
    assert mas.undelete(f"mas-{copied[:8]}").status == "stopped"
    assert mas.file(copied, "unit/00/note").data == b"mine"


def test_the_only_active_session_needs_no_name(mas: Mas) -> None:
    with pytest.raises(BadInput, match="no sessions are active"):
        mas.only_active()
    first = started(mas)
    assert mas.only_active() == first
    second = started(mas)
    with pytest.raises(BadInput, match="2 sessions are active"):
        mas.only_active()
    mas.stop(first)
    assert mas.only_active() == second


# What is refused.


def test_an_unknown_session_is_not_found_by_any_verb(mas: Mas) -> None:
    verbs: dict[str, Callable[[], object]] = {
        "resolve": lambda: mas.resolve(UNKNOWN),
        "resolve a start": lambda: mas.resolve("abcd"),
        "show": lambda: mas.show(UNKNOWN),
        "stop": lambda: mas.stop(UNKNOWN),
        "restore": lambda: mas.restore(UNKNOWN),
        "clone": lambda: mas.clone(UNKNOWN, None, run_it=False),
        "archive": lambda: mas.archive(UNKNOWN),
        "unarchive": lambda: mas.unarchive(UNKNOWN),
        "unarchive a start": lambda: mas.unarchive("abcd"),
        "delete": lambda: mas.delete(UNKNOWN),
        "undelete": lambda: mas.undelete(UNKNOWN),
        "undelete a start": lambda: mas.undelete("abcd"),
        "files": lambda: mas.files(UNKNOWN, ""),
        "file": lambda: mas.file(UNKNOWN, "unit/00/ROLE.md"),
        "env": lambda: mas.env(UNKNOWN, None),
        "send": lambda: mas.send(UNKNOWN, "00", "hello"),
        "messages": lambda: mas.messages(UNKNOWN),
        "output": lambda: mas.output(UNKNOWN, "00", 10),
        "logs": lambda: mas.logs(UNKNOWN, None, 10),
        "logs of an agent": lambda: mas.logs(UNKNOWN, "00", 10),
        "approvals": lambda: mas.approvals(UNKNOWN),
        "answer": lambda: mas.answer(UNKNOWN, "00", True),
        "restart agent": lambda: mas.restart_agent(UNKNOWN, "00"),
    }
    for verb, ask in verbs.items():
        with pytest.raises(NoSession) as caught:
            ask()
        assert type(caught.value) is NoSession, verb
        assert caught.value.code == "session-not-found"
        assert caught.value.hint.startswith("mas list"), verb
    assert mas.stats(UNKNOWN).sessions == ()


def test_what_cannot_be_a_session_is_bad_input(mas: Mas) -> None:
    for reference in ("", "..", "../../etc", "-x", " x", "x" * 100, "a/b", "\ud800"):
        for ask in (mas.resolve, mas.unarchive, mas.undelete):
            with pytest.raises(BadInput):
                ask(reference)


def test_a_session_in_another_state_is_a_conflict(mas: Mas) -> None:
    session = started(mas)
    for ask in (lambda: mas.restore(session), lambda: mas.archive(session)):
        with pytest.raises(Conflict) as caught:
            ask()
        assert caught.value.code == "wrong-state"
        assert session in caught.value.message
    mas.stop(session)
    with pytest.raises(Conflict, match="not running"):
        mas.send(session, "00", "hello")
    mas.archive(session)
    for gone in (mas.show, mas.stop, mas.restore):
        with pytest.raises((NoSession, Archived)):
            gone(session)


def test_an_unknown_agent_is_not_found(mas: Mas) -> None:
    session = started(mas)
    verbs: tuple[Callable[[], object], ...] = (
        lambda: mas.output(session, "99", 10),
        lambda: mas.logs(session, "99", 10),
        lambda: mas.env(session, "99"),
        lambda: mas.messages(session, "99"),
        lambda: mas.send(session, "99", "hello"),
        lambda: mas.send(session, "nobody", "hello"),
        lambda: mas.answer(session, "99", True),
        lambda: mas.restart_agent(session, "99"),
    )
    for ask in verbs:
        with pytest.raises(NoAgent):
            ask()


def test_an_agent_that_has_ended_gets_no_message(mas: Mas) -> None:
    session = started(mas, SOLO._replace(command="true"))
    until(lambda: mas.show(session).agents[0].state == "exited", "the agent has ended")
    with pytest.raises(AgentExited) as caught:
        mas.send(session, "00", "hello", message_id=ONCE)
    assert caught.value.code == "agent-exited"
    assert [delivery.state for delivery in mas.messages(session).messages[0].deliveries] == ["undelivered"]
    with pytest.raises(Conflict, match="sent before and not delivered"):
        mas.send(session, "00", "hello", message_id=ONCE)


def test_an_agent_that_asks_is_listed_and_answered(mas: Mas) -> None:
    session = started(mas, DEMO)
    until(lambda: mas.show(session).agents[0].state == "idle", "the agent")
    assert mas.approvals() == mas.approvals(session) == ApprovalList(())
    with pytest.raises(Conflict, match="it is idle") as refused:
        mas.answer(session, "00", True)
    assert (refused.value.code, refused.value.hint) == ("wrong-state", f"mas show {session}")
    for allow, question in ((True, "go on ✓"), (False, "stop")):
        mas.send(session, "00", f"/ask {question}")
        until(lambda: mas.approvals().approvals, "the question")
        (found,) = mas.approvals(session).approvals
        assert mas.approvals().approvals == (found,)
        assert (found.session_id, found.agent, found.kind, found.text) == (session, "00", "permission", question)
        assert (found.provider, found.can_answer, found.why_not) == ("demo", True, "")
        answer = mas.answer(session, "00", allow)
        assert (answer.allowed, answer.kind, answer.text) == (allow, "permission", question)
        assert answer.state in ("working", "idle")
        until(lambda: mas.show(session).agents[0].state == "idle", "the agent goes on")
        assert mas.approvals() == ApprovalList(())
    mas.stop(session)
    assert mas.approvals(session) == ApprovalList(())
    with pytest.raises(Conflict, match="not running"):
        mas.answer(session, "00", True)


def test_an_agent_is_restarted_in_its_pane(mas: Mas) -> None:
    session = started(mas, SOLO._replace(command="sleep 1000"))
    until(lambda: mas.show(session).agents[0].state == "unknown", "the agent")
    pane = mas.show(session).agents[0].pane
    with pytest.raises(Conflict, match="is running") as refused:
        mas.restart_agent(session, "00")
    assert refused.value.hint == f"mas restart-agent --force {session} 00"
    found = mas.restart_agent(session, "00", force=True)
    assert (found.session_id, found.agent.id, found.agent.state, found.agent.pane) == (session, "00", "starting", pane)
    assert found.warnings == ("Started fresh: 00 (generic cannot resume a conversation)",)
    until(lambda: mas.show(session).agents[0].state == "unknown", "the agent again")
    mas.stop(session)
    with pytest.raises(Conflict, match="not running"):
        mas.restart_agent(session, "00")


def test_a_start_that_cannot_be_leaves_nothing(mas: Mas, site: Site) -> None:
    with pytest.raises(BadInput, match="No provider"):
        mas.start(SOLO._replace(provider="nothing", command=None))
    with pytest.raises(NoProgram, match="no-such-program"):
        mas.start(SOLO._replace(command="no-such-program"))
    assert listed(mas) == []
    assert [name for name in os.listdir(site.path("sessions")) if not name.startswith(".")] == []


# Starting.


def test_a_start_is_made_once_however_often_it_is_asked_for(mas: Mas, site: Site) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: mas.start(SOLO, key="one").session_id, range(4)))
    assert len(set(found)) == 1
    assert listed(mas) == found[:1]
    assert mas.start(SOLO, key="one").session_id == found[0]
    assert mas.start(SOLO, key="two").session_id != found[0]
    with pytest.raises(BadInput, match="another run"):
        mas.start(PAIR, key="one")
    assert len(site.tmux_sessions()) == 2


def test_a_request_for_the_old_mode_gets_the_warning_and_a_session(mas: Mas) -> None:
    session = mas.start(SOLO, legacy=True)
    assert session.warnings == (
        "Legacy session mode has been deprecated.",
        "Creating new isolated session instead.",
        f"Session ID: {session.session_id}",
        f"Workspace: sessions/{session.session_id}/",
    )
    assert mas.start(SOLO).warnings == ()


def test_a_custom_team_is_started_as_it_was_written(mas: Mas) -> None:
    body = {
        "name": "Größe 大",
        "provider": "shell",
        "env": {"WORD": "ünï $x"},
        "lazyUnits": True,
        "agents": {
            "metaManager": {"prompt": "Lead.\nBe kind."},
            "units": [
                {
                    "name": "research",
                    "manager": {"id": "40", "model": "large", "command": "sleep 1000"},
                    "workers": [{"provider": "demo"}, {"id": "07", "prompt": "«Zähl»"}],
                }
            ],
        },
    }
    session = mas.start(parse_run(body))
    assert session.name == "Größe 大"
    assert [(agent.id, agent.unit, agent.model) for agent in session.agents] == [
        ("00", "meta", None),
        ("40", "research", "large"),
        ("10", "research", None),
        ("07", "research", None),
    ]
    assert [agent.provider for agent in session.agents if agent.id != "40"] == ["shell", "demo", "shell"]
    config = config_of(session)
    assert config["env"] == {"WORD": "ünï $x"}
    assert config["lazyUnits"] is True
    assert "team" not in config
    assert config["agents"]["metaManager"]["prompt"] == "Lead.\nBe kind."
    (research,) = config["agents"]["units"]
    assert research["manager"]["command"] == "sleep 1000"
    assert [worker.get("command") for worker in research["workers"]] == [None, None]
    assert research["workers"][1]["prompt"] == "«Zähl»"
    config = config_of(mas.start(parse_run(body)._replace(command="cat")))
    (research,) = config["agents"]["units"]
    assert [worker["command"] for worker in (research["manager"], *research["workers"])] == ["sleep 1000", "cat", "cat"]
    assert config["agents"]["metaManager"]["command"] == "cat"


def test_a_team_by_name_keeps_its_name_with_a_command_for_all(mas: Mas) -> None:
    for command in ("sleep 1000", None):
        session = mas.start(Run(team=team_named("pair"), command=command, name=f"with {command}"))
        config = config_of(session)
        assert (config["team"], config["name"]) == ("pair", f"with {command}")
        (unit,) = config["agents"]["units"]
        assert [agent.get("command") for agent in (unit["manager"], *unit["workers"])] == [command, command]
        assert [agent.role for agent in session.agents] == ["Frontend developer", "Quality engineer"]


# Lists.


def test_sessions_are_listed_by_page_and_status(mas: Mas) -> None:
    ids = [started(mas, SOLO._replace(name=name)) for name in ("eins", "δύο", "三")]
    mas.stop(ids[1])
    whole = mas.list()
    assert (listed(mas), whole.total) == (ids, 3)
    assert [info.name for info in whole.sessions] == ["eins", "δύο", "三"]
    assert [info.agents for info in whole.sessions] == [(), (), ()]
    page = mas.list(limit=1, offset=1)
    assert ([info.session_id for info in page.sessions], page.total) == ([ids[1]], 3)
    assert mas.list(limit=0).sessions == mas.list(offset=9).sessions == ()
    assert (listed(mas, "active"), listed(mas, "stopped"), listed(mas, "error")) == ([ids[0], ids[2]], [ids[1]], [])
    with_agents = mas.list(agents=True).sessions
    assert [agent.id for agent in with_agents[0].agents] == ["00"]
    with pytest.raises(BadInput):
        mas.list("asleep")
    with pytest.raises(BadInput):
        mas.list(limit=-1)


# Agents and messages.


def test_messages_are_typed_kept_and_reported_as_events(mas: Mas) -> None:
    session = started(mas, PAIR)
    text = "Grüße 👋\n\tzweite Zeile"
    sent = mas.send(session, "development", text, message_id=ONCE, force=True, wait=WAIT)
    assert (sent.agents, sent.bytes, sent.id) == (("21", "23"), len(text.encode()), ONCE)
    assert [(type(found), found.state) for found in sent.deliveries] == [(Delivery, DeliveryState.TYPED)] * 2
    until(lambda: "zweite Zeile" in mas.output(session, "23", 20).text, "the agent shows it")
    assert "Grüße 👋" in mas.output(session, "21", 20).text
    assert mas.send(session, "development", text, message_id=ONCE, force=True) == sent
    with pytest.raises(MasError):
        mas.send(session, "21", "other words", message_id=ONCE, force=True)
    mas.send(session, "21", "from a colleague", sender="23", force=True, wait=WAIT)
    whole = mas.messages(session)
    assert (whole.total, [message.message for message in whole.messages]) == (2, [text, "from a colleague"])
    assert [message.sender for message in whole.messages] == [None, "23"]
    assert mas.messages(session, limit=1).messages == whole.messages[1:]
    assert mas.messages(session, limit=1, offset=1).messages == whole.messages[:1]
    assert mas.messages(session, "23", box="sent").messages == whole.messages[1:]
    assert mas.messages(session, "23", box="inbox").messages == whole.messages[:1]
    assert mas.messages(session, "23").total == 2
    assert mas.message_counts() == {"queued": 0, "typed": 3, "acknowledged": 0, "undelivered": 0}


def test_a_wait_returns_when_agents_are_idle_or_what_keeps_them_busy(mas: Mas) -> None:
    session = started(mas, Run(team=team_named("pair"), provider="demo"))
    ready = mas.wait(session, timeout=WAIT)
    assert (ready.until, ready.end) == ("idle", "reached")
    assert [(one.agent, one.state) for one in ready.agents] == [("21", "idle"), ("23", "idle")]
    sent = mas.send(session, "21", "/work 3600")
    busy = mas.wait(session, "21", timeout=0.0)
    assert busy.end == "timeout"
    mas.send(session, "23", "/ask may I?")
    assert mas.wait(session, "23", "blocked", WAIT).end == "reached"
    asks = mas.wait(session, "23", timeout=WAIT)
    assert (asks.end, asks.agents[0].state) == ("blocked", "blocked")
    assert "may I?" in asks.agents[0].text
    mas.send(session, "person", "before", sender="21")
    replied = mas.wait(session, "21", "answered", WAIT, after=sent.id)
    assert replied.reply
    assert (replied.end, replied.reply.message) == ("reached", "before")
    none = mas.wait(session, "21", "replied", 0.0)
    assert (none.end, none.reply) == ("timeout", None)
    colleague = mas.send(session, "23", "look at this", sender="21")
    assert mas.wait(session, "21", "replied", WAIT, asker="23", after=sent.id).reply
    assert mas.wait(session, "21", "replied", 0.0, asker="23", after=colleague.id).reply is None
    mas.stop(session)
    assert mas.wait(session, timeout=WAIT).end == "exited"
    assert mas.wait(session, until="exited", timeout=WAIT).end == "reached"
    with pytest.raises(BadInput):
        mas.wait(session, until="tomorrow")
    with pytest.raises(NoAgent):
        mas.wait(session, "99")


def test_a_message_that_cannot_be_typed_exactly_is_bad_input(mas: Mas) -> None:
    session = started(mas)
    for message in ("", "escape \x1b[A", "half \ud800", "x" * ((1 << 20) + 1)):
        with pytest.raises(BadInput):
            mas.send(session, "00", message)
    assert mas.messages(session).total == 0


def test_the_ids_and_boxes_of_messages_are_checked(mas: Mas) -> None:
    session = started(mas)
    with pytest.raises(BadInput):
        mas.send(session, "00", "hello", message_id="mine")
    with pytest.raises(BadInput):
        mas.messages(session, "00", box="outbox")
    with pytest.raises(BadInput):
        mas.messages(session, limit=-1)


def test_the_log_of_a_damaged_session_can_be_read(mas: Mas, site: Site) -> None:
    session = started(mas)
    mas.stop(session)
    os.unlink(site.session(session, "metadata.json"))
    assert "start 1 agents" in mas.logs(session, None, 10)


def test_an_agents_output_log_and_variables_can_be_read(mas: Mas, site: Site) -> None:
    session = started(mas, SOLO._replace(command="sh -c 'echo ready; echo steady; exec cat'"))
    until(lambda: "steady" in mas.output(session, "00", 10).text, "the agent speaks")
    assert mas.output(session, "00", 10).agent == "00"
    assert mas.logs(session, "00", 1) == "steady"
    assert mas.logs(session, "00", 10) == "ready\nsteady"
    assert mas.logs(session, "00", 0) == ""
    assert "start 1 agents" in mas.logs(session, None, 10)
    found = mas.env(session, "00")
    assert (found["MAS_SESSION_ID"], found["MAS_AGENT_ID"]) == (session, "00")
    assert "MAS_AGENT_ID" not in mas.env(session, None)
    assert found["UNIT_DIR"] == site.session(session, "unit")
    mas.stop(session)
    assert "steady" in mas.output(session, "00", 10).text


def test_a_conversation_that_a_program_recorded_can_be_read(mas: Mas, site: Site) -> None:
    os.makedirs(site.path("providers"), exist_ok=True)
    Path(site.path("providers", "recorded.toml")).write_text(
        'provider = { id = "recorded" }\nlaunch = { argv = ["cat"] }\n'
        'transcript = { format = "aider", files = ["{state_dir}/chat.md"] }\n',
        "utf-8",
    )
    session = started(mas, Run(team=team_named("solo"), provider="recorded"))
    assert mas.transcript(session, "00") == Transcript("00", "aider", (), 0, Tokens(), False)
    chat = Path(site.session(session, ".mas", "agents", "00", "chat.md"))
    ask, count = "#### question %d  \n\nanswer %d\n\n", "> Tokens: 2 sent, 1 received.  \n"
    chat.write_text("".join(ask % (number, number) + count for number in range(5)) + "#### more  \n\nhalf", "utf-8")
    found = mas.transcript(session, "00", limit=2, offset=1)
    assert [(turn.prompt, turn.answer, turn.finished) for turn in found.turns] == [
        ("question 3", "answer 3", True),
        ("question 4", "answer 4", True),
    ]
    assert (found.total, found.tokens, found.cut) == (6, Tokens(10, 5), False)
    assert mas.transcript(session, "00", limit=0).turns == mas.transcript(session, "00", offset=6).turns == ()
    (last,) = mas.transcript(session, "00", limit=1).turns
    assert (last.prompt, last.parts, last.finished) == ("more", (), False)
    with pytest.raises(NoAgent):
        mas.transcript(session, "77")
    with pytest.raises(NoSession):
        mas.transcript(UNKNOWN, "00")
    other = started(mas)
    with pytest.raises(NotFound, match="records no conversation that MAS can read") as caught:
        mas.transcript(other, "00")
    assert caught.value.hint == f"mas output {other[:8]}:00; mas logs {other[:8]}:00"


def test_a_template_can_be_compared_with_what_a_session_made_of_it(mas: Mas, site: Site) -> None:
    session = started(mas)
    copy = mas.file(session, "unit/00/ROLE.md")
    assert mas.template_file("unit/00/ROLE.md") == copy
    with open(site.session(session, "unit", "00", "ROLE.md"), "w", encoding="utf-8") as file:
        file.write("mine")
    assert mas.template_file("unit//00/ROLE.md", offset=2, most=5).data == copy.data[2:7]
    with pytest.raises(NotFound):
        mas.template_file("unit/00/nothing")
    for path in ("", "../x", "/etc/passwd", "config.json", "unit", "sessions/.sessions.index"):
        with pytest.raises(BadInput):
            mas.template_file(path)


def test_files_are_listed_and_read_in_parts(mas: Mas, site: Site) -> None:
    session = started(mas)
    with open(site.session(session, "unit", "00", "größe & co.bin"), "wb") as file:
        file.write(bytes(range(256)))
    os.symlink("/etc/passwd", site.session(session, "unit", "00", "out"))
    assert [entry.name for entry in mas.files(session, "").entries] == ["unit", "workflows", "logs"]
    entries = {entry.name: entry for entry in mas.files(session, "unit//00/").entries}
    assert (entries["größe & co.bin"].kind, entries["größe & co.bin"].size) == ("file", 256)
    assert entries["out"].kind == "link"
    part = mas.file(session, "unit/./00/größe & co.bin", offset=250, most=3)
    assert part == ("unit/00/größe & co.bin", 256, bytes([250, 251, 252]))
    assert mas.file(session, "unit/00/größe & co.bin", offset=256).data == b""
    assert mas.file(session, "unit/00/größe & co.bin", most=1 << 30).data == bytes(range(256))
    for path in ("unit/00/missing", "unit/00/out"):
        with pytest.raises(NotFound):
            mas.file(session, path)
    for path in ("../x", "/etc/passwd", ".mas", "unit/00", ""):
        with pytest.raises(BadInput):
            mas.file(session, path)


def test_events_go_on_from_where_the_reader_stopped(mas: Mas) -> None:
    before = mas.events()
    assert (before.events, before.gap) == ((), False)
    session = started(mas)
    mas.send(session, "00", "hello", force=True, wait=WAIT)
    page = mas.events(before.last)
    assert {(event.event, event.session_id) for event in page.events} >= {("session", session), ("message", session)}
    assert not page.gap
    one = mas.events(before.last, most=1)
    assert one.events == page.events[:1]
    rest = mas.events(one.last)
    assert rest.events == page.events[1:]
    assert mas.events(page.last).events == ()
    assert mas.events("nonsense").gap
    assert mas.events("0").events[-len(page.events) :] == page.events


def test_what_agents_asked_for_is_read_in_pages_and_of_one_agent(mas: Mas, site: Site) -> None:
    session = started(mas, PAIR)
    assert mas.network(session).requests == ()
    with open(site.session(session, "logs", "network.jsonl"), "w", encoding="utf-8") as file:
        for number, (agent, result) in enumerate((("21", "connected"), ("23", "refused: it is not a public name"))):
            line = {
                "at": f"2026-01-01T10:00:0{number}.000Z",
                "agent": agent,
                "name": f"n{number}",
                "port": 443 * (1 - number),
            }
            file.write(json.dumps({**line, "result": result, "remedy": "private"}) + "\n")
    found = mas.network(session)
    assert (found.mode, found.reason, found.is_recorded, found.total, found.refused) == (
        NetworkMode.SHARED, "isolation is off", False, 2, 1,
    )  # fmt: skip
    first, second = found.requests
    assert (first.agent, first.name, first.port, first.result, first.remedy) == ("23", "n1", None, "refused", "private")
    assert (second.place, second.result, second.remedy, second.times) == ("n0", "connected", None, 1)
    assert mas.network(session, limit=1, offset=1).requests == (second,)
    assert mas.network(session, refused=True).requests == (first,)
    assert mas.network(session, "21")[-4:-2] == ((second,), 1)
    mas.stop(session)
    assert mas.network(session).requests == (first, second)
    with pytest.raises(NoAgent):
        mas.network(session, "77")
    with pytest.raises(NoSession):
        mas.network(UNKNOWN)


def test_names_are_allowed_for_a_session_and_for_the_workspace(mas: Mas, site: Site) -> None:
    session = started(mas)
    done = mas.change_network(session, "allow", ("a.example.com", "A.example.com"))
    assert (done.session_id, done.kind, done.changed, done.removed) == (session, "allow", ("a.example.com",), False)
    assert mas.network(session).allow == ("a.example.com",)
    again = mas.change_network(session, "allow", ("a.example.com",))
    assert (again.changed, again.unchanged, again.places) == ((), ("a.example.com",), ("a.example.com",))
    assert mas.change_network(session, "allow", ("a.example.com",), remove=True).places == ()
    done = mas.change_network(None, "private", ("git.corp", "localhost:5432"))
    assert (done.session_id, done.file, done.applied) == (None, site.path("config.json"), False)
    assert mas.network(session).private == ()
    mas.stop(session)
    assert mas.restore(session).isolation == mas.show(session).isolation
    assert mas.network(session).private == ("git.corp", "localhost:5432")
    for words in ((), ("a b",), ("10.1.2.3",), ("x/y",)):
        with pytest.raises(BadInput):
            mas.change_network(session, "allow", words)
    with pytest.raises(NoSession):
        mas.change_network(UNKNOWN, "allow", ("a.example.com",))


def test_a_terminal_is_watched_and_typed_to(mas: Mas) -> None:
    session = started(mas, SOLO._replace(command="sh -c 'stty -echo; echo ready; exec cat'"))
    until(lambda: "ready" in mas.output(session, "00", 10).text, "the agent is ready")
    terminal = mas.terminal(session, "00")
    try:
        look = terminal.look(fresh=True)
        assert (look.ended, look.exit_status) == (False, None)
        screen = terminal.snapshot()
        assert b"ready" in screen.data
        assert (screen.columns, screen.rows) == (look.columns, look.rows)
        seen, position = bytearray(), screen.position

        def shows(word: bytes) -> bool:
            nonlocal position
            piece = terminal.read(position, 5)
            assert len(piece.data) <= 5
            position = piece.position
            seen.extend(piece.data)
            return word in seen

        terminal.type("größe\n".encode())
        until(lambda: shows("größe\r\n".encode()), "what was typed is shown")
        terminal.resize(91, 27)
        until(lambda: terminal.look(fresh=True)[1:3] == (91, 27), "the size asked for")
        again = terminal.snapshot()
        assert "größe".encode() in again.data
        assert again.position >= position
        terminal.type(b"\x04")
        until(lambda: terminal.look(fresh=True).ended, "the agent has ended")
        assert terminal.look().exit_status == 0
        with pytest.raises(AgentExited):
            until(lambda: terminal.type(b"x"), "nobody is there")
    finally:
        terminal.close()
        terminal.close()


def test_an_unknown_terminal_is_not_found(mas: Mas) -> None:
    with pytest.raises(NoSession):
        mas.terminal(UNKNOWN, "00")
    session = started(mas)
    with pytest.raises(NoAgent):
        mas.terminal(session, "99")


# Upkeep.


def test_a_dry_run_changes_nothing(mas: Mas, site: Site) -> None:
    session = started(mas)
    mas.stop(session)
    old = os.path.join(site.directory, "old")
    os.makedirs(os.path.join(old, "unit", "00"))
    os.unlink(site.session(session, ".session"))
    assert listed(mas) == [session]
    marked = Path(site.session(session, ".session")).read_bytes()
    plan = mas.prune(PrunePolicy(keep=0, statuses=("stopped", "error")), dry_run=True)
    assert ([item.session_id for item in plan.items], plan.done) == ([session], False)
    found = mas.migrate(old, dry_run=True)
    assert [(item.source, item.session_id) for item in found.migrated] == [(old, None)]
    damage = mas.repair(dry_run=True)
    assert (bool(damage.findings), damage.done) == (True, False)
    assert listed(mas) == [session]
    assert Path(site.session(session, ".session")).read_bytes() == marked


def test_a_dry_run_of_a_verb_refuses_as_the_verb_does_and_does_nothing(mas: Mas) -> None:
    active, ready, archived, deleted = (started(mas, SOLO._replace(name=name)) for name in ("a", "b", "c", "d"))
    for session in (ready, archived):
        mas.stop(session)
    mas.archive(archived)
    mas.delete(deleted)
    verbs: dict[Tryable, Callable[[str], object]] = {
        "stop": lambda session: mas.stop(SessionId(session)),
        "restore": lambda session: mas.restore(SessionId(session)),
        "archive": lambda session: mas.archive(SessionId(session)),
        "delete": lambda session: mas.delete(SessionId(session)),
        "unarchive": mas.unarchive,
        "undelete": mas.undelete,
    }
    refused: list[tuple[Tryable, str]] = [
        *(("restore", active), ("archive", active), ("unarchive", ready), ("undelete", archived), ("delete", UNKNOWN)),
        *((verb, UNKNOWN) for verb in verbs),
    ]
    for verb, whose in refused:
        with pytest.raises(MasError) as tried:
            mas.dry_run(verb, whose)
        with pytest.raises(MasError) as done:
            verbs[verb](whose)
        assert (type(tried.value), tried.value.message) == (type(done.value), done.value.message), verb
    for verb, name, session_id in (("stop", "a", active), ("restore", "b", ready), ("archive", "b", ready)):
        assert [mas.dry_run(verb, one).session_id for one in (name, session_id)] == [session_id] * 2
    assert mas.dry_run("unarchive", "c").status == "archived"
    assert (mas.dry_run("undelete", "d").status, mas.dry_run("delete", ready).name) == ("deleted", "b")
    assert [info.status for info in mas.list().sessions] == ["active", "stopped"]


def test_upkeep_does_what_it_reports(mas: Mas, site: Site) -> None:
    session = started(mas)
    mas.stop(session)
    os.unlink(site.session(session, ".session"))
    repaired = mas.repair(dry_run=False)
    assert (bool(repaired.findings), repaired.done) == (True, True)
    assert mas.repair(dry_run=False).findings == ()
    old = os.path.join(site.directory, "old")
    os.makedirs(os.path.join(old, "unit", "00"))
    moved = mas.migrate(old, dry_run=False).migrated[0].session_id
    assert moved in listed(mas)
    pruned = mas.prune(PrunePolicy(older_than=0.0, keep=0), dry_run=False)
    assert pruned.done
    plan = mas.prune(PrunePolicy(keep=0, statuses=("stopped",)), dry_run=False)
    assert {item.session_id for item in (*pruned.items, *plan.items)} == {session, moved}
    assert set(listed(mas, "deleted")) == {session, moved}
    with pytest.raises(BadInput, match="Give --older-than"):
        mas.prune(PrunePolicy(), dry_run=True)
    with pytest.raises(BadInput):
        mas.prune(PrunePolicy(keep=0, statuses=("active",)), dry_run=True)
    with pytest.raises(MasError):
        mas.migrate(os.path.join(site.directory, "missing"), dry_run=True)


def test_numbers_health_teams_and_providers(mas: Mas) -> None:
    first, second = started(mas, PAIR), started(mas)
    mas.stop(second)
    found = mas.stats()
    assert (found.active, found.stopped, found.live_agents) == (1, 1, 2)
    assert [(one.session_id, one.agents, one.live_agents) for one in found.sessions] == [(first, 2, 2), (second, 1, 0)]
    only = mas.stats(second)
    assert (only.active, only.live_agents, [one.session_id for one in only.sessions]) == (1, 0, [second])
    diagnosis = mas.doctor()
    assert diagnosis.ok is all(check.ok for check in diagnosis.checks)
    assert "tmux" in {check.name for check in diagnosis.checks}
    assert [team.name for team in mas.teams()] == list(TEAMS)
    assert [(view.id, view.is_default) for view in mas.providers() if view.id in ("demo", "shell")] == [
        ("demo", False),
        ("shell", True),
    ]


# Both sides of one workspace.


def test_every_reading_verb_answers_the_same_from_both_sides(both: Both) -> None:
    local, remote, site = both
    pair = SessionId(remote.start(PAIR._replace(name="ξ")).session_id)
    stopped, archived, deleted = (started(local) for _ in range(3))
    ended = started(remote, SOLO._replace(command="sh -c 'exit 7'"))
    for session in (stopped, archived):
        remote.stop(session)
    remote.archive(archived)
    remote.delete(deleted)
    local.send(pair, "all", "one\nzwei", force=True, wait=WAIT)
    remote.send(pair, "21", "three", sender="23", force=True, wait=WAIT)
    until(lambda: local.show(ended).agents[0].exit_status == 7, "the agent has ended")
    until(lambda: "three" in local.output(pair, "21", 20).text, "the agent shows it")
    questions: dict[str, Callable[[Mas], object]] = {
        "resolve": lambda mas: mas.resolve(pair[:6]),
        "list": lambda mas: mas.list(),
        "list with agents": lambda mas: mas.list(agents=True),
        "page": lambda mas: mas.list(limit=1, offset=1),
        **{f"list {status}": lambda mas, status=status: mas.list(status) for status in ("active", "stopped")},  # type: ignore[misc]
        "archived": lambda mas: mas.list("archived", agents=True),
        "deleted": lambda mas: mas.list("deleted"),
        **{f"show {one}": lambda mas, one=one: mas.show(one) for one in (pair, stopped, ended)},  # type: ignore[misc]
        "stats": lambda mas: of_no_moment(mas.stats()),
        "stats of one": lambda mas: of_no_moment(mas.stats(pair)),
        "teams": lambda mas: mas.teams(),
        "providers": lambda mas: mas.providers(),
        "files": lambda mas: mas.files(pair, "unit/21"),
        "workflows": lambda mas: mas.files(pair, "workflows"),
        "file": lambda mas: mas.file(pair, "logs/session.log"),
        "env": lambda mas: mas.env(pair, "21"),
        "messages": lambda mas: mas.messages(pair),
        "inbox": lambda mas: mas.messages(pair, "21", box="inbox"),
        "counts": lambda mas: mas.message_counts(),
        "approvals": lambda mas: mas.approvals(),
        "network": lambda mas: mas.network(pair),
        "output": lambda mas: mas.output(pair, "21", 50),
        "logs": lambda mas: mas.logs(pair, "21", 50),
        "events": lambda mas: mas.events("0"),
        "now": lambda mas: mas.events(),
        "prune": lambda mas: mas.prune(PrunePolicy(keep=0), dry_run=True),
        "repair": lambda mas: mas.repair(dry_run=True),
        "migrate": lambda mas: mas.migrate(None, dry_run=True),
    }
    with RemoteMas(f"unix:{site.path('sessions', '.mas', 'server', 'api.sock')}") as near:
        for question, ask in questions.items():
            mine = ask(local)
            for theirs in (remote, near):
                found = ask(theirs)
                if found != mine and "disk=" in repr(mine):
                    # A server's log grows with the questions.
                    until(lambda ask=ask, theirs=theirs: ask(theirs) == ask(local), question)  # type: ignore[misc]
                else:
                    assert (question, found) == (question, mine)
                    assert plain(found) == plain(mine)
    names = [check.name for check in local.doctor().checks]
    assert [check.name for check in remote.doctor().checks] == names


def of_no_moment(stats: Stats) -> Stats:
    """Stats without what is another the next moment."""

    def agent(one: AgentStats) -> AgentStats:
        return one._replace(cpu=0, cpu_seconds=0, memory=0)

    def session(one: SessionStats) -> SessionStats:
        return one._replace(cpu=0, cpu_seconds=0, memory=0, each=tuple(map(agent, one.each)))

    sessions = tuple(map(session, stats.sessions))
    return stats._replace(cpu=0, cpu_seconds=0, memory=0, host=None, sessions=sessions)


def plain(value: object) -> str:
    """A value as text: the types of all its parts are in it, but a word of a fixed list is just a word."""
    return re.sub(r"<\w+\.\w+: ('\w+')>", r"\1", repr(value))


# What only a client can meet.


def test_the_next_listing_has_what_another_process_changed(both: Both) -> None:
    """A server reads again only what has changed, and must not miss that it has."""
    local, remote, site = both
    session = started(local)

    def same() -> dict[str, str]:
        found = remote.list(agents=True).sessions
        assert found == local.list(agents=True).sessions
        return {info.session_id: info.status for info in found}

    for _ in range(3):
        assert same() == {session: "active"}
        local.stop(session)
        assert same() == {session: "stopped"}
        copy = SessionId(local.clone(session, "a copy", run_it=False).session_id)
        assert same() == {session: "stopped", copy: "stopped"}
        local.delete(copy)
        assert same() == {session: "stopped"}
        local.restore(session)
    for name in ("metadata.json", ".session"):
        path = site.session(session, name)
        assert same() == {session: "active"}
        os.rename(path, f"{path}.kept")
        assert {info.status for info in remote.list().sessions} == {"error"}
        os.rename(f"{path}.kept", path)
        local.repair(dry_run=False)
    site.tmux("kill-server")
    assert same() == {session: "stopped"}


def test_a_start_whose_server_is_killed_is_asked_for_again(both: Both, served: Served) -> None:
    many = served.site.path("unit", "00", "many")
    os.makedirs(many)
    for number in range(3000):
        with open(os.path.join(many, str(number)), "w", encoding="utf-8") as file:
            file.write("x")

    def directories() -> list[str]:
        return [name for name in os.listdir(served.site.path("sessions")) if not name.startswith(".")]

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(both.remote.start, SOLO)
        until(directories, "the start has begun")
        served.kill()
        served.restart()
        session = asked.result(60)
    assert listed(both.remote) == directories() == [session.session_id]
    assert len(served.site.tmux_sessions()) == 1


# What agents do.


def test_an_agent_reads_those_it_may_write_to(mas: Mas) -> None:
    session = started(mas, Run(team=team_named("dev"), command="cat"))
    assert [agent.id for agent in mas.agents(session)] == ["00", "20", "21", "22", "23"]
    for reader, agent in (("21", "22"), ("21", "20"), ("20", "00"), ("00", "20"), ("21", "21"), (None, "00")):
        assert mas.output(session, agent, 10, reader).agent == agent
    for reader, agent in (("21", "00"), ("00", "21")):
        with pytest.raises(Forbidden, match=rf"Agent {reader} may not read the screen of {agent} \(hierarchy"):
            mas.output(session, agent, 10, reader)
    with pytest.raises(NoAgent):
        mas.output(session, "21", 10, "77")


def test_a_self_report_is_kept_sent_as_an_event_and_forgotten_on_restart(mas: Mas, site: Site) -> None:
    session = started(mas, PAIR)
    before = mas.events().last
    told = mas.report(session, "21", "  reading ✓\n", "working")
    assert (told.session_id, told.agent, told.text, told.state) == (session, "21", "reading ✓", "working")
    assert [agent.report for agent in mas.agents(session)] == ["reading ✓", None]
    assert mas.report(session, "21", "done").state is None
    events = [event for event in mas.events(before).events if event.event == "report"]
    assert [(event.session_id, event.agent, event.details) for event in events] == [
        (session, "21", {"text": "reading ✓", "state": "working"}),
        (session, "21", {"text": "done"}),
    ]
    assert "report from=21 (working) reading ✓" in mas.logs(session, None, 10)
    for text, state in (("", None), (" \n", None), ("x" * 2001, None), ("\x1b[2J", None), ("x", "asleep")):
        with pytest.raises(BadInput):
            mas.report(session, "21", text, state)
    with pytest.raises(NoAgent):
        mas.report(session, "77", "who am I")
    with pytest.raises(NoSession):
        mas.report(UNKNOWN, "21", "where am I")
    mas.stop(session)
    with pytest.raises(Conflict, match="not running"):
        mas.report(session, "21", "still here")
    assert mas.agents(session)[0].report == "done"
    assert mas.restore(session).agents[0].report is None
    assert mas.agents(session)[0].report is None


def test_a_session_in_a_shared_network_has_its_ports_without_forwards(mas: Mas) -> None:
    session = SessionId(mas.start(SOLO).session_id)
    assert mas.ports(session).network == "shared"
    found = mas.forward(session, 3000)
    assert (found.local, found.url) == (3000, f"http://3000-{session[:8]}.localhost:3000/")
    assert mas.forwards(session) == ()
    with pytest.raises(NotFound):
        mas.end_forward(session, 3000)
    mas.stop(session)
    for look in (mas.ports, lambda session: mas.forward(session, 3000)):
        with pytest.raises(Conflict, match="is not running"):
            look(session)
    for ask in (mas.ports, mas.forwards, lambda session: mas.forward(session, 3000)):
        with pytest.raises(NoSession):
            ask(UNKNOWN)
    with pytest.raises(BadInput):
        mas.forward(session, 65536)
