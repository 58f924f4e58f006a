"""`mas network`: what agents reach and asked for, and how people let them reach more."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pytest

from mas.model.run import Run
from mas.model.team import team_named
from mas.store.session.network_log import LOG
from tests.isolation.test_network import Team
from tests.site import Site
from tests.terminal import Terminal

LISTED = {"network": "list", "allow": ["git.example.com"]}
NOT_LISTED = "it is not on the list of allowed names"


def config_of(site: Site) -> dict[str, Any]:
    with open(site.path("config.json"), encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def asked(site: Site, *words: str) -> dict[tuple[str | None, str], tuple[str, str | None]]:
    found = site.json("network", *words)["requests"]
    return {(one["agent"], one["name"]): (one["result"], one["remedy"]) for one in found}


def write_log(site: Site, session: str, *lines: Any, name: str = LOG) -> None:
    with open(site.session(session, "logs", name), "a", encoding="utf-8") as file:
        file.writelines(line if isinstance(line, str) else f"{json.dumps(line)}\n" for line in lines)


def line(name: str, result: str, agent: str = "00", port: int = 0, second: int = 0, **more: Any) -> dict[str, Any]:
    at = f"2026-01-01T10:00:{second:02d}.000Z"
    return {"at": at, "agent": agent, "name": name, "port": port, "result": result, **more}


@contextmanager
def service() -> Iterator[int]:
    """A service of this machine that greets each caller; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            with suppress(OSError):
                while True:
                    one, _ = listener.accept()
                    with one:
                        one.sendall(b"hello")
                        one.recv(1 << 10)

        greeting = threading.Thread(target=greet, daemon=True)
        greeting.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        greeting.join()


def test_what_agents_asked_for_is_shown_with_the_command_that_allows_it(site: Site) -> None:
    team = Team(site, policy=LISTED)
    said = site.mas("network", team.id)
    assert said.stdout.startswith("network list (config.json says so): agents reach the names that are allowed")
    assert said.stderr == "No agent has asked for a name\n"
    assert "gaierror" in team.ask("21", "resolve", "www.example.com")
    assert "gaierror" in team.ask("23", "resolve", "intranet")
    assert asked(site) == {("21", "www.example.com"): ("refused", "allow"), ("23", "intranet"): ("refused", "private")}
    assert (
        asked(site, f"{team.id}:21") == asked(site, team.id, "21") == {("21", "www.example.com"): ("refused", "allow")}
    )
    said = site.mas("network")
    assert NOT_LISTED in said.stdout
    assert f"mas network allow --session {team.id[:8]} www.example.com\n" in said.stderr
    assert f"mas network private --session {team.id[:8]} intranet\n" in said.stderr
    site.mas("network", f"{team.id}:99", code=3)
    # A session that is stopped says the same.
    site.mas("stop", team.id)
    assert site.mas("network", "-q", "--refused", team.id).stdout.splitlines() == ["intranet", "www.example.com"]


