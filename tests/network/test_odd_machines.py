"""Machines, name servers and programs that are not as one would wish them."""

from __future__ import annotations

from tests.network import lab
from tests.network.test_egress import NOT_KNOWN, play


def test_a_place_that_has_only_an_address_of_the_newer_kind_is_reached() -> None:
    found = play({}, ("fetch", "newer.example.com", 443), ("resolve", "newer.example.com"))
    assert found["inside"][0] == f"{lab.NEWER} 443"
    # Inside it has one of the older kind, whatever it has outside.
    assert found["inside"][1].startswith("127.64.")


def test_of_a_thousand_addresses_one_that_works_is_found() -> None:
    hosts = "".join(f"94.{number // 250}.7.{number % 250 + 1} many.example.com\n" for number in range(1000))
    found = play({"hosts": f"{hosts}{lab.PUBLIC} many.example.com\n"}, ("fetch", "many.example.com", 80))
    assert found["inside"] == [f"{lab.PUBLIC} 80"]


def test_a_slow_name_server_keeps_nothing_else_waiting() -> None:
    tries = [("resolve", "slow.example.com"), ("fetch", "web.example.com", 80), ("resolve", "never.example.com")]
    found = play({"name_server": 0.3}, *tries)
    assert found["inside"][0].startswith("127.64.")
    assert found["inside"][1] == f"{lab.PUBLIC} 80"
    assert NOT_KNOWN in found["inside"][2]


def test_a_dead_name_server_is_a_failure_and_not_a_missing_name() -> None:
    found = play({"name_server": 60}, ("resolve", "slow.example.com"), ("fetch", "web.example.com", 80))
    assert "Temporary failure" in found["inside"][0]
    assert found["inside"][1] == f"{lab.PUBLIC} 80"
    assert [line["result"] for line in found["log"] if line["name"] == "slow.example.com"] == [
        "failed: it could not be looked up"
    ]


def test_an_egress_process_that_is_killed_breaks_its_connections_and_the_next_ones_work() -> None:
    found = play({}, ("kill_meanwhile", "web.example.com"), ("fetch", "other.example.com", 443))
    assert found["inside"] == [f"first end {lab.PUBLIC} 80", f"{lab.PUBLIC} 443"]


def test_names_are_found_whatever_a_program_says_about_them() -> None:
    tries = [("resolve", name) for name in ("web.example.com", "WEB.Example.Com", "web.example.com.")]
    found = play({}, *tries, ("own_kinds", "web.example.com"), ("fetch", "Web.Example.com.", 80))
    assert found["inside"][0].startswith("127.64.")
    assert len(set(found["inside"][:4])) == 1
    assert found["inside"][4] == f"{lab.PUBLIC} 80"


def test_names_can_be_asked_for_over_tcp_and_with_other_settings() -> None:
    for options in ("use-vc", "edns0 rotate single-request", "ndots:5"):
        found = play({}, ("run", "env", f"RES_OPTIONS={options}", "getent", "ahostsv4", "web.example.com"))
        assert found["inside"][0].startswith("0 127.64."), options
