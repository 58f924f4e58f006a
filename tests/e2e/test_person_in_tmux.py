"""A person does ordinary things in tmux, and never loses an agent, a message or the truth about either."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from mas.model.ids import SessionId
from mas.model.message import DeliveryState
from mas.service.local import LocalMas
from tests.e2e.standin import living, pane_of, received, start_receivers, tmux_name, wait_ready
from tests.served import Served
from tests.site import Site, until

AGENTS = ("21", "23")
SHELL = ("sh", "-c", "echo mine; exec cat")


class Person:
    """Somebody at the tmux of a running session of two agents, `21` and `23`, in one window."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.session = start_receivers(site, "pair")
        self.name = tmux_name(self.session)
        self.panes = {agent: pane_of(site, self.session, agent) for agent in AGENTS}
        self.pids = [int(self.ask(pane, "#{pane_pid}")) for pane in self.panes.values()]
        self.got = dict.fromkeys(AGENTS, 0)
        # Panes that are the person's own.
        self.own: list[str] = []

    def does(self, *command: str) -> str:
        done = self.site.run(["tmux", "-S", self.site.user_socket, *command])
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout.strip()

    def ask(self, target: str, form: str) -> str:
        return self.does("display-message", "-p", "-t", target, form)

    def opens(self, *command: str) -> str:
        """Something that makes a pane of the person's own."""
        pane = self.does(*command, "-P", "-F", "#{pane_id}", *SHELL)
        self.own.append(pane)
        return pane

    def still_there(self) -> set[str]:
        """Every pane on the server, by what runs in it."""
        listed = self.site.tmux("list-panes", "-a", "-F", "#{pane_id}")
        return set(listed.split())


def groups(person: Person) -> None:
    person.does("new-session", "-d", "-t", person.name, "-s", "a-view")


def links(person: Person) -> None:
    person.opens("new-session", "-d", "-s", "mine")
    person.does("link-window", "-s", f"{person.name}:development", "-t", "mine:")


def renames_the_session(person: Person) -> None:
    person.does("rename-session", "-t", person.name, "my work")


def renames_the_session_and_takes_its_name(person: Person) -> None:
    person.does("rename-session", "-t", person.name, "work")
    person.opens("new-session", "-d", "-s", person.name)


def renames_the_window(person: Person) -> None:
    person.does("rename-window", "-t", person.panes["21"], "editors")


def moves_the_window(person: Person) -> None:
    person.opens("new-session", "-d", "-s", "mine")
    person.does("move-window", "-s", f"{person.name}:development", "-t", "mine:")


def joins_an_agent_to_a_window_of_its_own(person: Person) -> None:
    target = person.opens("new-session", "-d", "-s", "mine", "-x", "200", "-y", "50")
    person.does("join-pane", "-s", person.panes["21"], "-t", target)


def breaks_an_agent_out(person: Person) -> None:
    person.does("break-pane", "-d", "-s", person.panes["23"])


def swaps_the_agents(person: Person) -> None:
    person.does("swap-pane", "-s", person.panes["21"], "-t", person.panes["23"])


def swaps_the_window_with_one_of_its_own(person: Person) -> None:
    mine = person.opens("new-session", "-d", "-s", "mine")
    person.does("swap-window", "-s", f"{person.name}:development", "-t", mine)


def splits_a_shell_beside_an_agent(person: Person) -> None:
    person.opens("split-window", "-t", person.panes["21"])


def opens_a_window(person: Person) -> None:
    person.opens("new-window", "-d", "-t", f"{person.name}:")


def kills_the_session_but_not_its_view(person: Person) -> None:
    groups(person)
    person.does("kill-session", "-t", f"={person.name}")


def scrolls_back(person: Person) -> None:
    person.does("copy-mode", "-t", person.panes["21"])


def does_everything_at_once(person: Person) -> None:
    links(person)
    groups(person)
    splits_a_shell_beside_an_agent(person)
    breaks_an_agent_out(person)
    renames_the_session(person)
    swaps_the_agents(person)


