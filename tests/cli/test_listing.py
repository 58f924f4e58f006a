"""What the commands that list print: how wide, in which order, in which shape."""

from __future__ import annotations

import os
import re
import sys
from datetime import UTC, datetime, timedelta

import pytest

from mas.cli.render import Render, ago
from tests.site import Site
from tests.terminal import Terminal

_MAS = (sys.executable, "-m", "mas")
_LONG = "A name of sixty-four characters, which is as long as names may be"[:64]


def shown(site: Site, *args: str, columns: int = 80) -> list[str]:
    """The lines that a command prints on a terminal."""
    with Terminal([*_MAS, *args], {**site.env, "NO_COLOR": "1"}, site.root, columns=columns) as terminal:
        return terminal.end().splitlines()


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def start(site: Site, name: str) -> str:
    return site.start("--team", "solo", "--name", name)


def test_a_list_fits_80_columns_and_says_how_long_ago(site: Site) -> None:
    first, second = start(site, "Zoë 日本"), start(site, _LONG)
    lines = shown(site, "list")
    assert lines[0].split() == ["SESSION", "NAME", "STATUS", "AGENTS", "CREATED"]
    assert [line[:8] for line in lines[1:]] == [second[:8], first[:8]]
    assert all(len(line) <= 80 and line.endswith((" s ago", " min ago", "now")) for line in lines[1:])
    assert _LONG[:30] in lines[1]
    assert "…  active" in lines[1]
    # A sign of East Asia takes two columns.
    assert lines[2].index("active") == lines[1].index("active") - 2


def test_in_a_pipe_nothing_is_cut_and_times_are_utc(site: Site) -> None:
    before = today()
    start(site, _LONG)
    done = site.mas("list").stdout.splitlines()
    assert done[0].endswith("CREATED (UTC)")
    assert _LONG in done[1]
    assert done[1][-19:-9] in {before, today()}


def test_wide_shows_full_ids_and_utc_on_a_terminal_too(site: Site) -> None:
    session = start(site, _LONG)
    lines = shown(site, "list", "-o", "wide")
    text = "".join(lines)
    assert "LAST ACTIVITY (UTC)" in text
    assert session in text
    assert _LONG in text
    assert " ago" not in text
    assert shown(site, "list", "--utc")[0].endswith("CREATED (UTC)")


def test_a_list_for_scripts_is_ids_or_names_alone(site: Site) -> None:
    first, second = start(site, "one"), site.start()
    assert site.mas("list", "-q").stdout.split() == [second, first]
    assert site.mas("list", "-o", "name").stdout.split() == [second, "one"]
    assert site.mas("list", "-o", "json").stdout == site.mas("list", "--json").stdout
    assert "not allowed with" in site.mas("list", "-q", "-o", "wide", code=2).stderr
    assert site.mas("list", "-q", "-n", "1").stdout.split() == [second]
    assert site.mas("list", "-q", "--limit", "1", "--offset", "1").stdout.split() == [first]


def test_json_stays_oldest_first_unless_an_order_is_asked_for(site: Site) -> None:
    first, second = start(site, "one"), start(site, "two")
    assert [info["sessionId"] for info in site.json("list")["sessions"]] == [first, second]
    named = site.json("list", "--sort", "created", "-n", "1")
    assert ([info["sessionId"] for info in named["sessions"]], named["total"]) == ([second], 2)
    assert named["sessions"][0]["agents"]
    site.mas("stop", first)
    several = site.json("list", "--status", "active,stopped", "-n", "1")
    assert [info["sessionId"] for info in several["sessions"]] == [first]


def test_sessions_are_sorted_by_name_status_or_activity(site: Site) -> None:
    ann, bob, nameless = start(site, "ann"), start(site, "Bob"), site.start()
    os.unlink(site.session(bob, "metadata.json"))
    site.mas("stop", ann)

    def order(key: str) -> list[str]:
        return site.mas("list", "-q", "--sort", key).stdout.split()

    assert order("name") == [ann, bob, nameless]
    assert order("status") == [bob, nameless, ann]
    assert order("activity")[0] in (ann, bob)
    assert order("created") == [nameless, bob, ann]


def test_several_statuses_are_named_with_commas_or_again(site: Site) -> None:
    active, stopped, deleted = start(site, "a"), start(site, "s"), start(site, "d")
    site.mas("stop", stopped)
    site.mas("delete", deleted, "--yes")
    for words in (["--status", "active,deleted"], ["--status", "active", "--status", "deleted"]):
        assert site.mas("list", "-q", *words).stdout.split() == [deleted, active]
    assert site.json("list", "--status", "stopped,deleted")["total"] == 2
    assert "invalid choice: 'gone'" in site.mas("list", "--status", "active,gone", code=2).stderr


