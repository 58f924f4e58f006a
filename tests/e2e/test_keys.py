"""Provider keys: kept where no agent sees them, given to the programs that need them, shown to nobody."""

from __future__ import annotations

import json
import os
import pty
import resource
import shlex
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.site import Site, until

KEY = "sk-ant-secret-0123456789-WXYZ"
OTHER = "sk-ant-another-9876543210-ABCD"
_PROVIDER = """
[provider]
id = "reader"
description = "Writes down the key it was given"
[launch]
argv = ["/bin/sh", "-c", "echo \\"$ANTHROPIC_API_KEY\\" > key.tmp; mv key.tmp key; exec sleep 3600"]
env_pass = ["ANTHROPIC_API_KEY"]
[status]
sources = []
"""


def kept_in(site: Site) -> str:
    return site.path("sessions", ".mas", "server", "provider-keys.json")


def set_key(site: Site, key: str = KEY, *args: str) -> subprocess.CompletedProcess[str]:
    return site.mas("keys", "set", "anthropic", *args, input=f"{key}\n")


def given_to_agent(site: Site, env: dict[str, str] | None = None) -> str:
    """The key that an agent of a new session was started with."""
    session = site.start("--team", "solo", "--provider", "reader", env=env or {})
    path = site.session(session, "unit", "00", "key")
    until(lambda: os.path.exists(path), "the agent's key")
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


@pytest.fixture
def reader(site: Site) -> Site:
    os.makedirs(site.path("providers"))
    with open(site.path("providers", "reader.toml"), "w", encoding="utf-8") as file:
        file.write(_PROVIDER)
    return site


def test_a_kept_key_is_shown_by_its_end_alone_and_only_its_user_can_read_it(site: Site) -> None:
    done = set_key(site)
    assert KEY not in done.stdout + done.stderr
    assert stat.S_IMODE(os.stat(kept_in(site)).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(kept_in(site))).st_mode) == 0o700
    (shown,) = site.json("keys", "list")["keys"]
    assert (shown["variable"], shown["where"], shown["tail"], shown["used"]) == (
        "ANTHROPIC_API_KEY", "workspace", "WXYZ", True,
    )  # fmt: skip
    for listing in (site.mas("keys"), site.mas("keys", "list", "--json"), site.mas("doctor", code=None)):
        assert "WXYZ" in listing.stdout
        assert KEY not in listing.stdout + listing.stderr
    assert site.json("keys", "delete", "anthropic")["deleted"] == [kept_in(site)]
    assert site.json("keys", "list")["keys"] == []
    assert "mas keys list" in site.mas("keys", "delete", "anthropic", code=3).stderr


def test_the_environment_wins_over_the_workspace_and_the_workspace_over_the_user(reader: Site) -> None:
    assert given_to_agent(reader) == ""
    set_key(reader, "sk-of-the-user-00000000", "--user")
    assert given_to_agent(reader) == "sk-of-the-user-00000000"
    set_key(reader)
    assert given_to_agent(reader) == KEY
    assert given_to_agent(reader, {"ANTHROPIC_API_KEY": OTHER}) == OTHER
    assert [(one["where"], one["used"]) for one in reader.json("keys")["keys"]] == [
        ("workspace", True),
        ("user", False),
    ]
    told = reader.mas("doctor", code=None, env={"ANTHROPIC_API_KEY": OTHER}).stdout
    assert "from the environment (…ABCD)" in " ".join(told.split())


def test_a_users_key_needs_no_workspace_and_is_in_their_configuration(bare: Site) -> None:
    config = os.path.join(bare.directory, "config")
    env = {"XDG_CONFIG_HOME": config, "MAS_WORKSPACE_ROOT": ""}
    bare.mas("keys", "set", "openai", "--user", input=KEY, env=env, cwd=bare.directory)
    path = os.path.join(config, "mas", "keys.json")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    found = bare.mas("keys", "list", "--user", "--json", env=env, cwd=bare.directory).stdout
    assert [one["place"] for one in json.loads(found)["keys"]] == [path]
    bare.mas("keys", "list", env=env, cwd=bare.directory, code=3)


def test_a_key_is_in_no_archive_clone_log_or_listing(reader: Site) -> None:
    set_key(reader)
    session = reader.start("--team", "solo", "--provider", "reader")
    until(lambda: os.path.exists(reader.session(session, "unit", "00", "key")), "the agent")
    os.unlink(reader.session(session, "unit", "00", "key"))
    said = [reader.mas(*words, session).stdout for words in (("env",), ("show", "--json"), ("logs",))]
    said.append(reader.mas("env", f"{session}:00").stdout)
    assert not any(KEY in text for text in said)
    assert holding(reader.path("sessions", ".mas")) == [kept_in(reader)]
    assert holding(reader.path("logs")) == []
    reader.mas("stop", session)
    copy = reader.mas("clone", session).stdout.strip()
    assert holding(reader.session(copy)) == []
    reader.mas("archive", session)
    reader.mas("unarchive", session)
    assert holding(reader.session(session)) == []
    reader.mas("restore", session)
    path = reader.session(session, "unit", "00", "key")
    until(lambda: os.path.exists(path), "the agent after all that")
    assert holding(os.path.dirname(path)) == [path], "the control: a key that is there is found"