VERBS = (
    groups,
    links,
    renames_the_session,
    renames_the_session_and_takes_its_name,
    renames_the_window,
    moves_the_window,
    joins_an_agent_to_a_window_of_its_own,
    breaks_an_agent_out,
    swaps_the_agents,
    swaps_the_window_with_one_of_its_own,
    splits_a_shell_beside_an_agent,
    opens_a_window,
    kills_the_session_but_not_its_view,
    scrolls_back,
    does_everything_at_once,
)


@pytest.fixture
def person(site: Site) -> Person:
    return Person(site)


@pytest.fixture(params=["no server", "server"])
def person_and_server(site: Site, request: pytest.FixtureRequest) -> Iterator[Person]:
    """The same without a server of MAS's, and with one that is connected to the person's tmux."""
    person = Person(site)
    with ExitStack() as ends:
        if request.param == "server":
            served = ends.enter_context(closing(Served(site)))
            served.connect_to_tmux(person.session)
        yield person


def states(mas: LocalMas, session: str) -> dict[str, tuple[str, str | None]]:
    """How each agent is, and the pane it has."""
    return {agent.id: (agent.state, agent.pane) for agent in mas.show(SessionId(session)).agents}


def check_is_there(person: Person) -> None:
    """Everything MAS says is true, and every message arrives."""
    site, session = person.site, person.session
    mas = site.local()
    assert site.statuses() == {session: "active"}
    assert states(mas, session) == {agent: ("idle", pane) for agent, pane in person.panes.items()}
    for agent in AGENTS:
        sent = mas.send(SessionId(session), agent, f"hello {agent}", wait=30.0)
        assert [one.state for one in sent.deliveries] == [DeliveryState.ACKNOWLEDGED]
        person.got[agent] += 1
        assert f"hello {agent}".encode() in received(site, session, agent, person.got[agent])
        wait_ready_again(person, agent)
    assert "ready" in mas.output(SessionId(session), "21", 20).text
    assert site.mas("restart-agent", session, "21", code=None).stderr.startswith("error: Agent 21 is running")


def wait_ready_again(person: Person, agent: str) -> None:
    mas = person.site.local()
    until(lambda: states(mas, person.session)[agent][0] == "idle", f"agent {agent} is idle")


@pytest.mark.parametrize("verb", VERBS, ids=[verb.__name__ for verb in VERBS])
def test_what_a_person_does_loses_no_agent_and_no_message(
    person_and_server: Person, verb: Callable[[Person], None]
) -> None:
    person = person_and_server
    verb(person)
    check_is_there(person)
    person.site.mas("stop", person.session)
    assert living(person.pids) == []
    assert person.still_there() == set(person.own)
    assert person.site.statuses() == {person.session: "stopped"}
    for pane in person.own:
        assert person.ask(pane, "#{pane_dead} #{pane_start_command}").startswith("0")


def test_a_session_comes_back_under_its_name_beside_what_the_person_left(person: Person) -> None:
    splits_a_shell_beside_an_agent(person)
    person.site.mas("stop", person.session)
    assert person.site.tmux_sessions() == {f"left-of-{person.name}"}
    for _ in range(2):
        person.site.mas("restore", person.session)
        person.opens("split-window", "-t", pane_of(person.site, person.session, "21"))
        person.site.mas("stop", person.session)
    assert person.site.tmux_sessions() == {f"left-of-{person.name}{end}" for end in ("", "-2", "-3")}
    assert person.still_there() == set(person.own)


def test_a_session_whose_agents_a_person_has_all_closed_comes_back_under_its_name(person: Person) -> None:
    splits_a_shell_beside_an_agent(person)
    for pane in person.panes.values():
        person.does("kill-pane", "-t", pane)
    assert person.site.statuses() == {person.session: "active"}
    person.site.mas("stop", person.session)
    person.site.mas("restore", person.session)
    assert person.site.tmux_sessions() == {person.name, f"left-of-{person.name}"}


