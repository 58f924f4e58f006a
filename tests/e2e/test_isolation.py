"""How sessions are isolated, as every door reports it. How strong the walls are is tested from inside them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from mas.client import RemoteMas
from mas.model.ids import SessionId
from mas.model.isolation import Limits, Mode, Policy, SessionLimits
from mas.model.run import Run
from mas.model.team import team_named
from mas.runtime.sandbox.probe import landlock_abi
from tests.served import Served
from tests.site import Site
from tests.store.samples import put

SOLO = ("--team", "solo", "--command", "cat")
WORDS = "Isolation is only tier D (MAS_ISOLATION is D). Not enforced: "


def configure(site: Site, **fields: Any) -> None:
    """Change the workspace's configuration."""
    with open(site.path("config.json"), encoding="utf-8") as file:
        body = json.load(file)
    put(site.root, "config.json", json.dumps(body | fields))


def metadata(site: Site, session: str) -> Any:
    with open(site.session(session, "metadata.json"), encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture
def lower(site: Site) -> Site:
    """A site on a machine that can enforce nothing."""
    site.env["MAS_ISOLATION"] = "D"
    return site


def test_a_lower_tier_is_one_warning_at_every_start_restore_and_clone(lower: Site) -> None:
    started = lower.mas("start", *SOLO)
    session = started.stdout.strip()
    said = [line for line in started.stderr.splitlines() if "solation" in line]
    assert len(said) == 1
    assert said[0].startswith(WORDS)
    lower.mas("stop", session)
    assert lower.mas("restore", session).stderr.count(WORDS) == 1
    assert lower.mas("clone", session, "--start").stderr.count(WORDS) == 1
    with open(lower.session(session, "logs", "session.log"), encoding="utf-8") as log:
        assert log.read().count(WORDS) == 2


def test_off_by_choice_says_in_one_line_what_that_means(lower: Site) -> None:
    started = lower.mas("start", *SOLO, "--isolation", "off")
    assert started.stderr.startswith("Isolation is off: agents can read and change everything that you can\nStarted ")
    shown = lower.mas("show", started.stdout.strip()).stdout
    assert re.search(r"^isolation +off$", shown, re.MULTILINE)


def test_require_refuses_before_anything_is_made(lower: Site) -> None:
    refused = lower.mas("start", *SOLO, "--isolation", "require", code=7)
    assert refused.stderr.startswith("error: Isolation is required, but this machine offers only tier D")
    told = lower.mas("start", *SOLO, "--isolation", "require", "--json", code=7).stderr
    assert json.loads(told)["code"] == "not-isolated"
    assert lower.json("list")["total"] == 0
    assert [name for name in os.listdir(lower.path("sessions")) if not name.startswith(".")] == []
    assert lower.tmux_sessions() == set()


def test_require_of_the_workspace_refuses_a_restore_and_leaves_the_session_as_it_was(lower: Site) -> None:
    session = lower.start(*SOLO)
    lower.mas("stop", session)
    configure(lower, isolation="require")
    assert "tier D" in lower.mas("restore", session, code=7).stderr
    assert lower.four_places(session) == {"stopped"}
    # What a run says itself is nearer.
    assert lower.mas("start", *SOLO, "--isolation", "auto").stdout.strip()


def test_a_session_keeps_what_it_was_started_with_through_stop_restore_and_clone(lower: Site) -> None:
    put(lower.root, "data/x")
    body = {
        "team": "solo",
        "agents": {"metaManager": {"command": "cat", "limits": {"cpu": 0.5}}},
        "isolation": {"read": ["data"], "hide": ["~"], "ports": [443]},
        "limits": {"memory": "2GiB", "disk": 1 << 30, "agent": {"processes": 64}},
    }
    session = lower.mas("start", "--config", "-", input=json.dumps(body)).stdout.strip()
    clone = lower.mas("clone", session).stdout.strip()
    lower.mas("stop", session)
    lower.mas("restore", session)
    for one in (session, clone):
        with open(lower.session(one, "config.json"), encoding="utf-8") as file:
            kept = json.load(file)
        assert kept["isolation"] == body["isolation"]
        assert kept["limits"] == {"memory": "2GiB", "disk": "1GiB", "agent": {"processes": 64}}
        assert kept["agents"]["metaManager"]["limits"] == {"cpu": 0.5}
        assert metadata(lower, one)["limits"] == kept["limits"]
    assert metadata(lower, session)["isolation"]["policy"] == body["isolation"]
    assert metadata(lower, clone)["isolation"] is None
    shown = lower.mas("show", session).stdout
    assert re.search(r"^isolation +tier D; not enforced: file modes only", shown, re.MULTILINE)
    assert re.search(r"^policy +read data; hide ~; ports 443$", shown, re.MULTILINE)
    assert re.search(r"^limits +memory 2 GiB, disk 1 GiB; each agent: processes 64$", shown, re.MULTILINE)


def test_every_listing_shows_the_tier(lower: Site) -> None:
    session = lower.start(*SOLO)
    clone = lower.mas("clone", session).stdout.strip()
    tiers = {info["sessionId"]: info["tier"] for info in lower.json("list")["sessions"]}
    assert tiers == {session: "D", clone: None}
    lines = lower.mas("list", "-o", "wide").stdout.splitlines()
    assert lines[0].split()[:5] == ["SESSION", "NAME", "STATUS", "AGENTS", "TIER"]
    assert {line.split()[0]: line.split()[4] for line in lines[1:]} == {session: "D", clone: "-"}
    detail = lower.json("show", session)
    assert (detail["tier"], detail["isolation"]["tier"], detail["isolation"]["how"]) == ("D", "D", "")
    # The directory is the truth: it is read again when the registry is rebuilt.
    os.remove(lower.path("sessions", ".sessions.index"))
    assert {info["sessionId"]: info["tier"] for info in lower.json("list")["sessions"]} == tiers


def test_the_tier_of_a_session_of_an_older_version_is_unknown(site: Site) -> None:
    session = site.start(*SOLO)
    site.mas("stop", session)
    body = metadata(site, session)
    del body["isolation"], body["limits"]
    put(site.session(session), "metadata.json", json.dumps(body, indent=2) + "\n", 0o600)
    detail = site.json("show", session)
    assert (detail["tier"], detail["isolation"]) == (None, None)
    assert site.mas("restore", session).stdout.strip() == session
    assert site.json("show", session)["tier"] == "D"


def test_the_doctor_lists_every_tier_and_what_sessions_get(site: Site) -> None:
    site.env["MAS_ISOLATION"] = "auto"
    checks = {check["name"]: check for check in site.json("doctor", code=None)["checks"]}
    assert checks["isolation"]["text"].startswith("tier ")
    for way in ("tier A namespaces", "tier A bwrap", "tier B landlock"):
        assert checks[way]["text"].startswith(("possible", "not possible here: ")), way
    assert "bwrap" in checks["bubblewrap"]["text"] or "install bubblewrap" in checks["bubblewrap"]["text"]
    site.env["MAS_ISOLATION"] = "D"
    configure(site, isolation="require")
    failed = {check["name"]: check for check in site.json("doctor", code=1)["checks"]}["isolation"]
    assert (failed["ok"], "required" in failed["text"]) == (False, True)


@pytest.mark.skipif(not landlock_abi(), reason="no Landlock")
def test_what_agents_do_without_is_not_among_what_is_not_enforced(site: Site) -> None:
    site.env["MAS_ISOLATION"] = "B"
    checks = {check["name"]: check["text"] for check in site.json("doctor", code=None)["checks"]}
    holes, losses = checks["isolation"].split("; not available: ")
    assert "; not enforced: mode and times" in holes
    assert losses.startswith("new terminals; Unix sockets; shared memory; /tmp; listening on TCP ports")
    served = Served(site)
    try:
        with RemoteMas(served.url, served.token) as remote:
            got = remote.isolation()
    finally:
        served.close()
    assert (got.tier, "; ".join(got.not_available)) == ("B", losses)
    assert not {*got.not_enforced} & {*got.not_available}


@pytest.mark.parametrize("before", ["true", "mkdir gone; cd gone; rmdir ../gone"])
def test_the_doctor_finds_the_same_wherever_it_is_called(site: Site, before: str) -> None:
    site.env["MAS_ISOLATION"] = "auto"
    mas = (sys.executable, "-P", "-m", "mas", "doctor", "--json")
    done = site.run(["sh", "-c", f'{before}; exec "$@"', "sh", *mas], cwd=site.directory)
    there, at_root = (
        {check["name"]: check for check in checks if check["name"].startswith(("isolation", "tier "))}
        for checks in (json.loads(done.stdout)["checks"], site.json("doctor", cwd="/", code=None)["checks"])
    )
    assert there == at_root


@pytest.mark.parametrize(
    ("env", "config", "words"),
    [
        ("perhaps", {}, "MAS_ISOLATION is 'perhaps'; it can be: auto, require, off, A, B, D"),
        ("", {"isolation": "perhaps"}, "config.json: isolation is 'perhaps'"),
        ("", {"isolation": {"reed": []}}, "Unknown field 'reed' in config.json: isolation"),
        ("", {"limits": {"memory": "much"}}, "config.json: limits.memory is 'much'"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_by_name(site: Site, env: str, config: Any, words: str) -> None:
    configure(site, **config)
    assert words in site.mas("list", env={"MAS_ISOLATION": env}, code=2).stderr


def test_a_team_file_says_how_its_agents_are_isolated_and_limited(lower: Site) -> None:
    text = """
    [isolation]
    enforce = "auto"
    hide = ["/srv"]
    run_as = "nobody"

    [limits]
    file_size = "1GiB"
    agent = { memory = "512MiB" }

    [[units]]
    name = "meta"
    agents = [{ command = "cat", limits = { files = 64, file_size = 4096 } }]
    """
    put(lower.root, "templates/teams/tight.toml", text)
    lower.env["MAS_ISOLATION"] = "D"
    session = lower.start("--team", "tight")
    with open(lower.session(session, "config.json"), encoding="utf-8") as file:
        kept = json.load(file)
    assert kept["isolation"] == {"enforce": "auto", "hide": ["/srv"], "runAs": "nobody"}
    assert kept["limits"] == {"fileSize": "1GiB", "agent": {"memory": "512MiB"}}
    assert kept["agents"]["metaManager"]["limits"] == {"files": 64, "fileSize": "4KiB"}
    # The text that `mas teams` prints is a team file that says the same.
    put(lower.root, "templates/teams/again.toml", lower.mas("teams", "tight").stdout)
    first, second = (lower.json("teams", name) for name in ("tight", "again"))
    assert first["isolation"] == second["isolation"] != {}
    assert (first["limits"], first["units"]) == (second["limits"], second["units"])
    put(lower.root, "templates/teams/bad.toml", text.replace("run_as", "runs_as"))
    assert "Unknown field 'runs_as' in isolation" in lower.mas("start", "--team", "bad", code=2).stderr


@pytest.fixture
def far(site: Site) -> Iterator[Served]:
    """A server on a machine that can enforce nothing."""
    site.env["MAS_ISOLATION"] = "D"
    made = Served(site)
    try:
        yield made
    finally:
        made.close()


def test_it_all_goes_over_the_wire(far: Served) -> None:
    with RemoteMas(far.url, far.token) as remote:
        got = remote.isolation()
        assert (got.tier, got.how, bool(got.not_enforced), got.problem) == ("D", "", True, "")
        policy, limits = Policy(hide=("/srv",), ports=(80,)), SessionLimits(Limits(memory=1 << 31), Limits(cpu=1.5))
        run = Run(team=team_named("solo"), command="cat", isolation=policy, limits=limits)
        started = remote.start(run)
        assert started.warnings[0].startswith(WORDS)
        again = remote.show(SessionId(started.session_id))
        assert again.isolation
        assert (again.tier, again.isolation.tier, again.isolation.policy, again.limits) == ("D", "D", policy, limits)
        assert [info.tier for info in remote.list().sessions] == ["D"]
        team = next(team for team in remote.teams() if team.name == "solo")
        assert team.isolation == Policy()


def test_the_api_takes_and_refuses_by_name(far: Served) -> None:
    with httpx.Client(base_url=far.url, headers={"Authorization": f"Bearer {far.token}"}, timeout=60) as http:
        health = http.get("/health").json()["isolation"]
        assert (health["tier"], health["problem"]) == ("D", "")
        refused = http.post("/runs", json={"team": "solo", "isolation": "require"})
        assert (refused.status_code, refused.json()["code"]) == (503, "not-isolated")
        for body, words in (
            ({"isolation": "perhaps"}, "isolation"),
            ({"isolation": {"enforce": "auto", "reed": []}}, "reed"),
            ({"limits": {"memory": "much"}}, "limits.memory"),
            ({"limits": {"agent": {"disk": 1}}}, "disk"),
            ({"isolation": {"hide": ["~other"]}}, "isolation.hide"),
        ):
            answer = http.post("/runs", json={"team": "solo", **body})
            assert answer.status_code == 422, body
            assert words in answer.json()["detail"], answer.text
        assert http.get("/sessions").json()["total"] == 0


def test_a_private_home_goes_along_with_clones_and_archives_and_what_was_for_a_moment_does_not(site: Site) -> None:
    session = site.start(*SOLO)
    site.mas("stop", session)
    for path in (".home/.config/x", ".tmp/00/y"):
        put(site.session(session), path)
    os.chmod(site.session(session, ".home"), 0o700)
    clone = site.mas("clone", session).stdout.strip()
    assert os.path.exists(site.session(clone, ".home/.config/x"))
    assert os.stat(site.session(clone, ".home")).st_mode & 0o777 == 0o700
    assert not os.path.exists(site.session(clone, ".tmp"))
    site.mas("archive", session)
    site.mas("unarchive", session)
    assert os.path.exists(site.session(session, ".home/.config/x"))
    assert not os.path.exists(site.session(session, ".tmp"))


def test_the_mode_of_the_environment_is_nearer_than_that_of_the_workspace(site: Site) -> None:
    configure(site, isolation={"enforce": "require", "hide": ["/srv"]})
    session = site.start(*SOLO)
    assert metadata(site, session)["isolation"]["policy"] == {"enforce": Mode.OFF, "hide": ["/srv"]}