def test_an_empty_list_says_why_and_where_there_is_something(site: Site) -> None:
    session = start(site, "one")
    assert "There is nothing after the first 7: 1 session in all" in site.mas("list", "--offset", "7").stderr
    assert site.mas("list", "-n", "0").stderr == "1 session, but -n 0 shows none\n"
    site.mas("delete", session, "--yes")
    said = site.mas("list").stderr
    assert said == "No sessions; start one: mas start\n1 deleted: mas list --status deleted\n"
    assert site.mas("list", "-q").stdout == ""


def test_a_watched_list_is_drawn_again_until_interrupted(site: Site) -> None:
    session = start(site, "one")
    with Terminal([*_MAS, "list", "--watch", "0.5"], site.env, site.root, columns=80) as terminal:
        terminal.until("active")
        site.mas("stop", session)
        terminal.until("stopped")
        terminal.type("\x03")
        terminal.end()
        assert terminal.code == 130
    assert terminal.shown.count("\x1b[H\x1b[J") >= 2


@pytest.mark.parametrize("command", ["list", "stats"])
@pytest.mark.parametrize("interval", ["0", "-1", "nan", "inf", "often"])
def test_a_watch_without_a_pause_is_refused_and_the_least_named(site: Site, command: str, interval: str) -> None:
    assert "from 0.5 to 86400" in site.mas(command, f"--watch={interval}", code=2).stderr


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (0, "now"),
        (-3, "now"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (7300, "2 h ago"),
        (86400, "1 day ago"),
        (40 * 86400, "40 days ago"),
        (-60, "2028-03-01 00:01:00"),
    ],
)
def test_how_long_ago_is_written_in_words(passed: int, words: str) -> None:
    now = datetime(2028, 3, 1, tzinfo=UTC)
    stamp = (now - timedelta(seconds=passed)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert ago(stamp, now.timestamp()) == words


def test_every_day_until_2099_is_counted_right() -> None:
    day = datetime(2000, 1, 1, tzinfo=UTC)
    while day.year < 2100:
        assert ago(day.strftime("%Y-%m-%dT%H:%M:%SZ"), day.timestamp() + 90) == "1 min ago"
        day += timedelta(days=1)


@pytest.mark.parametrize("stamp", ["", "nonsense", "2028-13-01T00:00:00Z", "2028-03-0"])
def test_what_is_no_time_is_shown_as_it_is(stamp: str) -> None:
    assert ago(stamp, 0.0) == (stamp[:19].replace("T", " ") or "-")


def test_a_cell_moves_no_cursor_and_takes_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Render(as_json=False).table(("A", "B"), [("1", "x\x1b[2J\ny")])
    assert capsys.readouterr().out == "A  B\n1  x [2J y\n"


def test_a_word_in_a_name_has_no_colour(site: Site) -> None:
    start(site, "error")
    with Terminal([*_MAS, "list"], site.env, site.root, columns=80) as terminal:
        assert "error  \x1b[32mactive\x1b[0m" in terminal.end()


def test_the_widest_columns_give_way_and_the_first_never(site: Site) -> None:
    session = start(site, _LONG)
    for columns in (40, 60):
        lines = shown(site, "list", columns=columns)
        assert lines[1].startswith(session[:8])


def test_numbers_of_sessions_fit_80_columns_and_are_sorted_and_limited(site: Site) -> None:
    ann, bob = start(site, _LONG), start(site, "bob")
    lines = shown(site, "stats")
    assert all(len(line) <= 80 for line in lines)
    assert lines[0] == "2 active, 0 stopped, 0 in error, 0 archived, 0 deleted"
    assert site.mas("stats", "-q").stdout.split() == [ann, bob]
    assert site.mas("stats", "-q", "--sort", "name", "-n", "1").stdout.split() == [ann]
    most = site.json("stats", "--sort", "memory")["sessions"]
    assert [one["memory"] for one in most] == sorted((one["memory"] for one in most), reverse=True)
    assert "CPU TIME" in site.mas("stats", "-o", "wide").stdout
    for spelling in ([bob], ["--session", bob]):
        assert "AGENT  PROCESSES" in site.mas("stats", *spelling).stdout


def test_a_list_distinguishes_lost_from_stopped_and_says_since_when(site: Site) -> None:
    stopped, lost = start(site, "done"), start(site, "dead")
    site.mas("stop", stopped)
    site.tmux("kill-server")
    lines = shown(site, "list", "--sort", "status")
    assert [line.split()[:3] for line in lines[1:]] == [[lost[:8], "dead", "lost"], [stopped[:8], "done", "stopped"]]
    assert all(len(line) <= 80 and re.search(r" (lost|stopped) +(now|\d+ (s|min) ago)", line) for line in lines[1:])
    assert [line.split()[2:4] for line in site.mas("list").stdout.splitlines()[1:]] == [["lost", "1"], ["stopped", "1"]]
    numbers = site.mas("stats", "--sort", "status").stdout.splitlines()[-2:]
    assert [line.split()[1:3] for line in numbers] == [["dead", "lost"], ["done", "stopped"]]
    assert site.mas("list", "-q", "--status", "lost,active").stdout.split() == [lost]
    assert site.mas("list", "-q", "--status", "stopped").stdout.split() == [lost, stopped]
