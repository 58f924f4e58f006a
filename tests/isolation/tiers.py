"""Starts sessions in a certain tier, whatever user runs the tests."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from mas.service.isolation.account import find_account
from tests.site import Site

_SYSTEM_PYTHON = "/usr/bin/python3"


def start_in(
    site: Site, tier: str, program: list[str], body: dict[str, Any], env: Mapping[str, str] = MappingProxyType({})
) -> str:
    """A session whose agents run a program of Python in that tier; skips the test if the machine has no such tier."""
    runs, account = python_and_account(site, tier)
    if account:
        program = [for_all(site, word) if os.path.isfile(word) else word for word in program]
    policy = body.get("isolation", {}) | ({"runAs": account} if account else {})
    given = body | ({"isolation": policy} if policy else {})
    words = ("start", "--config", "-", "--command", shlex.join([runs, *program]))
    done = site.mas(*words, input=json.dumps(given), env={"MAS_ISOLATION": tier, **env}, code=None)
    if done.returncode == 7 and tier != "D":
        pytest.skip(f"this machine has no tier {tier}: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def for_all(site: Site, program: str) -> str:
    """A copy of a program that every agent can read: the tests may lie where no other account may look."""
    place = site.path("workflows", os.path.basename(program))
    shutil.copyfile(program, place)
    os.chmod(place, 0o644)
    return place


def python_and_account(site: Site, tier: str, *pythons: str) -> tuple[str, str | None]:
    """A Python that agents can run, and their account: in tier B, no agent runs as root."""
    if tier != "B" or os.getuid() != 0:
        return sys.executable, None
    nobody = find_account("nobody")
    os.chmod(site.directory, 0o755)
    for python in pythons or (sys.executable, _SYSTEM_PYTHON):
        if nobody and os.path.exists(python) and not nobody.closed_at(os.path.dirname(os.path.realpath(python))):
            return python, nobody.name
    pytest.skip("the account nobody cannot run this Python")
