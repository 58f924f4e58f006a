"""Send and output: text reaches an agent byte for byte, and what it shows can be read."""

from __future__ import annotations

import json
import os

import pytest

from tests.e2e.standin import (
    ASLEEP,
    pane_of,
    read,
    received,
    start_receivers,
    start_unruly,
    write,
)
from tests.site import Site, until

MIB = 1 << 20
TEXTS = (
    "hello",
    "two\nlines",
    "\n\nblank lines around\n\n",
    "tabs\tand\t\ttabs",
    "   ",
    " leading and trailing ",
    "-leading dash",
    "--help",
    "-",
    "trailing ;",
    ";",
    "a ; kill-server ; b \\;",
    "#(touch x) #{pane_id} #S #[fg=red]",
    "$(touch x) ${HOME} $PATH",
    "`touch x`",
    "!! !$ !x",
    "\\ \\n \\x1b \\\\",
    "'single' \"double\" '\"'\"'",
    "日本語 العربية हिन्दी Ελληνικά",
    "👩‍👩‍👧‍👦 e\u0301 \u202eright to left\u202c \ufeffbom",
    "%1 %% %s ~user *? [a] {b,c} > x < y | z & w",
    "C-c Enter Escape ^C ^D",
    "[200~ [201~ 0;1H",
)
LARGE = ("64 KiB\n" * 9363, "é" * (32 * 1024), "x" * MIB, "長\n" * (MIB // 4))


def send(site: Site, session: str, text: str, target: str = "00") -> None:
    """Send by argument where an argument can hold it, else by standard input."""
    if text == "-" or len(text.encode()) > 100_000:
        site.mas("send", "--session", session, target, "-", input=text)
    else:
        site.mas("send", "--session", session, target, "--", text)


def test_any_text_arrives_byte_for_byte(site: Site) -> None:
    session = start_receivers(site)
    for number, text in enumerate((*TEXTS, *LARGE), start=1):
        send(site, session, text)
        assert received(site, session, "00", number) == text.encode(), text[:60]
    assert read(site.session(session, "unit", "00", "keys")) == ""
    for directory in (site.root, site.session(session), site.session(session, "unit", "00")):
        assert not os.path.exists(os.path.join(directory, "x"))
    assert site.tmux("list-buffers") == ""


def test_what_cannot_be_pasted_exactly_is_refused_and_nothing_is_typed(site: Site) -> None:
    session = start_receivers(site)
    bad = [chr(code) for code in (*range(0x20), 0x7F, 0x80, 0x9B, 0x9F) if chr(code) not in "\n\t"]
    # Every control character in one go is one refusal; the ones that matter are also tried alone.
    for text in ("", "".join(bad), "a\0b", "\x1b[201~rm", "a\rb", "\x03", "\x9b201~", "x" * (MIB + 1)):
        done = site.mas("send", "--session", session, "00", "-", input=text, code=2)
        assert "Traceback" not in done.stderr
    for options in ({"input": "caf\udce9", "errors": "surrogateescape"},):
        assert "UTF-8" in site.mas("send", "--session", session, "00", "-", code=2, **options).stderr
    assert "UTF-8" in site.mas("send", "--session", session, "00", "caf\udce9", code=2).stderr
    send(site, session, "after")
    assert received(site, session, "00", 1) == b"after"
    assert read(site.session(session, "unit", "00", "keys")) == ""


def test_units_managers_and_all_mean_the_agents_they_say(site: Site) -> None:
    session = start_receivers(site, "dev")
    agents = ("00", "20", "21", "22", "23")
    count = dict.fromkeys(agents, 0)
    for target, reached in (("21", ("21",)), ("development", agents[1:]), ("managers", agents[:2]), ("all", agents)):
        sent = site.json("send", "--session", session, target, f"to {target}")
        assert tuple(sent["agents"]) == reached
        assert (sent["target"], sent["bytes"]) == (target, len(f"to {target}"))
        for agent in reached:
            count[agent] += 1
            assert received(site, session, agent, count[agent]) == f"to {target}".encode()
    for target in ("99", "design", "nobody", "", "%0", "00;"):
        assert site.mas("send", "--session", session, target, "x", code=None).returncode in (2, 3)
    for agent in agents:
        assert not os.path.exists(site.session(session, "unit", agent, f"got-{count[agent] + 1}"))


def test_a_pane_in_copy_mode_still_receives(site: Site) -> None:
    session = start_receivers(site)
    pane = pane_of(site, session, "00")
    site.tmux("copy-mode", "-t", pane)
    assert site.tmux("display", "-p", "-t", pane, "#{pane_in_mode}") == "1"
    send(site, session, "hello")
    assert received(site, session, "00", 1) == b"hello"


def test_a_dead_agent_is_refused_and_nothing_is_executed(site: Site) -> None:
    session = start_unruly(site, EXIT_STATUS="0")
    until(lambda: site.json("show", session)["agents"][0]["state"] == "exited", "the agent's end")
    done = site.mas("send", "--session", session, "00", f"touch {site.directory}/x", code=4)
    assert "00" in done.stderr
    assert not os.path.exists(os.path.join(site.directory, "x"))


def test_a_stopped_session_is_refused_with_the_next_command(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    words = ("send", "--session", session, "00", "x")
    assert f"hint:  mas restore {session[:8]}\n" in site.mas(*words, code=4).stderr
    # Programs get the whole id.
    assert json.loads(site.mas(*words, "--json", code=4).stderr)["hint"] == f"mas restore {session}"


def test_inside_an_agent_the_session_and_the_sender_are_known(site: Site) -> None:
    session, other = start_receivers(site), site.start(*ASLEEP)
    site.mas("send", "00", "hello", env={"MAS_SESSION_ID": session, "MAS_AGENT_ID": "00"})
    assert received(site, session, "00", 1) == b"hello"
    assert "from=00" in read(site.session(session, "logs", "session.log"))
    assert site.mas("send", "00", "hello", code=2).returncode == 2
    site.mas("stop", other)
    site.mas("send", "00", "-", input="from a file\n")
    assert received(site, session, "00", 2) == b"from a file\n"


def test_the_demo_agent_answers_on_the_same_path(site: Site) -> None:
    session = site.start("--team", "solo", "--provider", "demo")
    until(lambda: "00>" in site.mas("output", session, "00").stdout, "the demo agent")
    site.mas("send", "--session", session, "00", "one\ntwo")
    until(lambda: "got 2 lines" in site.mas("output", session, "00").stdout, "its answer")
    header, *text = read(site.session(session, "unit", "00", "inbox.md")).splitlines()
    assert header.startswith("[MAS from=person to=00 id=m-")
    assert text == ["one", "two", ""]


def test_output_is_the_screen_and_afterwards_the_log(site: Site) -> None:
    script = write(
        "for n in 1 2 3 4 5 6 7 8 9; do printf 'line %s \\033[31mred\\033[0m 日本\\n' $n; done\nexec sleep 1000\n",
        site.directory, "print.sh",
    )  # fmt: skip
    session = site.start("--team", "solo", "--command", f"sh {script}")
    until(lambda: "line 9" in site.mas("output", session, "00").stdout, "the agent's lines")
    lines = [f"line {number} red 日本" for number in range(1, 10)]
    assert site.json("output", session, "00") == {"agent": "00", "text": "\n".join(lines), "source": "screen"}
    assert site.mas("output", session, "00", "--lines", "2").stdout.splitlines() == lines[-2:]
    site.mas("stop", session)
    assert lines[0] in site.mas("output", session, "00").stdout
    for args in (("77",), ("7",)):
        assert site.mas("output", session, *args, code=None).returncode in (2, 3)
    site.mas("output", session, code=2)
    assert site.mas("output", session, "00", "--lines", "0").stdout == ""


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_the_locale_of_the_caller_changes_nothing(site: Site, locale: str) -> None:
    session = start_receivers(site)
    env = {"LANG": locale, "LC_ALL": locale}
    site.mas("send", "--session", session, "00", "日本語 é", env=env, encoding="utf-8")
    assert received(site, session, "00", 1) == "日本語 é".encode()
    assert site.mas("show", session, "--json", env=env).returncode == 0
