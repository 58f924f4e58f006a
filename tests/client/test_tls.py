"""The client meets TLS: untrusted certificates, names they are not for, and machines elsewhere."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import pytest

from mas.client import RemoteMas
from mas.client.connection import no_answer
from mas.model.errors import BadInput, NoServer
from mas.model.ids import SessionId
from tests.served import Served
from tests.site import Site, fresh_workspace


class Secured(NamedTuple):
    """A server that speaks TLS, and the certificate that it shows."""

    site: Site
    url: str
    token: str
    certificate: str


class _Served(Served):
    @property
    def url(self) -> str:
        return f"https://localhost:{self._port}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    place = tmp_path_factory.mktemp("tls")
    cert, key = str(place / "cert.pem"), str(place / "key.pem")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost"]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl, which makes the certificate, is not installed")
    with (
        fresh_workspace("--provider", "shell") as site,
        closing(_Served(site, "--tls-cert", cert, "--tls-key", key, "--host", "localhost")) as served,
    ):
        yield Secured(site, served.url, served.token, cert)


def test_the_error_for_an_untrusted_certificate_says_how_to_trust_it(secured: Secured) -> None:
    with RemoteMas(secured.url, secured.token) as mas, pytest.raises(NoServer, match="is not trusted") as caught:
        mas.list()
    assert caught.value.hint.startswith("--ca FILE or MAS_CA")


def test_a_file_of_certificates_makes_it_trusted_for_calls_and_terminals(secured: Secured) -> None:
    with RemoteMas(secured.url, secured.token, ca=secured.certificate) as mas:
        session = SessionId(secured.site.start())
        assert [info.session_id for info in mas.list().sessions] == [session]
        with closing(mas.terminal(session, "00")) as terminal:
            assert terminal.look().columns
        mas.stop(session)


def test_a_trusted_certificate_for_another_name_is_not_enough(secured: Secured) -> None:
    url = secured.url.replace("localhost", "127.0.0.1")
    mas = RemoteMas(url, secured.token, ca=secured.certificate)
    with mas, pytest.raises(NoServer, match="is not trusted") as caught:
        mas.list()
    assert caught.value.hint == "use the name that the certificate is for"


def test_the_command_line_takes_both_files_as_flags_and_from_the_environment(
    secured: Secured, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = secured.site
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text(f"{secured.token}\n")
    elsewhere = {"MAS_WORKSPACE_ROOT": ""}
    flags = ("--url", secured.url, "--ca", secured.certificate, "--token-file", str(token))
    site.mas(*flags, "list", env=elsewhere, cwd=site.home)
    site.mas("list", *flags, env=elsewhere, cwd=site.home)
    named = {"MAS_URL": secured.url, "MAS_CA": secured.certificate, "MAS_TOKEN_FILE": str(token)}
    site.mas("list", env=elsewhere | named, cwd=site.home)
    # What is nearer counts.
    wrong = site.mas("list", "--token", "0" * 64, env=elsewhere | named, cwd=site.home, code=8)
    assert "rejected this token" in wrong.stderr
    untrusted = site.mas("list", env=elsewhere | named | {"MAS_CA": ""}, cwd=site.home, code=7)
    assert "--ca FILE" in untrusted.stderr
    assert "serve --detach" not in untrusted.stderr


@pytest.mark.parametrize("what", ["missing", "empty", "directory", "binary"])
def test_a_file_that_holds_no_token_is_bad_input(
    secured: Secured, tmp_path_factory: pytest.TempPathFactory, what: str
) -> None:
    path = tmp_path_factory.mktemp("token") / "token"
    if what == "directory":
        path.mkdir()
    elif what != "missing":
        path.write_bytes(b"\n" if what == "empty" else b"\xff\xfe")
    with pytest.raises(BadInput, match="token"):
        RemoteMas(secured.url, token_file=str(path))


def test_a_file_that_holds_no_certificates_is_bad_input(
    secured: Secured, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    for make in (lambda: None, lambda: path.write_text("hello")):
        make()
        with pytest.raises(BadInput, match="certificates to trust"):
            RemoteMas(secured.url, ca=str(path))


def test_plain_http_instead_of_tls_is_reported(shared_port: int) -> None:
    with (
        RemoteMas(f"https://localhost:{shared_port}") as mas,
        pytest.raises(NoServer, match=r"TLS with .* failed") as caught,
    ):
        mas.list()
    assert "http://" in caught.value.hint


@pytest.fixture
def shared_port() -> Iterator[int]:
    """Something that answers, and not in TLS."""
    import threading

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(60)


def test_a_server_of_another_machine_is_not_started_on_this_one() -> None:
    refused = ConnectionRefusedError(111, "Connection refused")
    far = no_answer("https://10.0.0.5:7717", "10.0.0.5", refused)
    assert far.hint.startswith("on that machine: mas serve")
    unknown = no_answer("https://nowhere.invalid", "nowhere.invalid", socket.gaierror(-2, "Name or service not known"))
    assert "nowhere.invalid" in unknown.message
    assert unknown.hint == "check the name in --url or MAS_URL"
    for near in ("http://127.0.0.1:7717", "http://[::1]:7717", "http://localhost:7717", "unix:/run/api.sock"):
        host = {"u": "localhost"}.get(near[0]) or near.split("//")[1].rsplit(":", 1)[0].strip("[]")
        assert no_answer(near, host, refused).hint == "mas serve --detach"
