"""Where a server listens, which callers it admits there, and that there is only one for a workspace."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx
import psutil
import pytest

from mas.http.peer import Arrival, Entrance, arrived
from mas.http.server import Options
from mas.model.errors import BadInput
from tests.http.raw import rest_of
from tests.page_key import PageKey
from tests.served import Served
from tests.site import Site, until

NOBODY = 65534


def test_it_listens_on_this_machine_only(shared: Served) -> None:
    listening = [
        connection.laddr.ip
        for connection in psutil.Process(shared.pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening == ["127.0.0.1"]


class TestBeyondThisMachine:
    """An address that others can reach."""

    @pytest.mark.parametrize(
        "host", ["0.0.0.0", "::", "10.0.0.5", "192.168.1.1", "example.org", "127.0.0.1.nip.io", ""]
    )
    def test_it_needs_tls_or_a_proxy(self, host: str) -> None:
        with pytest.raises(BadInput):
            Options(host=host).check()

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
    def test_this_machine_needs_neither(self, host: str) -> None:
        Options(host=host).check()

    @pytest.mark.parametrize("host", ["0.0.0.0", "::"])
    def test_all_addresses_need_a_name(self, host: str) -> None:
        with pytest.raises(BadInput, match="needs an allowed name"):
            Options(host=host, behind_proxy=True).check()
        for names in (("",), ("mas.example", "")):
            with pytest.raises(BadInput):
                Options(host=host, behind_proxy=True, allow_hosts=names).check()
        Options(host=host, behind_proxy=True, allow_hosts=("mas.example",)).check()

    def test_tls_needs_both_files(self, certificate: tuple[str, str]) -> None:
        cert, key = certificate
        Options(host="10.0.0.5", tls_cert=cert, tls_key=key).check()
        for options in (Options(tls_cert=cert), Options(tls_key=key), Options(tls_cert=cert, tls_key="/nowhere")):
            with pytest.raises(BadInput):
                options.check()

    def test_the_command_refuses_and_serves_nothing(self, site: Site) -> None:
        for options in (["0.0.0.0"], ["0.0.0.0", "--detach"], ["0.0.0.0", "--behind-proxy"]):
            done = site.mas("serve", "--port", "0", "--host", *options, code=2)
            assert ("unencrypted" in done.stderr) is ("--behind-proxy" not in options), done.stderr
        assert not os.path.exists(site.path("sessions", ".mas", "server", "api.sock"))


@pytest.fixture
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for localhost and its key."""
    place = tmp_path_factory.mktemp("tls")
    cert, key = str(place / "cert.pem"), str(place / "key.pem")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl, which makes the certificate, is not installed")
    return cert, key


@contextmanager
def serving(site: Site, *options: str) -> Iterator[Served]:
    made = Served(site, *options)
    try:
        yield made
    finally:
        made.close()


def test_tls_is_really_spoken_and_a_page_signs_in_by_it(site: Site, certificate: tuple[str, str]) -> None:
    cert, key = certificate
    with serving(site, "--tls-cert", cert, "--tls-key", key, "--host", "localhost") as served:
        url = served.url.replace("http://127.0.0.1", "https://localhost")
        trusted = ssl.create_default_context(cafile=cert)
        client = served.client(base_url=url, verify=trusted)
        assert client.get("/sessions").status_code == 200
        assert site.mas("url").stdout.startswith(url)
        browser = served.client("", base_url=url, verify=trusted)
        page = PageKey(browser, client.post("/login-codes").json()["code"])
        browser.headers["Authorization"] = f"Bearer {page.sign_in()}"
        assert browser.get("/sessions").status_code == 200
        assert browser.post("/repair", headers={"Origin": url}).status_code == 200
        # What was changed on its way was not encrypted.
        plain = url.replace("https://", "http://")
        assert browser.post("/repair", headers={"Origin": plain}).status_code == 403
        with pytest.raises(httpx.TransportError):
            served.client(base_url=plain).get("/sessions")
        # The socket file has no TLS, and is not on a network.
        assert served.on_socket().get("/sessions").status_code == 200


