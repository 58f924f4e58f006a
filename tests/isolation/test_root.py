"""Agents of a real session see what is listed and nothing else: no other workspace, no file or socket of the user's."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from tests.isolation.tiers import start_in
from tests.sandbox.house import PROBER
from tests.site import Site, until

SECRET = "the-secret-of-the-user"
# Places of a machine that people and services use, in which root can make a directory.
PLACES = ("/srv", "/var/opt", "/etc/opt", "/mnt", "/var/lib", "/opt", "/")
# Within what is seen as a whole, a workspace is an empty directory.
NOT_THERE: dict[str, tuple[object, ...]] = {"A": ("ENOENT", []), "B": ("EACCES", "EPERM", "ENOENT")}
ROOT = {"bin", "dev", "etc", "gnu", "home", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "run", "sbin",
        "snap", "sys", "tmp", "usr", "var"}  # fmt: skip


class Trial:
    """What the agent of a session in one tier gets of what it tries."""

    def __init__(self, site: Site, tier: str) -> None:
        self.site = site
        self.tier = tier

    def attempts(self, *tries: str, env: dict[str, str] | None = None, **policy: Any) -> dict[str, Any]:
        body = {"team": "solo", "isolation": policy}
        session = start_in(self.site, self.tier, [PROBER, "report.json", *tries], body, env or {})
        report = self.site.session(session, "unit", "00", "report.json")
        until(lambda: self.site.json("show", session)["agents"][0]["state"] == "exited", "its end")
        with open(report, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        self.site.mas("delete", session, "--yes")
        return found

    def outside(self, *tries: str) -> dict[str, Any]:
        """The same, not isolated: what there is to be found."""
        report = os.path.join(self.site.directory, "outside.json")
        subprocess.run([sys.executable, PROBER, report, *tries], check=True)
        with open(report, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        return found


@pytest.fixture(params=["A", "B"])
def trial(request: pytest.FixtureRequest, site: Site) -> Trial:
    return Trial(site, request.param)


@pytest.fixture
def in_a(site: Site) -> Trial:
    return Trial(site, "A")


@pytest.fixture
def canaries() -> Iterator[list[str]]:
    """Directories of this user all over the machine, each with a secret in it and a socket."""
    found = []
    with ExitStack() as stack:
        for place in PLACES:
            with suppress(OSError):
                made = tempfile.mkdtemp(prefix="mas-test-", dir=place)
                stack.callback(shutil.rmtree, made)
                secret = os.path.join(made, "secret")
                with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
                    file.write(SECRET)
                one = stack.enter_context(socket.socket(socket.AF_UNIX))
                one.bind(os.path.join(made, "socket"))
                one.listen()
                found.append(made)
        yield found


def workspace(site: Site, root: str) -> list[str]:
    """Another workspace of the same user: what of it is not for agents of this one."""
    site.mas("init", root, env={"MAS_WORKSPACE_ROOT": ""})
    unit = os.path.join(root, "sessions", "some", "unit")
    os.makedirs(unit)
    server = os.path.join(root, "sessions", ".mas", "server")
    os.makedirs(server, exist_ok=True)
    for path in (os.path.join(unit, "file"), os.path.join(server, "token")):
        with open(path, "w", encoding="ascii") as file:
            file.write(SECRET)
    return [f"read:{unit}/file", f"read:{server}/token", f"list:{root}", f"list:{root}/sessions", f"list:{root}/unit"]


def refused(trial: Trial, tries: list[str]) -> None:
    """Inside none of it is there, although outside all of it is."""
    outside = trial.outside(*tries)
    assert {one for one, answer in outside.items() if answer in NOT_THERE["B"]} == set()
    inside = trial.attempts(*tries)
    assert {one: answer for one, answer in inside.items() if answer not in NOT_THERE[trial.tier]} == {}


def test_files_and_sockets_of_the_user_s_do_not_exist_wherever_they_are(trial: Trial, canaries: list[str]) -> None:
    # What is installed for every user is seen as a whole.
    places = [place for place in canaries if not place.startswith("/opt/")]
    if not places:
        pytest.skip("this user can make no directory outside its home and /tmp")
    refused(trial, [f"{verb}:{place}{name}" for place in places for verb, name in (("read", "/secret"), ("list", ""))])
    if trial.tier == "A":
        refused(trial, [f"unix:{place}/socket" for place in places])


def test_a_workspace_inside_the_workspace_does_not_exist(trial: Trial) -> None:
    refused(trial, workspace(trial.site, trial.site.path("demo")))


def test_another_workspace_does_not_exist(trial: Trial, canaries: list[str]) -> None:
    if not canaries:
        pytest.skip("this user can make no directory outside its home and /tmp")
    # One of them is in /opt, which is seen.
    for place in canaries:
        refused(trial, workspace(trial.site, os.path.join(place, "ws")))


def test_a_workspace_beside_programs_on_path_does_not_exist(trial: Trial) -> None:
    prefix = os.path.join(trial.site.home, "sw")
    tool = os.path.join(prefix, "bin", "own-tool")
    os.makedirs(os.path.dirname(tool))
    with open(os.open(tool, os.O_CREAT | os.O_WRONLY, 0o755), "w", encoding="ascii") as file:
        file.write("#!/bin/sh\necho it runs\n")
    tries = workspace(trial.site, os.path.join(prefix, "ws"))
    path = f"{trial.site.env['PATH']}:{prefix}/bin"
    found = trial.attempts("run:own-tool", *tries, env={"PATH": path})
    assert found.pop("run:own-tool") == "it runs\n"
    assert {one: answer for one, answer in found.items() if answer not in NOT_THERE[trial.tier]} == {}


def test_the_root_is_the_list(in_a: Trial) -> None:
    found = in_a.attempts("list:/", "list:/run", "list:/etc", "read:/etc/passwd", "run:id -un")
    ways = {os.path.realpath(path).split("/")[1] for path in (sys.prefix, sys.base_prefix, PROBER)}
    assert set(found["list:/"]) <= ROOT | ways
    assert found["list:/run"] == []
    assert not {"shadow", "sudoers", "ssh", "opt", "machine-id"} & set(found["list:/etc"])
    assert len(found["read:/etc/passwd"].splitlines()) <= 3
    assert found["run:id -un"]


def test_all_memory_that_looks_like_files_has_a_size_and_only_one_part_of_it_can_be_written(in_a: Trial) -> None:
    tries = ["run:cat /proc/self/mountinfo", "run:df --output=size,target -k /dev/shm"]
    mounts, shared = in_a.attempts(*tries).values()
    lines = [line.partition(" - ") for line in mounts.splitlines()]
    memory = {first.split()[4]: (first.split()[5], last) for first, _, last in lines if last.startswith("tmpfs ")}
    # A device's file is shown by itself: it has the size of the machine's own.
    memory = {path: one for path, one in memory.items() if path == "/dev/shm" or not path.startswith("/dev/")}
    assert {"/", "/dev", "/dev/shm"} <= set(memory)
    assert not {path: one for path, one in memory.items() if "size=" not in one[1]}
    assert [path for path, (options, _) in memory.items() if "ro" not in options.split(",")] == ["/dev/shm"]
    assert int(shared.split()[-2]) <= 64 << 10


def test_what_agents_work_with_works(in_a: Trial) -> None:
    works = {
        "gcc": "echo 'int main(void){return 0;}' > a.c && gcc a.c -o a.out -lm && ./a.out",
        "git": "git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m x",
        "perl": "perl -MPOSIX -e 'print 1'",
        "node": "node -e 'require(\"https\")'",
        "locale": "locale",
        "python3": "/usr/bin/python3 -c 'import ssl; assert ssl.create_default_context().cert_store_stats()[\"x509\"]'",
        "java": "java -version",
        "dpkg": "dpkg -s libc6",
    }
    tries = [f"run:{command} 2>&1" for program, command in works.items() if shutil.which(program)]
    found = in_a.attempts(*tries)
    assert {one: answer for one, answer in found.items() if isinstance(answer, list)} == {}


def test_programs_behind_links_into_other_trees_are_found(in_a: Trial) -> None:
    home = in_a.site.home
    version = os.path.join(home, ".local/share/tool/versions/1.2")
    elsewhere = os.path.join(home, "trees", "real", "bin")
    for directory in (os.path.dirname(version), elsewhere, os.path.join(home, ".local/bin"), os.path.join(home, "bin")):
        os.makedirs(directory)
    for path, words in ((version, "by version"), (os.path.join(elsewhere, "other"), "by a chain")):
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755), "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\necho {words}\n")
    os.symlink(version, os.path.join(home, ".local/bin/tool"))
    os.symlink("real", os.path.join(home, "trees", "current"))
    os.symlink("../trees/current/bin/other", os.path.join(home, "bin", "other"))
    path = f"{in_a.site.env['PATH']}:{home}/.local/bin:{home}/bin"
    found = in_a.attempts("run:tool", "run:other", f"list:{home}", env={"PATH": path})
    assert (found["run:tool"], found["run:other"]) == ("by version\n", "by a chain\n")
    assert set(found[f"list:{home}"]) <= {".local", "bin", "trees"}


def test_a_registry_s_token_in_a_file_of_etc_does_not_come_with_the_copy() -> None:
    from mas.service.isolation.etc import _without_keys

    kept = b"registry=https://r.example\nx=1\npasswd:         files systemd\ninsteadOf = ssh://git@r.example/\n"
    keys = (
        b"//r.example/:_authToken=abc",
        b"index-url = https://me:pw@r.example/simple",
        b"index-url = https://ghp_0123@r.example/simple",
        b"http_password = x",
        b"export GITHUB_TOKEN=x",
        b"AWS_SECRET_ACCESS_KEY = x",
        b"OPENAI_API_KEY=x",
        b"extraheader = AUTHORIZATION: basic eA==",
    )
    assert _without_keys(kept + b"".join(line + b"\n" for line in keys)) == kept


def test_the_user_s_own_configuration_adds_places_and_can_show_all(in_a: Trial, canaries: list[str]) -> None:
    if not canaries:
        pytest.skip("this user can make no directory outside its home and /tmp")
    own = os.path.join(in_a.site.home, ".config", "mas", "config.json")
    os.makedirs(os.path.dirname(own))
    tries = [f"read:{place}/secret" for place in canaries]
    for words, seen in (({"system": canaries[:1]}, canaries[:1]), ({"root": "all"}, canaries)):
        with open(own, "w", encoding="utf-8") as file:
            json.dump({"isolation": words}, file)
        found = in_a.attempts(*tries)
        assert {one for one, answer in found.items() if answer == SECRET} >= {f"read:{place}/secret" for place in seen}
        assert found[tries[0]] == SECRET
    done = in_a.site.mas("start", "--team", "solo", "--command", "true", env={"MAS_ISOLATION": "A"})
    assert 'isolation.root is "all"' in done.stderr
