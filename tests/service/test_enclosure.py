"""The rules around an agent: what of the workspace, the machine and the user's home it has, by tier and by policy."""

from __future__ import annotations

import os
import stat
import sys

import pytest

import mas
from mas.model.errors import BadInput, Corrupt, NotIsolated
from mas.model.ids import SessionId
from mas.model.isolation import Isolation, Mode, Policy, SessionLimits, Tier
from mas.model.launch import Rules
from mas.model.run import Run, parse_run
from mas.model.shapes import read
from mas.model.team import Team, team_named
from mas.providers.provider import Program
from mas.service.isolation.account import account_for, find_account
from mas.service.isolation.enclosure import Enclosure, choose_isolation, limits_of, policy_of
from mas.service.isolation.sights import READ, Sight
from mas.service.isolation.tiers import Machine, Tiers
from mas.service.world import World
from mas.settings import DEFAULT_PORT, Settings
from mas.store.server.address import Address, publish
from mas.store.workspace.machine import Probed
from tests.site import Site
from tests.store.samples import mode, new_id, put

PROGRAM = Program((sys.executable, "-c", "pass"))
HOWS = {Tier.A: "namespaces", Tier.B: "landlock"}


class House:
    """A workspace with two sessions, in a home with things in it, and the walls of one agent."""

    def __init__(self, site: Site, tier: Tier, root: str | None = None) -> None:
        self.site = site
        self.tier = tier
        self.home = site.home
        self.world = site.world(root=root or site.root)
        self.world.workspace.prepare()
        self.session = self._session()
        self.other = self._session()

    def _session(self) -> SessionId:
        session_id = new_id()
        self.world.workspace.create(session_id)
        self.world.workspace.furnish(session_id)
        for part in ("unit/00", "workflows"):
            os.makedirs(self.world.layout.session(session_id).at(part))
        return session_id

    def walls(self, policy: Policy = Policy(), account: str | None = None) -> Enclosure:  # noqa: B008 - frozen
        return Enclosure(
            self.world, self.session, Isolation(self.tier, HOWS[self.tier], account=account, policy=policy)
        )

    def rules(self, policy: Policy = Policy(), program: Program = PROGRAM, path: str | None = None) -> Rules:  # noqa: B008
        walls = self.walls(policy)
        walls.furnish({"00": program, "01": program})
        return walls.rules("00", program, {"PATH": self.site.env["PATH"] if path is None else path})

    def at(self, *names: str) -> str:
        """A path of the agent's own session."""
        return self.world.layout.session(self.session).at(*names)


def what(rules: Rules, path: str) -> str:
    """What a path is by the rules: the longest that covers it decides."""
    named = {
        **dict.fromkeys(rules.write, "write"),
        **dict.fromkeys(rules.read, "read"),
        **dict.fromkeys(rules.hide, "hide"),
        # What is below these comes from elsewhere.
        **{target: "hide" for _, target in (*rules.binds, *rules.copies)},
    }
    while path not in named and path != "/":
        path = os.path.dirname(path)
    return named.get(path, "read" if rules.root == "all" else "hide")


@pytest.fixture(params=[Tier.A, Tier.B])
def house(request: pytest.FixtureRequest, site: Site) -> House:
    return House(site, request.param)


@pytest.fixture
def home_house(site: Site) -> House:
    """The same, its workspace in the home."""
    root = os.path.join(site.home, "shop")
    site.mas("init", root)
    return House(site, Tier.A, root)


def test_an_agent_writes_its_session_s_work_and_sees_the_rest_of_it(house: House) -> None:
    rules = house.rules()
    for own in ("unit", "unit/00/x", "unit/13", "workflows", ".home", ".home/.config", ".mas/agents/00"):
        assert what(rules, house.at(own)) == "write", own
    for seen in ("", ".session", "config.json", "metadata.json", "logs/agent-00.log"):
        assert what(rules, house.at(seen).rstrip("/")) == "read", seen
    for hidden in (".mas", ".mas/launch/00", ".mas/messages.db", ".mas/agents/01", ".mas/agents", ".tmp/01"):
        assert what(rules, house.at(hidden)) == "hide", hidden


