"""Data on standard output, talk on standard error; colour, bars and questions only on a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from tests.site import Site, until
from tests.terminal import Terminal

MAS = (sys.executable, "-m", "mas")
ESCAPE = "\x1b"
# The real command with another idea of how long "long" is.
SLOW = (
    sys.executable,
    "-c",
    "import mas.store.files.tree as tree, mas.cli.main as main; assert tree._SLOW == 1; tree._SLOW = 0.0; main.main()",
)
# The real command, whose own thread no signal reaches: to it, each comes in the moment before it begins to wait.
UNHEARD = (
    sys.executable,
    "-c",
    "import signal, threading, mas.cli.main as main\n"
    "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
    "main.main()",
)


def terminal(
    site: Site, *args: str, program: tuple[str, ...] = MAS, env: Mapping[str, str] = MappingProxyType({})
) -> Terminal:
    return Terminal([*program, *args], {**site.env, **env}, site.root)


def test_the_id_of_a_new_session_can_be_taken_by_a_script(site: Site) -> None:
    script = f'ID=$("{sys.executable}" -m mas start --team solo) && test -d "sessions/$ID" && printf "[%s]" "$ID"'
    done = site.run(["bash", "-c", script])
    assert done.stdout == f"[{next(iter(site.statuses()))}]"
    assert "Started mas-" in done.stderr
    assert max(map(len, done.stderr.splitlines())) <= 80, "it fits a usual terminal"


def test_options_may_stand_before_and_after_the_command(site: Site) -> None:
    session = site.start()
    # An agent that runs may be in another state each time.
    site.mas("stop", session)
    elsewhere = {"MAS_WORKSPACE_ROOT": "/nonexistent"}
    spellings = (
        ["--workspace", site.root, "--json", "show", session],
        ["show", session, "--json", "--workspace", site.root],
        [f"--workspace={site.root}", "show", "--json", session],
        ["--json", "show", f"--workspace={site.root}", "--", session],
    )
    assert len({site.mas(*words, env=elsewhere).stdout for words in spellings}) == 1


def test_everything_after_two_dashes_is_an_argument(site: Site) -> None:
    session = site.start("--team", "solo", "--command", "cat")
    site.mas("send", "--force", "--session", session, "--", "00", "--json")
    until(lambda: site.mas("output", "00").stdout.count("\n--json") >= 2, "the text at the agent and its echo")
    assert "-x" in site.mas("show", "--", "-x", code=2).stderr


@pytest.mark.parametrize("env", [{}, {"TERM": "dumb"}, {"NO_COLOR": "1"}, {"TERM": "xterm", "FORCE_COLOR": "1"}])
def test_what_no_terminal_reads_has_no_escape_codes(site: Site, env: dict[str, str]) -> None:
    site.start()
    for args in (["list"], ["show"], ["doctor"], ["stats"], ["--help"], ["start", "--help"]):
        done = site.mas(*args, env=env)
        assert ESCAPE not in done.stdout + done.stderr


def test_a_terminal_gets_colour_unless_it_says_no(site: Site) -> None:
    session = site.start()
    with terminal(site, "list") as shown:
        assert f"{session[:8]}  -     {ESCAPE}[32mactive{ESCAPE}[0m" in shown.end()
    for refusal in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        with terminal(site, "list", env=refusal) as shown:
            assert ESCAPE not in shown.end()
    with terminal(site, "list", env={"NO_COLOR": ""}) as shown:
        assert ESCAPE in shown.end()


def test_colour_does_not_move_the_columns_of_the_doctor(site: Site) -> None:
    with terminal(site, "doctor") as shown:
        line = next(line for line in shown.end().splitlines() if "templates unit" in line)
    assert line.startswith(f"{ESCAPE}[32mok{ESCAPE}[0m       templates unit ")


def test_a_reader_that_leaves_early_is_no_error(site: Site) -> None:
    for _ in range(3):
        site.start()
    done = site.run(["bash", "-c", f'"{sys.executable}" -m mas list | head -1; echo "${{PIPESTATUS[@]}}"'])
    assert done.stdout.splitlines()[0].startswith("SESSION")
    assert (done.stdout.splitlines()[-1], done.stderr) == ("0 0", "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("args", [["list"], ["list", "--json"], ["--help"], ["stop", "--help"], ["version"]])
def test_a_reader_that_has_left_is_no_error(site: Site, args: list[str], unbuffered: str) -> None:
    site.start()
    reading, writing = os.pipe()
    os.close(reading)
    env = {**site.env, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run([*MAS, *args], env=env, cwd=site.root, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_closed_stderr_does_not_stop_the_work(site: Site) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*MAS, "start", "--team", "solo"],
        env=site.env,
        cwd=site.root,
        stdout=subprocess.PIPE,
        stderr=writing,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stdout.decode().strip()) == (0, next(iter(site.statuses())))


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="no /dev/full to write to")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_data_that_cannot_be_written_is_an_error_and_no_traceback(site: Site, unbuffered: str) -> None:
    site.start()
    with open("/dev/full", "wb") as full:
        env = {**site.env, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run([*MAS, "list"], env=env, cwd=site.root, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 6
    assert done.stderr == b"error: The output could not be written: No space left on device\nhint:  df -h\n"


def test_closed_streams_are_borne(site: Site) -> None:
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        done = site.run(["bash", "-c", f'"{sys.executable}" -m mas list {closed}'])
        assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    for reading in ("send --session aaaa 00", "start --config -"):
        done = site.run(["bash", "-c", f'"{sys.executable}" -m mas {reading} <&-'])
        assert done.returncode
        assert "Traceback" not in done.stderr


def test_a_terminal_without_unicode_gets_escapes_instead_of_a_traceback(site: Site) -> None:
    site.mas("start", "--team", "solo", "--name", "Zoë 日本", "--json")
    plain = {"PYTHONIOENCODING": "ascii"}
    assert "Zo\\xeb" in site.mas("list", env=plain).stdout
    assert site.json("list", env=plain)["sessions"][0]["name"] == "Zoë 日本"
    assert "COMMAND \\u2026" in site.mas("--help", env=plain).stdout


@pytest.mark.parametrize("program", [MAS, UNHEARD])
def test_the_keyboard_interrupts_with_130(site: Site, program: tuple[str, ...]) -> None:
    session = site.start("--team", "solo", "--command", "cat")
    with terminal(site, "delete", session, program=program) as shown:
        shown.until("[y/N]")
        shown.type("\x03")
        assert shown.end().endswith("interrupted\r\n")
        assert shown.code == 130
    with terminal(site, "send", "00", program=program) as shown:
        shown.until("Type the message")
        shown.type("\x03")
        shown.end()
        assert shown.code == 130
    assert site.statuses() == {session: "active"}


def test_an_interrupted_start_leaves_nothing(site: Site) -> None:
    with open(site.path("unit", "00", "large"), "wb") as file:
        file.truncate(1 << 30)
    with terminal(site, "start", "--team", "solo", program=SLOW) as shown:
        shown.until("copying templates")
        shown.type("\x03")
        assert "interrupted" in shown.end()
        assert shown.code == 130
    assert site.statuses() == {}
    assert [name for name in os.listdir(site.path("sessions")) if not name.startswith(".")] == []
    assert site.tmux_sessions() == set()


def test_a_question_takes_only_yes_for_a_yes(site: Site) -> None:
    session = site.start()
    for answer in ("n\n", "\n", "nonsense\n", "\x04"):
        with terminal(site, "delete", session) as shown:
            shown.until("[y/N]")
            shown.type(answer)
            assert "Nothing was deleted" in shown.end()
            assert shown.code == 1
    assert "Confirmation is needed" in site.mas("delete", session, code=2, input="y\n").stderr
    assert site.statuses() == {session: "active"}
    with terminal(site, "delete", session) as shown:
        shown.until(f"Delete mas-{session[:8]} (active)?")
        shown.type("y\n")
        shown.end()
        assert shown.code == 0
    assert site.statuses() == {}


def test_a_damaged_session_can_be_deleted_after_asking(site: Site) -> None:
    session = site.start()
    site.mas("stop")
    os.unlink(site.session(session, "metadata.json"))
    with terminal(site, "delete", session) as shown:
        shown.until("(error)? It goes to the trash. [y/N]")
        shown.type("y\n")
        shown.end()
        assert shown.code == 0


def test_long_work_shows_a_bar_on_a_terminal(site: Site) -> None:
    with terminal(site, "start", "--team", "solo", program=SLOW) as shown:
        text = shown.end()
    assert shown.code == 0
    assert "\rcopying templates " in text
    assert "█" * 30 in text
    assert "\r\nStarted mas-" in text


def test_a_bar_fits_a_narrow_terminal_and_one_without_unicode(site: Site) -> None:
    argv = [*SLOW, "start", "--team", "solo"]
    with Terminal(argv, {**site.env, "PYTHONIOENCODING": "ascii"}, site.root, columns=60) as shown:
        lines = shown.end().replace("\r\n", "\r").split("\r")
    bars = [line for line in lines if line.startswith("copying")]
    assert bars
    assert all(len(line) < 60 and line.isascii() for line in bars)


def test_a_message_after_an_unfinished_bar_has_a_line_of_its_own(site: Site) -> None:
    for unit in ("00", "10"):
        with open(site.path("unit", unit, "more"), "wb") as file:
            file.write(b"x" * (1 << 20))
    limited = f"import resource, signal; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19)); {SLOW[2]}"
    with terminal(site, "start", program=(sys.executable, "-c", limited)) as shown:
        text = shown.end()
    assert shown.code == 6
    assert "\nerror: The disk is full" in text


@pytest.mark.parametrize("args", [["--json"], []])
def test_no_bar_without_a_terminal(site: Site, args: list[str]) -> None:
    done = site.run([*SLOW, "start", "--team", "solo", *args])
    assert done.returncode == 0
    assert "copying" not in done.stdout + done.stderr


def test_no_bar_for_short_work_or_json(site: Site) -> None:
    with terminal(site, "start", "--team", "solo") as shown:
        assert "copying" not in shown.end()
    with terminal(site, "start", "--team", "solo", "--json", program=SLOW) as shown:
        assert "copying" not in shown.end()


def test_an_interrupt_from_elsewhere_is_130_too(site: Site) -> None:
    site.start("--team", "solo", "--command", "cat")
    process = subprocess.Popen(
        [*MAS, "send", "00"],
        env=site.env,
        cwd=site.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    # Having read what was written, it waits for more.
    assert process.stdin is not None
    process.stdin.write(b"x" * (1 << 17))
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert (process.returncode, said) == (130, b"interrupted\n")
