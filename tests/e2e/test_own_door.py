"""What agents do by their own token: through the server where one runs, else here, and always as themselves."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator

import pytest

from mas.store.agent.launch_plan import launch_path, read_plan
from tests.served import Served
from tests.site import Site, until


def environment_of(site: Site, session: str, agent: str) -> dict[str, str]:
    """What the agent's program was started with."""
    return dict(read_plan(launch_path(site.session(session), agent)).env)


@pytest.fixture(params=["server", "no server"])
def place(request: pytest.FixtureRequest, site: Site) -> Iterator[Site]:
    """A workspace whose server runs, or does not."""
    served = Served(site) if request.param == "server" else None
    try:
        yield site
    finally:
        if served:
            served.close()


def test_every_agent_is_given_its_own_token_at_each_start(site: Site) -> None:
    session = site.start("--team", "pair")
    tokens = {agent: site.mas("token", "--agent", agent).stdout.strip() for agent in ("21", "23")}
    assert {agent: environment_of(site, session, agent)["MAS_TOKEN"] for agent in tokens} == tokens
    assert stat.S_IMODE(os.stat(launch_path(site.session(session), "21")).st_mode) == 0o600
    site.mas("stop", session)
    site.mas("token", "--rotate")
    site.mas("restore", session)
    assert {agent: environment_of(site, session, agent)["MAS_TOKEN"] for agent in tokens} == tokens


def test_without_a_key_to_make_tokens_with_nothing_is_started(site: Site) -> None:
    site.mas("token", "--agent", "00", "--session", site.start())
    key = site.path("sessions", ".mas", "server", "key")
    with open(key, "wb") as file:
        file.write(b"\0" * 65)
    assert f"rm -r {key}" in site.mas("start", code=5).stderr
    shutil.rmtree(os.path.dirname(key))
    with open(os.path.dirname(key), "wb"):
        pass
    assert f"rm {os.path.dirname(key)}" in site.mas("start", code=5).stderr
    assert len(site.statuses()) == 1
    os.unlink(os.path.dirname(key))
    site.start()


def test_what_an_agent_sends_goes_through_the_server_as_itself(served: Served) -> None:
    site = served.site
    session = site.start("--team", "pair")
    # A login shell's PATH is its own.
    site.mas("send", "21", f"{sys.executable} -m mas send 23 'echo hello from the pane'")

    def sent() -> list[str]:
        return [message["from"] for message in site.json("inbox", "23")["messages"]]

    assert until(sent, "the message") == ["21"]

    def requests() -> list[str]:
        with open(served.log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.startswith("{")]
        return [line["principal"] for line in lines if line.get("method") == "POST"]

    assert until(requests, "the request") == [f"agent 21 of {session}"]


def test_an_agent_speaks_for_itself_only(place: Site) -> None:
    session = place.start("--team", "pair")
    agent = environment_of(place, session, "21")
    place.mas("send", "23", "true", env=agent)
    place.mas("send", "--from", "21", "23", "true", env=agent)
    assert "23" in place.mas("send", "--from", "23", "23", "true", env=agent, code=8).stderr
    place.mas("report", "--as", "23", "busy", env=agent, code=8)
    place.mas("report", "busy", env=agent)
    assert [message["from"] for message in place.json("inbox")["messages"]] == ["21", "21"]
    # A person may speak as anybody.
    place.mas("send", "--from", "23", "21", "true")


def test_an_agent_reports_as_itself_and_in_its_own_session_only(place: Site) -> None:
    own, other = (place.start("--team", "pair", "--name", name) for name in ("web", "shop"))
    agent = environment_of(place, own, "21")
    for word in ("23", f"{own}:23", "shop:21", f"{other}:23"):
        place.mas("report", word, "busy", env=agent, code=8)
    place.mas("report", "--as", "21", "shop:21", "busy", env=agent, code=8)
    place.mas("send", "--as", "21", "shop:23", "true", env=agent, code=8)
    place.mas("mcp", "shop", env=agent, code=8)
    place.mas("mcp", f"{own}:23", env=agent, code=8)
    place.mas("mcp", own, env=agent, input="")
    assert "not 23 and 21" in place.mas("report", "--as", "21", "23", "busy", env=agent, code=2).stderr
    place.mas("report", f"{own}:21", "reading", env=agent)
    reports = [known["report"] for session in (own, other) for known in place.json("show", session)["agents"]]
    assert reports == ["reading", None, None, None]


