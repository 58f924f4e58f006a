"""Whatever the user's tmux configuration says, a team opens whole and its panes are its agents'."""

from __future__ import annotations

import os

import pytest

from mas.model.errors import NoTmux
from mas.runtime.runtime import Place
from mas.settings import ServerMode
from tests.runtime.ground import DEFAULT_TEAM, NAME, Ground, seen, started_by, teams_seen
from tests.site import Site, until

PAIR = {"meta": "00", "design": "10 11"}
AGENTS_OF_PAIR = ["00", "10", "11"]

OPTIONS = {
    "indexes from one": "set -g base-index 1\nset -gw pane-base-index 1\nset -g renumber-windows on",
    "a command for new panes": "set -g default-command 'touch MARKER; exec sh'",
    "a shell that refuses": "set -g default-shell /bin/false",
    "panes vanish": "set -gw remain-on-exit off",
    "sessions vanish when nobody looks": "set -g destroy-unattached on",
    "the server ends when nobody looks": "set -s exit-unattached on",
    "nothing stays": "set -s exit-unattached on\nset -g destroy-unattached on\nset -gw remain-on-exit off",
    "clients go elsewhere": "set -g detach-on-destroy off",
    "names follow programs": "set -gw automatic-rename on\nset -gw allow-rename on\nset -gw automatic-rename-format x",
    "the largest client decides": "set -gw window-size largest\nset -g default-size 80x24",
    "the smallest client decides": "set -gw window-size smallest\nset -g default-size 10x5",
    "no status line": "set -g status off",
    "five status lines": "set -g status 5\nset -g status-position top",
    "no titles on borders": "set -gw pane-border-status off",
    "titles below": "set -gw pane-border-status bottom",
    "no history": "set -g history-limit 0",
    "the mouse": "set -g mouse on\nset -gw mode-keys vi\nset -s escape-time 0",
    "an environment of its own": "set -g update-environment 'PATH HOME'\nset-environment -g PATH /nowhere",
    "a server that stays": "set -s exit-empty off\nset -s exit-unattached off",
    "a prefix and keys": "unbind -a\nset -g prefix None",
    "synchronized panes": "set -gw synchronize-panes on",
    "monitors": "set -gw monitor-activity on\nset -g visual-activity on\nset -gw monitor-bell off",
    "syntax errors": "this is not tmux\nset -g no-such-option 1\nset -g status 'unclosed",
    "a missing file": "source-file /no/such/file",
}


def configure(site: Site, text: str) -> str:
    """Write the user's configuration; answers the file that its `MARKER` is."""
    marker = os.path.join(site.directory, "marker")
    with open(os.path.join(site.home, ".tmux.conf"), "w", encoding="utf-8") as file:
        file.write(text.replace("MARKER", marker) + "\n")
    return marker


@pytest.mark.parametrize("text", list(OPTIONS.values()), ids=list(OPTIONS))
def test_no_option_of_the_user_changes_what_a_team_is(bare: Site, text: str) -> None:
    marker = configure(bare, text)
    ground = Ground(bare, ServerMode.DEFAULT)
    place, panes = ground.open(ground.plan(DEFAULT_TEAM))
    wanted = [(unit, panes[agent]) for unit, agents in DEFAULT_TEAM.items() for agent in agents.split()]
    assert [(pane.window, pane.pane) for pane in seen(place)] == wanted
    assert [pane for pane in seen(place) if pane.width < 100 or pane.height < 30] == []
    assert started_by(bare, "sh", "bash", "false") == []
    assert not os.path.exists(marker)
    ground.runtime.close(place)
    assert teams_seen(bare.user_socket) == set()


HOOKS = [
    "after-new-session",
    "after-new-window",
    "after-split-window",
    "after-select-layout",
    "after-set-option",
    "after-select-window",
    "after-list-panes",
    "after-kill-pane",
    "after-capture-pane",
    "after-paste-buffer",
    "after-send-keys",
    "session-created",
    "session-window-changed",
    "window-linked",
    "window-layout-changed",
    "window-pane-changed",
]
# The second puts the new pane first, the third leaves the pane and changes what runs in it.
DEEDS = ["split-window", "split-window -b", "respawn-pane -k sh", "new-window"]


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("hooks", [HOOKS, *([hook] for hook in HOOKS[:1])], ids=["all", "the first"])
def test_no_hook_of_the_user_puts_a_shell_among_the_agents(bare: Site, hooks: list[str], deed: str) -> None:
    configure(bare, "\n".join(f"set-hook -g {hook} '{deed}'" for hook in hooks))
    ground = Ground(bare, ServerMode.DEFAULT)
    place, panes = ground.open(ground.plan(PAIR))
    ground.runtime.screen(place, panes["10"], 5)
    ground.runtime.paste(place, panes["10"], "hello", enter=True)
    assert [state.agent for state in ground.runtime.panes(place)] == AGENTS_OF_PAIR
    assert [(pane.window, pane.pane) for pane in seen(place)] == [
        ("meta", panes["00"]),
        ("design", panes["10"]),
        ("design", panes["11"]),
    ]
    until(lambda: [pane.command for pane in seen(place)] == ["sleep"] * 3, "three sleepers")
    assert started_by(bare, "sh") == []


