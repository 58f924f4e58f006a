"""What an agent leaves in its directory (shut directories, trees deeper than any path) stops no verb of its session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from textwrap import dedent

from mas.model.ids import SessionId
from mas.store.files.descent import Cursor
from tests.site import REPOSITORY, Site
from tests.store.samples import mode, put, read

DEEP = ["d" * 100] * 250
# Root without the powers to pass by file modes (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH).
_WITHOUT_POWERS = """
import ctypes, os, sys
if os.getuid() == 0:
    for power in (1, 2):
        assert ctypes.CDLL(None).prctl(24, power, 0, 0, 0) == 0
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def run(site: Site, *program: str) -> subprocess.CompletedProcess[str]:
    """Run Python as a user for whom file modes count."""
    done = site.run([sys.executable, "-c", _WITHOUT_POWERS, *program], env={"PYTHONPATH": REPOSITORY})
    assert done.returncode == 0, (program, done.stdout, done.stderr)
    return done


def mas(site: Site, *args: str) -> subprocess.CompletedProcess[str]:
    return run(site, "-m", "mas", *args)


def leave_traps(directory: str) -> None:
    """What the agent does: shut directories and files, and a tree deeper than any path."""
    put(directory, "shut/inner/work", "mine", 0o000)
    put(directory, "listed/work", "mine")
    with Cursor(directory) as there:
        for name in DEEP:
            os.mkdir(name, dir_fd=there.fd)
            there.down(name)
        os.close(os.open("last", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=there.fd))
        os.fchmod(there.fd, 0o000)
    for name, shut in (("shut/inner", 0o000), ("shut", 0o000), ("listed", 0o400)):
        os.chmod(os.path.join(directory, name), shut)


def check(directory: str) -> None:
    """All of it is there; as root, whom no mode stops."""
    assert read(os.path.join(directory, "shut", "inner", "work")) == b"mine"
    assert read(os.path.join(directory, "listed", "work")) == b"mine"
    with Cursor(directory) as there:
        there.go(DEEP)
        assert os.listdir(there.fd) == ["last"]


def test_no_verb_of_a_session_is_stopped_by_what_its_agent_left(site: Site) -> None:
    session = mas(site, "start", "--team", "solo").stdout.strip()
    mas(site, "stop", session)
    unit = site.session(session, "unit", "00")
    leave_traps(unit)
    shut = os.path.join(unit, "shut")
    tried = f"import os\ntry: os.listdir({shut!r})\nexcept PermissionError: print('shut')"
    assert run(site, "-c", tried).stdout == "shut\n", "the control: it is shut for this user"
    assert json.loads(mas(site, "stats", session, "--json").stdout)["sessions"]
    cloned = mas(site, "clone", session)
    assert "Not copied" not in cloned.stderr
    copy = cloned.stdout.strip()
    assert "Not archived" not in mas(site, "archive", session).stderr
    mas(site, "unarchive", session)
    assert (mode(shut), mode(os.path.join(unit, "listed"))) == (0, 0o400)
    mas(site, "delete", session, copy, "--yes")
    mas(site, "undelete", session, copy)
    if os.getuid() == 0:
        for one in (session, copy):
            check(site.session(one, "unit", "00"))
    mas(site, "delete", session, copy, "--yes")
    mas(site, "prune", "--status", "deleted", "--keep", "0", "--yes")
    assert os.listdir(site.path("sessions", ".mas", "trash")) == []


def test_people_see_what_is_in_directories_that_an_agent_has_shut(site: Site) -> None:
    session = SessionId(site.start("--team", "solo"))
    unit = site.session(session, "unit", "00")
    put(unit, "shut/inner/work", "mine", 0o000)
    os.symlink("/etc", os.path.join(unit, "shut", "link"))
    for name in ("shut/inner", "shut"):
        os.chmod(os.path.join(unit, name), 0o000)
    look = f"""
        from tests.site import Site
        mas = Site({site.directory!r}).local()
        print([(one.name, one.kind) for one in mas.files({session!r}, "unit/00/shut").entries])
        print(mas.file({session!r}, "unit/00/shut/inner/work", 0, 100).data)
    """
    found = [("inner", "directory"), ("link", "link")]
    assert run(site, "-c", dedent(look)).stdout.splitlines() == [str(found), str(b"mine")]
    assert mode(os.path.join(unit, "shut")) == 0