def test_a_renamed_session_can_be_deleted_and_its_name_is_free_again(person: Person) -> None:
    renames_the_session(person)
    person.site.mas("delete", person.session, "--yes")
    assert living(person.pids) == []
    assert person.site.tmux_sessions() == set()
    person.site.mas("undelete", person.session)
    person.site.mas("restore", person.session)
    assert person.site.tmux_sessions() == {person.name}


def test_a_program_that_a_person_starts_in_an_agents_pane_is_not_the_agent(person: Person) -> None:
    site, session, pane = person.site, person.session, person.panes["21"]
    person.does("respawn-pane", "-k", "-t", pane, *SHELL)
    until(lambda: "mine" in site.tmux("capture-pane", "-p", "-t", pane), "the person's program")
    other = int(person.ask(pane, "#{pane_pid}"))
    mas = site.local()
    until(lambda: living(person.pids) == [person.pids[1]], "the end of the agent")
    shown = {agent.id: agent for agent in mas.show(SessionId(session)).agents}
    assert (shown["21"].state, shown["21"].state_text) == ("exited", "another program is running in its pane")
    assert shown["23"].state == "idle"
    assert "is not running" in site.mas("send", "--session", session, "21", "secret", code=4).stderr
    assert "secret" not in site.tmux("capture-pane", "-p", "-t", pane)
    refused = site.mas("restart-agent", session, "21", code=4).stderr
    assert "is running in the pane of agent 21" in refused
    assert living([other]) == [other]
    site.mas("restart-agent", "--force", session, "21")
    assert living([other]) == []
    wait_ready(site, session, "21")
    site.mas("send", "--session", session, "21", "hello")
    assert b"hello" in received(site, session, "21", 1)
    site.mas("stop", session)
    assert person.still_there() == set()


def test_nothing_is_typed_to_a_program_in_an_agents_pane_even_if_the_agent_was_killed_without_a_trace(
    person: Person,
) -> None:
    site, pane = person.site, person.panes["21"]
    os.kill(person.pids[0], 9)
    until(lambda: person.ask(pane, "#{pane_dead}") == "1", "the launcher's end")
    person.does("respawn-pane", "-t", pane, *SHELL)
    until(lambda: "mine" in site.tmux("capture-pane", "-p", "-t", pane), "the person's program")
    said = site.mas("send", "--session", person.session, "21", "secret", code=4).stderr
    assert "Agent 21 is not running" in said
    (message,) = site.json("inbox", person.session)["messages"]
    assert [one["state"] for one in message["deliveries"]] == ["undelivered"]
    assert "secret" not in site.tmux("capture-pane", "-p", "-t", pane)


def test_a_killed_pane_is_reported_and_the_others_go_on(person: Person) -> None:
    person.does("kill-pane", "-t", person.panes["21"])
    mas = person.site.local()
    until(lambda: living(person.pids) == [person.pids[1]], "the end of the agent")
    assert states(mas, person.session) == {"21": ("exited", None), "23": ("idle", person.panes["23"])}
    assert person.site.statuses() == {person.session: "active"}
    person.site.mas("send", "--session", person.session, "21", "hello", code=4)
    person.site.mas("send", "--session", person.session, "23", "hello")
    assert b"hello" in received(person.site, person.session, "23", 1)


def test_an_agent_in_another_teams_window_is_still_its_own_teams(site: Site) -> None:
    one, two = Person(site), Person(site)
    one.does("join-pane", "-s", one.panes["21"], "-t", two.panes["21"])
    mas = site.local()
    for each in (one, two):
        assert states(mas, each.session) == {agent: ("idle", pane) for agent, pane in each.panes.items()}
    sent = mas.send(SessionId(one.session), "21", "for one", wait=30.0)
    assert [delivery.state for delivery in sent.deliveries] == [DeliveryState.ACKNOWLEDGED]
    mas.send(SessionId(two.session), "21", "for two", wait=30.0)
    assert b"for one" in received(site, one.session, "21", 1)
    assert b"for two" in received(site, two.session, "21", 1)
    site.mas("stop", two.session)
    assert living(two.pids) == []
    assert states(mas, one.session) == {agent: ("idle", pane) for agent, pane in one.panes.items()}
    site.mas("restore", two.session)
    site.mas("stop", one.session)
    assert living(one.pids) == []
    assert site.statuses() == {one.session: "stopped", two.session: "active"}


