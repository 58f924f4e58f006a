"""Names inside a session's network, and which addresses are open, without a network."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mas.model.network import NetworkRules, parse_place, places_to_listen
from mas.runtime.network.addresses import why_closed
from mas.runtime.network.asked import AskedLog
from mas.runtime.network.names import AAAA, NO_NAME, OK, A, Names, answer, parse_question


def query(name: str, kind: int = A) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0" + labels + b"\0" + kind.to_bytes(2, "big") + b"\0\1"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "100.127.255.255", "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "198.18.0.1",
        "192.0.0.192", "168.63.129.16", "::", "::1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
        "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:1:2:3:4:5:6", "fe80::1", "fe80::1%eth0", "fc00::1",
        "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "::ffff:0:127.0.0.1", "not an address", "",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_closed(address: str) -> None:
    assert why_closed(address)


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "192.169.0.1", "2606:4700::1111", "64:ff9b::101:101"],
)
def test_public_addresses_are_open(address: str) -> None:
    assert why_closed(address) == ""


def test_a_query_is_answered_with_the_address_of_its_name() -> None:
    question = parse_question(query("Web.Example.COM"))
    assert (question.name, question.kind) == ("web.example.com", A)
    packet = answer(question, OK, "127.64.4.1")
    assert packet[:2] == b"\x12\x34"
    assert packet.endswith(b"\x7f\x40\x04\x01")
    assert packet[6:8] == b"\0\1"
    # There are no addresses of the newer kind, and that is not the same as no such name.
    packet = answer(parse_question(query("web.example.com", AAAA)), OK, "127.64.4.1")
    assert packet[6:8] == b"\0\0"
    assert packet[3] & 15 == OK
    assert answer(question, NO_NAME)[3] & 15 == NO_NAME


@given(st.binary(max_size=600))
def test_no_packet_does_harm(packet: bytes) -> None:
    try:
        question = parse_question(packet)
    except (ValueError, IndexError):
        return
    assert len(answer(question, OK, "127.64.4.1")) < 600


def test_a_name_with_letters_that_no_host_has_is_none() -> None:
    for name in ("a b.example.com", "é.example.com", "a\0.example.com", "a/b.example.com"):
        raw = name.encode("latin-1").split(b".")
        packet = query("x")[:12] + b"".join(bytes([len(one)]) + one for one in raw) + b"\0\0\1\0\1"
        assert parse_question(packet).name == ""


def test_a_name_keeps_its_address_also_when_the_process_starts_again(tmp_path: Path) -> None:
    path = os.path.join(tmp_path, "names")
    names = Names(path, {"db.example.com": "127.64.0.1"})
    first, second = names.address_of("a.example.com"), names.address_of("b.example.com")
    assert first != second
    assert names.address_of("a.example.com") == first
    assert names.address_of("db.example.com") == "127.64.0.1"
    again = Names(path, {})
    assert again.name_of(first) == "a.example.com"
    assert again.address_of("b.example.com") == second
    assert again.address_of("c.example.com") not in (first, second)


def test_a_line_that_a_full_disk_has_cut_short_is_no_name(tmp_path: Path) -> None:
    path = os.path.join(tmp_path, "names")
    names = Names(path, {})
    first, second = names.address_of("a.example.com"), names.address_of("web.example.community")
    with open(path, "r+", encoding="ascii") as file:
        file.truncate(os.path.getsize(path) - 9)
    names = Names(path, {})
    assert (names.name_of(first), names.name_of(second)) == ("a.example.com", "")
    # What is written next stands in the same line.
    third = names.address_of("c.example.com")
    fourth = names.address_of("d.example.com")
    again = Names(path, {})
    assert again.name_of(second) in ("", "c.example.com")
    assert again.name_of(third) in ("", "c.example.com")
    assert again.name_of(fourth) == "d.example.com"


def test_names_are_known_also_where_nothing_can_be_written(tmp_path: Path) -> None:
    names = Names(os.path.join(tmp_path, "missing", "names"), {})
    assert names.name_of(names.address_of("a.example.com")) == "a.example.com"


def test_more_names_than_there_are_addresses_are_used_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mas.runtime.network.names._MOST", 50)
    monkeypatch.setattr("mas.runtime.network.names._KEPT", -1.0)
    path = os.path.join(tmp_path, "names")
    names = Names(path, {})
    kept = names.address_of("kept.example.com")
    names.open("kept.example.com")
    last = ""
    names._next = 65_000
    for number in range(2_000):
        address = names.address_of(f"n{number}.example.com")
        assert address not in (kept, last, "")
        last = address
    assert names.name_of(kept) == "kept.example.com"
    assert names.name_of(last) == "n1999.example.com"
    # The file holds what is known, and little more.
    assert os.path.getsize(path) < 100 * 120
    assert Names(path, {}).name_of(last) == "n1999.example.com"


def test_names_that_are_in_use_are_not_forgotten_for_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mas.runtime.network.names._MOST", 4)
    monkeypatch.setattr("mas.runtime.network.names._KEPT", -1.0)
    names = Names(os.path.join(tmp_path, "names"), {})
    used = names.address_of("used.example.com")
    names.open("used.example.com")
    for number in range(20):
        assert names.address_of(f"n{number}.example.com") != used
    assert names.name_of(used) == "used.example.com"
    names.close("used.example.com")
    for number in range(20, 30):
        names.address_of(f"n{number}.example.com")
    assert names.name_of(used) != "used.example.com"


def test_if_all_names_are_in_use_there_is_no_address_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mas.runtime.network.names._MOST", 2)
    names = Names(os.path.join(tmp_path, "names"), {})
    assert names.address_of("a.example.com")
    assert names.address_of("b.example.com")
    assert names.address_of("c.example.com") == ""


def test_rules_of_names() -> None:
    names = NetworkRules("names", ("db.example.com:5432",), ("git.corp", "localhost:5432"))
    assert not names.refusal("example.com", 443)
    assert names.refusal("example.com", 5432)
    assert not names.refusal("db.example.com", 5432)
    assert names.refusal("printer", None)
    assert names.is_private("localhost", 5432)
    assert not names.is_private("localhost", 80)
    listed = NetworkRules("list", ("*.example.com", "other.org:8443"))
    assert not listed.refusal("a.example.com", 443)
    assert listed.refusal("example.com", 443)
    assert listed.refusal("badexample.com", 443)
    assert listed.refusal("other.org", 443)
    assert not listed.refusal("other.org", 8443)
    assert NetworkRules("none", (), ("git.corp",)).refusal("git.corp", 443)


@pytest.mark.parametrize("word", ["", "a b", "x:0", "x:70000", "x:y", "localhost", "http://x", "*", "a..b", "x/24"])
def test_what_is_no_host_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        parse_place(word)


def test_hosts_with_a_port_of_their_own_need_a_listener() -> None:
    found = places_to_listen(("example.com", "db.example.com:5432", "x.org:443"), ("localhost:5432", "10.1.2.3:8443"))
    assert found == {"db.example.com": [5432], "localhost": [5432], "10.1.2.3": [8443]}


def test_the_log_is_never_written_through_what_is_put_in_its_place(tmp_path: Path) -> None:
    precious, path = tmp_path / "precious", tmp_path / "network.jsonl"
    precious.write_text("as it was", "utf-8")
    log = AskedLog(str(path))
    traps: tuple[Callable[[], None], ...] = (lambda: path.symlink_to(precious), lambda: os.mkfifo(path), path.mkdir)
    for number, put in enumerate(traps):
        put()
        log.add("21", f"name-{number}.example.com", 443, "connected")
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert precious.read_text("utf-8") == "as it was"
    log.add("21", "name.example.com", 443, "connected")
    assert json.loads(path.read_text("utf-8"))["name"] == "name.example.com"


def test_a_flood_of_names_leaves_a_log_of_bounded_size(tmp_path: Path) -> None:
    log = AskedLog(str(tmp_path / "network.jsonl"))
    for number in range(30_000):
        log.add("21", f"{number:05}.{'x' * 60}.example.com", 443, "refused: it is not on the list of allowed names")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["network.jsonl", "network.jsonl.1"]
    assert sum(one.stat().st_size for one in tmp_path.iterdir()) < 3 << 20
