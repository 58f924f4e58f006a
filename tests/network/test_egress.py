"""What a session's network lets through to an internet that the test has made, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from tests.network import lab
from tests.site import REPOSITORY

_UNSHARE = ["unshare", *([] if os.getuid() == 0 else ["-Ur"]), "-n", "-m", "--propagation", "private"]
NOT_KNOWN = "gaierror"


@cache
def _why_not() -> str:
    if not shutil.which("ip"):
        return "there is no program ip"
    done = subprocess.run([*_UNSHARE, "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip()


def play(rules: dict[str, Any], *tries: tuple[Any, ...]) -> dict[str, Any]:
    """How the tries went, inside a session's network and, as a control, on the machine itself."""
    if why := _why_not():
        pytest.skip(f"this machine cannot make networks for a test: {why}")
    argv = [*_UNSHARE, sys.executable, lab.__file__, json.dumps(rules), json.dumps(tries)]
    env = {**os.environ, "PYTHONPATH": f"{REPOSITORY}/src:{REPOSITORY}"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["errors"] == ""
    return found


def test_public_names_are_reached_at_the_usual_ports_without_any_setting() -> None:
    found = play({}, *(("fetch", "web.example.com", port) for port in (80, 443)), ("resolve", "web.example.com"))
    assert found["inside"][:2] == [f"{lab.PUBLIC} 80", f"{lab.PUBLIC} 443"]
    assert found["inside"][2].startswith("127.64.")
    assert any(line["port"] == 443 and line["result"] == "connected" for line in found["log"])


def test_what_is_sent_comes_through_whole_and_each_side_can_end_first() -> None:
    size = 5_000_000
    assert play({}, ("echo", "web.example.com", size))["inside"] == [f"{size + 12}  and goodbye"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("private", "private"),
        ("loopback", "loopback"),
        ("loopback6", "loopback"),
        ("mapped", "loopback"),
        ("translated", "loopback"),
        ("metadata", "link-local"),
        ("own", "own"),
        ("zero", "not public"),
        ("carrier", "private"),
    ],
)
def test_a_name_that_leads_to_an_address_that_is_not_public_is_refused(name: str, kind: str) -> None:
    found = play({}, ("fetch", f"{name}.example.com", 80))
    assert NOT_KNOWN in found["inside"][0]
    if name in ("private", "loopback", "mapped", "own", "zero"):
        # A control: the machine itself gets an answer there.
        assert " 80" in found["outside"][0]
    reasons = {line["result"] for line in found["log"]}
    assert reasons == {f"refused: it is at an address that agents may not reach ({kind})"}


def test_a_name_that_changes_its_address_leads_nowhere_else() -> None:
    for address in (lab.PRIVATE, "127.0.0.1"):
        name = "moving.example.com"
        found = play({"hosts": f"{lab.PUBLIC} {name}\n"}, ("rebind", name, address))
        # The connection is made to the address that was checked; what is found later is checked again.
        assert found["inside"] == [f"{lab.PUBLIC} 80; reset"]
        assert any(line["result"].startswith("refused: it is at an address") for line in found["log"])


def test_of_several_addresses_only_the_public_ones_are_used() -> None:
    found = play({}, ("fetch", "mixed.example.com", 80))
    assert found["inside"] == [f"{lab.PUBLIC} 80"]


def test_addresses_and_the_machines_own_services_cannot_be_reached() -> None:
    tries = [("fetch", place, 80) for place in ("127.0.0.1", lab.OWN, lab.PUBLIC, lab.PRIVATE, "::1")]
    found = play({}, *tries, ("fetch", "127.0.0.1", 5432), ("fetch", "web.example.com", 5432))
    assert all("Error" in words for words in found["inside"])
    assert found["outside"][0] == "127.0.0.1 80"


def test_with_a_list_only_its_names_are_reached() -> None:
    rules = {"mode": "list", "allow": ["web.example.com"]}
    found = play(rules, ("fetch", "web.example.com", 80), ("fetch", "other.example.com", 80))
    assert found["inside"][0] == f"{lab.PUBLIC} 80"
    assert NOT_KNOWN in found["inside"][1]
    below = play({"mode": "list", "allow": ["*.example.com"]}, ("fetch", "other.example.com", 80))
    assert below["inside"] == [f"{lab.PUBLIC} 80"]


