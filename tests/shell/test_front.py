"""mas_refactored.sh: the old front finds `mas` and passes everything on."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.golden import golden
from tests.shell.front import FRONT, SESSION_SH, copied, mas_program, program
from tests.site import Site

ECHO = '#!/bin/sh\nprintf "%s:" {name}; printf "[%s]" "$@"\n'


def passed(site: Site, *args: str) -> str:
    """What the front hands on to `mas`."""
    mas = program(f"{site.directory}/bin/echo", ECHO.format(name="mas"))
    return site.run([FRONT, *args], env={"MAS": mas}).stdout


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("start --team solo", "start --team solo"),
        ("stop", "stop"),
        ("list --json", "list --json"),
        ("restore aaaa", "restore aaaa"),
        ("attach aaaa 21", "attach aaaa 21"),
        ("send 00 hello", "send 00 hello"),
        ("status", "list"),
        ("status --json", "list --json"),
        ("status aaaa --json", "show aaaa --json"),
        ("clean --keep 3", "prune --keep 3"),
        ("cleanup --keep 3", "prune --keep 3"),
        ("create", "start"),
        ("new", "start"),
        ("ls", "list"),
        ("sessions", "list"),
        ("kill aaaa", "stop aaaa"),
        ("resume aaaa", "restore aaaa"),
        ("info aaaa", "show aaaa"),
        ("remove aaaa", "delete aaaa"),
        ("rm aaaa", "delete aaaa"),
        ("message 00 hello", "send 00 hello"),
        ("setup", "init"),
        ("help stop", "help stop"),
        ("--json list", "--json list"),
        ("doctor", "doctor"),
        ("nonsense", "nonsense"),
    ],
)
def test_old_spellings_are_passed_on_as_new_ones(bare: Site, typed: str, meant: str) -> None:
    assert passed(bare, *typed.split()) == f"mas:[{']['.join(meant.split())}]"


def test_every_argument_arrives_unchanged(bare: Site) -> None:
    words = ["send", "00", "", "two words", "$(touch pwned)", "*", "new\nline", "--", "-x", "'\""]
    assert passed(bare, *words) == "mas:" + "".join(f"[{word}]" for word in words)


def test_help_is_the_fronts_own(bare: Site) -> None:
    texts = {bare.run([FRONT, word]).stdout for word in ("help", "--help", "-h")}
    assert len(texts) == 1
    golden("help/mas_refactored.sh.txt", texts.pop())
    alone = bare.run([FRONT])
    assert (alone.returncode, alone.stdout) == (2, "")
    assert "usage:" in alone.stderr


def test_mas_is_the_one_given_then_the_one_beside_then_the_one_on_the_path(bare: Site) -> None:
    checkout = os.path.join(bare.directory, "checkout")
    front = copied(checkout)
    told = program(f"{bare.directory}/told", ECHO.format(name="told"))
    beside = program(f"{checkout}/.venv/bin/mas", ECHO.format(name="beside"))
    program(f"{bare.directory}/bin/mas", ECHO.format(name="path"))
    with_path = {"PATH": f"{bare.directory}/bin:/usr/bin:/bin"}
    link = os.path.join(bare.directory, "link.sh")
    os.symlink(front, link)
    assert bare.run([front, "list"], env={"MAS": told, **with_path}).stdout == "told:[list]"
    assert bare.run([front, "list"], env=with_path).stdout == "beside:[list]"
    assert bare.run([link, "list"], env=with_path).stdout == "beside:[list]"
    os.unlink(beside)
    assert bare.run([front, "list"], env=with_path).stdout == "path:[list]"
    assert bare.run([front, "list"], env={"MAS": "mas", **with_path}).stdout == "path:[list]"


def test_without_mas_the_error_says_what_to_do(bare: Site) -> None:
    checkout = os.path.join(bare.directory, "checkout")
    front = copied(checkout)
    tools = os.path.join(bare.directory, "tools")
    os.mkdir(tools)
    for name in ("bash", "dirname", "env", "readlink"):
        os.symlink(str(shutil.which(name)), os.path.join(tools, name))
    done = bare.run([front, "list"], env={"PATH": tools})
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr == "error: mas is not installed\nhint:  make setup in the checkout, or MAS=/path/to/mas\n"
    done = bare.run([FRONT, "list"], env={"MAS": "/no/such/mas"})
    assert (done.returncode, done.stderr) == (7, "error: MAS=/no/such/mas is not a program\n")


def test_a_session_lives_through_the_front(site: Site) -> None:
    told = {"MAS": mas_program(site)}
    session = site.run([FRONT, "start", "--team", "solo"], env=told).stdout.strip()
    assert site.statuses() == {session: "active"}
    assert session in site.run([FRONT, "status", session[:8]], env=told).stdout
    assert site.run([FRONT, "kill", session], env=told).stdout.strip() == session
    assert site.run([FRONT, "resume", session], env=told).stdout.strip() == session
    assert site.run([FRONT, "nonsense"], env=told).returncode == 2


def test_the_old_mode_is_answered_with_the_warning(site: Site) -> None:
    told = {"MAS": mas_program(site), "MAS_SESSION_MODE": "legacy"}
    done = site.run([FRONT, "start", "--team", "solo"], env=told)
    session = done.stdout.strip()
    assert done.stderr.startswith(
        "Legacy session mode has been deprecated.\n"
        "Creating new isolated session instead.\n"
        f"Session ID: {session}\n"
        f"Workspace: sessions/{session}/\n"
    )


OWN = "550e8400-e29b-41d4-a716-446655440000"


def test_a_session_is_started_with_the_id_that_is_asked_for_and_never_another(site: Site) -> None:
    told = {"MAS": mas_program(site), "MAS_SESSION_ID": OWN.upper()}
    done = site.run([FRONT, "start", "--team", "solo"], env=told)
    assert (done.returncode, done.stdout) == (0, f"{OWN}\n"), done.stderr
    assert f'eval "$(mas env {OWN.upper()})"' in done.stderr
    again = site.run([FRONT, "create", "--team", "solo"], env=told)
    assert (again.returncode, again.stdout) == (4, "")
    assert site.run([FRONT, "start"], env={**told, "MAS_SESSION_ID": "mine"}).returncode == 2
    assert site.statuses() == {OWN: "active"}


def test_in_a_session_a_start_gets_an_id_of_its_own_and_says_so(site: Site) -> None:
    session = site.start()
    told = {"MAS": mas_program(site), "MAS_SESSION_ID": session, "MAS_SESSION_DIR": site.session(session)}
    done = site.run([FRONT, "start", "--team", "solo"], env=told)
    assert (done.returncode, set(site.statuses())) == (0, {session, done.stdout.strip()})
    assert f"This shell is in session {session}; the new session gets an id of its own.\n" in done.stderr


def test_the_workspace_may_be_called_by_its_old_name(site: Site) -> None:
    told = {"MAS": mas_program(site), "MAS_ROOT": site.root, "MAS_WORKSPACE_ROOT": ""}
    assert site.run([FRONT, "list", "--json"], env=told, cwd=site.home).returncode == 0
    other = {**told, "MAS_WORKSPACE_ROOT": site.home}
    assert site.run([FRONT, "list"], env=other, cwd=site.home).returncode == 3


def test_installed_the_front_is_in_bin_and_the_functions_in_share(bare: Site) -> None:
    prefix = os.path.join(bare.directory, "prefix")
    for source, target in ((FRONT, "bin"), (SESSION_SH, "share/mas/lib")):
        os.makedirs(os.path.join(prefix, target))
        shutil.copy(source, os.path.join(prefix, target))
    program(f"{prefix}/bin/mas", ECHO.format(name="installed"))
    os.symlink(f"{prefix}/bin/mas_refactored.sh", os.path.join(bare.directory, "linked"))
    assert bare.run([os.path.join(bare.directory, "linked"), "list"]).stdout == "installed:[list]"
