"""What mkdocs calls: puts the made parts into pages, adds the pages of the repository's root, checks the links."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from reference.links import problems
from reference.markdown import MARKER

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Pages that people look for in the root of a repository; in the site they are beside the others.
_OF_THE_ROOT = ("CONTRIBUTING", "SECURITY", "CHANGELOG")
_INTO_DOCS = re.compile(r"(?<=\]\()docs/")
# A figure of a table and its unit, which a narrow column would part.
_UNIT = re.compile(r"(?<=\d) (?=(?:ms|s|%|KiB|MiB|GiB)(?:[ ,;)]|$))")
_ROW = re.compile(r"^\|.*", re.MULTILINE)
_TO_THE_ROOT = re.compile(rf"(?<=\]\()(?:\.\./((?:\.\./)*))?({'|'.join(_OF_THE_ROOT)})\.md")

_parts: dict[str, str] = {}


def on_config(config: Any) -> None:  # noqa: ANN401 - mkdocs is in a venv of its own
    """Make the parts, by the Python that MAS is installed for."""
    python = os.path.join(_ROOT, ".venv", "bin", "python")
    made = subprocess.run([python, "-m", "reference"], cwd=_ROOT, check=True, stdout=subprocess.PIPE)
    _parts.update(json.loads(made.stdout))


def on_files(files: Files, config: Any) -> None:  # noqa: ANN401
    for name in _OF_THE_ROOT:
        with open(os.path.join(_ROOT, f"{name}.md"), encoding="utf-8") as file:
            text = _INTO_DOCS.sub("", file.read())
        files.append(File.generated(config, f"{name.lower()}.md", content=text))


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:  # noqa: ANN401
    def part(match: re.Match[str]) -> str:
        if match[1] not in _parts:
            raise PluginError(f"{page.file.src_uri}: no part of the reference is called {match[1]}")
        return _parts[match[1]]

    filled = MARKER.sub(part, markdown)
    filled = _ROW.sub(lambda row: _UNIT.sub("\u00a0", row[0]), filled)
    return _TO_THE_ROOT.sub(lambda match: f"{match[1] or ''}{match[2].lower()}.md", filled)


def on_post_build(config: Any) -> None:  # noqa: ANN401
    if found := problems(config.site_dir):
        raise PluginError("\n".join(["The site has links that lead nowhere, or elsewhere:", *found]))