def test_other_sessions_and_the_files_of_mas_are_hidden(house: House) -> None:
    rules, layout = house.rules(), house.world.layout
    for path in (
        layout.sessions,
        layout.session(house.other).root,
        layout.session(house.other).unit,
        layout.registry_index,
        layout.private,
        layout.trash,
        layout.sockets,
        layout.at("sessions", ".mas", "server"),
        layout.at("logs"),
    ):
        assert what(rules, path) == "hide", path
    assert what(rules, layout.address) == "read"
    for path in (layout.unit, layout.workflows, layout.at("templates"), layout.at("config.json")):
        assert what(rules, path) == "read", path


def test_temporary_files_are_each_agent_s_own(house: House) -> None:
    rules, own = house.rules(), house.at(".tmp", "00")
    env = house.walls().environment("00", "/usr/bin")
    if house.tier is Tier.A:
        assert rules.binds == ((own, "/tmp"), (own, "/var/tmp"))
        assert env["TMPDIR"] == "/tmp"
    else:
        assert rules.binds == ()
        assert what(rules, own) == "write"
        assert env["TMPDIR"] == own
    assert mode(own) == mode(house.at(".tmp")) == mode(house.at(".home")) == 0o700


def test_the_system_is_seen_but_for_the_sockets_of_what_runs_on_it(house: House) -> None:
    rules = house.rules()
    for path in ("/usr/bin/env", os.path.realpath("/bin"), os.path.realpath("/etc/ssl/certs")):
        assert what(rules, path) == "read", path
    for path in (os.path.realpath("/run"), "/run/user", "/run/docker.sock"):
        assert what(rules, path) == "hide", path
    for path in ("/srv", "/etc/shadow", "/etc/opt", "/var/opt", "/sys", "/root", "/home"):
        assert what(rules, path) == "hide", path


def test_the_system_stays_the_system_whatever_tool_chain_lies_in_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    walls, path = house.walls(), house.site.env["PATH"]
    walls.furnish({"00": PROGRAM})
    for rules in (walls.overview(path), walls.sights("00", PROGRAM, {"PATH": path, "JAVA_HOME": "/usr"}).rules):
        assert rules["/usr"] == Sight(READ, "the system")


def test_mas_itself_can_be_run_inside(house: House) -> None:
    rules = house.rules()
    for path in (os.path.dirname(mas.__file__), os.path.realpath(sys.prefix), os.path.realpath(sys.executable)):
        assert what(rules, path) == "read", path


def test_the_home_is_hidden_but_for_the_tool_chain(house: House) -> None:
    home = house.home
    tools = {
        "bin/own": "bin",
        ".cargo/bin/cargo": ".cargo/bin",
        ".nvm/versions/node/v22/bin/node": ".nvm/versions/node/v22/bin",
        "project/node_modules/.bin/tool": "project/node_modules/.bin",
        "odd/place/tool": "odd/place",
        ".local/bin/plain": ".local/bin",
    }
    for tool in (*tools, ".rustup/toolchains/x", ".local/lib/python3/x.py", ".local/share/pipx/venvs/aider/bin/aider"):
        put(home, tool, mode=0o755)
    os.symlink(os.path.join(home, ".local/share/pipx/venvs/aider/bin/aider"), os.path.join(home, ".local/bin/aider"))
    for private in (
        "notes",
        "project/src/main.py",
        "odd/other",
        ".local/share/diary",
        ".cargo/credentials.toml",
    ):
        put(home, private)
    path = ":".join([*(os.path.join(home, place) for place in tools.values()), home, "relative", ""])
    rules = house.rules(path=path)
    for seen in (
        *tools,
        ".cargo/registry",
        ".nvm/versions/node/v22/lib",
        "project/node_modules/x",
        ".rustup/toolchains",
        ".local/lib/python3/x.py",
        ".local/share/pipx/venvs/aider/lib",
    ):
        assert what(rules, os.path.join(home, seen)) == "read", seen
    for hidden in ("", "notes", "project", "project/src", "odd/other", ".local/share/diary", ".local"):
        assert what(rules, os.path.join(home, hidden).rstrip("/")) in ("hide", "private"), hidden
    assert what(rules, os.path.join(home, ".cargo/credentials.toml")) == "hide"
    assert house.walls().environment("00", path)["RUSTUP_HOME"] == os.path.join(home, ".rustup")