def test_a_team_of_an_earlier_version_has_no_marks_and_goes_on_working(person: Person) -> None:
    for pane in person.panes.values():
        person.does("set-option", "-p", "-u", "-t", pane, "@mas_team")
    person.does("set-option", "-u", "-t", f"={person.name}:", "@mas_home")
    splits_a_shell_beside_an_agent(person)
    check_is_there(person)
    person.site.mas("stop", person.session)
    assert living(person.pids) == []
    assert person.still_there() == set(person.own)


def test_a_renamed_team_of_an_earlier_version_is_not_ended_by_a_look(person: Person) -> None:
    for pane in person.panes.values():
        person.does("set-option", "-p", "-u", "-t", pane, "@mas_team")
    person.does("set-option", "-u", "-t", f"={person.name}:", "@mas_home")
    renames_the_session(person)
    assert person.site.statuses() == {person.session: "active"}
    assert living(person.pids) == person.pids
    copy = copied(person.site, "copy")
    assert copy.statuses() == {person.session: "stopped"}
    assert living(person.pids) == person.pids
    person.does("rename-session", "-t", "my work", person.name)
    check_is_there(person)
    person.site.mas("stop", person.session)
    assert person.still_there() == set()


def launchers(site: Site, session: str) -> list[int]:
    """The processes in the panes of a session, on whichever server it is."""
    socket = str(site.json("show", session)["tmuxSocket"])
    return [int(pid) for pid in site.tmux("list-panes", "-a", "-F", "#{pane_pid}", socket=socket).split()]


def copied(site: Site, name: str) -> Site:
    """A copy of the site's workspace, made while it works, and a user of that copy."""
    copy = Site(site.directory)
    copy.root = copy.env["MAS_WORKSPACE_ROOT"] = os.path.join(site.directory, name)
    copy.env["MAS_TMUX_SERVER"] = site.env.get("MAS_TMUX_SERVER", "default")
    site.run(["cp", "-a", site.root, copy.root])
    return copy


@pytest.mark.parametrize("server", ["default", "workspace", "session"])
def test_a_copy_of_a_workspace_leaves_the_agents_of_the_original_alone(site: Site, server: str) -> None:
    site.env["MAS_TMUX_SERVER"] = server
    session = site.start("--team", "pair", "--command", "sleep 1000")
    panes = [agent["pane"] for agent in site.json("show", session)["agents"]]
    copy, second = copied(site, "copy"), copied(site, "second")
    said = copy.mas("send", "--force", "--session", session, "21", "secret", code=None)
    (message,) = copy.json("inbox", session)["messages"]
    assert "secret" not in site.mas("output", session, "21").stdout, said
    # Of a pane that is another's nothing is known; a server of the workspace's own is gone in the copy.
    assert [one["state"] for one in message["deliveries"]] == ["queued" if server == "default" else "undelivered"]
    assert copy.statuses() == {session: "stopped"}
    assert copy.json("show", session)["reason"] == f"it runs in another copy of this workspace: {site.root}"
    refused = copy.mas("restore", session, code=4)
    assert f"is running in another copy of this workspace: {site.root}" in refused.stderr
    assert f"mas clone {session[:8]}" in refused.stderr
    copy.mas("stop", session)
    copy.mas("delete", session, "--yes")
    shutil.rmtree(second.session(session))
    assert second.statuses() == {}
    assert site.statuses() == {session: "active"}
    assert [agent["pane"] for agent in site.json("show", session)["agents"]] == panes
    site.mas("stop", session)
    copy.mas("undelete", session)
    copy.mas("restore", session)
    assert (site.statuses(), copy.statuses()) == ({session: "stopped"}, {session: "active"})
    refused = site.mas("restore", session, code=4)
    assert f"is running in another copy of this workspace: {copy.root}" in refused.stderr
    copy.mas("stop", session)
    assert site.leftovers() == []