def rules_of(team: Team) -> dict[str, Any]:
    with open(team.network("rules.json"), encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def test_what_is_allowed_in_a_running_session_holds_at_once_and_after_a_restore(site: Site) -> None:
    team = Team(site, policy=LISTED)
    with service() as port:
        place, egress = f"localhost:{port}", team.egress().pid
        assert "ConnectionRefused" in team.ask("21", "connect", "127.0.0.1", port)
        done = site.json("network", "private", place, "--session", team.id)
        assert (done["applied"], done["changed"], done["file"]) == (True, [place], site.session(team.id, "config.json"))
        assert team.ask("21", "connect", "127.0.0.1", port) == "hello"
        assert team.egress().pid == egress
        assert asked(site) == {("21", "localhost"): ("connected", None)}
        assert "private" not in config_of(site)["isolation"]
        assert site.json("show", team.id)["isolation"]["policy"]["private"] == [place]
        # So do a restarted agent, the next egress process, and a restored session.
        site.mas("restart-agent", "--force", f"{team.id}:23")
        team.egress().kill()
        assert team.ask("23", "connect", "localhost", port) == "hello"
        site.mas("stop", team.id)
        site.mas("restore", team.id, env={"MAS_ISOLATION": "A"})
        assert team.ask("21", "connect", "localhost", port) == "hello"
        # What an owner takes back is out of reach at once.
        assert site.json("network", "private", "--remove", place, "--session", team.id)["applied"]
        assert "Reset" in team.ask("21", "connect", "localhost", port)
        assert site.json("network", team.id)["private"] == []


def test_names_with_a_port_keep_their_addresses_when_others_come(site: Site) -> None:
    team = Team(site, policy={"allow": ["one.example.com:7001"], "private": ["two.corp:7002"]})
    assert site.json("network", "allow", "three.example.com:7003", "--session", team.id)["applied"]
    there = {"one.example.com": "127.64.0.1", "two.corp": "127.64.0.2", "three.example.com": "127.64.0.3"}
    assert rules_of(team)["fixed"] == there
    for port in (7001, 7002, 7003):
        assert "in use" in team.ask("21", "bind", port, f"127.64.0.{port - 7000}")
    site.mas("network", "allow", "--remove", "three.example.com:7003", "--session", team.id)
    assert site.json("network", "allow", "four.example.com:7004", "--session", team.id)["applied"]
    assert rules_of(team)["fixed"] == there | {"four.example.com": "127.64.0.4"}


def test_a_port_that_an_agent_has_taken_is_not_taken_from_it(site: Site) -> None:
    team = Team(site, team="solo")
    assert team.ask("00", "bind", 7004) == "bound"
    done = site.json("network", "private", "localhost:7004", "--session", team.id)
    assert (done["applied"], "in use" in done["note"]) == (False, True)
    assert team.ask("00", "namespace") == team.ask("00", "namespace")
    assert site.json("network", team.id)["private"] == ["localhost:7004"]


def test_a_network_that_does_not_respond_is_told_and_the_name_is_kept(site: Site) -> None:
    team = Team(site, policy=LISTED, team="solo")
    launcher = psutil.Process(team.egress().pid)
    launcher.send_signal(signal.SIGSTOP)
    try:
        done = site.json("network", "allow", "a.example.com", "--session", team.id)
        assert (done["applied"], "does not respond" in done["note"]) == (False, True)
    finally:
        launcher.send_signal(signal.SIGCONT)
    assert "a.example.com" in site.json("network", team.id)["allow"]


def test_a_shared_network_says_why_nothing_is_recorded(site: Site) -> None:
    off = site.start()
    said = site.mas("network", off).stdout
    assert "network shared (isolation is off): agents reach all that this machine does" in said
    assert "nothing is recorded" in said
    done = site.mas("network", "allow", "a.example.com", "--session", off)
    assert "its network is shared" in done.stderr
    shared = Team(site, policy={"network": "shared"})
    found = site.json("network", shared.id)
    assert (found["mode"], found["reason"], found["isRecorded"]) == ("shared", "config.json says so", False)
    # The version before recorded no network, and the one before that no isolation.
    for change, why in (({"network": None}, "earlier version"), (None, "earlier version")):
        path = site.session(shared.id, "metadata.json")
        with open(path, encoding="utf-8") as file:
            body = json.load(file)
        if change is None:
            body["isolation"] = None
        else:
            del body["isolation"]["network"]
            body["isolation"]["policy"] = {}
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(body, indent=2) + "\n")
        found = site.json("network", shared.id)
        assert found["mode"] == "shared"
        assert why in found["reason"]


def test_requests_are_counted_sorted_and_cut_and_torn_lines_are_left_out(site: Site) -> None:
    session = site.start()
    write_log(site, session, line("old.example.com", "connected", port=443), name=f"{LOG}.1")
    write_log(
        site,
        session,
        line("old.example.com", "found", second=1, before=3),
        line("old.example.com", "connected", port=443, second=2, before=4),
        line("late.example.com", f"refused: {NOT_LISTED}", second=3, remedy="allow"),
        line("late.example.com", "found", second=4),
        line("corp", "refused: it is not a public name", agent="?", second=5, remedy="private"),
        line("web.example.com", "failed: no answer", port=443, second=6),
        line("x.example.com", "refused: port 25 is not open", port=25, second=7, remedy="allow", newer="field"),
        "[]\n{}\nnull\n\n7\n",
        line("bad name", "found"),
        line("y.example.com", "vanished"),
        line("y.example.com", "found", port=99999),
        line("y.example.com", "found", before=-1),
        line("y.example.com", "refused: x", remedy="; rm -rf"),
        '{"at": "2026-01-01T10:00:09.000Z", "agent": "00", "na',
    )
    found = site.json("network", session)["requests"]
    shown = [(one["agent"], one["place"], one["port"], one["result"], one["times"]) for one in found]
    assert shown == [
        ("00", "x.example.com:25", 25, "refused", 1),
        (None, "corp", None, "refused", 1),
        ("00", "y.example.com", None, "refused", 1),
        ("00", "web.example.com", 443, "failed", 1),
        ("00", "late.example.com", None, "found", 2),
        ("00", "old.example.com", 443, "connected", 6),
    ]
    assert [one["remedy"] for one in found[:3]] == ["allow", "private", None]
    assert site.mas("network", session, "-q", "-n", "2").stdout == "x.example.com:25\ncorp\n"
    assert "2 of 6 requests" in site.mas("network", session, "-n", "2").stderr
    # A link in its place is followed nowhere.
    path = site.session(session, "logs", LOG)
    os.rename(path, f"{path}.kept")
    os.symlink(f"{path}.kept", path)
    assert [one["name"] for one in site.json("network", session)["requests"]] == ["old.example.com"]