@pytest.mark.parametrize("deed", ["kill-pane", "kill-session", "rename-session other", "rename-window x"])
@pytest.mark.parametrize("hook", ["after-new-session", "after-set-option", "after-new-window", "session-created"])
def test_a_hook_that_destroys_teams_leaves_a_whole_one_or_none(bare: Site, hook: str, deed: str) -> None:
    configure(bare, f"set-hook -g {hook} '{deed}'")
    ground = Ground(bare, ServerMode.DEFAULT)
    place = Place(bare.user_socket, NAME)
    try:
        ground.open(ground.plan(PAIR))
    except NoTmux:
        assert ground.runtime.panes(place) == []
        assert NAME not in bare.tmux_sessions()
    else:
        assert [state.agent for state in ground.runtime.panes(place)] == AGENTS_OF_PAIR


@pytest.mark.parametrize("deed", ["kill-pane", "respawn-pane -k sh", "kill-session"])
@pytest.mark.parametrize("hook", ["pane-died", "pane-exited"])
def test_a_dead_agent_stays_dead_whatever_hooks_there_are(bare: Site, hook: str, deed: str) -> None:
    configure(bare, f"set-hook -g {hook} '{deed}'\nset -gw remain-on-exit off")
    ground = Ground(bare, ServerMode.DEFAULT)
    place, panes = ground.open(ground.plan(PAIR, argv=("sh", "-c", "exit 3")))
    until(lambda: all(state.exit_status for state in ground.runtime.panes(place)), "the end of all three")
    states = ground.runtime.panes(place)
    assert [(state.agent, state.pane, state.exit_status) for state in states] == [
        (agent, panes[agent], 3) for agent in AGENTS_OF_PAIR
    ]


def test_no_alias_of_the_user_changes_what_a_team_is(bare: Site) -> None:
    # On a server that runs: one that starts may read our commands before its configuration.
    ground = Ground(bare, ServerMode.DEFAULT)
    ground.solo(name="mas-00000000")
    for number, name in enumerate(("new-window", "split-window")):
        bare.tmux("set-option", "-s", f"command-alias[20{number}]", f"{name}=kill-server")
    place, panes = ground.open(ground.plan(PAIR))
    assert [pane.pane for pane in seen(place)] == [panes[agent] for agent in AGENTS_OF_PAIR]


def test_a_configuration_that_crashes_tmux_is_an_error_that_leaves_nothing(bare: Site) -> None:
    # Some servers cannot size the first window of a session with this, and end; others can.
    configure(bare, "set -gw window-size manual\nset -g default-size 80x24")
    ground = Ground(bare, ServerMode.DEFAULT)
    place = Place(bare.user_socket, NAME)
    try:
        ground.open(ground.plan(PAIR))
    except NoTmux:
        assert ground.runtime.alive([place]) == {place: False}
        until(lambda: not started_by(bare, "sleep"), "the end of what had started")
    else:
        assert [state.agent for state in ground.runtime.panes(place)] == AGENTS_OF_PAIR


def test_a_server_of_our_own_reads_no_configuration(bare: Site) -> None:
    marker = configure(bare, "run-shell 'touch MARKER'\nset-hook -g after-new-session kill-session")
    for number, mode in enumerate((ServerMode.SESSION, ServerMode.WORKSPACE)):
        Ground(bare, mode).solo(name=f"mas-0000000{number}")
    assert not os.path.exists(marker)


def test_the_real_team_starts_and_stops_under_all_of_it_at_once(site: Site) -> None:
    options = [text for name, text in OPTIONS.items() if name != "syntax errors"]
    hooks = [f"set-hook -g {hook} split-window" for hook in HOOKS]
    marker = configure(site, "\n".join([*options, *hooks, "set-hook -ga session-created 'run-shell true'"]))
    session = site.start("--provider", "shell", env={"MAS_TMUX_SERVER": "default"})
    place = Place(site.user_socket, f"mas-{session[:8]}")
    units = [pane.window for pane in seen(place)]
    assert units == [unit for unit, agents in DEFAULT_TEAM.items() for _ in agents.split()]
    assert [pane for pane in seen(place) if pane.width < 100 or pane.height < 30] == []
    assert not os.path.exists(marker)
    assert all(agent["state"] != "exited" for agent in site.json("show", session)["agents"])
    site.mas("stop", session, env={"MAS_TMUX_SERVER": "default"})
    assert teams_seen(site.user_socket) == set()
    assert site.four_places(session) == {"stopped"}
