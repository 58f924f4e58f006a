"""The examples that people copy are true."""

from __future__ import annotations

import os
import re
import sys
import textwrap

import mas.client
from tests.served import Served
from tests.site import REPOSITORY

GUIDE = os.path.join(REPOSITORY, "docs", "how-to", "python-client.md")


def ran(served: Served, code: str) -> list[str]:
    """What a program prints that is given the server's address and token."""
    env = {"MAS_URL": served.url, "MAS_TOKEN": served.token}
    done = served.site.run([sys.executable, "-W", "error", "-c", code], cwd=served.site.home, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_guides_program_runs(served: Served) -> None:
    with open(GUIDE, encoding="utf-8") as file:
        (code,) = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    first, *lines = ran(served, code)
    (session,) = served.site.statuses()
    assert first == f"mas-{session[:8]} ['10', '11']"
    assert lines[:3] == ["10 typed", "11 typed", "agent-not-found"]
    assert any(line.startswith("session {") and "'stopped'" in line for line in lines[3:])
    assert served.site.statuses() == {session: "stopped"}


def test_the_packages_example_runs(served: Served) -> None:
    text = mas.client.__doc__ or ""
    code = textwrap.dedent("".join(re.findall(r"(?m)^(?:    .*)?\n", text)))
    code = code.replace('"http://127.0.0.1:7717", token', f"{served.url!r}, {served.token!r}")
    assert ran(served, code) == ["active"]
