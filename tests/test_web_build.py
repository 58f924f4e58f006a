"""Building the page says what it waits for, and how to do without it."""

from __future__ import annotations

import os
import shutil
import subprocess

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


@pytest.mark.parametrize(
    ("field", "other", "said"),
    [
        ('"lastActivity"', '"lastActivity"', ""),
        ('"lastActivity"', '"lastUsed"', "'lastActivity' does not exist"),
        ('"messageId"', '"messageNumber"', "'messageId' does not exist"),
    ],
    ids=["as it is", "a field of a session renamed", "a field of an event renamed"],
)
def test_the_page_is_checked_against_the_description_of_the_api(
    tmp_path: os.PathLike[str], field: str, other: str, said: str
) -> None:
    hatch_build.packages()
    web, golden = os.path.join(tmp_path, "web"), os.path.join(tmp_path, "tests", "golden")
    shutil.copytree(hatch_build.WEB, web, ignore=shutil.ignore_patterns("node_modules", "out"))
    os.symlink(os.path.join(hatch_build.WEB, "node_modules"), os.path.join(web, "node_modules"))
    os.makedirs(golden)
    with open(os.path.join(hatch_build.ROOT, "tests", "golden", "openapi.json"), encoding="utf-8") as file:
        description = file.read()
    assert field in description
    with open(os.path.join(golden, "openapi.json"), "w", encoding="utf-8") as file:
        file.write(description.replace(field, other))
    subprocess.run([*hatch_build._command("node"), "types.mjs"], cwd=web, check=True)
    tsc = os.path.join("node_modules", "typescript", "bin", "tsc")
    done = subprocess.run(
        [*hatch_build._command("node"), tsc, "--noEmit"], cwd=web, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == (said == ""), done.stdout
    assert said in done.stdout