@pytest.mark.parametrize("server", ["default", "workspace", "session"])
def test_a_moved_workspace_goes_on_working(site: Site, server: str) -> None:
    site.env["MAS_TMUX_SERVER"] = server
    session = site.start("--team", "pair", "--command", "sleep 1000")
    pids = launchers(site, session)
    old = Site(site.directory)
    old.env["MAS_TMUX_SERVER"] = server
    site.root = site.env["MAS_WORKSPACE_ROOT"] = os.path.join(site.directory, "moved")
    os.rename(old.root, site.root)
    if server != "session":
        site.run(["cp", "-a", site.root, old.root])
        assert old.statuses() == {session: "stopped"}
    assert site.statuses() == {session: "active"}
    assert [agent["state"] for agent in site.json("show", session)["agents"]] == ["unknown", "unknown"]
    site.mas("send", "--force", "--session", session, "21", "hello")
    assert "hello" in until(lambda: site.mas("output", session, "21").stdout, "the message")
    assert living(pids) == pids
    site.mas("stop", session)
    assert living(pids) == []


@pytest.mark.parametrize("server", ["default", "session"])
def test_agents_end_with_the_workspace_they_work_in_and_their_tmux_with_them(site: Site, server: str) -> None:
    site.env["MAS_TMUX_SERVER"] = server
    session = site.start("--team", "pair", "--command", "sleep 1000")
    pids = launchers(site, session)
    if server == "default":
        site.tmux("new-session", "-d", "-s", "mine", *SHELL)
    shutil.rmtree(site.root)
    site.mas("init", site.root, cwd=site.directory)
    until(lambda: living(pids) == [], "the end of the agents")
    mine = {"mine"} if server == "default" else set()
    until(lambda: site.tmux_sessions() == mine, "the end of their panes")
    until(lambda: sum("tmux" in words[0] for words in site.commands()) == len(mine), "the end of a server of their own")
    assert site.statuses() == {}


def test_a_session_removed_from_a_moved_workspace_ends_no_other(site: Site) -> None:
    site.env["MAS_TMUX_SERVER"] = "workspace"
    one, two = (site.start("--team", "pair", "--command", "sleep 1000") for _ in range(2))
    old = site.root
    site.root = site.env["MAS_WORKSPACE_ROOT"] = os.path.join(site.directory, "moved")
    os.rename(old, site.root)
    new = Site(site.directory)
    new.env["MAS_TMUX_SERVER"] = "workspace"
    new.mas("init", new.root, cwd=new.directory)
    # Its panes have the same numbers on another server, whose socket is at the old path.
    three = new.start("--team", "pair", "--command", "sleep 1000")
    socket = str(site.json("show", two)["tmuxSocket"]).replace(old, site.root)
    pids = [int(pid) for pid in site.tmux("list-panes", "-a", "-F", "#{pane_pid}", socket=socket).split()]
    shutil.rmtree(site.session(one))
    until(lambda: len(living(pids)) == 2, "the end of the agents whose directory is gone")
    until(
        lambda: site.tmux("list-sessions", "-F", "#{session_name}", socket=socket) == tmux_name(two),
        "the end of their panes",
    )
    assert site.statuses() == {two: "active"}
    assert [agent["state"] for agent in new.json("show", three)["agents"]] == ["unknown", "unknown"]
    assert len(launchers(new, three)) == 2
    new.mas("stop", three)
    site.mas("stop", two)
    assert living(pids) == []
