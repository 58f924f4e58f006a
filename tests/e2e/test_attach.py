"""Attach: a person's terminal becomes the session's, from outside tmux and from inside."""

from __future__ import annotations

import os
import sys

from tests.e2e.standin import ASLEEP, pane_of, start_unruly, tmux_name
from tests.site import Site, until


def terminal(site: Site, *argv: str) -> str:
    """Run a program at a real terminal: a pane of another tmux server; answers that server's socket."""
    directory = os.path.dirname(site.user_socket)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    outer = os.path.join(directory, "outer")
    site.tmux("-f", os.devnull, "new-session", "-d", "-x", "120", "-y", "40", *argv, socket=outer)
    return outer


def mas(*args: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "mas", *args)


def clients(site: Site) -> list[str]:
    return site.tmux("list-clients", "-F", "#{session_name}").splitlines()


def test_attach_shows_the_session_and_leaving_it_keeps_it_running(site: Site) -> None:
    session = site.start(*ASLEEP)
    outer = terminal(site, *mas("attach", session))
    until(lambda: clients(site) == [tmux_name(session)], "the client")
    site.tmux("send-keys", "C-b", "d", socket=outer)
    until(lambda: clients(site) == [], "the client's leave")
    assert site.statuses() == {session: "active"}


def test_attach_finds_a_session_that_a_person_has_renamed(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.tmux("rename-session", "-t", tmux_name(session), "my work")
    terminal(site, *mas("attach", session))
    until(lambda: clients(site) == ["my work"], "the client")


def test_attach_goes_to_the_agent_that_was_named(site: Site) -> None:
    session = site.start("--team", "dev", "--command", "sleep 1000")
    terminal(site, *mas("attach", "22"))
    until(lambda: clients(site) == [tmux_name(session)], "the client")
    shown = site.tmux("display", "-p", "-t", f"={tmux_name(session)}:", "#{window_name} #{pane_id}")
    assert shown == f"development {pane_of(site, session, '22')}"


def test_a_new_session_can_be_attached_to_at_once(site: Site) -> None:
    terminal(site, "env", "-u", "TMUX", *mas("start", "--attach", *ASLEEP))
    until(lambda: clients(site) != [], "the client")
    (session,) = site.statuses()
    assert clients(site) == [tmux_name(session)]


def test_from_inside_the_same_server_the_client_is_switched(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.tmux("new-session", "-d", "-s", "mine", "sh")
    terminal(site, "tmux", "-S", site.user_socket, "attach-session", "-t", "=mine")
    until(lambda: clients(site) == ["mine"], "the client")
    command = " ".join(mas("attach", session))
    site.tmux("send-keys", "-t", "mine:", command, "Enter")
    until(lambda: clients(site) == [tmux_name(session)], "the switch")


def test_a_dead_agent_can_still_be_looked_at(site: Site) -> None:
    session = start_unruly(site, EXIT_STATUS="3")
    until(lambda: site.json("show", session)["agents"][0]["state"] == "exited", "the agent's end")
    terminal(site, *mas("attach", session, "00"))
    until(lambda: clients(site) == [tmux_name(session)], "the client")


def test_an_agent_whose_pane_a_person_closed_cannot_be_attached_to(site: Site) -> None:
    session = site.start("--team", "pair", "--command", "sleep 1000")
    site.tmux("kill-pane", "-t", pane_of(site, session, "23"))
    refused = site.mas("attach", session, "23", code=4).stderr
    assert "The pane of agent 23 is gone" in refused
    assert f"mas restore {session[:8]}" in refused


def test_what_cannot_be_attached_to_is_reported(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("attach", session, "77", code=3)
    site.mas("stop", session)
    assert f"mas restore {session[:8]}" in site.mas("attach", session, code=4).stderr
    assert site.mas("attach", code=2).returncode == 2