def test_hosts_of_private_networks_and_services_of_the_machine_are_reached_if_the_owner_names_them() -> None:
    rules = {
        "private": ["git.corp", "localhost:5432", "10.9.9.9", "10.9.9.9:5432"],
        "allow": ["db.example.com:5432"],
        "fixed": {"db.example.com": "127.64.0.1"},
        "listen": [["127.0.0.1", 5432], ["127.64.0.1", 5432], ["10.9.9.9", 0], ["10.9.9.9", 5432]],
    }
    tries = [("fetch", "git.corp", 443), ("fetch", "localhost", 5432), ("fetch", "db.example.com", 5432)]
    tries += [("fetch", "10.9.9.9", 443), ("fetch", "10.9.9.9", 5432)]
    found = play(rules, *tries, ("fetch", "private.example.com", 443), ("fetch", "localhost", 80))
    there = [f"{lab.PRIVATE} 443", "127.0.0.1 5432", f"{lab.PUBLIC} 5432", f"{lab.PRIVATE} 443", f"{lab.PRIVATE} 5432"]
    assert found["inside"][:5] == there
    assert NOT_KNOWN in found["inside"][5]
    assert "Reset" in found["inside"][6]


def test_a_named_host_may_be_private_but_never_the_machines_loopback() -> None:
    found = play({"private": ["loopback.example.com"]}, ("fetch", "loopback.example.com", 80))
    assert NOT_KNOWN in found["inside"][0]


def test_other_rules_hold_at_once_and_ports_are_opened_for_them() -> None:
    before: dict[str, Any] = {
        "mode": "list",
        "allow": ["db.example.com:5432"],
        "fixed": {"db.example.com": "127.64.0.1"},
    }
    before |= {"listen": [["127.64.0.1", 5432]]}
    more = {
        "allow": ["db.example.com:5432", "web.example.com", "other.example.com:5432"],
        "private": ["localhost:5432", "10.9.9.9"],
        "fixed": {"db.example.com": "127.64.0.1", "other.example.com": "127.64.0.2"},
        "listen": [["127.64.0.1", 5432], ["127.64.0.2", 5432], ["127.0.0.1", 5432], ["10.9.9.9", 0]],
    }
    tries = [("fetch", "web.example.com", 443), ("fetch", "other.example.com", 5432), ("fetch", "localhost", 5432)]
    tries += [("fetch", "10.9.9.9", 443), ("fetch", "db.example.com", 5432)]
    found = play(before, *tries, ("apply", more), *tries, ("apply", {"allow": [], "private": []}), *tries)
    refused, opened, closed = found["inside"][:5], found["inside"][6:11], found["inside"][12:]
    assert all("Error" in words or NOT_KNOWN in words for words in refused[:4])
    assert found["inside"][5] == found["inside"][11] == "applied"
    there = [f"{lab.PUBLIC} 443", f"{lab.PUBLIC} 5432", "127.0.0.1 5432", f"{lab.PRIVATE} 443", f"{lab.PUBLIC} 5432"]
    assert opened == there
    assert refused[4] == f"{lab.PUBLIC} 5432"
    assert all("Error" in words or NOT_KNOWN in words for words in closed)
    remedies = {(line["name"], line.get("remedy")) for line in found["log"] if line["result"].startswith("refused")}
    assert ("web.example.com", "allow") in remedies


def test_a_refusal_names_the_list_that_would_let_it_through() -> None:
    names = ("private", "loopback", "metadata", "own")
    found = play({}, *(("fetch", f"{name}.example.com", 80) for name in names), ("resolve", "intranet"))
    remedies = {line["name"].partition(".")[0]: line.get("remedy") for line in found["log"]}
    assert remedies == {
        "private": "private",
        "own": "private",
        "loopback": None,
        "metadata": None,
        "intranet": "private",
    }


def test_rules_that_were_changed_before_the_process_has_read_any_are_applied_too() -> None:
    rules = {"private": ["localhost:5432"], "listen": [["127.0.0.1", 5432]], "planned": []}
    found = play(rules, ("fetch", "localhost", 5432), ("apply", {}), ("fetch", "localhost", 5432))
    assert "ConnectionRefused" in found["inside"][0]
    assert found["inside"][1:] == ["applied", "127.0.0.1 5432"]
