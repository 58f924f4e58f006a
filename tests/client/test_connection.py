"""The client meets servers that refuse, vanish, or are not ours."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from mas.client import RemoteMas
from mas.client.connection import error_of
from mas.model import errors
from mas.model.errors import BadInput, Busy, Conflict, MasError, NoProgram, NoServer, NotSignedIn
from mas.model.ids import SessionId
from mas.model.run import Run
from mas.model.team import team_named
from tests.served import Served

SOLO = Run(team=team_named("solo"), command="cat")
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def answering(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives one answer per connection and hangs up, an empty one at once; and what it was asked.

    After the last answer it is gone.
    """
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    heard.append(request(connection))
                    if len(heard) == len(answers):
                        listener.close()
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield url, heard
        thread.join(60)
        assert not thread.is_alive()


def request(connection: socket.socket) -> bytes:
    """One request, its body too."""
    words = b""
    while True:
        head, end, body = words.partition(b"\r\n\r\n")
        announced = re.search(rb"(?i)content-length: (\d+)", head)
        if end and len(body) >= (int(announced[1]) if announced else 0):
            return words
        words += connection.recv(1 << 16)


def answer(text: str, head: bytes = OK) -> bytes:
    return head + f"Content-Length: {len(text.encode())}\r\n\r\n{text}".encode()


EMPTY = answer('{"sessions":[],"total":0}')


def test_every_code_becomes_the_error_it_stands_for() -> None:
    def refused(code: str) -> MasError:
        return error_of(httpx.Response(409, json={"code": code, "detail": "why", "hint": "how"}))

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MasError)]
    shared = {kind.code for kind in kinds if [other.code for other in kinds].count(kind.code) > 1}
    assert shared == {"wrong-state"}
    for kind in kinds:
        error = refused(kind.code)
        assert type(error) is (Conflict if kind.code in shared else kind)
        assert (str(error), error.message, error.hint, error.code) == ("why", "why", "how", kind.code)
    unknown = refused("out-of-paper")
    assert (type(unknown), unknown.code) == (MasError, "out-of-paper")


def test_the_field_that_a_refusal_is_about_comes_with_the_error(served: Served) -> None:
    run = SOLO._replace(command="no-such-program-anywhere")
    with RemoteMas(served.url, served.token) as remote:
        for mas in (served.site.local(), remote):
            with pytest.raises(NoProgram) as caught:
                mas.start(run)
            assert caught.value.field == "agents.00.command"


@pytest.mark.parametrize(
    "errors", [[], [{"where": "query.limit", "what": "no"}], [{"where": "body.a"}, {"where": "body.b"}], None]
)
def test_a_refusal_about_no_field_or_several_names_none(errors: object) -> None:
    body = {"code": "bad-input", "detail": "why", "errors": errors}
    assert error_of(httpx.Response(422, json=body)).field == ""


@pytest.mark.parametrize(
    "url", ["", "example.org", "ftp://example.org", "/run/api.sock", "http://x:y", "http://127.0.0.1:77177"]
)
def test_what_is_no_address_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput, match="Not the address"):
        RemoteMas(url)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "größe"])
def test_what_is_no_token_is_bad_input_and_not_shown(token: str) -> None:
    with pytest.raises(BadInput) as caught:
        RemoteMas("http://127.0.0.1:1", token)
    assert token not in str(caught.value)


def test_a_missing_server_is_reported_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with RemoteMas(f"http://127.0.0.1:{port}") as mas:
        for ask in (mas.list, lambda: mas.start(SOLO)):
            with pytest.raises(NoServer, match="No answer from") as caught:
                ask()
            assert caught.value.hint == "mas serve --detach"


