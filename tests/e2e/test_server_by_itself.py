"""The server that comes by itself with a session, and exits once it is not needed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any, cast

import httpx
import psutil
import pytest

from mas.http.idle import until_idle
from mas.model.errors import NoTmux
from mas.model.views import SessionList
from mas.service.mas import Mas
from tests.site import Site, until


@pytest.fixture
def by_itself(site: Site) -> Site:
    """A workspace where it may come."""
    site.env["MAS_SERVER"] = "auto"
    return site


def info_of(site: Site) -> dict[str, Any] | None:
    """What the listening server reports about itself."""
    try:
        with open(site.path("sessions", ".mas", "server", "server.json"), encoding="utf-8") as file:
            return cast(dict[str, Any], json.load(file))
    except FileNotFoundError:
        return None


def listening(site: Site) -> dict[str, Any]:
    return cast(dict[str, Any], until(lambda: info_of(site), "a server listens"))


def doctor(site: Site) -> str:
    checks = {check["name"]: check["text"] for check in site.json("doctor", code=None)["checks"]}
    return str(checks["server"])


def text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def log_of(site: Site) -> str:
    return text_of(site.path("logs", "api.log"))


def test_a_start_brings_it_up_and_the_session_is_there(by_itself: Site) -> None:
    session = by_itself.start()
    server = listening(by_itself)
    client = httpx.Client(
        base_url=server["url"], headers={"Authorization": f"Bearer {by_itself.mas('token').stdout.strip()}"}
    )
    with client:
        assert [info["sessionId"] for info in client.get("/sessions").json()["sessions"]] == [session]
    assert doctor(by_itself) == f"{server['url']} (process {server['pid']}, exits after 600 s without use)"
    assert by_itself.mas("url").stdout.startswith(server["url"])


def test_its_address_can_be_asked_for_at_once(by_itself: Site) -> None:
    by_itself.start()
    # Nothing says yet that it is there: it has only just been started.
    url = by_itself.mas("url").stdout
    assert url.startswith(listening(by_itself)["url"])


def test_no_command_waits_for_a_server_that_does_not_come(site: Site) -> None:
    site.start()
    done = site.mas("url", code=7, timeout=30)
    assert "mas serve --detach" in done.stderr


def test_restore_and_a_started_clone_bring_it_up_too(by_itself: Site) -> None:
    session = by_itself.start("--team", "solo", "--no-server")
    by_itself.mas("clone", session)
    by_itself.mas("stop", session)
    assert by_itself.summoned() == []
    by_itself.mas("restore", session)
    listening(by_itself)
    by_itself.mas("serve", "--stop")
    by_itself.mas("clone", session, "--start")
    listening(by_itself)


@pytest.mark.parametrize("how", ["flag", "environment", "config"])
def test_no_server_starts_if_the_setting_says_so(by_itself: Site, how: str) -> None:
    if how == "config":
        with open(by_itself.path("config.json"), encoding="utf-8") as file:
            config = json.load(file)
        with open(by_itself.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(config | {"server": "off"}, file)
    env = {"MAS_SERVER": {"environment": "off", "config": ""}.get(how, "auto")}
    by_itself.start("--team", "solo", *(["--no-server"] if how == "flag" else []), env=env)
    # It would have been started before the command answered.
    assert by_itself.summoned() == []
    assert info_of(by_itself) is None


def test_an_unknown_setting_is_refused(site: Site) -> None:
    assert "it can be: auto, off" in site.mas("start", env={"MAS_SERVER": "perhaps"}, code=2).stderr


def test_of_several_that_come_at_once_one_stays_and_the_others_go_quietly(by_itself: Site) -> None:
    argv = [sys.executable, "-m", "mas", "start", "--team", "solo"]
    starts = [
        subprocess.Popen(argv, env=by_itself.env, cwd=by_itself.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for start in starts:
        said = start.communicate()[1]
        assert start.returncode == 0, said
    pid = listening(by_itself)["pid"]
    until(lambda: [process.pid for process in by_itself.summoned()] == [pid], "one server is left")
    assert "error: " not in log_of(by_itself)
    assert "warning" not in log_of(by_itself)


def test_one_whose_session_was_started_by_an_agent_is_not_that_agent(by_itself: Site) -> None:
    first = by_itself.start("--team", "solo", "--no-server")
    agent = by_itself.json("env", first, "--agent", "00") | {"MAS_PANE": f"{first}/00", "MAS_TOKEN": "secret"}
    by_itself.mas("start", "--team", "solo", env=agent)
    pid = listening(by_itself)["pid"]
    environ = psutil.Process(pid).environ()
    kept = {"MAS_WORKSPACE_ROOT"}
    assert {name for name in environ if name in agent} == kept
    by_itself.mas("stop", first)
    assert [process.pid for process in by_itself.summoned()] == [pid]


def test_one_that_cannot_come_up_is_a_warning_in_its_log_and_no_error_of_the_start(by_itself: Site) -> None:
    by_itself.mas("token")
    os.mkdir(by_itself.path("sessions", ".mas", "server", "server.lock"))
    done = by_itself.mas("start", "--team", "solo")
    assert "server" not in done.stderr

    def warned() -> list[Any]:
        lines = log_of(by_itself).splitlines() if os.path.exists(by_itself.path("logs", "api.log")) else []
        return [json.loads(line) for line in lines if line.startswith("{")]

    assert [line["level"] for line in until(warned, "a warning")] == ["warning"]


def test_one_that_cannot_even_be_started_is_no_error_of_the_start(by_itself: Site) -> None:
    os.mkdir(by_itself.path("logs", "api.log"))
    session = by_itself.start()
    assert by_itself.summoned() == []
    assert by_itself.statuses() == {session: "active"}


def test_it_goes_after_the_last_session_and_the_last_client(by_itself: Site) -> None:
    session = by_itself.start("--team", "solo", "--no-server")
    server = by_itself.json("serve", "--detach", "--port", "0", "--until-idle", "0.2")
    process = psutil.Process(server["pid"])
    with (
        httpx.Client(
            base_url=server["url"], headers={"Authorization": f"Bearer {by_itself.mas('token').stdout.strip()}"}
        ) as client,
        client.stream("GET", "/events") as events,
    ):
        lines = events.iter_lines()
        by_itself.mas("stop", session)
        # While it has a listener it goes on telling, and so it stays.
        assert any('"status":"stopped"' in line for line in lines)
        assert process.is_running()
    process.wait(60)
    until(lambda: not os.path.exists(by_itself.path("logs", "api.pid")), "it put everything away")
    assert "this server is idle and exits" in log_of(by_itself)


def test_it_counts_from_when_it_was_last_needed() -> None:
    class Looks:
        """Says how many sessions are active at each look; if tmux is silent, that is unknown."""

        def __init__(self) -> None:
            self.answers: list[int | None] = [1, 1, None, 1, 0]
            self.seen = 0

        def list(self, *_: object, **__: object) -> SessionList:
            answer = self.answers[min(self.seen, len(self.answers) - 1)]
            self.seen += 1
            if answer is None:
                raise NoTmux("silent")
            return SessionList((), answer)

    looks = Looks()
    clients = iter([True] * 3)
    asyncio.run(until_idle(cast(Mas, looks), lambda: next(clients, False), 0.01))
    assert looks.seen >= len(looks.answers)
    assert next(clients, False) is False


# A server during whose last moment, while it still is the workspace's, a session is started.
LATE = """
import subprocess, sys
from mas.cli.main import main
from mas.store.server.presence import Presence

