"""Building the page says what it waits for, and how to do without it."""

from __future__ import annotations

import hatch_build
import pytest


def test_a_slow_step_of_building_the_page_says_that_it_still_runs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hatch_build, "_STILL_THERE", 0.01)
    monkeypatch.setattr(hatch_build, "_command", lambda program: ["sh", "-c", "sleep 0.5; exit 3"])
    with pytest.raises(SystemExit, match=r"npm ci exited with 3.*MAS_SKIP_WEB=1"):
        hatch_build._run("npm", "ci")
    assert "web page: npm ci still runs" in capfd.readouterr().err
