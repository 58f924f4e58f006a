"""shell/mas_refactored.sh: the old front finds `mas` and passes everything on."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.golden import golden
from tests.shell.front import FRONT, SHELL, mas_program, program
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


def test_every_word_arrives_as_it_was(bare: Site) -> None:
    words = ["send", "00", "", "two words", "$(touch pwned)", "*", "new\nline", "--", "-x", "'\""]
    assert passed(bare, *words) == "mas:" + "".join(f"[{word}]" for word in words)


def test_help_is_the_fronts_own(bare: Site) -> None:
    texts = {bare.run([FRONT, word]).stdout for word in ("help", "--help", "-h")}
    assert len(texts) == 1
    golden("help/mas_refactored.sh.txt", texts.pop())
    alone = bare.run([FRONT])
    assert (alone.returncode, alone.stdout) == (2, "")
    assert "usage:" in alone.stderr


def test_mas_is_the_one_told_then_the_one_beside_then_the_one_on_the_path(bare: Site) -> None:
    checkout = os.path.join(bare.directory, "checkout")
    shutil.copytree(SHELL, os.path.join(checkout, "shell"))
    front = os.path.join(checkout, "shell", "mas_refactored.sh")
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
    shutil.copytree(SHELL, os.path.join(checkout, "shell"))
    front = os.path.join(checkout, "shell", "mas_refactored.sh")
    tools = os.path.join(bare.directory, "tools")
    os.mkdir(tools)
    for name in ("bash", "dirname", "readlink"):
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
