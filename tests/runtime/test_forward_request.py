"""What a client of a forward may ask for, by its first bytes."""

from __future__ import annotations

import pytest

from mas.runtime.forward.request import LONGEST_HEAD, Doorkeeper, Refusal

NAME = "3000-6f2ac775.localhost"


def keeper(may_be_plain: bool = False) -> Doorkeeper:
    return Doorkeeper(NAME, may_be_plain)


def head(host: str, *lines: str, first: str = "GET / HTTP/1.1") -> bytes:
    return "\r\n".join([first, f"Host: {host}", *lines, "", ""]).encode()


def refusal(data: bytes, may_be_plain: bool = False) -> str:
    with pytest.raises(Refusal) as caught:
        keeper(may_be_plain).check(data)
    return caught.value.answer.decode()


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n", b"POST /a?b HTTP/1.1\n", b"WHATEVER / HTTP/1.0\r\nHost: x", b"get * HTTP/1.1\r\n"]
)
def test_a_request_is_known_by_its_first_line(data: bytes) -> None:
    assert keeper().is_http(data) is True


@pytest.mark.parametrize(
    "data",
    [
        b"PING\r\n",
        b"SET name value\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"\x16\x03\x01\x02",
        b"SSH-2.0-OpenSSH\r\n",
        b"GET /\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"A" * (17 << 10),
    ],
)
def test_what_is_no_request_is_not_looked_at(data: bytes) -> None:
    assert keeper().is_http(data) is False


@pytest.mark.parametrize("data", [b"G", b"GET", b"GET ", b"GET /a HTTP/1.1", b"GET /a HTTP/1.1\r", b"PING"])
def test_half_a_line_may_become_a_request(data: bytes) -> None:
    assert keeper().is_http(data) is None


@pytest.mark.parametrize("host", [NAME, f"{NAME}:4000", f"{NAME.upper()}:4000", f"api.{NAME}", f"{NAME}.", "localhost",
                                  "localhost:4000", "127.0.0.1:4000", "[::1]:4000"])  # fmt: skip
def test_programs_may_use_its_own_name_and_that_of_loopback(host: str) -> None:
    assert keeper().check(head(host))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:4000",
        "3000-aaaaaaaa.localhost:4000",
        f"{NAME}.evil.example",
        f"x{NAME}",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "192.168.0.7:4000",
        "local host",
    ],
)
def test_another_name_is_refused_whatever_it_leads_to(host: str) -> None:
    assert refusal(head(host)).startswith("HTTP/1.1 403 ")
    assert refusal(head(host), may_be_plain=True).startswith("HTTP/1.1 403 ")


def test_two_names_or_none_are_refused() -> None:
    assert refusal(head("localhost", "Host: evil.example")).startswith("HTTP/1.1 403 ")
    assert refusal(b"GET / HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 403 ")
    assert keeper().check(b"GET / HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize("line", ["Sec-Fetch-Mode: no-cors", "Origin: http://evil.example", "sec-fetch-site: none"])
def test_a_browser_must_use_the_forwards_own_name(line: str) -> None:
    """Or it would send the cookies of all that the user runs at localhost."""
    assert refusal(head("localhost:4000", line)).startswith("HTTP/1.1 403 ")
    assert keeper().check(head(f"{NAME}:4000", line))
    # The user has chosen the port: something outside knows it as localhost's.
    assert keeper(may_be_plain=True).check(head("localhost:4000", line))


def test_a_page_that_a_browser_opens_is_sent_to_its_right_address() -> None:
    asked = head("127.0.0.1:4000", "Sec-Fetch-Mode: navigate", first="GET /a/b?c=d HTTP/1.1")
    said = refusal(asked)
    assert said.startswith("HTTP/1.1 307 ")
    assert f"\r\nLocation: http://{NAME}:4000/a/b?c=d\r\n" in said
    for target in ("//evil.example/", "http://evil.example/", "/ü"):
        said = refusal(head("127.0.0.1:4000", "Sec-Fetch-Mode: navigate", first=f"GET {target} HTTP/1.1"))
        assert f"Location: http://{NAME}:4000//evil" in said or said.startswith("HTTP/1.1 403 ")


def test_a_head_must_be_whole_and_not_too_long() -> None:
    whole = head("evil.example")
    assert not any(keeper().check(whole[:size]) for size in range(len(whole) - 1))
    assert refusal(b"GET / HTTP/1.1\r\nX: " + b"y" * LONGEST_HEAD).startswith("HTTP/1.1 431 ")
