"""The version is written once; whatever else names it agrees."""

from __future__ import annotations

import os
import re
import tomllib
from importlib.metadata import version

import mas
from tests.site import REPOSITORY


def content(name: str) -> str:
    with open(os.path.join(REPOSITORY, name), encoding="utf-8") as file:
        return file.read()


def test_the_version_is_the_packages_own_and_written_nowhere_else() -> None:
    project = tomllib.loads(content("pyproject.toml"))
    assert "version" in project["project"]["dynamic"]
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/mas/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", mas.__version__)
    assert version("mas") == mas.__version__


def test_the_changelog_begins_with_this_version() -> None:
    assert re.findall(r"^## (\S+)", content("CHANGELOG.md"), re.MULTILINE)[0] == mas.__version__


def test_the_page_has_no_version_of_its_own() -> None:
    assert '"version"' not in content("web/package.json")