def test_no_other_program_can_answer_for_localhost_at_the_servers_port(site: Site) -> None:
    """Browsers try ::1 first for that name."""
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("there is no IPv6 on this machine")
    with serving(site) as served:
        port = int(served.url.rpartition(":")[2])
        for host in ("::1", "::"):
            with socket.socket(socket.AF_INET6) as thief:
                thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                thief.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                with pytest.raises(OSError, match="in use"):
                    thief.bind((host, port))
        # The name leads to the server all the same.
        assert served.client(base_url=f"http://localhost:{port}").get("/sessions").status_code == 200
    with socket.socket(socket.AF_INET6) as later:
        later.bind(("::1", port))


def test_an_invalid_certificate_is_reported(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = str(tmp_path_factory.mktemp("tls") / "cert.pem")
    with open(path, "w", encoding="utf-8") as file:
        file.write("not a certificate")
    done = site.mas("serve", "--port", "0", "--tls-cert", path, "--tls-key", path, code=None)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert path in done.stderr


def test_what_a_proxy_says_is_believed_only_if_configured(site: Site, shared: Served) -> None:
    told = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9", "Host": "mas.example"}
    assert shared.client("").get("/login", headers=told).status_code == 403
    direct = {key: value for key, value in told.items() if key != "Host"}
    assert shared.client("").get("/health", headers=direct).status_code == 200
    assert shared.client().get("/health", headers=direct | {"Origin": shared.url}).status_code == 200
    with serving(site, "--behind-proxy", "--allow-host", "mas.example") as served:
        own = {"Origin": "https://mas.example"}
        login = served.client().post("/login-codes").json()["code"]
        bearer = PageKey(served.client(""), login, "mas.example", **told, **own).sign_in()
        assert served.client(bearer).post("/repair", headers=told | own).status_code == 200
        # A page that came encrypted was not opened without.
        plain = {"Origin": "http://mas.example"}
        assert served.client(bearer).post("/repair", headers=told | plain).status_code == 403
        evil = {"Origin": "https://evil.example"}
        assert served.client(bearer).post("/repair", headers=told | evil).status_code == 403
        until(lambda: "203.0.113.9" in _read(served.log), "the log says who asked")
    assert "203.0.113.9" not in _read(shared.log)


class TestSocketFile:
    """The socket file: the same API, with a token, for one user."""

    def test_its_user_needs_the_token_and_is_told_how_to_get_it(self, shared: Served) -> None:
        refused = shared.on_socket("").get("/sessions")
        assert refused.status_code == 401
        assert "mas token" in refused.json()["hint"]
        client = shared.on_socket()
        assert client.get("/sessions").status_code == 200
        assert client.get("/sessions", headers={"Host": "anything"}).status_code == 200
        assert client.get("/openapi.json").status_code == 200

    def test_a_wrong_token_there_is_still_wrong(self, shared: Served) -> None:
        assert shared.on_socket().get("/sessions", headers={"Authorization": "Bearer wrong"}).status_code == 401

    def test_an_agent_there_is_still_an_agent(self, shared: Served) -> None:
        team = shared.site.start()
        token = shared.site.mas("token", "--session", team, "--agent", "00").stdout.strip()
        proof = {"Authorization": f"Bearer {token}"}
        assert shared.on_socket().get(f"/sessions/{team}/messages", headers=proof).status_code == 200
        assert shared.on_socket().get("/sessions", headers=proof).status_code == 403
        shared.client().post(f"/sessions/{team}/stop")

    def test_a_page_cannot_use_it_through_some_proxy(self, shared: Served) -> None:
        answer = shared.on_socket().post("/repair", headers={"Origin": "http://evil.example"})
        assert answer.status_code == 403

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
    def test_another_user_is_shut_out_even_if_the_file_lets_them_in(self, bare: Site) -> None:
        bare.mas("init", bare.root, "--provider", "shell")
        with serving(bare) as served:
            assert _asked_as(NOBODY, served.socket) == "PermissionError"
            for directory in _up(served.socket, bare.directory):
                os.chmod(directory, 0o755)
            assert _asked_as(NOBODY, served.socket) == "PermissionError"
            os.chmod(served.socket, 0o666)
            assert _asked_as(NOBODY, served.socket) in ("", "ConnectionResetError", "BrokenPipeError")
            assert _asked_as(0, served.socket).startswith("HTTP/1.1 401")
            for directory in _up(served.socket, bare.directory):
                os.chmod(directory, 0o700)

    def test_the_kernel_says_which_user_is_at_the_other_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        here, there = socket.socketpair(socket.AF_UNIX)
        with here, there:
            assert arrived(here, Entrance.OWNER) == Arrival(Entrance.OWNER, process=os.getpid())
            monkeypatch.setattr(os, "getuid", lambda: 12345)
            # Root may read the file anyhow.
            assert (arrived(here, Entrance.OWNER) is not None) is (os.geteuid() == 0)


class TestOneServer:
    """A workspace has one server at most."""

    def test_a_second_one_is_refused_and_the_error_names_the_first(self, served: Served) -> None:
        for how in ([], ["--detach"]):
            done = served.site.mas("serve", "--port", "0", *how, code=None)
            assert done.returncode != 0
            assert served.url in done.stderr
            assert str(served.pid) in done.stderr
        assert served.client().get("/sessions").status_code == 200
        assert served.on_socket().get("/sessions").status_code == 200

    def test_after_a_kill_the_next_one_starts_at_once(self, served: Served) -> None:
        served.kill()
        assert os.path.exists(served.socket)
        assert os.path.exists(served.site.path("logs", "api.pid"))
        assert served.site.mas("serve", "--stop").stderr.startswith("No server is running")
        assert served.site.mas("url", code=None).returncode != 0
        served.restart()
        assert served.on_socket().get("/sessions").status_code == 200
        assert served.client().get("/sessions").status_code == 200
        assert _read(served.site.path("logs", "api.pid")) == f"{served.pid}\n"

    def test_what_a_killed_one_left_names_no_process_to_end(self, served: Served) -> None:
        """Its number may be another program's by now."""
        innocent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=served.site.env)
        try:
            info = served.site.path("sessions", ".mas", "server", "server.json")
            kept = _read(info).replace(f'"pid": {served.pid}', f'"pid": {innocent.pid}')
            served.kill()
            with open(info, "w", encoding="utf-8") as file:
                file.write(kept)
            # Another server has claimed the workspace, and does not listen yet.
            presence = _claimed(served.site)
            # It has had its time to say where it listens.
            os.utime(served.site.path("sessions", ".mas", "server", "server.lock"), (0, 0))
            try:
                assert f"(process {presence.pid})" in served.site.mas("serve", "--stop").stderr
                assert presence.wait(60) == -signal.SIGTERM
                assert innocent.poll() is None
            finally:
                presence.kill()
                presence.wait()
                assert presence.stdout
                presence.stdout.close()
        finally:
            innocent.kill()
            innocent.wait()

    def test_in_the_background_there_is_one_too(self, site: Site) -> None:
        first = site.json("serve", "--detach", "--port", "0")
        try:
            done = site.mas("serve", "--detach", "--port", "0", code=None)
            assert done.returncode != 0
            assert first["url"] in done.stderr
            assert site.json("serve", "--stop")["pid"] == first["pid"]
        finally:
            site.mas("serve", "--stop")
        assert site.mas("serve", "--stop").stderr.startswith("No server is running")
        server = site.path("sessions", ".mas", "server")
        assert not {"api.sock", "server.json"} & set(os.listdir(server))
        assert not os.path.exists(site.path("logs", "api.pid"))

    def test_a_server_in_the_background_does_not_print_the_token(self, site: Site) -> None:
        info = site.json("serve", "--detach", "--port", "0")
        try:
            token = site.mas("token").stdout.strip()
            process = psutil.Process(info["pid"])
            assert not any(token in word for word in [*process.cmdline(), *process.environ().values()])
        finally:
            site.mas("serve", "--stop")

    def test_it_ends_by_a_signal_with_its_agents_left_alone(self, served: Served) -> None:
        session = served.client().post("/runs", json={"team": "solo"}).json()["sessionId"]
        served.client().get("/sessions")
        os.kill(served.pid, signal.SIGTERM)
        served.stop()
        assert served.site.statuses() == {session: "active"}
        assert served.site.four_places(session) == {"active"}
        # Nothing helps a server that is gone, such as a client of tmux.
        for process in served.site.processes():
            with suppress(psutil.Error):
                words = process.cmdline()
                assert not {"serve", "-C"} & set(words), words