@pytest.mark.parametrize(
    "text",
    [
        answer("<html>hello</html>"),
        answer("[]"),
        answer('{"sessions":"many"}'),
        answer("", b"HTTP/1.1 303 See Other\r\nLocation: /elsewhere\r\n"),
        answer("not here", b"HTTP/1.1 404 Not Found\r\n"),
        answer('{"detail":"Not Found"}', b"HTTP/1.1 404 Not Found\r\n"),
        answer("[]", b"HTTP/1.1 500 Oh\r\n"),
    ],
)
def test_an_answer_that_is_not_ours_is_no_server(text: bytes) -> None:
    with answering(text) as (url, _), RemoteMas(url) as mas, pytest.raises(NoServer):
        mas.list()


def test_a_question_is_asked_once_more_where_the_connection_breaks() -> None:
    with answering(b"", EMPTY) as (url, _), RemoteMas(url) as mas:
        assert mas.list().total == 0
    with answering(b"", b"") as (url, _), RemoteMas(url) as mas, pytest.raises(NoServer):
        mas.list()


def test_what_changes_something_is_not_asked_for_twice() -> None:
    session = SessionId("00000000-0000-4000-8000-000000000000")
    with answering(b"") as (url, heard), RemoteMas(url) as mas, pytest.raises(NoServer):
        mas.stop(session)
    assert len(heard) == 1


def test_a_start_and_a_message_are_asked_for_again_with_the_same_name() -> None:
    session = SessionId("00000000-0000-4000-8000-000000000000")
    body = f'{{"sessionId":"{session}","target":"00","agents":["00"],"bytes":2,"id":"m-0","deliveries":[]}}'
    with answering(b"", b"", answer(body)) as (url, heard), RemoteMas(url) as mas:
        assert mas.send(session, "00", "hi").agents == ("00",)
    assert len({words.rpartition(b"\r\n\r\n")[2] for words in heard}) == 1
    busy = answer('{"code":"busy","detail":"so it is"}', b"HTTP/1.1 409 No\r\n")
    with answering(b"", busy) as (url, heard), RemoteMas(url) as mas, pytest.raises(Busy, match="so it is"):
        mas.start(SOLO)
    keys = {line for words in heard for line in words.split(b"\r\n") if line.lower().startswith(b"idempotency-key")}
    assert (len(heard), len(keys)) == (2, 1)


def test_a_token_is_asked_for_and_a_wrong_one_is_called_so(served: Served) -> None:
    for token, told in ((None, "requires a token"), ("wrong", "rejected this token")):
        with RemoteMas(served.url, token) as mas, pytest.raises(NotSignedIn, match=told) as caught:
            mas.list()
        assert "mas token" in caught.value.hint
    with RemoteMas(f"unix:{served.socket}") as mas:
        assert mas.list().total == 0
        # The token is the one beside the socket at the time.
        served.site.mas("token", "--rotate")
        assert mas.list().total == 0
    # As a client does that knows nothing of a token there.
    with RemoteMas(f"unix:{served.socket}", "") as old, pytest.raises(NotSignedIn, match="requires a token") as caught:
        old.list()
    assert "mas token" in caught.value.hint


def test_a_server_that_comes_back_is_found_again(served: Served) -> None:
    with RemoteMas(served.url, served.token) as mas:
        session = mas.start(SOLO).session_id
        served.kill()
        with pytest.raises(NoServer):
            mas.list()
        served.restart()
        assert [info.session_id for info in mas.list().sessions] == [session]


def test_a_far_session_cannot_be_attached_to_and_says_where_it_can(served: Served) -> None:
    with RemoteMas(served.url, served.token) as mas:
        session = SessionId(mas.start(SOLO).session_id)
        with pytest.raises(BadInput) as caught:
            mas.attach(session, "00")
        assert f"mas attach {session} 00" in caught.value.hint


def test_a_directory_to_migrate_is_named_in_full(served: Served) -> None:
    os.makedirs(os.path.join(served.site.root, "old", "unit", "00"))
    with RemoteMas(served.url, served.token) as mas, pytest.raises(BadInput, match="absolute path"):
        mas.migrate("old", dry_run=True)