withdraw = Presence.withdraw

def late(presence):
    subprocess.run([sys.executable, "-m", "mas", "start", "--team", "solo"], check=True)
    withdraw(presence)

Presence.withdraw = late
sys.argv[1:] = ["serve", "--port", "0", "--until-idle", "0.2"]
main()
"""


def test_a_session_that_is_started_while_one_ends_gets_the_next(by_itself: Site) -> None:
    ended = by_itself.run([sys.executable, "-c", LATE])
    assert ended.returncode == 0, ended.stderr
    server = listening(by_itself)
    assert server["until_idle"] == 600
    # Whoever was called besides goes again by itself.
    until(lambda: [process.pid for process in by_itself.summoned()] == [server["pid"]], "it is the only one")


def test_one_that_is_stopped_stays_away_though_a_session_runs(by_itself: Site) -> None:
    by_itself.start()
    pid = listening(by_itself)["pid"]
    by_itself.mas("serve", "--stop")
    until(lambda: not psutil.pid_exists(pid), "it is gone")
    assert by_itself.summoned() == []


def test_one_that_a_person_starts_stays_and_takes_the_place_of_one_that_would_not(by_itself: Site) -> None:
    by_itself.start()
    # It need not even listen yet.
    server = by_itself.json("serve", "--detach", "--port", "0")
    assert server["untilIdle"] is None
    until(lambda: by_itself.summoned() == [], "the other one went")
    assert info_of(by_itself) is not None
    assert doctor(by_itself) == f"{server['url']} (process {server['pid']})"
    # And none that comes by itself takes its place.
    by_itself.start()
    until(lambda: by_itself.summoned() == [], "no other one stays")
    assert listening(by_itself)["pid"] == server["pid"]
    by_itself.mas("serve", "--port", "0", code=4)
    by_itself.mas("serve", "--port", "0", "--if-none")
    by_itself.mas("serve", "--stop")
    assert doctor(by_itself) == "off; starts with the next session"