def test_names_are_written_into_the_workspaces_configuration_and_nothing_else_is_changed(site: Site) -> None:
    before = config_of(site) | {"isolation": "auto", "mine": {"größe": [1, None]}}
    with open(site.path("config.json"), "w", encoding="utf-8") as file:
        json.dump(before, file)
    os.chmod(site.path("config.json"), 0o640)
    done = site.json("network", "allow", "A.example.com", "db.example.com:5432", "a.example.com")
    assert done["changed"] == done["places"] == ["a.example.com", "db.example.com:5432"]
    assert "next start" in done["note"]
    site.mas("network", "private", "git.corp", "10.1.2.3:8443")
    policy = {
        "enforce": "auto",
        "allow": ["a.example.com", "db.example.com:5432"],
        "private": ["git.corp", "10.1.2.3:8443"],
    }
    assert config_of(site) == before | {"isolation": policy}
    assert os.stat(site.path("config.json")).st_mode & 0o777 == 0o640
    again = site.json("network", "allow", "a.example.com")
    assert (again["changed"], again["unchanged"]) == ([], ["a.example.com"])
    site.mas("network", "allow", "--remove", "a.example.com", "db.example.com:5432")
    assert "Not in private" in site.mas("network", "private", "--remove", "nothing.corp").stdout
    assert config_of(site)["isolation"] == {"enforce": "auto", "private": policy["private"]}


def test_a_session_started_by_a_running_server_has_what_was_allowed_since(site: Site) -> None:
    mas = site.local()
    site.mas("network", "allow", "a.example.com")
    session = mas.start(Run(team=team_named("solo"), command="cat"))
    assert session.isolation is not None
    assert session.isolation.policy.allow == ("a.example.com",)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["allow"], "mas network allow example.com"),
        (["allow", "https://a.example.com/x"], "mas network allow a.example.com"),
        (["allow", "10.1.2.3"], "mas network private 10.1.2.3"),
        (["allow", "localhost:80"], "mas network private localhost:80"),
        (["private", "10.1.2.300"], "mas network private git.example.com"),
        (["allow", "a b"], "mas network allow git.example.com"),
        (["private", "localhost"], "mas network private git.example.com"),
        (["private", "x:0"], "mas network private git.example.com"),
        (["web", "21", "a.example.com"], "mas network allow example.com"),
        (["--remove"], "mas network allow example.com"),
    ],
)
def test_what_would_have_no_effect_is_refused_with_the_command_that_has(
    site: Site, words: list[str], hint: str
) -> None:
    assert f"hint:  {hint}" in site.mas("network", *words, code=2).stderr


def test_a_damaged_configuration_is_left_as_it_is(site: Site) -> None:
    for text in ("{", '{"isolation": {"allow": "a.example.com"}}', "[]"):
        with open(site.path("config.json"), "w", encoding="utf-8") as file:
            file.write(text)
        assert site.mas("network", "allow", "b.example.com", code=None).returncode in (2, 5)
        with open(site.path("config.json"), encoding="utf-8") as file:
            assert file.read() == text


def test_of_two_people_who_allow_at_once_none_loses_a_name(site: Site) -> None:
    names = [f"n{number}.example.com" for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: site.mas("network", "allow", name), names))
    assert sorted(config_of(site)["isolation"]["allow"]) == names


def test_what_one_session_cannot_take_back_is_said(site: Site) -> None:
    site.mas("network", "allow", "a.example.com")
    session = site.start()
    said = site.mas("network", "allow", "--remove", "a.example.com", "--session", session, code=2).stderr
    assert "hint:  mas network allow --remove a.example.com\n" in said


def test_no_agent_may_change_what_agents_reach(site: Site) -> None:
    session = site.start()
    token = site.mas("token", f"{session}:00").stdout.strip()
    # Of the same workspace, as it is for a program in a pane.
    as_agent = {"MAS_SESSION_ID": session, "MAS_AGENT_ID": "00", "MAS_TOKEN": token}
    site.mas("network", "allow", "a.example.com", env=as_agent, code=8)
    assert "isolation" not in config_of(site)
    site.mas("network", env=as_agent | {"MAS_HOOKS": "/x"}, code=8)


def test_completion_offers_sessions_and_what_can_be_done(site: Site) -> None:
    session = site.start("--team", "solo", "--name", "web")
    offered = [text.partition("\t")[0] for text in site.mas("complete", "--", "network", "").stdout.splitlines()]
    assert {"allow", "private", "web", session, "00"} <= set(offered)
    assert site.mas("complete", "--", "network", "allow", "").stdout == ""
    assert "--remove" in site.mas("complete", "--", "network", "--re").stdout


def test_refusals_are_watched_as_they_come(site: Site) -> None:
    session = site.start()
    argv = [sys.executable, "-m", "mas", "network", session, "--watch", "0.5"]
    with Terminal(argv, site.env, site.root, columns=80) as terminal:
        terminal.until("nothing is recorded")
        write_log(site, session, line("late.example.com", f"refused: {NOT_LISTED}", remedy="allow"))
        terminal.until("late.example.com")
        terminal.type("\x03")
