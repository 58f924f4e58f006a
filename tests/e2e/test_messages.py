"""Messages: what is sent is kept, with how far it came, through everything that happens to a session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from mas.model.ids import SessionId
from tests.e2e.standin import ASLEEP, command, read, received, start_body, start_receivers, start_unruly
from tests.site import AGENTS, Site, until

ID = "m-0123456789abcdef"
KILLED = "the sender was killed while typing; it may have arrived"


def inbox(site: Site, session: str, *args: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.json("inbox", session, *args, **options)["messages"]
    return found


def states(message: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    """How far a message came with each agent, and why no further."""
    return {delivery["agent"]: (delivery["state"], delivery["reason"]) for delivery in message["deliveries"]}


def submit_delay(site: Site, seconds: float) -> None:
    """Have whoever types to a receiver wait this long before Enter."""
    with open(site.path("providers", "receiver.toml"), "w", encoding="utf-8") as file:
        file.write(
            f'provider = {{ id = "receiver" }}\ninput = {{ submit_delay = {seconds} }}\n'
            f'[launch]\nargv = ["{{python}}", "{os.path.join(AGENTS, "receiver.py")}"]\n'
        )


def begin_send(site: Site, *args: str) -> subprocess.Popen[bytes]:
    """A send under way."""
    return subprocess.Popen(
        [sys.executable, "-m", "mas", "send", *args],
        env=site.env,
        cwd=site.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def being_typed(site: Site, session: str) -> list[tuple[str, str]]:
    store = site.world().messages()
    if not store.exists(session):
        return []
    with store.open(session) as mailbox:
        return mailbox.being_typed()


def kill_while_typing(site: Site, session: str, *args: str) -> None:
    submit_delay(site, 5)
    sender = begin_send(site, "--session", session, *args)
    until(lambda: being_typed(site, session), "a text without its Enter")
    sender.send_signal(signal.SIGKILL)
    sender.wait()
    submit_delay(site, 0)


def test_what_was_sent_is_found_in_the_inbox(site: Site) -> None:
    session = start_receivers(site, "pair")
    sent = site.json("send", "--session", session, "21", "two\nlines")
    assert set(sent) == {"sessionId", "target", "agents", "bytes", "id", "deliveries"}
    assert states(sent) == {"21": ("typed", None)}
    second = site.json("send", "--session", session, "--from", "21", "all", "日本 ' \" ; % 語")
    found = site.json("inbox", session)
    assert (found["total"], found["warnings"]) == (2, [])
    first, last = found["messages"]
    assert first.pop("createdAt") <= sent["deliveries"][0]["at"]
    assert first == {
        "id": sent["id"],
        "from": None,
        "target": "21",
        "message": "two\nlines",
        "deliveries": sent["deliveries"],
    }
    assert (last["id"], last["from"], last["target"]) == (second["id"], "21", "all")
    assert last["message"] == "日本 ' \" ; % 語"
    # Nobody gets what they wrote themselves.
    assert states(last) == {"23": ("typed", None)}
    assert f"id={sent['id']}" in read(site.session(session, "logs", "session.log"))


def test_an_inbox_is_an_agents_own(site: Site) -> None:
    session = start_receivers(site, "pair")
    for sender, target in (("21", "23"), ("23", "21"), ("23", "all")):
        site.mas("send", "--session", session, "--from", sender, target, f"{sender} to {target}")
    texts = {
        args: [message["message"] for message in inbox(site, session, *args)]
        for args in [(), ("21",), ("21", "--sent"), ("21", "--all"), ("23", "--sent", "--limit", "1")]
    }
    everything = ["21 to 23", "23 to 21", "23 to all"]
    assert list(texts.values()) == [everything, everything[1:], everything[:1], everything, everything[2:]]
    inside = {"MAS_SESSION_ID": session, "MAS_AGENT_ID": "23"}
    assert [one["message"] for one in site.json("inbox", env=inside)["messages"]] == ["21 to 23"]
    table = site.mas("inbox", session, "21").stdout.splitlines()
    assert [line.split()[2:] for line in table[1:]] == [
        ["23", "21", "typed", "23", "to", "21"],
        ["23", "all", "typed", "23", "to", "all"],
    ]
    site.mas("inbox", session, "99", code=3)
    for bad in (("--limit", "-1"), ("--limit", "x"), ("--offset", "-1"), ("--sent", "--all")):
        site.mas("inbox", session, *bad, code=2)


def test_an_empty_inbox_says_so_and_makes_nothing(site: Site) -> None:
    session = site.start(*ASLEEP)
    assert site.mas("inbox", session).stderr.startswith("No messages")
    assert site.json("inbox", session) == {"messages": [], "total": 0, "warnings": []}
    assert not os.path.exists(site.session(session, ".mas", "messages.db"))


def test_what_a_refused_message_is_leaves_no_trace(site: Site) -> None:
    session = start_receivers(site)
    for args in (("99", "x"), ("00", ""), ("00", "a\x1bb"), ("--id", "m-1", "00", "x"), ("--from", "a\nb", "00", "x")):
        assert site.mas("send", "--session", session, *args, code=None).returncode in (2, 3)
    assert inbox(site, session) == []


def test_a_message_to_an_agent_that_has_ended_is_kept_with_the_reason(site: Site) -> None:
    session = start_unruly(site, EXIT_STATUS="0")
    until(lambda: site.json("show", session)["agents"][0]["state"] == "exited", "the agent's end")
    assert "Not running: agent 00" in site.mas("send", "--session", session, "00", "hello", code=4).stderr
    (message,) = inbox(site, session)
    assert message["message"] == "hello"
    assert states(message) == {"00": ("undelivered", "Not running: agent 00")}
    assert "undelivered: Not running: agent 00" in site.mas("inbox", session).stdout


def test_a_message_that_one_of_many_cannot_get_is_kept_as_undelivered_for_all(site: Site) -> None:
    units = [{"name": "ops", "manager": {"command": command("receiver")}, "workers": [{"command": "true"}]}]
    session = start_body(site, {"agents": {"units": units}})
    until(lambda: site.json("show", session)["agents"][1]["state"] == "exited", "the worker's end")
    site.mas("send", "--session", session, "ops", "hello", code=4)
    assert states(inbox(site, session)[0]) == dict.fromkeys(("10", "11"), ("undelivered", "Not running: agent 11"))


def test_a_message_to_a_stopped_session_is_kept_as_undelivered(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    site.mas("send", "--session", session, "00", "hello", code=4)
    assert states(inbox(site, session)[0]) == {"00": ("undelivered", f"Session {session} is not running")}


def test_a_message_sent_twice_by_the_same_id_is_typed_once(site: Site) -> None:
    session = start_receivers(site)
    first = site.json("send", "--session", session, "--id", ID, "00", "hello")
    assert first["id"] == ID
    assert site.json("send", "--session", session, "--id", ID, "00", "hello") == first
    assert ID in site.mas("send", "--session", session, "--id", ID, "00", "other", code=4).stderr
    site.mas("send", "--session", session, "00", "after")
    assert [received(site, session, "00", number) for number in (1, 2)] == [b"hello", b"after"]
    assert [message["message"] for message in inbox(site, session)] == ["hello", "after"]


def test_many_who_send_the_same_id_at_once_type_it_once(site: Site) -> None:
    session = start_receivers(site)
    senders = [begin_send(site, "--session", session, "--id", ID, "00", "hello") for _ in range(5)]
    assert {sender.wait() for sender in senders} == {0}
    site.mas("send", "--session", session, "00", "after")
    assert [received(site, session, "00", number) for number in (1, 2)] == [b"hello", b"after"]


def test_a_message_that_failed_fails_again_under_the_same_id(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    site.mas("send", "--session", session, "--id", ID, "00", "hello", code=4)
    site.mas("restore", session)
    assert "is not running" in site.mas("send", "--session", session, "--id", ID, "00", "hello", code=4).stderr
    assert len(inbox(site, session)) == 1


def test_a_sender_killed_while_typing_leaves_a_message_in_doubt_that_is_never_typed_again(site: Site) -> None:
    session = start_receivers(site)
    kill_while_typing(site, session, "--id", ID, "00", "hello")
    (message,) = inbox(site, session)
    assert (message["id"], states(message)) == (ID, {"00": ("undelivered", KILLED)})
    assert KILLED in site.mas("send", "--session", session, "--id", ID, "00", "hello", code=4).stderr
    assert not os.path.exists(site.session(session, "unit", "00", "got-1"))


def test_a_sender_killed_among_many_agents_leaves_the_rest_queued(site: Site) -> None:
    session = start_receivers(site, "pair")
    kill_while_typing(site, session, "all", "hello")
    site.mas("send", "--session", session, "23", "after")
    first = inbox(site, session)[0]
    assert states(first) == {"21": ("undelivered", KILLED), "23": ("queued", None)}
    assert received(site, session, "23", 1) == b"after"


def test_a_message_that_is_being_typed_is_left_to_its_sender(site: Site) -> None:
    session = start_receivers(site)
    submit_delay(site, 1)
    sender = begin_send(site, "--session", session, "00", "hello")
    until(lambda: being_typed(site, session), "a text without its Enter")
    seen = states(inbox(site, session)[0])
    assert sender.wait() == 0
    assert seen in ({"00": ("queued", None)}, {"00": ("typed", None)})
    assert states(inbox(site, session)[0]) == {"00": ("typed", None)}


def test_messages_sent_at_once_to_one_agent_are_not_mixed(site: Site) -> None:
    session = start_receivers(site)
    submit_delay(site, 0.2)
    texts = [f"message {number}" for number in range(5)]
    senders = [begin_send(site, "--session", session, "00", text) for text in texts]
    assert {sender.wait() for sender in senders} == {0}
    got = [received(site, session, "00", number).decode() for number in range(1, 6)]
    assert sorted(got) == texts
    assert sorted(message["message"] for message in inbox(site, session)) == texts


def test_messages_go_with_the_session_into_the_archive_and_the_trash_and_back(site: Site) -> None:
    session = start_receivers(site)
    site.mas("send", "--session", session, "00", "before")
    kill_while_typing(site, session, "00", "in doubt")
    site.mas("stop", session)
    assert os.path.exists(site.session(session, ".mas", "messages.db"))
    site.mas("archive", session)
    site.mas("unarchive", session)
    before = inbox(site, session)
    assert [message["message"] for message in before] == ["before", "in doubt"]
    assert not os.path.exists(site.session(session, ".mas", "messages.db-wal"))
    site.mas("delete", session, "--yes")
    site.mas("undelete", session)
    assert inbox(site, session) == before
    site.mas("restore", session)
    assert inbox(site, session) == before


def test_a_clone_is_a_new_session_with_no_messages(site: Site) -> None:
    session = start_receivers(site)
    site.mas("send", "--session", session, "00", "hello")
    copy = site.json("clone", session)["sessionId"]
    assert inbox(site, copy) == []
    assert len(inbox(site, session)) == 1


def test_damaged_messages_are_kept_and_told_of(site: Site) -> None:
    session = start_receivers(site)
    site.mas("send", "--session", session, "00", "lost")
    with open(site.session(session, ".mas", "messages.db"), "wb") as file:
        file.write(b"garbage " * 1000)
    site.mas("send", "--session", session, "00", "new")
    assert [received(site, session, "00", number) for number in (1, 2)] == [b"lost", b"new"]
    done = site.mas("inbox", session)
    assert "warning: Damaged messages of before are kept in" in done.stderr
    assert "new" in done.stdout
    assert "messages.db is damaged" in read(site.session(session, "logs", "session.log"))
    events = site.local().events("0").events
    assert ["messages.db is damaged" in event.details["text"] for event in events if event.event == "warning"] == [True]


def test_every_step_of_a_message_is_told_as_an_event(site: Site) -> None:
    session = start_receivers(site)
    site.mas("send", "--session", session, "--from", "21", "--id", ID, "00", "hello")
    site.mas("stop", session)
    other = "m-fedcba9876543210"
    site.mas("send", "--session", session, "--id", other, "00", "hello", code=4)
    told = [event for event in site.local().events("0").events if event.event == "message"]
    assert {event.session_id for event in told} == {session}
    assert [(event.agent, event.details) for event in told] == [
        (agent, {"messageId": message_id, "target": "00", "from": sender, "state": state})
        for agent, message_id, sender, state in (
            (None, ID, "21", "queued"),
            ("00", ID, "21", "typed"),
            (None, other, None, "queued"),
            ("00", other, None, "undelivered"),
        )
    ]


def test_the_messages_of_active_sessions_are_counted(site: Site) -> None:
    mas = site.local()
    none = {"queued": 0, "typed": 0, "acknowledged": 0, "undelivered": 0}
    assert mas.message_counts() == none
    session, silent = start_receivers(site, "pair"), site.start(*ASLEEP)
    site.mas("send", "--session", session, "all", "hello")
    assert mas.message_counts() == none | {"typed": 2}
    assert not os.path.exists(site.session(silent, ".mas", "messages.db"))
    with open(site.session(session, ".mas", "messages.db"), "r+b") as file:
        file.truncate(5000)
    mas.message_counts()
    mas.stop(SessionId(session))
    assert mas.message_counts() == none


@pytest.mark.parametrize("box", ["nonsense", ""])
def test_only_boxes_that_exist_are_looked_into(site: Site, box: str) -> None:
    session = SessionId(site.start(*ASLEEP))
    with pytest.raises(Exception, match="No box"):
        site.local().messages(session, None, 10, 0, box)


def test_nothing_is_typed_to_an_agent_that_waits_for_an_answer(site: Site) -> None:
    session = site.start("--team", "pair", "--provider", "demo")

    def state() -> tuple[str, str]:
        agent = site.json("show", session)["agents"][0]
        return agent["state"], agent["stateText"]

    until(lambda: state()[0] == "idle", "the agent is ready")
    site.mas("send", "--session", session, "21", "/ask may I go on?")
    until(lambda: state()[0] == "blocked", "its question")
    before = site.mas("output", session, "21").stdout
    refused = site.mas("send", "--session", session, "21", "hello", code=4)
    assert "Agent 21 waits for an answer" in refused.stderr
    assert "may I go on?" in refused.stderr
    everybody = site.mas("send", "--session", session, "all", "hello to all", code=4)
    assert "Agent 21 waits for an answer" in everybody.stderr
    assert site.mas("output", session, "21").stdout == before
    assert state()[0] == "blocked"
    assert "hello" not in site.mas("output", session, "23").stdout
    reasons = {one["message"]: states(one) for one in site.json("inbox", session)["messages"][1:]}
    assert set(reasons) == {"hello", "hello to all"}
    assert {state for found in reasons.values() for state, _ in found.values()} == {"undelivered"}
