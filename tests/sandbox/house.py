"""An agent behind walls in a real pane, in a directory with something for each kind of rule."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import pytest

from mas.model.launch import Rules
from mas.runtime.sandbox.places import WHOLE, followed
from mas.runtime.sandbox.probe import landlock_abi
from tests.pane.pane import Pane, pane
from tests.site import AGENTS, REPOSITORY, Site

PROBER = os.path.join(AGENTS, "sandbox_prober.py")
HOWS = ("namespaces", "bwrap", "landlock")
VIEWS = ("namespaces", "bwrap")
REFUSED = {"EACCES", "EPERM", "EROFS", "EXDEV", "ENOENT", "ESRCH"}
# The same, by a root that shows all that is not hidden.
ALL = "namespaces, root all"
# And in a copy of a root that launchers share.
SHARED = "namespaces, shared root"
_SYSTEM = (*WHOLE, "/etc", "/proc")
# What is none of ours says whether the machine allows it; else a sandbox that is broken would be no failure.
_ASKED = {
    "namespaces": ["unshare", *([] if os.getuid() == 0 else ["-Ur"]), "-mip", "--fork", "--mount-proc", "true"],
    "bwrap": ["bwrap", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"],
}


@cache
def _why_not(how: str) -> str:
    if how == "landlock":
        return "" if landlock_abi() else "no Landlock"
    try:
        done = subprocess.run(_ASKED[how], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        return str(error)
    return done.stderr.strip() if done.returncode else ""


def must_have(how: str) -> None:
    """Skip the test, and say why, where this machine does not allow it."""
    if why := _why_not(how):
        pytest.skip(f"this machine cannot do {how}: {why}")


class House:
    """The directory of a test, and what an agent may do in it."""

    def __init__(self, site: Site, how: str) -> None:
        self.root = "all" if how == ALL else "listed"
        self.is_shared = how == SHARED
        how = "namespaces" if how in (ALL, SHARED) else how
        must_have(how)
        self.site = site
        self.how = how
        self.tier = "B" if how == "landlock" else "A"
        for name in ("plain", "hidden/inner/shown/secret", "hidden/names", "session/unit/00", "tmp", "tmp2"):
            os.makedirs(self.path(name))
        for name in (
            "plain/file",
            "plain/key",
            "hidden/file",
            "hidden/inner/shown/file",
            "hidden/inner/shown/secret/file",
        ):
            self.put(name)
        os.mkdir(self.path("hidden/inner/shown/own"))

    def path(self, *names: str) -> str:
        return os.path.join(self.site.directory, *names)

    def put(self, name: str) -> None:
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write("as it was")

    def get(self, name: str) -> str:
        with open(self.path(name), encoding="ascii") as file:
            return file.read()

    def rules(self, **more: Any) -> Rules:
        """A writable unit, a private /tmp, things hidden at several depths, and the tool chain of the test itself."""
        system = _SYSTEM if self.tier == "B" else _SYSTEM[:-1] if self.root == "listed" else ()
        chain = [self.site.directory, sys.prefix, sys.base_prefix, REPOSITORY, self.path("hidden/inner/shown"), *system]
        places, links = followed(dict.fromkeys(chain))
        outside = {path: target for path, target in links.items() if path.count("/") == 1}
        given: dict[str, Any] = {
            "write": (self.path("session/unit"), self.path("hidden/inner/shown/own")),
            "read": tuple(places),
            "links": tuple(outside.items()) if self.tier == "A" and self.root == "listed" else (),
            "hide": (self.path("hidden"), self.path("plain/key"), self.path("hidden/inner/shown/secret")),
            "binds": ((self.path("tmp"), "/tmp"), (self.path("tmp2"), "/var/tmp")) if self.tier == "A" else (),
        }
        if self.is_shared:
            given["shared_root"] = self.path("root")
        return Rules(tier=self.tier, how=self.how, root=self.root, **{**given, **more})

    def pane(self, *argv: str, plan: dict[str, Any] | None = None, **how: Any) -> AbstractContextManager[Pane]:
        """A pane that runs `argv` behind the walls; `rules` may be others."""
        rules = how.pop("rules", None) or self.rules()
        return pane(self.site, *argv, plan={"isolation": rules, **(plan or {})}, **how)

    def attempts(self, tries: Sequence[str], report: str = "", **how: Any) -> dict[str, Any]:
        """How each of the attempts went, from inside."""
        report = report or self.path("session/unit/00/report.json")
        with self.pane(sys.executable, PROBER, report, *tries, **how) as one:
            assert one.wait() == 0, one.output
        with open(report, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        return found
