"""Doctor: the real programs are found, with the versions that they say they are."""

from __future__ import annotations

import json
import os

from tests.site import REPOSITORY, Site

_PACKAGES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "gemini": "@google/gemini-cli"}


def test_doctor_knows_the_real_programs_by_their_versions(place: Site) -> None:
    with open(os.path.join(REPOSITORY, "tests", "real", "clis", "package.json"), encoding="utf-8") as file:
        pinned = json.load(file)["dependencies"]
    checks = {check["name"]: check for check in place.json("doctor", code=None)["checks"]}
    for name, package in _PACKAGES.items():
        check = checks[f"provider {name}"]
        assert check["ok"]
        assert pinned[package] in check["text"]
        assert "older" not in check["text"]