def test_a_name_that_the_token_does_not_open_is_explained(served: Served) -> None:
    session = served.site.start("--team", "pair", "--name", "web")
    agent = environment_of(served.site, session, "21")
    said = served.site.mas("send", "web:23", "true", env=agent, code=8).stderr
    assert said == (
        "error: The token of agent 21 works only for its own session, given by its id\n"
        "hint:  leave the session out: mas send 21 …\n"
    )


def test_an_agent_sees_its_inbox_its_team_and_those_it_may_write_to(place: Site) -> None:
    session = place.start("--team", "dev")
    agent = environment_of(place, session, "21")
    place.mas("send", "22", "true")
    place.mas("send", "21", "true")
    assert [message["target"] for message in place.json("inbox", env=agent)["messages"]] == ["21"]
    team = place.json("show", env=agent)["agents"]
    assert [known["id"] for known in team] == ["00", "20", "21", "22", "23"]
    assert "22" in place.mas("show", env=agent).stdout
    assert place.json("output", "22", env=agent)["agent"] == "22"
    assert "hierarchy" in place.mas("output", "00", env=agent, code=8).stderr
    place.mas("report", "--state", "working", "at it", env=agent)
    reports = {known["id"]: known["report"] for known in place.json("show")["agents"]}
    assert reports == {"00": None, "20": None, "21": "at it", "22": None, "23": None}


def test_an_agent_has_to_do_with_its_own_session_only(served: Served) -> None:
    site = served.site
    own, other = site.start("--team", "pair"), site.start("--team", "pair")
    agent = environment_of(site, own, "21")
    for args in (
        ["send", "--session", other, "23", "true"],
        ["show", other],
        ["output", other, "23"],
        ["inbox", other],
    ):
        assert "works only for its own session, given by its id" in site.mas(*args, env=agent, code=8).stderr
    site.mas("inbox", own[:8], "23", env=agent, code=8)
    site.mas("show", f"mas-{own[:8]}", env=agent)
    # Another server or workspace than its own is reached as ever.
    site.mas("show", other, "--workspace", site.root, env=agent)
    site.mas("show", other, "--url", served.url, "--token", served.token, env=agent)


def test_what_its_token_is_not_good_for_is_done_here(served: Served) -> None:
    site = served.site
    session = site.start("--team", "pair")
    agent = environment_of(site, session, "21")
    assert site.mas("token", env=agent).stdout.strip() == served.token
    assert site.mas("list", "-q", env=agent).stdout.strip() == session
    site.mas("teams", env=agent)
    site.mas("stop", session, env=agent)
    assert site.statuses() == {session: "stopped"}


def test_the_token_of_a_stopped_session_is_harmless(served: Served) -> None:
    site = served.site
    session = site.start("--team", "pair")
    agent = environment_of(site, session, "21")
    site.mas("stop", session)
    site.mas("send", "23", "true", env=agent, code=4)
    site.mas("report", "alive", env=agent, code=4)
    assert [known["state"] for known in site.json("show", env=agent)["agents"]] == ["exited", "exited"]
    site.mas("delete", session, "--yes")
    site.mas("show", env=agent, code=3)


def test_a_report_is_what_people_see_where_nothing_better_is_known(site: Site) -> None:
    session = site.start("--team", "pair", "--command", "cat")
    site.mas("report", "--as", "21", "reading the plan\nand more")
    assert "reading the plan" in site.mas("show", session).stdout
    assert "and more" not in site.mas("show", session).stdout
    assert "Only agents report" in site.mas("report", "nobody", code=2).stderr
