"""What MAS imports, the wheel says it needs, and up to which release."""

from __future__ import annotations

import ast
import os
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions, version

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.site import REPOSITORY


def needed() -> dict[str, Requirement]:
    with open(os.path.join(REPOSITORY, "pyproject.toml"), "rb") as file:
        lines = tomllib.load(file)["project"]["dependencies"]
    return {canonicalize_name(found.name): found for found in map(Requirement, lines)}


def imported() -> Iterator[str]:
    """The packages of others that the sources import."""
    for directory, _, files in os.walk(os.path.join(REPOSITORY, "src", "mas")):
        for name in files:
            if name.endswith(".py"):
                with open(os.path.join(directory, name), encoding="utf-8") as file:
                    yield from _imports(ast.parse(file.read()))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
        for name in names:
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top != "mas":
                yield top


def test_every_package_that_is_imported_is_named_as_needed() -> None:
    owners = packages_distributions()
    assert {canonicalize_name(owners[name][0]) for name in imported()} <= set(needed())


def test_every_package_that_is_needed_has_an_upper_bound_that_the_tested_release_keeps() -> None:
    for name, requirement in needed().items():
        assert any(bound.operator == "<" for bound in requirement.specifier), name
        assert version(name) in requirement.specifier, name


def test_of_a_package_whose_private_parts_are_used_only_one_minor_release_is_taken() -> None:
    tested = version("uvicorn").split(".")
    after = f"{tested[0]}.{int(tested[1]) + 1}"
    assert f"{after}.0" not in needed()["uvicorn"].specifier