def test_a_workspace_in_the_home_is_seen_and_nothing_else_there(home_house: House) -> None:
    rules, home = home_house.rules(), home_house.home
    assert what(rules, home_house.world.layout.at("config.json")) == "read"
    assert what(rules, home_house.at("unit")) == "write"
    assert what(rules, home_house.world.layout.session(home_house.other).root) == "hide"
    assert what(rules, os.path.join(home, ".ssh")) != "read"


def test_a_workspace_that_is_a_users_home_shows_only_files_of_the_workspace(site: Site) -> None:
    site.mas("init", site.home)
    put(site.home, "letters")
    house = House(site, Tier.A, site.home)
    rules = house.rules()
    assert what(rules, os.path.join(site.home, "unit")) == "read"
    assert what(rules, house.at("unit")) == "write"
    assert what(rules, os.path.join(site.home, "letters")) != "read"


def test_secrets_stay_hidden_in_what_a_policy_shows_unless_it_names_them(house: House) -> None:
    for secret in (".ssh/id_rsa", ".aws/credentials", ".claude.json", ".config/gh/hosts.yml", ".netrc", ".mozilla/x"):
        put(house.home, secret)
    put(house.home, "data/x")
    rules = house.rules(Policy(read=("~", "~/.aws")))
    assert what(rules, os.path.join(house.home, "data/x")) == "read"
    assert what(rules, os.path.join(house.home, ".aws/credentials")) == "read"
    for secret in (".ssh/id_rsa", ".claude.json", ".config/gh/hosts.yml", ".netrc", ".mozilla"):
        assert what(rules, os.path.join(house.home, secret)) == "hide", secret


def test_the_names_of_other_sessions_are_not_seen_among_control_groups(house: House) -> None:
    if not os.path.isdir("/sys/fs/cgroup"):
        pytest.skip("there are no control groups here")
    assert what(house.rules(), "/sys/fs/cgroup/memory") == "hide"


def test_a_policy_shows_opens_and_hides(house: House) -> None:
    for path in ("in/x", "out/x", "in/not/x"):
        put(house.world.layout.root, path)
    rules = house.rules(Policy(read=("in", "/srv"), write=("out",), hide=("in/not",), ports=(443, 8080)))
    at = house.world.layout.at
    assert [what(rules, at(path)) for path in ("in/x", "out/x", "in/not/x")] == ["read", "write", "hide"]
    assert what(rules, "/srv") == "read"


def test_the_ports_of_a_policy_are_open_and_that_of_mas_itself(house: House) -> None:
    assert (house.rules(Policy()).ports, house.rules(Policy()).connect) == (None, ())
    rules = house.rules(Policy(ports=(443, 8080)))
    assert (rules.ports, rules.connect) == ((443, 8080), (DEFAULT_PORT,))
    served = publish(house.world.layout.address, Address("http://127.0.0.1:4711"))
    try:
        assert house.rules(Policy(ports=(443,))).connect == (4711,)
        assert (house.rules(Policy(ports=())).ports, house.rules(Policy(ports=())).connect) == ((), (4711,))
    finally:
        os.close(served)