def holding(directory: str) -> list[str]:
    """The files below a directory that hold the key."""
    found = []
    for place, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    if KEY.encode() in file.read():
                        found.append(path)
    return found


@pytest.mark.parametrize("tier", ["A", "B", "D"])
def test_no_isolated_agent_sees_where_keys_are_kept(site: Site, tier: str) -> None:
    set_key(site)
    set_key(site, OTHER, "--user")
    places = shlex.join([kept_in(site), os.path.join(site.home, ".config", "mas", "keys.json")])
    script = f"cat {places} > seen.tmp 2> /dev/null; mv seen.tmp seen; exec sleep 3600"
    command = shlex.join(["/bin/sh", "-c", script])
    done = site.mas("start", "--team", "solo", "--command", command, env={"MAS_ISOLATION": tier}, code=None)
    if done.returncode == 7 and tier != "D":
        pytest.skip(f"this machine has no tier {tier}")
    assert done.returncode == 0, done.stderr
    path = site.session(done.stdout.strip(), "unit", "00", "seen")
    until(lambda: os.path.exists(path), "the agent")
    with open(path, encoding="utf-8") as file:
        seen = file.read()
    # The control: without isolation an agent reads what its user can.
    assert (KEY in seen, OTHER in seen) == (tier == "D", tier == "D")


def test_a_key_is_typed_without_being_shown(site: Site) -> None:
    main, inner = pty.openpty()
    words = [sys.executable, "-m", "mas", "keys", "set", "anthropic"]
    with subprocess.Popen(
        words, stdin=inner, stdout=inner, stderr=inner, env=site.env, cwd=site.root, start_new_session=True
    ) as running:
        os.close(inner)
        seen = b""
        while b"Key of anthropic" not in seen:
            seen += os.read(main, 1000)
        os.write(main, f"{KEY}\n".encode())
        try:
            while data := os.read(main, 1000):
                seen += data
        except OSError:
            pass
        assert running.wait(60) == 0, seen
    os.close(main)
    assert KEY.encode() not in seen
    assert site.json("keys", "list")["keys"][0]["tail"] == "WXYZ"


@pytest.mark.parametrize(
    "key", ["", "short", "with a space in it", "new\nline-in-the-middle", "x" * 5000, "naïve-key-12"]
)
def test_what_is_no_key_is_refused_and_not_repeated(site: Site, key: str) -> None:
    done = site.mas("keys", "set", "anthropic", input=key, code=2)
    assert not key or key not in done.stderr
    assert not os.path.exists(kept_in(site))


@pytest.mark.parametrize("name", ["nobody", "PATH", "MAS_TOKEN_KEY", "../x_KEY", "A B_KEY", ""])
def test_what_is_no_name_of_a_key_is_refused(site: Site, name: str) -> None:
    assert "anthropic" in site.mas("keys", "set", name, input=KEY, code=2).stderr
    site.mas("keys", "set", code=2)


def test_keys_that_are_set_at_once_are_all_kept(site: Site) -> None:
    names = [f"MODEL{number}_API_KEY" for number in range(6)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: site.mas("keys", "set", name, input=KEY), names))
    assert sorted(one["variable"] for one in site.json("keys")["keys"]) == names


def test_a_torn_file_of_keys_is_damaged_and_never_empty(reader: Site) -> None:
    set_key(reader)
    with open(kept_in(reader), "r+b") as file:
        file.truncate(40)
    for words in (("keys",), ("keys", "set", "openai"), ("start", "--team", "solo", "--provider", "reader")):
        done = reader.mas(*words, input=KEY, code=5)
        assert kept_in(reader) in done.stderr
        assert KEY[:12] not in done.stderr


def test_on_a_full_disk_the_keys_that_were_there_stay(site: Site) -> None:
    set_key(site)

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    failed = site.mas("keys", "set", "openai", input=OTHER, code=6, preexec_fn=no_room)
    assert "full" in failed.stderr
    assert OTHER not in failed.stderr
    assert [one["name"] for one in site.json("keys")["keys"]] == ["anthropic"]
    set_key(site, OTHER)
    assert [one["tail"] for one in site.json("keys")["keys"]] == ["ABCD"]


