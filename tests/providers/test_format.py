"""The provider format: what a file may say, and the error for one that is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from mas.model.errors import BadInput
from mas.model.launch import Sign
from mas.providers.format import read_provider
from tests.site import short_directory

ALL = """
provider = { id = "mine", description = "d", min_version = "1.2", version_cmd = ["sh", "-v"], install = "i" }
models   = { default = "m" }
approve  = { method = "key", key = "y", deny_key = "Escape", key_min_wait = 1, key_verify = false, or_key = true }
stop     = { graceful = ["C-c", "C-c"], timeout = 5 }
[input]
method       = "paste"
header       = "// "
submit_delay = 0.5
ack          = "hook:Took"
ack_timeout  = 9
mention      = "@"
completion   = "x"
[composer]
prompt = "> ?"
margin = "  "
above  = "^─+"
below  = "─"
rest   = "say something"
pasted = '\\[(?P<lines>\\d+) lines\\]'
dialogs = [{ match = "sure", report = "blocked:dialog", hint = "answer it" }]
[launch]
argv      = ["sh", ["--model", "{model}"]]
resume    = ["sh", "{agent_uuid}"]
resume_if = "{state_dir}/*.jsonl"
env       = { A = "{state_dir}" }
env_pass  = ["KEY"]
files     = { "{state_dir}/f" = "template" }
seed      = { "{state_dir}/s" = "template" }
credentials = ["~/.mine/key"]
credentials_if = { CLOUD = ["~/.cloud", "~/.config/cloud.json"] }
system_calls = ["perf_event_open"]
[status]
sources   = ["osc7501", "hooks", "title", "foreground", "screen"]
start_timeout = 30
titles_from = "hooks"
title_map = { working = "^x", "blocked:permission" = "^y" }
screen_map = { idle = "^y$", blocked = "z" }
quiet = 2
hook_map  = { Took = "working", Asks = "blocked:permission" }
startup_dialogs = [
    { match = "trust", report = "blocked:trust", hint = "see {workspace}" },
    { match = "x", report = "error" },
]
"""
ABOUT = "provider = { id = 'mine' }"
LEAST = f"{ABOUT}\n[launch]\nargv = ['sh']\n"


@pytest.fixture
def place() -> Iterator[str]:
    with short_directory() as directory:
        with open(os.path.join(directory, "template"), "w", encoding="ascii"):
            pass
        yield directory


def written(place: str, text: str | bytes) -> str:
    path = os.path.join(place, "mine.toml")
    with open(path, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
    return path


def test_everything_a_file_can_say_is_read(place: str) -> None:
    mine = read_provider(written(place, ALL), "mine")
    assert mine.provider == ("mine", "d", "1.2", ("sh", "-v"), "i", False)
    assert (mine.models.default, mine.needs_place) == ("m", True)
    assert mine.input == ("paste", "// ", 0.5, "hook:Took", 9.0, "hold", "@", "x")
    assert mine.composer == (
        *("> ?", "  ", "^─+", "─", "say something", r"\[(?P<lines>\d+) lines\]"),
        (Sign(match="sure", state="blocked", kind="dialog", hint="answer it"),),
    )
    assert mine.approve == ("key", "y", "Escape", 1.0, False, 300.0, True)
    assert mine.stop == (("C-c", "C-c"), 5.0)
    assert mine.launch.argv == ("sh", ("--model", "{model}"))
    assert mine.launch.resume == ("sh", "{agent_uuid}")
    assert mine.launch.resume_if == "{state_dir}/*.jsonl"
    assert mine.launch.env == (("A", "{state_dir}"),)
    assert mine.launch.env_pass == ("KEY",)
    assert mine.launch.credentials == ("~/.mine/key",)
    assert mine.launch.credentials_if == (("CLOUD", ("~/.cloud", "~/.config/cloud.json")),)
    assert mine.launch.system_calls == ("perf_event_open",)
    assert mine.launch.files == (("{state_dir}/f", "template"),)
    assert mine.launch.seed == (("{state_dir}/s", "template"),)
    assert mine.status.sources == ("osc7501", "hooks", "title", "foreground", "screen")
    assert mine.status.start_timeout == 30
    assert mine.status.titles_from == "hooks"
    assert mine.status.title_map == (
        Sign(match="^x", state="working"),
        Sign(match="^y", state="blocked", kind="permission"),
    )
    assert mine.status.screen_map == (Sign(match="^y$", state="idle"), Sign(match="z", state="blocked"))
    assert mine.status.quiet == 2
    assert mine.status.hook_map == (
        Sign(match="Took", state="working"),
        Sign(match="Asks", state="blocked", kind="permission"),
    )
    assert mine.status.startup_dialogs == (
        Sign(match="trust", state="blocked", kind="trust", hint="see {workspace}"),
        Sign(match="x", state="error"),
    )


def test_little_is_enough(place: str) -> None:
    mine = read_provider(written(place, LEAST), "mine")
    assert (mine.launch.argv, mine.status.sources, mine.needs_place) == (("sh",), (), False)
    assert (mine.input.submit_delay, mine.input.ack, mine.approve.method) == (0.2, "none", "none")


@pytest.mark.parametrize(
    ("status", "sources"),
    [
        ("sources = ['osc7501']", ("osc7501",)),
        ("sources = ['screen', 'osc7501']", ("osc7501", "screen")),
        ("sources = ['title']\nscreen_map = { idle = 'x' }", ("title", "screen")),
        ("startup_dialogs = [{ match = 'x', report = 'error' }]", ("screen",)),
    ],
)
def test_the_screen_is_believed_last_and_is_a_source_wherever_something_is_known_of_it(
    place: str, status: str, sources: tuple[str, ...]
) -> None:
    assert read_provider(written(place, f"{LEAST}[status]\n{status}\n"), "mine").status.sources == sources


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "provider is missing"),
        ("provider = 'mine'", "provider is 'mine'; it must be a table"),
        ("provider = 7", "provider must be a table"),
        ("provider = { description = 'x' }\n[launch]", "provider.id is missing"),
        ("provider = { id = 7 }\n[launch]", "provider.id must be text"),
        ("provider = { id = 'other' }\n[launch]\nargv = ['sh']", "provider.id must be 'mine', as the file is called"),
        (ABOUT, "launch.argv is missing"),
        (f"{ABOUT}\nlaunch = 7", "launch must be a table"),
        (f"{ABOUT}\n[launch]", "launch.argv is missing"),
        (f"{ABOUT}\n[launch]\nargv = []", "launch.argv is missing"),
        (f"{ABOUT}\n[launch]\nargv = [['sh']]", "launch.argv must begin with a program"),
        (f"{ABOUT}\n[launch]\nargv = 'sh'", "launch.argv must be a list"),
        (f"{ABOUT}\n[launch]\nargv = ['sh', 7]", "launch.argv[1] must be text"),
        (f"{ABOUT}\n[launch]\nargv = ['sh', ['a', ['b']]]", "launch.argv[1][1] must be text"),
        (f'{ABOUT}\n[launch]\nargv = ["sh", "a\\u0000b"]', "launch.argv[1] must not hold a NUL character"),
        (f"{LEAST}resume = 'x'", "launch.resume must be a list"),
        (f"{LEAST}resume_if = 'x'", "launch.resume_if needs launch.resume"),
        (f"{LEAST}env = 7", "launch.env must be a table"),
        (f"{LEAST}env = {{ 'A=B' = 'x' }}", "launch.env has 'A=B', which is not a variable name"),
        (f"{LEAST}env = {{ A = 7 }}", "launch.env.A must be text"),
        (f'{LEAST}env = {{ A = "\\u0000" }}', "launch.env.A must not hold a NUL character"),
        (f"{LEAST}credentials = '~/.x'", "launch.credentials must be a list"),
        (
            f"{LEAST}credentials = ['/etc/x']",
            "launch.credentials[0] is '/etc/x'; it must be a file or directory in the home",
        ),
        (f"{LEAST}credentials = ['~']", "launch.credentials[0] is '~'; it must be a file or directory in the home"),
        (
            f"{LEAST}credentials = ['~/a/../b']",
            "launch.credentials[0] is '~/a/../b'; it must be a file or directory in the home",
        ),
        (f"{LEAST}credentials_if = ['~/x']", "launch.credentials_if must be a table"),
        (
            f"{LEAST}credentials_if = {{ 'A B' = ['~/x'] }}",
            "launch.credentials_if has 'A B', which is not a variable name",
        ),
        (f"{LEAST}credentials_if = {{ A = ['x'] }}", "launch.credentials_if.A[0] is 'x'; it must be a file"),
        (f"{LEAST}env_pass = ['A B']", "launch.env_pass[0] is 'A B'; it must be a variable name"),
        (
            f"{LEAST}env_pass = ['TMUX']",
            "launch.env_pass[0] is 'TMUX'; it must be a variable name, but none of TMUX*, ",
        ),
        (
            f"{LEAST}env_pass = ['TMUX_TMPDIR']",
            "launch.env_pass[0] is 'TMUX_TMPDIR'; it must be a variable name, but none of TMUX*, ",
        ),
        (
            f"{LEAST}env_pass = ['SSH_AUTH_SOCK']",
            "launch.env_pass[0] is 'SSH_AUTH_SOCK'; it must be a variable name, but none of TMUX*, ",
        ),
        (
            f"{LEAST}env_pass = ['DBUS_X']",
            "launch.env_pass[0] is 'DBUS_X'; it must be a variable name, but none of TMUX*, ",
        ),
        (
            f"{LEAST}env_pass = ['MAS_TOKEN']",
            "launch.env_pass[0] is 'MAS_TOKEN'; it must be a variable name, but none of TMUX*, ",
        ),
        (
            f"{LEAST}files = {{ '/etc/passwd' = 'template' }}",
            "launch.files has '/etc/passwd', which is not a file below {state_dir}/",
        ),
        (
            f"{LEAST}files = {{ '{{state_dir}}/../x' = 'template' }}",
            "launch.files has '{state_dir}/../x', which is not a file below {state_dir}/",
        ),
        (
            f"{LEAST}seed = {{ '{{state_dir}}/x' = '/etc/passwd' }}",
            "launch.seed.{state_dir}/x is '/etc/passwd'; it must be a template beside the provider's file",
        ),
        (f"{LEAST}seed = {{ '{{state_dir}}//' = 'template' }}", "launch.seed has '{state_dir}//', which is not a file"),
        (
            f'{LEAST}seed = {{ "{{state_dir}}/\\u001b[2J" = "/x" }}',
            r"launch.seed.'{state_dir}/\x1b[2J' is '/x'; it must be a template beside the provider's file",
        ),
        (
            f"{LEAST}files = {{ '{{state_dir}}/x' = 'gone' }}",
            "launch.files.'{state_dir}/x': there is no template 'gone' beside the provider's file",
        ),
        (f"{LEAST}argw = []", "Unknown field 'argw' in launch (known: argv, "),
        (f"{LEAST}[other]", "Unknown field 'other' in a provider file (known: approve, composer, input, "),
        (
            "provider = { id = 'mine', name = 'x' }\n[launch]\nargv = ['sh']",
            "Unknown field 'name' in provider (known: ",
        ),
        (f"{LEAST}[models]\ndefalt = 'x'", "Unknown field 'defalt' in models (known: default)"),
        ("provider = { id = 'mine', min_version = '1' }\n[launch]", "provider.min_version needs provider.version_cmd"),
        ("provider = { id = 'mine', min_version = '1.x', version_cmd = ['x'] }", "it must be numbers such as 1.2.3"),
        ("provider = { id = 'mine', needs_command = 1 }", "provider.needs_command must be true or false"),
        (
            "provider = { id = 'mine', needs_command = true }\n[launch]\nargv = ['sh']",
            "launch.argv: a provider that needs a command has no arguments of its own",
        ),
        (f"{LEAST}[input]\nheader = '{'x' * 17}'", "it must be at most 16 printable characters"),
        (f"{LEAST}[input]\nsubmit_delay = 'x'", "input.submit_delay is 'x'; it must be from 0 to 600 seconds"),
        (f"{LEAST}[input]\nsubmit_delay = -1", "input.submit_delay must be from 0 to 600 seconds"),
        (f"{LEAST}[input]\nsubmit_delay = inf", "input.submit_delay must be from 0 to 600 seconds"),
        (f"{LEAST}[input]\nsubmit_delay = nan", "input.submit_delay must be from 0 to 600 seconds"),
        (f"{LEAST}[input]\nack_timeout = true", "input.ack_timeout must be from 0 to 600 seconds"),
        (f"{LEAST}[input]\nmethod = 'telepathy'", "input.method is 'telepathy'; it can be: paste"),
        (f"{LEAST}[input]\nack = 'hook:'", "input.ack is 'hook:'; it must be hook:EVENT, osc:working or none"),
        (f"{LEAST}[input]\nbusy = 'shout'", "input.busy is 'shout'; it can be: hold"),
        (f"{LEAST}[input]\nmention = '('", "input.mention is not a regular expression: "),
        (f"{LEAST}[composer]\nmargin = 'x'", "composer.prompt is missing"),
        (f"{LEAST}[composer]\nprompt = '('", "composer.prompt is not a regular expression: "),
        (f"{LEAST}[composer]\nprompt = 'x'\npasted = '(?: ?x)'", "composer.pasted is not a regular expression: "),
        (f"{LEAST}[approve]\nmethod = 'x'", "approve.method is 'x'; it must be hook:EVENT, key or none"),
        (f"{LEAST}[approve]\nkey = 'a;b'", "approve.key is 'a;b'; it must be a key as tmux calls it"),
        (f"{LEAST}[stop]\ngraceful = ['-t']", "stop.graceful[0] is '-t'; it must be a key"),
        (
            f"{LEAST}[stop]\ngraceful = ['Hyper']",
            "stop.graceful[0] is 'Hyper'; it must be a key that can be typed, such as C-c",
        ),
        (f"{LEAST}[stop]\ntimeout = 601", "stop.timeout must be from 0 to 600 seconds"),
        (
            f"{LEAST}system_calls = ['io_uring_setup']",
            "launch.system_calls[0] is not a system call that can be opened (those are: adjtimex, ",
        ),
        (f"{LEAST}[status]\nsources = ['smell']", "status.sources[0] is 'smell'; it can be: osc7501, "),
        (f"{LEAST}[status]\ntitle_map = {{ happy = 'x' }}", "status.title_map has 'happy', which is not a state: "),
        (f"{LEAST}[status]\ntitle_map = {{ idle = '(' }}", "status.title_map.idle is not a regular expression: "),
        (
            f"{LEAST}[status]\ntitle_map = {{ idle = 'x{{{'9' * 30}}}' }}",
            "status.title_map.idle is not a regular expre",
        ),
        (f"{LEAST}[status]\ntitle_map = {{ idle = '{'(' * 5000}' }}", "status.title_map.idle is not a regular expre"),
        (f"{LEAST}[status]\nstartup_dialogs = [7]", "status.startup_dialogs[0] must be a table"),
        (f'{LEAST}[status]\ntitle_map = {{ idle = "a\\nb" }}', "status.title_map.idle must be one line"),
        (
            f"{LEAST}[status]\nhook_map = {{ 'a=b' = 'idle' }}",
            "status.hook_map has 'a=b', which is not the name of a hook",
        ),
        (
            f"{LEAST}[status]\ntitle_map = {{ 'idle:x' = 'x' }}",
            "status.title_map has 'idle:x', which is not a state: starting, idle, working, ",
        ),
        (f"{LEAST}[status]\nhook_map = {{ Stop = 'blocked:' }}", "status.hook_map.Stop is 'blocked:'; it must be a "),
        (f"{LEAST}[status]\ntitles_from = 'x'", "status.titles_from is 'x'; it can be: start, hooks"),
        (f"{LEAST}[status]\nhook_map = {{ Stop = 'happy' }}", "status.hook_map.Stop is 'happy'; it must be a state"),
        (
            f"{LEAST}[status]\nscreen_map = {{ error = 'x' }}",
            "status.screen_map has 'error', which is not a state: idle, working, blocked or blocked:KIND",
        ),
        (f"{LEAST}[status]\nscreen_map = {{ idle = '(' }}", "status.screen_map.idle is not a regular expression: "),
        (f"{LEAST}[status]\nscreen_map = 1", "status.screen_map must be a table"),
        (f"{LEAST}[status]\nquiet = 'long'", "status.quiet is 'long'; it must be from 0 to 600 seconds"),
        (
            f'{LEAST}[[status.startup_dialogs]]\nmatch = "x"\nreport = "error"\nhint = "a\\nb"',
            "status.startup_dialogs[0].hint must be one line",
        ),
        (f"{LEAST}[status]\nstartup_dialogs = 7", "status.startup_dialogs must be a list"),
        (
            f"{LEAST}[[status.startup_dialogs]]\nmatch = '['\nreport = 'error'",
            "status.startup_dialogs[0].match is not a regular expression: ",
        ),
        (
            f"{LEAST}[[status.startup_dialogs]]\nmatch = 'x'\nreport = 'press Enter'",
            "status.startup_dialogs[0].report is 'press Enter'; it must be blocked:KIND or error",
        ),
        (
            f"{LEAST}[[status.startup_dialogs]]\nmatch = 'x'\nreport = 'error'\nkey = 'Enter'",
            "Unknown field 'key' in status.startup_dialogs[0] (known: ",
        ),
    ],
)
def test_a_file_that_describes_no_provider_is_named_with_what_is_wrong(place: str, text: str, complaint: str) -> None:
    path = written(place, text)
    with pytest.raises(BadInput) as refused:
        read_provider(path, "mine")
    assert refused.value.message.startswith(f"{path}: ")
    assert complaint in refused.value.message


@pytest.mark.parametrize("text", ["not toml", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_reported_as_such(place: str, text: str | bytes) -> None:
    path = written(place, text)
    with pytest.raises(BadInput, match=f"^{path} is not TOML: "):
        read_provider(path, "mine")


@pytest.mark.parametrize("field", ["argv = ['sh', 'X']", "argv = ['sh', ['X']]", "argv = ['sh']\nresume = ['X']",
                                   "argv = ['sh']\nenv = { A = 'X' }"])  # fmt: skip
def test_an_unknown_placeholder_is_named_wherever_it_stands(place: str, field: str) -> None:
    path = written(place, f"{ABOUT}\n[launch]\n{field.replace('X', 'a{nonsense}b')}")
    with pytest.raises(BadInput, match=r"uses \{nonsense\}, which MAS does not know \(known: agent_uuid, "):
        read_provider(path, "mine")
