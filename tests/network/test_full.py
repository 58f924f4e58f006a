"""A network that leads to all public addresses, by `pasta`; and what happens where that cannot be."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mas.runtime.network import pasta
from mas.runtime.network.space import make_space
from mas.runtime.sandbox.probe import probe
from tests.network import lab
from tests.network.test_egress import NOT_KNOWN, play
from tests.site import until


@pytest.fixture
def program() -> str:
    found = shutil.which(pasta.PROGRAM)
    if not found:
        pytest.skip("pasta is not installed (apt install passt)")
    if os.getuid():
        pytest.skip("only root can make the machine that this needs; tests/isolation/test_full.py is for every user")
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("there is no /dev/net/tun")
    return found


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory that pasta's own user reaches, too."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        yield Path(place)


def test_all_public_addresses_and_ports_are_reached_and_nothing_else(program: str) -> None:
    open_ones = [("fetch", "web.example.com", 5432), ("fetch", lab.PUBLIC, 80), ("packet", lab.PUBLIC)]
    closed: list[tuple[Any, ...]] = [
        ("fetch", "private.example.com", 80),
        ("fetch", lab.PRIVATE, 80),
        ("fetch", lab.OWN, 80),
    ]
    closed += [("fetch", "127.0.0.1", 5432), ("packet", lab.PRIVATE)]
    found = play({"mode": "full", "pasta": program}, *open_ones, *closed, ("resolve", "nowhere.example.com"))
    assert found["inside"][:3] == [f"{lab.PUBLIC} 5432", f"{lab.PUBLIC} 80", "a packet"]
    assert all("Error" in words for words in found["inside"][3:8]), found["inside"]
    assert NOT_KNOWN in found["inside"][8]
    # Controls: the machine itself reaches those.
    assert [words.split()[0] for words in found["outside"][3:7]] == [lab.PRIVATE, lab.PRIVATE, lab.OWN, "127.0.0.1"]


def test_what_the_owner_names_in_a_private_network_is_reached_there_too(program: str) -> None:
    rules = {
        "mode": "full",
        "pasta": program,
        "private": ["git.corp", "localhost:5432"],
        "listen": [["127.0.0.1", 5432]],
    }
    found = play(
        rules,
        ("fetch", "git.corp", 443),
        ("fetch", "localhost", 5432),
        ("proxy", "CONNECT web.example.com:5432 HTTP/1.1"),
    )
    assert found["inside"][:2] == [f"{lab.PRIVATE} 443", "127.0.0.1 5432"]
    assert f"{lab.PUBLIC} 5432" in found["inside"][2]


def test_without_pasta_the_way_to_get_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert probe("full") == "pasta is not installed: apt install passt"


def test_a_device_that_is_missing_or_closed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pasta, "_TUN", str(tmp_path / "tun"))
    assert "modprobe tun" in pasta.why_no_tun()
    (tmp_path / "tun").touch()
    (tmp_path / "tun").chmod(0o000)
    assert "chmod 666" in pasta.why_no_tun()
    (tmp_path / "tun").chmod(0o666)
    assert pasta.why_no_tun() == ""


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("sleep 1000 & echo $! > {place}/child; echo no tun today >&2; exit 1", "pasta: no tun today"),
        ("sleep 1000 & echo $! > {place}/child; wait", "pasta: it made no way out"),
    ],
)
def test_a_pasta_that_fails_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, open_to_all: Path, script: str, words: str
) -> None:
    if why := probe("network"):
        pytest.skip(f"this machine cannot make networks: {why}")
    program = open_to_all / "pasta"
    program.write_text(f"#!/bin/sh\n{script.format(place=open_to_all)}\n")
    program.chmod(0o755)
    monkeypatch.setattr(pasta, "_TUN", "/dev/null")
    monkeypatch.setattr(pasta, "_PATIENCE", 1.0)
    space, sockets = make_space(None, (), pasta.be_nobody)
    directory = os.open(open_to_all, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match=words):
            pasta.keep_pasta(str(program), directory, space)
        assert pasta.running_pasta(directory) == 0
        child = int((open_to_all / "child").read_text())
        until(
            lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie", "the end of its child"
        )
    finally:
        space.close()
        for fd in (directory, *sockets):
            os.close(fd)


def test_another_process_of_the_same_number_is_not_taken_for_pasta(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    (tmp_path / "pasta").write_text(f"{os.getpid()} 1")
    assert pasta.running_pasta(directory) == 0
    os.close(directory)
