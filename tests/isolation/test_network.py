"""A network of a session's own: what agents reach through it, and that its egress process lives as long as they do."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import sys
from typing import Any

import psutil
import pytest

from mas.model.errors import BadInput, NotIsolated
from mas.model.event import event_fields
from mas.model.isolation import Isolation, NetworkMode, Policy, Tier
from mas.service.isolation.network import choose_network
from tests.served import Served
from tests.site import AGENTS, Site, until

COMMAND = shlex.join([sys.executable, os.path.join(AGENTS, "networked.py")])
_LARGEST = 25 << 20
_SIGNS_IN = "Basic YW5uOnMzY3JldA=="


class Team:
    """A session of agents that do what a test asks them to."""

    def __init__(
        self,
        site: Site,
        tier: str = "A",
        policy: dict[str, Any] | None = None,
        team: str = "pair",
        env: dict[str, str] | None = None,
    ) -> None:
        self.site = site
        if policy:
            with open(site.path("config.json"), encoding="utf-8") as file:
                config = json.load(file)
            with open(site.path("config.json"), "w", encoding="utf-8") as file:
                json.dump(config | {"isolation": policy}, file)
        words = ("start", "--team", team, "--command", COMMAND)
        done = site.mas(*words, env={"MAS_ISOLATION": tier, **(env or {})}, code=None)
        self.said = done.stderr
        if done.returncode == 7 and "cannot isolate agents in tier" in done.stderr:
            pytest.skip(f"this machine has no tier {tier}: {done.stderr.strip().splitlines()[0]}")
        assert done.returncode == 0, done.stderr
        self.id = done.stdout.strip()
        self._asked: dict[str, int] = {}

    def ask(self, agent: str, *words: Any) -> Any:
        """What one of the agents says to that."""
        number = self._asked.get(agent, 0)
        self._asked[agent] = number + 1
        unit = self.site.session(self.id, "unit", agent)
        with open(os.path.join(unit, "half"), "w", encoding="utf-8") as file:
            json.dump(words, file)
        os.chmod(os.path.join(unit, "half"), 0o644)
        os.rename(os.path.join(unit, "half"), os.path.join(unit, f"try-{number}"))
        done = os.path.join(unit, f"done-{number}")
        until(lambda: os.path.exists(done), f"{words} of agent {agent}")
        with open(done, encoding="utf-8") as file:
            return json.load(file)

    def network(self, *names: str) -> str:
        return self.site.session(self.id, ".mas", "network", *names)

    def egress(self) -> psutil.Process:
        """The egress process that runs."""

        def found() -> psutil.Process | None:
            try:
                process = psutil.Process(int(os.readlink(self.network("space")).split()[0]))
                # At first it is a copy of the launcher that started it.
                serves = process.status() != psutil.STATUS_ZOMBIE and "/network/" in process.cmdline()[2]
                return process if serves else None
            except (OSError, psutil.Error, IndexError):
                return None

        process = until(found, "the egress process")
        assert isinstance(process, psutil.Process)
        return process

    def log(self) -> list[dict[str, Any]]:
        with open(self.site.session(self.id, "logs", "network.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def launchers(team: Team) -> list[int]:
    found = []
    for agent in ("21", "23"):
        with open(team.site.session(team.id, "logs", f"agent-{agent}.events.jsonl"), encoding="utf-8") as file:
            found += [line["launcher"] for line in map(json.loads, file) if line["event"] == "start"]
    return found


def test_an_agent_cannot_take_the_port_of_the_server_when_that_has_ended(served: Served) -> None:
    team = Team(served.site)
    port = int(served.url.rpartition(":")[2])
    served.stop()
    # Inside it may have any port that is free there: that is no port of the machine.
    team.ask("21", "bind", port)
    with socket.create_server(("127.0.0.1", port)) as ours:
        assert ours.getsockname()[1] == port


def test_in_a_shared_network_an_agent_can_take_that_port(served: Served) -> None:
    """The control of the test before: that is how it was, and what a shared network leaves open."""
    team = Team(served.site, policy={"network": "shared"})
    port = int(served.url.rpartition(":")[2])
    served.stop()
    assert team.ask("21", "bind", port) == "bound"
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("127.0.0.1", port))


def test_a_service_of_the_machine_is_out_of_reach_and_all_agents_share_one_network(site: Site) -> None:
    team = Team(site)
    with socket.create_server(("127.0.0.1", 0)) as service:
        port = service.getsockname()[1]
        # A control: it is there.
        socket.create_connection(("127.0.0.1", port), 5).close()
        assert "ConnectionRefused" in team.ask("21", "connect", "127.0.0.1", port)
        assert "ConnectionRefused" in team.ask("21", "connect", "localhost", port)
    assert team.ask("21", "interfaces") == ["lo"]
    own = team.ask("21", "namespace")
    assert own == team.ask("23", "namespace") != os.readlink("/proc/self/ns/net")
    # What one agent serves is there for the others of its session.
    assert team.ask("21", "bind", 3000) == "bound"
    assert "in use" in team.ask("23", "bind", 3000)


def test_agents_reach_mas_whatever_port_its_server_has(served: Served) -> None:
    team = Team(served.site)
    assert team.ask("21", "connect", "127.0.0.1", 7717).startswith("HTTP/1.")
    served.restart()
    assert team.ask("21", "connect", "127.0.0.1", 7717).startswith("HTTP/1.")
    served.stop()
    assert "ConnectionReset" in team.ask("21", "connect", "127.0.0.1", 7717)


def test_no_agent_can_take_a_port_that_leads_outside(site: Site) -> None:
    team = Team(site)
    for port in (7717, 3128):
        assert "in use" in team.ask("21", "bind", port)
    for port in (22, 80, 443, 53):
        assert "PermissionError" in team.ask("21", "bind", port)


def test_an_egress_process_that_is_killed_comes_back_into_the_same_network(served: Served) -> None:
    team = Team(served.site)
    before = team.ask("21", "namespace")
    old = team.egress()
    old.kill()
    until(lambda: not lives(old), "its end")
    # Its ports are held meanwhile: nobody else can have them.
    assert "in use" in team.ask("23", "bind", 7717)
    assert team.ask("21", "connect", "127.0.0.1", 7717).startswith("HTTP/1.")
    assert team.egress().pid != old.pid
    assert team.ask("21", "namespace") == before
    assert team.ask("23", "connect", "127.0.0.1", 7717).startswith("HTTP/1.")


def users_of(namespace: str) -> list[int]:
    """The processes in a network namespace."""

    def of(pid: int) -> str:
        try:
            return os.readlink(f"/proc/{pid}/ns/net")
        except OSError:
            return ""

    return [pid for pid in psutil.pids() if of(pid) == namespace]


def test_two_sessions_have_two_networks_and_stopping_one_ends_its_own_alone(site: Site) -> None:
    one, other = Team(site), Team(site)
    spaces = [team.ask("21", "namespace") for team in (one, other)]
    assert spaces[0] != spaces[1]
    assert [team.ask("21", "bind", 3000) for team in (one, other)] == ["bound", "bound"]
    # Another network, of another test, may have its number once it is gone.
    users = [psutil.Process(pid) for pid in users_of(spaces[0])]
    assert users
    site.mas("stop", one.id)
    assert not any(map(lives, users))
    assert lives(other.egress())
    assert "in use" in other.ask("23", "bind", 3000)


def test_what_a_reboot_has_left_does_not_disturb_a_restored_session(site: Site) -> None:
    team = Team(site)
    site.mas("stop", team.id)
    inodes = [os.stat(f"/proc/self/ns/{name}").st_ino for name in ("user", "net")]
    # As after a reboot: the number is another process's by now, which has other files at these descriptors.
    os.makedirs(team.network(), exist_ok=True)
    if os.path.lexists(team.network("space")):
        os.unlink(team.network("space"))
    os.symlink(f"{os.getpid()} 0 1 {inodes[0]} {inodes[1]}", team.network("space"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stale:
        os.chdir(team.network())
        stale.bind("egress.sock")
        os.chdir("/")
    site.mas("restore", team.id, env={"MAS_ISOLATION": "A"})
    assert team.ask("21", "interfaces") == ["lo"]
    assert team.egress().pid != os.getpid()


def test_no_service_of_the_machine_finds_names_for_agents(site: Site) -> None:
    """Those of systemd, nscd, avahi and sssd would give out real addresses."""
    team = Team(site, policy={"network": "none"})
    assert team.ask("21", "listing", "/run") == []
    for place in ("/var/run/nscd", "/run/systemd", "/var/lib/sss", "/run/avahi-daemon", "/var/lib/nscd"):
        assert "NotFound" in str(team.ask("21", "listing", place)), place


def test_stopping_a_session_ends_its_egress_process(site: Site) -> None:
    team = Team(site)
    egress = team.egress()
    site.mas("stop", team.id)
    assert not lives(egress)
    assert not os.path.exists(team.network("egress.sock"))


def test_what_a_killed_egress_process_left_goes_with_the_session(site: Site) -> None:
    team = Team(site)
    egress = team.egress()
    team.ask("21", "namespace"), team.ask("23", "namespace")
    # It cannot put anything away any more.
    egress.suspend()
    os.symlink("half", team.network(".space.tmp"))
    for pid in until(lambda: launchers(team) if len(launchers(team)) == 2 else None, "two launchers"):
        os.kill(pid, signal.SIGKILL)
    site.mas("stop", team.id)
    assert not lives(egress)
    assert {"egress.sock", "space", ".space.tmp"}.isdisjoint(os.listdir(team.network()))


@pytest.mark.parametrize("how", ["tmux", "launchers"])
def test_an_egress_process_ends_with_the_last_launcher_however_that_ends(site: Site, how: str) -> None:
    team = Team(site)
    egress = team.egress()
    team.ask("21", "namespace"), team.ask("23", "namespace")
    show = site.json("show", team.id)
    if how == "tmux":
        site.tmux("kill-session", "-t", f"={show['tmuxSession']}", socket=show["tmuxSocket"])
    else:
        for pid in until(lambda: launchers(team) if len(launchers(team)) == 2 else None, "two launchers"):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(egress), "the end of the egress process")
    site.mas("stop", team.id, code=None)


def test_an_agent_that_is_restarted_comes_back_into_the_network_of_its_session(site: Site) -> None:
    team = Team(site)
    own, egress = team.ask("21", "namespace"), team.egress()
    site.mas("restart-agent", "--force", f"{team.id}:23")
    # It begins to count at the first file again.
    assert team.ask("23", "namespace") == own
    assert lives(egress)
    site.mas("restart-agent", "--force", f"{team.id}:21")
    team.ask("23", "interfaces")
    assert lives(egress)


def test_a_session_that_is_restored_has_a_network_again(site: Site) -> None:
    team = Team(site)
    site.mas("stop", team.id)
    site.mas("restore", team.id, env={"MAS_ISOLATION": "A"})
    assert team.ask("21", "interfaces") == ["lo"]


def test_a_session_of_the_version_before_has_the_walls_of_this_one_once_it_is_restored(site: Site) -> None:
    """Its files know nothing of networks, marks or a listed root."""
    team = Team(site)
    site.mas("stop", team.id)
    newer = {"network", "root", "links", "copies", "connect", "system_calls", "shared_memory", "mark"}
    launch = site.session(team.id, ".mas", "launch")
    paths = [site.session(team.id, name) for name in ("metadata.json", "config.json")]
    for path in [*paths, *(os.path.join(launch, name) for name in os.listdir(launch))]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if text.startswith("{"):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(without(json.loads(text), newer), file)
    shutil.rmtree(team.network(), ignore_errors=True)
    site.mas("restore", team.id, env={"MAS_ISOLATION": "A"})
    assert team.ask("21", "interfaces") == ["lo"]
    assert site.json("show", team.id)["isolation"]["network"] == "names"


def without(value: Any, names: set[str]) -> Any:
    """The same without fields of these names, at any depth."""
    if isinstance(value, dict):
        return {name: without(inner, names) for name, inner in value.items() if name not in names}
    return [without(inner, names) for inner in value] if isinstance(value, list) else value


def test_clones_and_what_comes_back_from_an_archive_keep_their_walls(site: Site) -> None:
    team = Team(site, team="solo")
    site.mas("stop", team.id)
    copy = site.mas("clone", team.id, env={"MAS_ISOLATION": "A"}).stdout.strip()
    site.mas("archive", team.id)
    site.mas("unarchive", team.id)
    site.mas("restore", team.id, env={"MAS_ISOLATION": "A"})
    spaces = set()
    for session in (team.id, copy):
        if site.json("show", session)["status"] != "active":
            site.mas("restore", session, env={"MAS_ISOLATION": "A"})
        other = Team.__new__(Team)
        other.site, other.id, other._asked = site, session, {}
        assert other.ask("00", "interfaces") == ["lo"]
        spaces.add(other.ask("00", "namespace"))
    assert len(spaces) == 2
    assert os.readlink("/proc/self/ns/net") not in spaces


def test_without_a_network_agents_reach_mas_and_no_name(served: Served) -> None:
    team = Team(served.site, policy={"network": "none"})
    assert "gaierror" in team.ask("21", "resolve", "example.com")
    assert team.ask("21", "connect", "127.0.0.1", 7717).startswith("HTTP/1.")
    (line,) = (line for line in team.log() if line["name"] == "example.com")
    assert (line["agent"], line["result"]) == ("21", "refused: the session has no network")


def test_which_agent_asked_for_which_name_is_in_the_log(site: Site) -> None:
    team = Team(site, policy={"network": "list", "allow": ["git.example.com"]})
    for agent in ("23", "21"):
        assert "gaierror" in team.ask(agent, "resolve", f"of-{agent}.example.com")
    found = {line["name"]: (line["agent"], line["result"]) for line in team.log()}
    words = "refused: it is not on the list of allowed names"
    assert found == {"of-23.example.com": ("23", words), "of-21.example.com": ("21", words)}


def events_of(team: Team) -> list[dict[str, Any]]:
    """What was reported as refused; as the API shows it."""
    page = team.site.local().events("0", most=10_000)
    return [event_fields(event) for event in page.events if event.event == "network"]


def test_a_refusal_is_an_event_that_listeners_get_at_once(served: Served) -> None:
    team = Team(served.site, policy={"network": "list"})
    with served.client().stream("GET", "/events", params={"event": "network"}) as stream:
        lines = stream.iter_lines()
        assert "gaierror" in team.ask("23", "resolve", "www.example.com")
        told = json.loads(next(line for line in lines if line.startswith("data: {")).removeprefix("data: "))
    about = {name: told[name] for name in told if name not in ("id", "at")}
    words = "it is not on the list of allowed names"
    assert about == {
        "event": "network", "sessionId": team.id, "agent": "23", "name": "www.example.com",
        "result": "refused", "reason": words, "remedy": "allow",
    }  # fmt: skip
    # The same within a minute is no news.
    team.ask("23", "resolve", "www.example.com")
    team.ask("21", "resolve", "www.example.com")
    until(lambda: len(events_of(team)) == 2, "the event of the other agent")
    assert [event["agent"] for event in events_of(team)] == ["23", "21"]


def test_an_agent_that_asks_for_many_names_does_not_fill_the_events(site: Site) -> None:
    team = Team(site, policy={"network": "none"}, team="solo")
    for number in range(200):
        team.ask("00", "resolve", f"n{number}.example.com")
    assert len({line["name"] for line in team.log()}) == 200
    # It may be the turn of the minute.
    assert 60 <= until(lambda: len(events_of(team)) if len(events_of(team)) >= 60 else 0, "the events") <= 120


def test_only_the_owner_sees_and_changes_what_agents_reach(served: Served) -> None:
    team = Team(served.site, policy={"network": "list"})
    path, body = f"/sessions/{team.id}/network", {"kind": "allow", "places": ["a.example.com"]}
    token = served.site.mas("token", f"{team.id}:21").stdout.strip()
    with served.client(token) as agent:
        assert agent.get(path).status_code == 403
        assert agent.post(path, json=body).status_code == 403
        assert agent.post("/network", json=body).status_code == 403
    with served.client() as owner:
        assert owner.post(path, json=body).json()["applied"] is True
        assert owner.get(path).json()["allow"] == ["a.example.com"]
        wrong: dict[str, Any]
        for wrong in ({"kind": "hide"}, {"places": []}, {"places": ["a/b"]}, {"places": [7]}, {"remove": "yes"}):
            assert owner.post(path, json=body | wrong).status_code == 422
        assert owner.get(path, params={"limit": -1}).status_code == 422
    # Its socket is in no agent's view.
    assert "FileNotFoundError" in team.ask("21", "unix", team.network("egress.sock"))


def test_a_shared_network_is_said_in_one_line(site: Site) -> None:
    team = Team(site, policy={"network": "shared"})
    assert team.ask("21", "namespace") == os.readlink("/proc/self/ns/net")
    assert len([line for line in team.said.splitlines() if "network is shared" in line]) == 1
    assert site.json("show", team.id)["isolation"]["network"] == "shared"


def test_a_network_that_the_tier_cannot_have_is_refused_if_it_was_asked_for(site: Site) -> None:
    tiers = site.world().tiers()
    lower = Isolation(Tier.B, "landlock", policy=Policy())
    assert choose_network(lower, tiers) == (NetworkMode.SHARED, ())
    with pytest.raises(NotIsolated, match="cannot have the network none: isolation is tier B"):
        choose_network(lower._replace(policy=Policy(network=NetworkMode.NONE)), tiers)


@pytest.mark.parametrize("port", [7717, 3128])
def test_a_service_at_a_port_that_is_mas_s_own_inside_is_refused(site: Site, port: int) -> None:
    lower = Isolation(Tier.A, "namespaces", policy=Policy(private=(f"localhost:{port}",)))
    with pytest.raises(BadInput, match="MAS's own"):
        choose_network(lower, site.world().tiers())


def test_the_egress_process_is_small(site: Site) -> None:
    team = Team(site)
    team.ask("21", "resolve", "localhost")
    assert team.egress().memory_full_info().pss < _LARGEST


def test_the_password_of_the_machines_proxy_is_for_the_egress_process_alone(site: Site) -> None:
    team = Team(site, env={"HTTPS_PROXY": "http://ann:s3cret@127.0.0.1:9", "ALL_PROXY": "socks5://ann:s3cret@x:1"})
    with open(team.network("rules.json"), encoding="utf-8") as file:
        assert json.load(file)["proxy"]["other"] == ["127.0.0.1", 9, _SIGNS_IN]
    assert "ALL_PROXY: it begins with socks5://" in team.said
    assert "PermissionError" in team.ask("21", "read", team.network("rules.json")) or "NotFound" in team.ask(
        "21", "read", team.network("rules.json")
    )
    assert not [one for one in team.ask("21", "environment") if "s3cret" in one or "proxy" in one.lower()]
    assert "s3cret" not in team.said + json.dumps(site.json("show", team.id))
    site.mas("stop", team.id)
    for directory, _, names in os.walk(site.session(team.id)):
        for name in names:
            with open(os.path.join(directory, name), "rb") as one:
                content = one.read()
            assert b"s3cret" not in content
            assert _SIGNS_IN.encode() not in content or name == "rules.json"
    site.mas("archive", team.id)
    site.mas("unarchive", team.id)
    assert not os.path.exists(team.network())


def test_a_proxy_of_the_users_own_configuration_is_used_and_an_unusable_one_refused(site: Site) -> None:
    place = os.path.join(site.directory, "config", "mas")
    os.makedirs(place)
    env = {"XDG_CONFIG_HOME": os.path.dirname(place), "HTTPS_PROXY": "http://other:1"}
    with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"isolation": {"proxy": "http://proxy.corp:3128", "straight": ["git.corp"]}}, file)
    team = Team(site, env=env)
    with open(team.network("rules.json"), encoding="utf-8") as file:
        found = json.load(file)["proxy"]
    assert (found["web"], found["straight"]) == (["proxy.corp", 3128, ""], ["git.corp"])
    with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"isolation": {"proxy": "socks5://ann:s3cret@x:1"}}, file)
    done = site.mas("start", "--team", "solo", env={"MAS_ISOLATION": "A", **env}, code=None)
    assert done.returncode == 2
    assert "isolation.proxy" in done.stderr
    assert "s3cret" not in done.stderr
