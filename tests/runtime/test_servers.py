"""Which tmux server a team is put on, and what a server must be like to be used."""

from __future__ import annotations

import os
import resource
import sys
from functools import partial

import pytest

from mas.model.errors import NoTmux
from mas.runtime.runtime import Place
from mas.runtime.tmux import Tmux
from mas.settings import ServerMode
from tests.runtime.ground import DEFAULT_TEAM, NAME, SLEEPER, Ground, teams_seen
from tests.site import Site, until

FEW = 8
# Enough for a tmux server and a few panes, too little for more of them with some to spare.
TIGHT = 80


def start_user_server(site: Site, *argv: str, files: int | None = None) -> None:
    """Start the user's own server, as a person would."""
    os.makedirs(os.path.dirname(site.user_socket), mode=0o700, exist_ok=True)
    command = ["tmux", "-S", site.user_socket, *(argv or ("new-session", "-d", "-s", "own", *SLEEPER))]
    done = site.run(limited(files, *command))
    assert done.returncode == 0, done.stderr


def limited(files: int | None, *argv: str) -> list[str]:
    """The same command with a lower limit on open files."""
    return ["sh", "-c", f'ulimit -Sn {files}; exec "$@"', "sh", *argv] if files else list(argv)


def server_pid(site: Site, socket: str) -> int:
    return int(site.tmux("list-sessions", "-F", "#{pid}", socket=socket).splitlines()[0])


def open_files_limit(pid: int) -> list[str]:
    """The soft and the hard limit of a process."""
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        return next(line.split()[3:5] for line in file if line.startswith("Max open files"))


def written(path: str) -> bool:
    return os.path.exists(path) and os.path.getsize(path) > 0


def test_each_mode_puts_teams_where_its_name_says(bare: Site) -> None:
    sockets = bare.world().layout.sockets
    places = {mode: Ground(bare, mode).solo(name=f"mas-0000000{n}")[0] for n, mode in enumerate(ServerMode)}
    assert {mode: place.socket for mode, place in places.items()} == {
        ServerMode.AUTO: bare.user_socket,
        ServerMode.DEFAULT: bare.user_socket,
        ServerMode.WORKSPACE: os.path.join(sockets, "workspace.sock"),
        ServerMode.SESSION: os.path.join(sockets, f"{places[ServerMode.SESSION].name}.sock"),
    }
    assert bare.tmux_sessions() == {place.name for place in places.values()}


def test_auto_puts_the_first_few_teams_on_the_users_server_and_later_ones_on_their_own(bare: Site) -> None:
    ground = Ground(bare, ServerMode.AUTO)
    places = [ground.solo(name=f"mas-{number:08x}")[0] for number in range(FEW + 2)]
    assert [place.socket == bare.user_socket for place in places] == [True] * FEW + [False] * 2
    assert len({place.socket for place in places[FEW:]}) == 2
    ground.runtime.close(places[0])
    again, _ = ground.solo(name="mas-ffffffff")
    assert again.socket == bare.user_socket


def test_the_users_own_sessions_do_not_count_as_teams(bare: Site) -> None:
    start_user_server(bare)
    for number in range(FEW):
        bare.tmux("new-session", "-d", "-s", f"own-{number}", *SLEEPER)
    place, _ = Ground(bare, ServerMode.AUTO).solo()
    assert place.socket == bare.user_socket
    Ground(bare, ServerMode.AUTO).runtime.close(place)
    assert len(teams_seen(bare.user_socket)) == FEW + 1


def test_auto_leaves_a_server_short_of_descriptors_alone(bare: Site) -> None:
    start_user_server(bare, files=TIGHT)
    ground = Ground(bare, ServerMode.AUTO)
    place, _ = ground.open(ground.plan(DEFAULT_TEAM))
    assert place.socket != bare.user_socket
    assert teams_seen(bare.user_socket) == {"own"}


def test_default_refuses_a_server_short_of_descriptors_and_says_what_helps(bare: Site) -> None:
    start_user_server(bare, files=TIGHT)
    ground = Ground(bare, ServerMode.DEFAULT)
    with pytest.raises(NoTmux) as refused:
        ground.open(ground.plan(DEFAULT_TEAM))
    assert "descriptors" in refused.value.message
    assert refused.value.hint
    with pytest.raises(NoTmux):
        ground.runtime.open(bare.user_socket, ground.plan(DEFAULT_TEAM))
    assert teams_seen(bare.user_socket) == {"own"}


def test_a_server_without_any_session_is_used_like_any_other(bare: Site) -> None:
    with open(os.path.join(bare.home, ".tmux.conf"), "w", encoding="utf-8") as file:
        file.write("set -s exit-empty off\n")
    start_user_server(bare, "start-server")
    for mode in (ServerMode.DEFAULT, ServerMode.AUTO):
        ground = Ground(bare, mode)
        place, _ = ground.solo()
        assert place.socket == bare.user_socket
        ground.runtime.close(place)
        assert ground.runtime.alive([place]) == {place: False}


def test_a_server_the_user_keeps_in_an_open_directory_is_used(bare: Site) -> None:
    os.chmod(bare.directory, 0o1777)
    socket = os.path.join(bare.directory, "own.sock")
    bare.tmux("new-session", "-d", "-s", "own", *SLEEPER, socket=socket)
    runtime = bare.world(ServerMode.AUTO, user_socket=socket).runtime
    os.makedirs(bare.world().layout.sockets, mode=0o700)
    try:
        assert runtime.place(NAME, 1) == socket
        runtime.open(socket, Ground(bare, ServerMode.AUTO).plan({"meta": "00"}))
        assert teams_seen(socket) == {"own", NAME}
    finally:
        bare.tmux("kill-server", socket=socket)