def test_a_policy_can_show_everybody_s_temporary_files_but_never_the_sockets_there(site: Site) -> None:
    house = House(site, Tier.A)
    os.makedirs(os.path.dirname(site.user_socket))
    rules = house.rules(Policy(read=("/tmp",)))
    assert rules.binds == ((house.at(".tmp", "00"), "/var/tmp"),)
    assert what(rules, "/tmp/x") == "read"
    assert what(rules, site.user_socket) == "hide"
    assert what(rules, house.at(".tmp", "00")) == "write"
    assert house.walls(Policy(read=("/tmp",))).environment("00", "")["TMPDIR"] == house.at(".tmp", "00")


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Policy(read=("~/nowhere",)), "isolation.read: there is no '~/nowhere'"),
        (Policy(hide=("nowhere",)), "isolation.hide: there is no 'nowhere'"),
        (Policy(read=("sessions",)), "isolation.read:"),
        (Policy(write=("sessions",)), "isolation.write:"),
        (Policy(write=("sessions/.mas/trash",)), "isolation.write:"),
        (Policy(write=(".",)), "isolation.write:"),
        (Policy(write=("/",)), "isolation.write:"),
        (Policy(write=("unit/00",)), "isolation.write:"),
        (Policy(write=("templates",)), "isolation.write:"),
        (Policy(write=("config.json",)), "isolation.write:"),
        (Policy(write=(os.path.dirname(mas.__file__),)), "isolation.write:"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(site: Site, policy: Policy, words: str) -> None:
    house = House(site, Tier.A)
    with pytest.raises(BadInput) as refused:
        house.walls(policy)
    assert refused.value.message.startswith(words)


def test_a_link_does_not_lead_a_policy_around_what_is_refused(site: Site) -> None:
    house = House(site, Tier.A)
    os.symlink(house.world.layout.unit, house.world.layout.at("innocent"))
    with pytest.raises(BadInput, match=r"isolation\.write"):
        house.walls(Policy(write=("innocent",)))


@pytest.mark.parametrize("part", ["unit", "workflows", ".home", ".mas/agents/00"])
def test_a_link_in_the_place_of_a_session_s_directory_is_not_followed(site: Site, part: str) -> None:
    house = House(site, Tier.A)
    house.walls().furnish({"00": PROGRAM})
    os.rename(house.at(part), house.at("aside"))
    os.symlink("/etc", house.at(part))
    with pytest.raises(Corrupt, match="not a directory"):
        house.walls().rules("00", PROGRAM, {"PATH": "/usr/bin"})


def test_a_script_that_an_agent_is_started_with_is_seen_wherever_it_lies(house: House) -> None:
    script = put(house.home, "agents/run.py")
    put(house.home, "agents/other.py")
    rules = house.rules(program=Program((sys.executable, script)))
    assert what(rules, script) == "read"
    assert what(rules, os.path.join(house.home, "agents/other.py")) != "read"


def test_a_program_behind_links_in_the_home_is_called_by_where_it_is(house: House) -> None:
    put(house.home, "dotfiles/bin/tool", mode=0o755)
    os.symlink(os.path.join(house.home, "dotfiles/bin"), os.path.join(house.home, "bin"))
    path = os.path.join(house.home, "bin")
    real = os.path.join(house.home, "dotfiles/bin")
    walls = house.walls()
    assert walls.environment("00", f"/usr/bin:{path}")["PATH"] == f"/usr/bin:{real}"
    assert walls.argv((f"{path}/tool", "-x"), path) == (f"{real}/tool", "-x")
    assert walls.argv(("/usr/bin/env", "x"), path) == ("/usr/bin/env", "x")
    assert what(house.rules(path=real), f"{real}/tool") == "read"


def test_an_isolated_agent_has_a_home_of_its_session(house: House) -> None:
    env = house.walls().environment("00", "/usr/bin:/bin")
    assert env["HOME"] == house.at(".home")
    assert env["XDG_CONFIG_HOME"] == house.at(".home/.config")
    assert env["XDG_CACHE_HOME"] == house.at(".home/.cache")
    assert env["PATH"] == "/usr/bin:/bin"


def test_credentials_that_a_provider_names_are_seen_and_lie_in_the_agent_s_home(house: House) -> None:
    key, other = put(house.home, ".gemini/oauth_creds.json"), put(house.home, ".gemini/history")
    program = Program((sys.executable,), credentials=("~/.gemini/oauth_creds.json", "~/.not/there"))
    rules = house.rules(program=program)
    assert (what(rules, key), what(rules, other) == "read") == ("read", False)
    assert os.readlink(house.at(".home/.gemini/oauth_creds.json")) == key
    assert not os.path.lexists(house.at(".home/.not"))
    assert what(house.rules(), key) != "read"


def test_what_agents_put_in_the_way_of_credentials_is_not_followed(site: Site) -> None:
    house = House(site, Tier.A)
    key = put(house.home, ".gemini/key")
    outside = os.path.join(site.directory, "outside")
    os.makedirs(outside)
    os.makedirs(house.at(".home"), 0o700)
    os.symlink(outside, house.at(".home/.gemini"))
    house.walls().furnish({"00": Program((sys.executable,), credentials=("~/.gemini/key",))})
    assert os.listdir(outside) == []
    os.unlink(house.at(".home/.gemini"))
    os.mkdir(house.at(".home/.gemini"))
    os.symlink("/etc/passwd", house.at(".home/.gemini/key"))
    house.walls().furnish({"00": Program((sys.executable,), credentials=("~/.gemini/key",))})
    assert os.readlink(house.at(".home/.gemini/key")) == key


def test_what_was_kept_for_a_moment_goes_with_the_next_start(site: Site) -> None:
    house = House(site, Tier.A)
    walls = house.walls()
    walls.furnish({"00": PROGRAM})
    kept, lost = put(house.at(".home"), "kept"), put(house.at(".tmp", "00"), "lost")
    walls.empty()
    walls.furnish({"00": PROGRAM})
    assert (os.path.exists(kept), os.path.exists(lost)) == (True, False)


def test_rules_of_the_run_its_team_and_the_workspace_are_merged(site: Site) -> None:
    far = Policy(Mode.REQUIRE, read=("/c",), hide=("/h",))
    world = site.world(isolation=far, limits=read(SessionLimits, {"memory": "1GiB", "disk": "5GiB"}))
    team = team_named("solo")._replace(
        isolation=Policy(Mode.AUTO, read=("/b",), ports=(80,)), limits=read(SessionLimits, {"memory": "2GiB"})
    )
    run = parse_run({"team": "t", "isolation": {"read": ["/a"]}, "limits": {"cpu": 2}}, lambda _: team)
    assert policy_of(world, run) == Policy(Mode.AUTO, ("/a", "/b", "/c"), (), ("/h",), (80,), None)
    assert limits_of(world, run) == read(SessionLimits, {"memory": "2GiB", "disk": "5GiB", "cpu": 2})
    assert policy_of(world, Run(team=Team("x", ()))) == far
    assert limits_of(site.world(), Run()) == SessionLimits()


def choosing(site: Site, *can: str) -> World:
    """The site's world on a machine that can do only that."""
    world = site.world(isolation=Policy())
    world.workspace.prepare()
    machine = Machine(lambda how: "" if how in can else "no", lambda: 7)
    return world._replace(tiers=lambda: Tiers(machine, Probed(world.layout, "a test")))


def test_a_lower_tier_is_chosen_with_a_warning(site: Site) -> None:
    os.chmod(site.directory, 0o755)
    policy = Policy(run_as="nobody") if os.getuid() == 0 else Policy()
    found, warnings = choose_isolation(choosing(site, "landlock"), Run(isolation=policy))
    assert (found.tier, found.how) == (Tier.B, "landlock")
    assert len(warnings) == 1
    assert "UDP ports can be used" in warnings[0]


@pytest.mark.skipif(os.getuid() != 0, reason="only root is root")
def test_agents_that_would_be_root_are_refused_in_tier_b(site: Site) -> None:
    with pytest.raises(NotIsolated, match=r"In tier B, .*, agents cannot run as root") as refused:
        choose_isolation(choosing(site, "landlock"), Run())
    assert "isolation.runAs" in (refused.value.hint or "")
    assert "--isolation off" in (refused.value.hint or "")
    with pytest.raises(NotIsolated, match="agents cannot run as root"):
        choose_isolation(choosing(site, "landlock"), Run(isolation=Policy(run_as="root")))
    assert choose_isolation(choosing(site, "landlock"), Run(isolation=Policy(Mode.OFF)))[0].tier == Tier.D


def test_missing_paths_are_refused_when_a_tier_is_chosen(site: Site) -> None:
    with pytest.raises(BadInput, match="there is no '/no/such'"):
        choose_isolation(choosing(site, "namespaces"), Run(isolation=Policy(read=("/no/such",))))


def test_without_an_account_agents_run_as_the_user_of_mas(site: Site) -> None:
    assert account_for(Policy(), {}, site.root) == (None, "")
    assert account_for(Policy(), {"SUDO_UID": "0"}, site.root) == (None, "")
    assert account_for(Policy(run_as=str(os.getuid())), {}, site.root) == (None, "")
    with pytest.raises(BadInput, match=r"isolation\.runAs: there is no account 'nobody-here'"):
        account_for(Policy(run_as="nobody-here"), {}, site.root)


@pytest.mark.skipif(os.getuid() == 0, reason="only who is not root cannot be another")
def test_only_root_can_run_agents_as_another_user(site: Site) -> None:
    with pytest.raises(BadInput, match="only root can run agents as 'root'"):
        account_for(Policy(run_as="root"), {}, site.root)
    assert account_for(Policy(), {"SUDO_UID": "1"}, site.root) == (None, "")


@pytest.mark.skipif(os.getuid() != 0 or find_account("nobody") is None, reason="needs root and an account nobody")
def test_root_runs_agents_as_the_user_who_became_root_if_that_one_can_reach_them(site: Site) -> None:
    nobody = find_account("nobody")
    assert nobody
    os.chmod(site.directory, 0o755)
    assert account_for(Policy(), {"SUDO_UID": str(nobody.uid)}, site.root) == (nobody, "")
    assert account_for(Policy(run_as="nobody"), {}, site.root) == (nobody, "")
    os.chmod(site.directory, 0o700)
    account, words = account_for(Policy(), {"SUDO_UID": str(nobody.uid)}, site.root)
    assert (account, words) == (
        None,
        f"Agents run as root without its privileges, because nobody cannot enter {site.directory}",
    )
    with pytest.raises(BadInput, match="'nobody' cannot enter"):
        account_for(Policy(run_as="nobody"), {}, site.root)


@pytest.mark.skipif(os.getuid() != 0 or find_account("nobody") is None, reason="needs root and an account nobody")
def test_what_agents_write_belongs_to_the_account_and_comes_back_to_root(site: Site) -> None:
    house = House(site, Tier.A)
    nobody = find_account("nobody")
    assert nobody
    secret = put(site.directory, "secret", mode=0o600)
    work = put(house.at("unit"), "00/work")
    os.link(secret, house.at("unit/00/second-name"))
    os.symlink(secret, house.at("unit/00/link"))
    walls = house.walls(account="nobody")
    walls.furnish({"00": PROGRAM})
    rules = walls.rules("00", PROGRAM, {"PATH": "/usr/bin"})
    assert rules.account == (nobody.uid, nobody.gid)
    for own in ("unit", "unit/00", "workflows", ".home", ".tmp/00", ".mas/agents/00"):
        assert os.stat(house.at(own)).st_uid == nobody.uid, own
    assert os.stat(work).st_uid == nobody.uid
    assert os.stat(secret).st_uid == 0
    for passed, bits in ((".", 0o750), (".mas", 0o710), (".mas/agents", 0o710)):
        info = os.stat(house.at(passed))
        assert (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) == (0, nobody.gid, bits), passed
    house.walls().furnish({"00": PROGRAM})
    assert (os.stat(work).st_uid, os.stat(house.at(".home")).st_uid) == (0, 0)


def test_settings_without_isolation_isolate_as_far_as_the_machine_can(site: Site) -> None:
    assert Settings(root="", user_socket="", private_sockets="").isolation.enforce is None
    assert choose_isolation(choosing(site, "namespaces", "bwrap", "landlock"), Run())[0].tier == Tier.A
