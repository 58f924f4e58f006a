"""A session with an id of the caller's own: that very id, or a refusal that says why."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.e2e.standin import ASLEEP, read, start_body, tmux_name
from tests.served import Served
from tests.site import Site, fresh_workspace

OWN = "550e8400-e29b-41d4-a716-446655440000"
ALIKE = "550e8400-0000-4000-8000-000000000000"


def test_a_given_id_is_used_and_may_be_written_in_capitals(site: Site) -> None:
    assert site.start(*ASLEEP, "--id", OWN.upper()) == OWN
    assert site.four_places(OWN) == {"active"}
    assert site.tmux_sessions() == {"mas-550e8400"}
    assert start_body(site, {"team": "solo", "sessionId": ALIKE.replace("550e", "660E")}).startswith("660e8400-")


@pytest.mark.parametrize("bad", ["", "550e8400", "550e8400-e29b-11d4-a716-446655440000", "../x", OWN + "0", "ü" * 36])
def test_what_is_no_uuid_of_version_4_is_refused(site: Site, bad: str) -> None:
    by_option = site.mas("start", *ASLEEP, "--id", bad, code=2)
    assert by_option.stderr.startswith("error: Not a session id: ")
    in_file = site.mas("start", "--config", "-", input=json.dumps({"sessionId": bad}), code=2)
    assert in_file.stderr.startswith("error: sessionId is ")
    assert site.statuses() == {}


@pytest.mark.parametrize(
    ("away", "back"), [((), "show"), (("archive", OWN), "unarchive"), (("delete", OWN, "--yes"), "undelete")]
)
def test_an_id_that_is_taken_is_refused_wherever_its_session_is_kept(
    site: Site, away: tuple[str, ...], back: str
) -> None:
    site.start(*ASLEEP, "--id", OWN)
    site.mas("stop", OWN)
    if away:
        site.mas(*away)
    journal = read(site.path("sessions", ".index"))
    refused = site.mas("start", *ASLEEP, "--id", OWN, code=4)
    assert f"Session {OWN} already exists" in refused.stderr
    assert f"mas {back} {OWN[:8]}" in refused.stderr
    assert refused.stdout == ""
    alike = site.mas("start", *ASLEEP, "--id", ALIKE, code=4)
    assert OWN in alike.stderr
    assert "mas-550e8400" in alike.stderr
    assert read(site.path("sessions", ".index")) == journal
    assert os.listdir(site.path("sessions", ".mas", "intents")) == []
    assert site.tmux_sessions() == set()
    site.mas(back, OWN)


def test_an_id_of_a_session_that_is_gone_for_good_is_free_again(site: Site) -> None:
    site.start(*ASLEEP, "--id", OWN)
    site.mas("delete", OWN, "--yes")
    site.mas("prune", "--keep", "0", "--yes")
    assert site.start(*ASLEEP, "--id", OWN) == OWN
    assert site.four_places(OWN) == {"active"}


def test_a_tmux_session_of_that_name_is_a_conflict_and_is_left_alone(site: Site) -> None:
    os.makedirs(os.path.dirname(site.user_socket), mode=0o700, exist_ok=True)
    site.tmux("new-session", "-d", "-s", tmux_name(OWN), "sleep", "1000")
    refused = site.mas("start", *ASLEEP, "--id", OWN, code=4)
    assert "mas-550e8400" in refused.stderr
    assert site.statuses() == {}
    assert site.tmux_sessions() == {"mas-550e8400"}


@pytest.mark.parametrize("ids", [(OWN, OWN, OWN), (OWN, ALIKE)])
def test_of_starts_at_once_with_one_id_at_most_one_goes_on_and_nothing_is_left_of_the_others(
    site: Site, ids: tuple[str, ...]
) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "mas", "start", *ASLEEP, "--id", session],
            env=site.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for session in ids
    ]  # fmt: skip
    done = [(process.communicate(), process.returncode) for process in running]
    started = [out.strip() for (out, _), code in done if code == 0]
    assert {code for _, code in done} <= {0, 4}, done
    # Of two ids that begin alike, both may see the other one coming.
    assert len(started) == 1 or (len(set(ids)) > 1 and not started)
    assert site.statuses() == dict.fromkeys(started, "active")
    assert {name for name in os.listdir(site.path("sessions")) if not name.startswith(".")} == set(started)
    assert os.listdir(site.path("sessions", ".mas", "intents")) == []
    assert site.mas("repair", "--dry-run").stdout == ""


def test_the_api_takes_an_id_and_refuses_one_that_is_taken(served: Served) -> None:
    client = served.client()
    body = {"team": "solo", "sessionId": OWN.upper()}
    made = client.post("/runs", json=body, headers={"Idempotency-Key": "a"})
    assert (made.status_code, made.json()["sessionId"]) == (201, OWN)
    # The same request again is the same session; another one is a conflict, however often it is asked.
    assert client.post("/runs", json=body, headers={"Idempotency-Key": "a"}).json()["sessionId"] == OWN
    for _ in range(2):
        refused = client.post("/runs", json=body, headers={"Idempotency-Key": "b"})
        assert (refused.status_code, refused.json()["code"]) == (409, "exists")
    assert client.post("/runs", json={"sessionId": "550e8400"}).status_code == 422
    assert served.mas("start", *ASLEEP, "--id", OWN, code=4).stdout == ""


def test_an_agent_that_starts_a_session_gets_a_new_one(site: Site) -> None:
    first = site.start(*ASLEEP)
    variables = dict(
        line.removeprefix("export ").split("=", 1)
        for line in site.mas("env", first).stdout.splitlines()
        if line.startswith("export ")
    )
    second = site.start(*ASLEEP, env=variables)
    assert second != first


def test_the_same_id_in_two_workspaces_is_two_sessions(site: Site) -> None:
    with fresh_workspace("--provider", "shell") as other:
        assert site.start(*ASLEEP, "--id", OWN) == OWN
        assert other.start(*ASLEEP, "--id", OWN) == OWN
        other.mas("stop", OWN)
        assert other.statuses() == {OWN: "stopped"}
        pane = site.tmux("list-panes", "-t", tmux_name(OWN), "-F", "#{pane_dead}")
        assert pane == "0"
        assert site.json("show", OWN)["agents"][0]["state"] != "exited"