class _Models(BaseHTTPRequestHandler):
    """An API that knows one key, and remembers which came."""

    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        self.server.seen.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})  # type: ignore[attr-defined]
        good = KEY in (self.headers.get("X-Api-Key"), (self.headers.get("Authorization") or "")[7:])
        status = 302 if self.path.startswith("/away") else 200 if good else 401
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/v1/models")  # type: ignore[attr-defined]
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def models() -> Iterator[tuple[str, list[dict[str, str]]]]:
    server = HTTPServer(("127.0.0.1", 0), _Models)
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.seen  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_provider_is_asked_whether_a_key_is_good(site: Site) -> None:
    set_key(site)
    with models() as (url, seen):
        env = {"ANTHROPIC_BASE_URL": url}
        (good,) = json.loads(site.mas("keys", "test", "--json", env=env).stdout)["tests"]
        assert (good["ok"], good["url"]) == (True, f"{url}/v1/models")
        assert (seen[0]["path"], seen[0]["x-api-key"]) == ("/v1/models", KEY)
        bad = site.mas("keys", "test", "anthropic", code=8, env={**env, "ANTHROPIC_API_KEY": OTHER})
        assert "refuses the key" in bad.stderr
        assert OTHER not in bad.stderr + bad.stdout
        before = len(seen)
        away = site.mas("keys", "test", "anthropic", code=1, env={"ANTHROPIC_BASE_URL": f"{url}/away"})
        assert "302" in away.stderr
        assert len(seen) == before + 1, "no redirect is followed: the key would go elsewhere"
        site.mas("keys", "set", "openai", input=KEY)
        site.mas("keys", "test", "openai", env={"OPENAI_BASE_URL": f"{url}/v1"})
        assert (seen[-1]["path"], seen[-1]["authorization"]) == ("/v1/models", f"Bearer {KEY}")
        both = {**env, "ANTHROPIC_API_KEY": OTHER, "OPENAI_BASE_URL": f"{url}/v1"}
        tests = json.loads(site.mas("keys", "test", "--json", code=1, env=both).stdout)["tests"]
        assert [(one["name"], one["ok"]) for one in tests] == [("anthropic", False), ("openai", True)]
    assert "Cannot reach" in site.mas("keys", "test", "anthropic", code=7, env=env).stderr
    plain = site.mas("keys", "test", "anthropic", code=2, env={"ANTHROPIC_BASE_URL": "http://example.com"})
    assert "https" in plain.stderr
    site.mas("keys", "test", "gemini", code=3)
    site.mas("keys", "test", "anthropic", code=3, env={"ANTHROPIC_API_KEY": ""})


def test_a_provider_that_does_not_answer_is_a_timeout(site: Site) -> None:
    set_key(site)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        assert "did not answer" in site.mas("keys", "test", "anthropic", code=9, env=env).stderr


def test_with_the_keyring_library_a_users_keys_are_in_the_desktops_keyring(reader: Site) -> None:
    library = os.path.join(reader.directory, "library")
    os.mkdir(library)
    with open(os.path.join(library, "keyring.py"), "w", encoding="utf-8") as file:
        file.write(_KEYRING)
    os.mkdir(os.path.join(library, "kept"))
    env = {"PYTHONPATH": library}
    reader.mas("keys", "set", "anthropic", "--user", input=KEY, env=env)
    (kept,) = json.loads(reader.mas("keys", "--json", env=env).stdout)["keys"]
    assert (kept["where"], kept["place"]) == ("user", "the desktop's keyring")
    assert holding(reader.home) == []
    assert given_to_agent(reader, env) == KEY
    locked = reader.mas("keys", code=7, env={**env, "LOCKED": "1"})
    assert KEY not in locked.stderr
    assert given_to_agent(reader, {**env, "LOCKED": "1"}) == "", "a locked keyring stops no start"
    done = reader.mas("keys", "set", "openai", "--user", "--json", input=KEY, env={**env, "BROKEN": "1"})
    broken = json.loads(done.stdout)
    assert broken["place"].endswith("keys.json")
    reader.mas("keys", "delete", "openai", "--user", env=env)
    reader.mas("keys", "delete", "anthropic", "--user", env=env)
    assert os.listdir(os.path.join(library, "kept")) == []


_KEYRING = """
import os, sys, types
errors = types.ModuleType("keyring.errors")
class KeyringError(Exception): pass
errors.KeyringError = KeyringError
sys.modules["keyring.errors"] = errors
class _Backend: priority = 5
def get_keyring():
    if os.environ.get("BROKEN"): raise ModuleNotFoundError("no backend")
    return _Backend
def _path(service, name): return os.path.join(os.path.dirname(__file__), "kept", f"{service}-{name}")
def get_password(service, name):
    if os.environ.get("LOCKED"): raise KeyringError("locked: " + service)
    return open(_path(service, name)).read() if os.path.exists(_path(service, name)) else None
def set_password(service, name, value): open(_path(service, name), "w").write(value)
def delete_password(service, name): os.unlink(_path(service, name))
"""
