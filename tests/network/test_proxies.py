"""A machine that reaches the outside through a proxy, and the proxy that agents have inside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mas.model.proxy import BadProxy, ProxyRules, is_never_public, parse_proxy, proxies_of, rules_in
from mas.runtime.network.inner_proxy import parse_request
from tests.network import lab
from tests.network.test_egress import NOT_KNOWN, play

THERE = ("127.0.0.1", lab.OUTER_PROXY)


def by_proxy(authorization: str = lab.SIGNS_IN, port: int = lab.OUTER_PROXY, straight: tuple[str, ...] = ()) -> Any:
    one = ["127.0.0.1", port, authorization]
    return {"web": one, "other": one, "straight": straight}


def test_the_egress_process_goes_through_the_machines_proxy_by_itself() -> None:
    tries = [("fetch", "web.example.com", 443), ("fetch", "web.example.com", 80), ("fetch", "beyond.example.com", 443)]
    found = play({"proxy": by_proxy(straight=("other.example.com",))}, *tries, ("fetch", "other.example.com", 443))
    there = [f"{lab.PUBLIC} 443", f"{lab.PUBLIC} 80", f"{lab.PUBLIC} 443", f"{lab.PUBLIC} 443"]
    assert found["inside"] == there
    # A control: the machine itself does not know the third name.
    assert "gaierror" in found["outside"][2]
    assert found["proxied"] == ["web.example.com:443", "web.example.com:80", "beyond.example.com:443"]


@pytest.mark.parametrize("name", ["loopback", "private", "metadata", "own", "mixed"])
def test_with_a_proxy_a_name_that_leads_to_a_closed_address_here_is_refused(name: str) -> None:
    found = play(
        {"proxy": by_proxy()},
        ("fetch", f"{name}.example.com", 443),
        ("proxy", f"CONNECT {name}.example.com:443 HTTP/1.1"),
    )
    assert NOT_KNOWN in found["inside"][0]
    assert "403 MAS refused" in found["inside"][1]
    assert found["proxied"] == []


def test_with_a_proxy_the_rules_for_names_count_first_and_nothing_of_the_machine_is_opened() -> None:
    tries: list[tuple[Any, ...]] = [
        ("fetch", "127.0.0.1", lab.OUTER_PROXY),
        ("fetch", "beyond.corp", 443),
        ("fetch", "printer", 443),
    ]
    tries += [("proxy", f"CONNECT 127.0.0.1:{lab.OUTER_PROXY} HTTP/1.1"), ("proxy", "CONNECT 127.1:443 HTTP/1.1")]
    found = play({"proxy": by_proxy()}, *tries)
    assert "Refused" in found["inside"][0]
    assert all(NOT_KNOWN in words for words in found["inside"][1:3])
    assert all("403 MAS refused" in words for words in found["inside"][3:])
    listed = play(
        {"proxy": by_proxy(), "mode": "list", "allow": ["web.example.com"]}, ("fetch", "beyond.example.com", 443)
    )
    assert NOT_KNOWN in listed["inside"][0]
    # The first is the control: the machine itself reaches its proxy.
    assert found["proxied"] == ["/x"]
    assert listed["proxied"] == []


def test_what_the_owner_names_in_a_private_network_is_reached_without_the_proxy() -> None:
    rules = {"proxy": by_proxy(), "private": ["git.corp", "localhost:5432"], "listen": [["127.0.0.1", 5432]]}
    found = play(rules, ("fetch", "git.corp", 443), ("fetch", "localhost", 5432))
    assert found["inside"] == [f"{lab.PRIVATE} 443", "127.0.0.1 5432"]
    assert found["proxied"] == []


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        (by_proxy(authorization="Basic d3Jvbmc="), "failed: the proxy wants a user name and a password (407)"),
        (by_proxy(port=9), "failed: the proxy cannot be reached: connection refused"),
        (by_proxy(port=5432), "failed: the proxy is none"),
    ],
)
def test_a_proxy_that_fails_is_named_in_the_log_without_its_password(proxy: dict[str, Any], why: str) -> None:
    found = play({"proxy": proxy}, ("fetch", "web.example.com", 443))
    assert "Reset" in found["inside"][0]
    assert [line["result"] for line in found["log"] if line["port"]] == [why]
    assert proxy["other"][2].split()[1] not in json.dumps(found["log"])


def test_a_place_that_the_proxy_refuses_is_reported_with_its_status() -> None:
    found = play({"proxy": by_proxy()}, ("proxy", "CONNECT gone.example.com:443 HTTP/1.1"))
    assert found["inside"][0].startswith(
        "HTTP/1.1 502 MAS could not reach gone.example.com:443: the proxy refused it (503)"
    )


def test_the_proxy_inside_reaches_allowed_places_at_any_port() -> None:
    rules = {"allow": ["*.example.com:5432"]}
    tries = [("proxy", f"CONNECT {place} HTTP/1.1") for place in ("web.example.com:443", "DB.Example.com.:5432")]
    tries += [("proxy", f"GET http://web.example.com{rest} HTTP/1.0") for rest in ("/page", ":5432/page?a=b", "")]
    found = play(rules, *tries)
    tunnels, pages = found["inside"][:2], found["inside"][2:]
    assert [words.partition("\r\n\r\n")[2].partition(" GET")[0] for words in tunnels] == [
        f"{lab.PUBLIC} 443",
        f"{lab.PUBLIC} 5432",
    ]
    assert f"{lab.PUBLIC} 80 GET /page HTTP/1.0\r\nHost: ignored\r\nConnection: close" in pages[0]
    assert f"{lab.PUBLIC} 5432 GET /page?a=b HTTP/1.0" in pages[1]
    assert f"{lab.PUBLIC} 80 GET / HTTP/1.0" in pages[2]
    assert all("Proxy-Connection" not in words for words in pages)


def test_the_proxy_inside_says_in_words_what_it_refuses_and_who_can_change_that() -> None:
    places = ["web.example.com:5432", "127.0.0.1:5432", "localhost:80", "private.example.com:443", "[::1]:80", "x y:80"]
    tries = [("proxy", f"CONNECT {place} HTTP/1.1") for place in places]
    found = play({}, *tries, ("proxy", "GET / HTTP/1.1"), ("garbage", 100), ("garbage", 40_000))
    port, loopback, localhost, private, *wrong = found["inside"]
    hint = "The owner can allow it: mas network allow web.example.com:5432"
    assert port.startswith(f"HTTP/1.1 403 MAS refused web.example.com:5432: port 5432 is not open. {hint}\r\n")
    assert port.endswith(f"{hint}\n")
    for words in (loopback, localhost, private):
        assert words.startswith("HTTP/1.1 403 MAS refused")
    assert "it is at an address that agents may not reach (private)" in private
    assert all(words.startswith("HTTP/1.1 400 ") for words in wrong)
    refused = {(line["name"], line["port"]) for line in found["log"] if line["result"].startswith("refused")}
    assert ("web.example.com", 5432) in refused


def test_without_a_network_the_proxy_inside_refuses_all() -> None:
    found = play({"mode": "none"}, ("proxy", "CONNECT web.example.com:443 HTTP/1.1"))
    assert "403 MAS refused web.example.com:443: the session has no network" in found["inside"][0]


def test_proxies_are_found_in_the_usual_variables() -> None:
    environ = {
        "https_proxy": "http://ann:s3cr%65t@proxy.corp:3128",
        "HTTP_PROXY": "proxy.corp",
        "NO_PROXY": "localhost, .corp *.lan,10.0.0.0/8 x.org:8443",
    }
    rules, unusable = proxies_of(environ)
    assert unusable == ()
    rules = rules_in(json.loads(json.dumps(rules.as_fields())))
    other, web = rules.proxy_for("example.com", 443), rules.proxy_for("example.com", 80)
    assert other
    assert web
    assert (other.host, other.port, other.authorization) == ("proxy.corp", 3128, lab.SIGNS_IN)
    assert (web.host, web.port, web.authorization) == ("proxy.corp", 80, "")
    for name in ("localhost", "git.corp", "corp", "a.lan", "10.1.2.3"):
        assert rules.proxy_for(name, 443) is None, name
    assert rules.proxy_for("x.org", 8443) is None
    for name in ("x.org", "notcorp", "11.1.2.3", "localhost.example.com"):
        assert rules.proxy_for(name, 443), name
    assert proxies_of(environ | {"no_proxy": "*"})[0].proxy_for("example.com", 443) is None
    assert proxies_of({})[0].proxy_for("example.com", 443) is None
    assert proxies_of({"ALL_PROXY": "http://[::1]:8080"})[0].proxy_for("example.com", 22)


def test_a_proxy_of_the_users_own_configuration_counts_more_than_the_environment() -> None:
    environ = {"HTTPS_PROXY": "http://one:1", "NO_PROXY": "a.org"}
    rules = proxies_of(environ, "http://two:2", ("b.org",))[0]
    found = rules.proxy_for("example.com", 443)
    assert found
    assert found.host == "two"
    assert rules.proxy_for("a.org", 443) is rules.proxy_for("b.org", 443) is None
    assert proxies_of(environ, "none")[0].proxy_for("example.com", 443) is None


@pytest.mark.parametrize(
    "text",
    ["socks5://ann:s3cret@x:1", "https://ann:s3cret@x", "http://ann:s3cret@x:y", "http://", "http://ann:s3cret@a b"],
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(text: str) -> None:
    with pytest.raises(BadProxy) as refusal:
        parse_proxy(text)
    rules, unusable = proxies_of({"ALL_PROXY": text})
    assert rules.proxy_for("example.com", 443) is None
    (words,) = unusable
    assert words.startswith("ALL_PROXY: ")
    assert "s3cret" not in words + str(refusal.value)


def test_names_that_are_never_public() -> None:
    assert all(map(is_never_public, ("git.corp", "a.local", "127.1", "x.0x7f", "router.home.arpa")))
    assert not any(map(is_never_public, ("example.com", "corp.example.com", "x.localhost.example")))
    assert ProxyRules().proxy_for("example.com", None) is None


@pytest.mark.parametrize(
    "head", [b"", b"GET /", b"CONNECT x HTTP/1.1", b"GET https://x/ HTTP/1.1", b"CONNECT x:1 SPDY/3", b"\xff x y"]
)
def test_what_is_no_request_for_a_proxy_is_refused(head: bytes) -> None:
    with pytest.raises(ValueError):
        parse_request(head, b"")
