"""Delete and undelete: asked first, only ever inside `sessions/`, and reversible."""

from __future__ import annotations

import os
import re
import sys

from tests.e2e.standin import ASLEEP, living, pids, read, start_unruly, tmux_name, tree, write
from tests.site import Site, until

PLANTED = "0badc0de-0000-4000-8000-00000000cafe"


def ask(site: Site, session: str, answer: str) -> str:
    """Run `mas delete` at a real terminal, answer its question, and give back what the terminal showed."""
    outer = os.path.join(os.path.dirname(site.user_socket), "outer")
    argv = [sys.executable, "-m", "mas", "delete", session]
    site.tmux(
        "-f", os.devnull, "new-session", "-d", "-x", "150", "-y", "30", *argv, ";",
        "set-option", "remain-on-exit", "on", socket=outer,
    )  # fmt: skip
    question = until(lambda: _question(site.tmux("capture-pane", "-p", socket=outer)), "the question")
    site.tmux("send-keys", answer, "Enter", socket=outer)
    until(lambda: site.tmux("display", "-p", "#{pane_dead}", socket=outer) == "1", "the end of the command")
    answered = site.tmux("capture-pane", "-p", socket=outer)
    site.tmux("kill-server", socket=outer)
    return f"{question}\n{answered}"


def _question(screen: str) -> str:
    return screen if "[y/N]" in screen else ""


def test_a_person_is_asked_and_only_yes_is_yes(site: Site) -> None:
    session = site.start(*ASLEEP, "--name", "precious")
    shown = ask(site, session, "n")
    assert "precious" in shown
    assert "Nothing was deleted" in shown
    assert site.statuses() == {session: "active"}
    ask(site, session, "y")
    assert site.statuses() == {}


def test_without_a_terminal_nothing_is_deleted_unless_confirmed_by_a_flag(site: Site) -> None:
    session = site.start(*ASLEEP)
    for options in ({}, {"input": "y\n"}):
        assert "--yes" in site.mas("delete", session, code=2, **options).stderr
    stopped = site.start(*ASLEEP)
    site.mas("stop", stopped)
    assert "--yes" in site.mas("delete", "--all", code=2).stderr
    assert site.statuses() == {session: "active", stopped: "stopped"}


def test_a_deleted_session_ends_and_can_be_brought_back_whole(site: Site) -> None:
    session = start_unruly(site, CHILDREN="setsid,daemon")
    running = pids(site, session)
    write("work", site.session(session, "unit", "00", "note.md"))
    info = site.json("delete", session, "--yes")
    assert (info["sessionId"], info["status"]) == (session, "deleted")
    assert living(running.values()) == []
    assert not os.path.exists(site.session(session))
    assert site.tmux_sessions() == set()
    assert site.statuses() == {}
    assert read(site.path("sessions", ".index")).splitlines()[-1].startswith(f"{session}:deleted:")
    assert f"mas undelete {session[:8]}" in site.mas("show", session, code=3).stderr
    assert site.json("list", "--status", "deleted")["sessions"][0]["sessionId"] == session
    assert site.json("undelete", session[:8])["status"] == "stopped"
    assert site.four_places(session) == {"stopped"}
    assert read(site.session(session, "unit", "00", "note.md")) == "work"
    site.mas("restore", session)
    assert site.four_places(session) == {"active"}