def test_a_server_we_start_may_open_all_the_files_there_are(bare: Site) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
        for number, mode in enumerate(ServerMode):
            place, _ = Ground(bare, mode).solo(name=f"mas-0000000{number}")
            limits = open_files_limit(server_pid(bare, place.socket))
            assert limits == [str(hard) if hard != resource.RLIM_INFINITY else "unlimited"] * 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("mode", list(ServerMode))
def test_agents_get_the_usual_limit_on_open_files_back(site: Site, mode: ServerMode) -> None:
    file = os.path.join(site.directory, "limit")
    command = f"sh -c 'ulimit -n > {file}; exec sleep 1000'"
    mas = [sys.executable, "-m", "mas", "start", "--team", "solo", "--command", command]
    done = site.run(limited(200, *mas), env={"MAS_TMUX_SERVER": mode})
    assert done.returncode == 0, done.stderr
    until(partial(written, file), "the agent's limit")
    with open(file, encoding="ascii") as limit:
        assert limit.read() == "200\n"


def test_the_second_session_one_process_starts_gets_the_usual_limit_too(site: Site) -> None:
    script = (
        "import resource, sys\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))\n"
        "from mas.bootstrap import open_mas\n"
        "from mas.model.run import parse_run\n"
        "for name in sys.argv[1:]:\n"
        "    command = f\"sh -c 'ulimit -n > {name}; exec sleep 1000'\"\n"
        "    run = parse_run({'team': 'solo'})._replace(command=command)\n"
        "    open_mas().start(run, False, None)\n"
    )
    files = [os.path.join(site.directory, name) for name in ("first", "second")]
    done = site.run([sys.executable, "-c", script, *files])
    assert done.returncode == 0, done.stderr
    for file in files:
        until(partial(written, file), "the agent's limit")
        with open(file, encoding="ascii") as limit:
            assert limit.read() == "200\n"


LONG = "w" * 100


@pytest.fixture
def deep(bare: Site) -> Site:
    """A site whose workspace lies too deep for a socket beside its sessions."""
    bare.root = os.path.join(bare.directory, LONG)
    return bare


def test_a_socket_whose_path_would_be_too_long_goes_to_a_short_place(deep: Site) -> None:
    ground = Ground(deep, ServerMode.SESSION)
    place, panes = ground.open(ground.plan({"meta": "00"}))
    private = os.path.join(deep.directory, "private")
    assert os.path.dirname(place.socket) == private
    assert os.stat(private).st_mode & 0o777 == 0o700
    assert [state.pane for state in ground.runtime.panes(place)] == [panes["00"]]
    ground.runtime.close(place)
    assert os.listdir(private) == []


@pytest.mark.parametrize(("length", "fits"), [(107, True), (108, False)])
def test_a_path_that_just_fits_is_used_and_one_byte_more_is_not(bare: Site, length: int, fits: bool) -> None:
    fixed = len(os.path.join(bare.directory, "w", "sessions", ".mas", "tmux", f"{NAME}.sock")) - 1
    bare.root = os.path.join(bare.directory, "w" * (length - fixed))
    ground = Ground(bare, ServerMode.SESSION)
    place, _ = ground.solo()
    assert (os.path.dirname(place.socket) == ground.world.layout.sockets) is fits
    assert not fits or len(place.socket) == length
    ground.runtime.close(place)


def test_two_deep_workspaces_never_share_a_server(deep: Site) -> None:
    first = Ground(deep, ServerMode.WORKSPACE)
    deep.root += "2"
    second = Ground(deep, ServerMode.WORKSPACE)
    assert first.runtime.place(NAME, 1) != second.runtime.place(NAME, 1)


def refused(site: Site) -> None:
    """Opening on a private socket in the short place must fail, and start nothing there."""
    ground = Ground(site, ServerMode.SESSION)
    with pytest.raises(NoTmux):
        ground.open(ground.plan({"meta": "00"}))
    socket = ground.runtime.place(NAME, 1)
    assert not os.path.lexists(socket)
    assert ground.runtime.alive([Place(socket, NAME)]) == {Place(socket, NAME): False}


@pytest.mark.parametrize("mode", [0o770, 0o750, 0o707, 0o777])
def test_a_short_place_that_others_can_enter_is_refused(deep: Site, mode: int) -> None:
    private = os.path.join(deep.directory, "private")
    os.mkdir(private)
    os.chmod(private, mode)
    refused(deep)


def test_a_short_place_that_is_a_link_is_refused(deep: Site) -> None:
    elsewhere = os.path.join(deep.directory, "elsewhere")
    os.mkdir(elsewhere, 0o700)
    os.symlink(elsewhere, os.path.join(deep.directory, "private"))
    refused(deep)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_short_place_that_another_user_owns_is_refused(deep: Site) -> None:
    private = os.path.join(deep.directory, "private")
    os.mkdir(private, 0o700)
    os.chown(private, 65534, 65534)
    refused(deep)


def test_a_server_that_ends_while_it_is_looked_at_is_no_obstacle(bare: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    start_user_server(bare)
    seen = Tmux.pid

    def last_seen(server: Tmux) -> int | None:
        monkeypatch.undo()
        pid = seen(server)
        bare.tmux("kill-server", socket=server.socket)
        until(lambda: seen(server) is None, "the server has ended")
        return pid

    monkeypatch.setattr(Tmux, "pid", last_seen)
    place, _ = Ground(bare, ServerMode.AUTO).solo()
    assert teams_seen(place.socket) == {place.name}