def test_a_workspace_too_deep_for_a_socket_has_it_in_a_short_place(bare: Site) -> None:
    deep = os.path.join(bare.directory, *["deep" * 10] * 4, "ws")
    os.makedirs(os.path.dirname(deep))
    bare.root, bare.env["MAS_WORKSPACE_ROOT"] = deep, deep
    bare.mas("init", deep, "--provider", "shell")
    info = bare.json("serve", "--detach", "--port", "0")
    try:
        place = os.path.dirname(info["socket"])
        assert place == f"/tmp/mas-{os.getuid()}"
        assert os.stat(place).st_mode & 0o077 == 0
        assert len(os.fsencode(info["socket"])) < 108
        assert bare.mas("url").stdout.startswith("http://127.0.0.1:")
    finally:
        bare.mas("serve", "--stop")
    assert not os.path.exists(info["socket"])


@pytest.mark.parametrize("how", ["open", "link", "theirs"])
def test_a_short_place_that_others_can_enter_is_not_used(site: Site, how: str) -> None:
    from mas.model.errors import Unavailable
    from mas.store.layout import Layout
    from mas.store.server.presence import Presence

    place = os.path.join(site.directory, "short")
    other = os.path.join(site.directory, "other")
    os.mkdir(other, 0o700)
    if how == "link":
        os.symlink(other, place)
    else:
        os.mkdir(place, 0o700)
        os.chmod(place, 0o777 if how == "open" else 0o700)
    if how == "theirs":
        if os.getuid() != 0:
            pytest.skip("only root can give a directory away")
        os.chown(place, NOBODY, NOBODY)
    deep = Layout(os.path.join(site.root, "sessions", *["deep" * 10] * 4))
    os.makedirs(os.path.dirname(deep.private))
    with pytest.raises(Unavailable, match="only you have access to"):
        Presence(deep, place).claim()
    assert os.listdir(other) == []


def _claimed(site: Site) -> subprocess.Popen[str]:
    """A process that is the workspace's server, and no more than that."""
    program = """
        import sys, time
        from mas.bootstrap import open_server
        with open_server() as served:
            served.presence.claim()
            print("claimed", flush=True)
            time.sleep(600)
    """
    argv = [sys.executable, "-c", textwrap.dedent(program)]
    process = subprocess.Popen(argv, env=site.env, cwd=site.root, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "claimed\n"
    return process


def _asked_as(uid: int, path: str) -> str:
    """What the socket says to a user, or why they could not ask."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            try:
                with socket.socket(socket.AF_UNIX) as wire:
                    wire.settimeout(60)
                    wire.connect(path)
                    wire.sendall(b"GET /sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    said = rest_of(wire).decode()[:100]
            except OSError as error:
                said = type(error).__name__
            os.write(write_end, said.encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, encoding="utf-8") as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def _up(path: str, top: str) -> Iterator[str]:
    while path != top:
        path = os.path.dirname(path)
        yield path


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