def test_deleting_twice_is_reported_and_undeleting_twice_too(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("delete", session, "--yes")
    assert f"mas undelete {session[:8]}" in site.mas("delete", session, "--yes", code=3).stderr
    site.mas("undelete", session)
    assert "mas list --status deleted" in site.mas("undelete", session, code=3).stderr
    site.mas("delete", session, "--yes")
    assert site.json("list", "--status", "deleted")["total"] == 1


def test_a_damaged_session_that_is_undeleted_is_shown_as_damaged_and_can_be_repaired(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    write("{", site.session(session, "metadata.json"))
    site.mas("delete", "--yes", session)
    assert "mas repair" in site.mas("undelete", session, code=5).stderr
    site.mas("repair")
    assert site.four_places(session) == {"stopped"}


def test_the_agents_of_a_damaged_session_end_when_it_is_deleted(site: Site) -> None:
    session = start_unruly(site, CHILDREN="setsid,daemon")
    running = pids(site, session)
    write("{", site.session(session, "metadata.json"))
    site.mas("delete", "--yes", session)
    assert living(running.values()) == []
    assert site.tmux_sessions() == set()


def test_all_means_the_stopped_and_the_damaged_never_the_active(site: Site) -> None:
    stopped, broken, active = (site.start(*ASLEEP) for _ in range(3))
    site.mas("stop", stopped, broken)
    write("{", site.session(broken, "metadata.json"))
    site.mas("list")
    site.mas("delete", "--all", "--yes")
    assert site.statuses() == {active: "active"}
    assert {info["sessionId"] for info in site.json("list", "--status", "deleted")["sessions"]} == {stopped, broken}


def test_what_means_no_session_touches_nothing_on_the_disk(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    before = tree(site.root)
    for reference in (
        "../x",
        "..",
        ".",
        "/",
        "",
        "unit",
        ".mas",
        "*",
        "-",
        "....",
        "x/../y",
        "\n",
        f"../sessions/{session}",
    ):
        is_path = "/" in reference or reference in ("", ".", "..", "-", "\n")
        site.mas("delete", "--yes", "--", reference, code=2 if is_path else 3)
    assert tree(site.root) == before
    assert site.statuses() == {session: "stopped"}


def test_a_link_among_the_sessions_is_never_followed(site: Site) -> None:
    session = site.start(*ASLEEP)
    elsewhere = os.path.join(site.directory, "elsewhere")
    write("precious", elsewhere, "unit", "file")
    write("{}", elsewhere, "metadata.json")
    os.symlink(elsewhere, site.session(PLANTED))
    dangling = PLANTED.replace("cafe", "beef")
    os.symlink(os.path.join(site.directory, "nowhere"), site.session(dangling))
    before = tree(elsewhere)
    for link in (PLANTED, dangling):
        for args in (("delete", "--yes"), ("stop",), ("archive",), ("clone",), ("restore",), ("show",)):
            site.mas(*args, link, code=3)
    site.mas("list")
    site.mas("repair")
    site.mas("prune", "--keep", "0", "--yes")
    site.mas("delete", "--all", "--yes")
    assert tree(elsewhere) == before
    assert os.readlink(site.session(PLANTED)) == elsewhere
    assert set(site.statuses()) == {session}


def test_links_inside_a_session_are_removed_not_followed(site: Site) -> None:
    session = site.start(*ASLEEP)
    precious = write("precious", site.directory, "elsewhere", "file")
    os.symlink(os.path.dirname(precious), site.session(session, "unit", "00", "way-out"))
    os.symlink(precious, site.session(session, "workflows", "way-out"))
    site.mas("delete", session, "--yes")
    site.mas("prune", "--older-than", "0s", "--keep", "0", "--yes")
    site.mas("prune", "--keep", "0", "--yes")
    assert site.json("list", "--status", "deleted")["total"] == 0
    assert read(precious) == "precious"


def test_a_session_swapped_for_a_link_is_forgotten_not_followed(site: Site) -> None:
    session = site.start(*ASLEEP)
    moved = os.path.join(site.directory, "moved")
    os.rename(site.session(session), moved)
    os.symlink(moved, site.session(session))
    before = {path: data for path, data in tree(moved).items() if not re.match("logs", path)}
    site.mas("delete", session, "--yes", code=3)
    assert session not in site.statuses()
    assert {path: tree(moved)[path] for path in before} == before
    assert tmux_name(session) not in site.tmux_sessions()
