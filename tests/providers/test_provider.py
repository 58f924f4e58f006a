"""Providers: what to run for an agent, checked before anything is started."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping

import psutil
import pytest

from mas.model.errors import BadInput, NoProgram
from mas.model.launch import Sign, StatePlan
from mas.model.team import Agent
from mas.providers.provider import AgentHome, Providers
from mas.runtime import host
from mas.runtime.host import version_text
from mas.store.files.matching import is_any
from tests.site import short_directory, until

GOOD = """
provider = { id = "mine", description = "my own" }
input = { submit_delay = 0.5 }
[launch]
argv = ["sh", "-c", "x {model}", "{shell}"]
resume = ["sh", "--resume"]
env = { KEY = "value" }
"""


@pytest.fixture
def place() -> Iterator[str]:
    with short_directory() as directory:
        yield directory


@pytest.fixture
def providers(place: str) -> Providers:
    return Providers(place, {"PATH": os.environ["PATH"], "SHELL": "/bin/sh"}, is_any=is_any)


def written(place: str, text: str | bytes, name: str = "mine") -> str:
    path = os.path.join(place, f"{name}.toml")
    with open(path, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
    return path


def program(directory: str, name: str, mode: int = 0o755) -> str:
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    os.chmod(path, mode)
    return path


def run(command: str) -> Agent:
    return Agent("00", command=command)


def by(provider: str, model: str | None = None) -> Agent:
    return Agent("00", provider=provider, model=model)


def test_every_built_in_provider_loads_and_can_be_run(providers: Providers) -> None:
    assert {"demo", "shell"} <= set(providers.names())
    for name in providers.names():
        assert providers.get(name).provider.id == name
    assert providers.program(by("shell")).argv[1:] == ("-l",)
    demo = providers.program(by("demo")).argv
    assert demo[0] == sys.executable
    assert os.path.isfile(demo[-1])


def test_a_workspaces_own_file_is_read_and_wins(place: str, providers: Providers) -> None:
    written(place, GOOD)
    mine = providers.get("mine")
    assert (mine.provider.description, mine.input.submit_delay, mine.launch.env) == ("my own", 0.5, (("KEY", "value"),))
    found = providers.program(by("mine", model="large; rm -rf"))
    assert os.path.basename(found.argv[0]) == "sh"
    assert found.argv[1:] == ("-c", "x large; rm -rf", "/bin/sh")
    assert found.env == (("KEY", "value"),)
    written(place, GOOD.replace('"mine"', '"shell"'), "shell")
    assert providers.get("shell").provider.description == "my own"


def test_an_agent_resumes_where_its_provider_can(place: str, providers: Providers) -> None:
    written(place, GOOD)
    resumed = providers.program(by("mine"), resume=True)
    assert (resumed.argv[1:], resumed.resumes, resumed.can_resume) == (("--resume",), True, True)
    assert not providers.program(by("mine")).resumes
    fresh = providers.program(by("shell"), resume=True)
    assert (fresh.argv[1:], fresh.resumes, fresh.can_resume) == (("-l",), False, False)


def test_a_conversation_that_was_never_begun_is_not_resumed(place: str, providers: Providers) -> None:
    written(place, GOOD.replace("env =", 'resume_if = "{state_dir}/*/{agent_uuid}.jsonl"\nenv ='))
    # A pattern in the name of the place itself is only a name.
    state = os.path.join(place, "st[a]te*")
    os.makedirs(os.path.join(state, "inner"))
    home = AgentHome(state_dir=state, agent_uuid="an-id")
    assert not providers.program(by("mine"), home, resume=True).resumes
    with open(os.path.join(state, "inner", "an-id.jsonl"), "w", encoding="ascii"):
        pass
    assert providers.program(by("mine"), home, resume=True).resumes


def test_arguments_in_a_group_are_left_out_together_if_one_has_no_value(place: str, providers: Providers) -> None:
    groups = '["sh", ["--model", "{model}"], ["--role", "{role_file}", "-x"], ["--both"]]'
    written(place, f"provider = {{ id = 'mine' }}\n[launch]\nargv = {groups}")
    assert providers.program(by("mine")).argv[1:] == ("--both",)
    assert providers.program(by("mine", "m")).argv[1:] == ("--model", "m", "--both")
    found = providers.program(by("mine", "m"), AgentHome(role_file="/r"))
    assert found.argv[1:] == ("--model", "m", "--role", "/r", "-x", "--both")


def test_only_what_a_provider_names_is_taken_from_the_environment(place: str) -> None:
    written(place, GOOD.replace("env =", 'env_pass = ["MINE", "ABSENT", "KEY"]\nenv ='))
    environ = {"PATH": os.environ["PATH"], "MINE": "1", "SECRET": "2", "KEY": "3"}
    assert dict(Providers(place, environ).program(by("mine")).env) == {"MINE": "1", "KEY": "value"}


def test_credentials_are_those_named_and_those_of_variables_that_are_set(place: str) -> None:
    more = 'credentials = ["~/.mine"]\ncredentials_if = { CLOUD = ["~/.cloud"], OTHER = ["~/.other"] }\nenv ='
    written(place, GOOD.replace("env =", more))
    environ = {"PATH": os.environ["PATH"], "CLOUD": "1", "OTHER": ""}
    assert Providers(place, environ).program(by("mine")).credentials == ("~/.mine", "~/.cloud")
    assert Providers(place, {"PATH": os.environ["PATH"]}).program(by("mine")).credentials == ("~/.mine",)


def test_files_are_filled_and_escaped_for_their_kind(place: str, providers: Providers) -> None:
    os.mkdir(os.path.join(place, "templates"))
    for name in ("t.json", "t.txt"):
        with open(os.path.join(place, "templates", name), "w", encoding="utf-8") as file:
            file.write('{"role": "{role}", "at": "{session_dir}"}')
    files = '{ "{state_dir}/deep/a.json" = "templates/t.json", "{state_dir}/a.txt" = "templates/t.txt" }'
    written(place, GOOD.replace("env =", f'files = {files}\nseed = {{ "{{state_dir}}/s" = "templates/t.txt" }}\nenv ='))
    role = 'line\n"quoted" \\ {model} ü\x7f'
    found = providers.program(by("mine"), AgentHome(state_dir="/s", session_dir="/d", role=role))
    written_as = dict(found.files)
    assert json.loads(written_as["/s/deep/a.json"]) == {"role": role, "at": "/d"}
    assert written_as["/s/a.txt"] == f'{{"role": "{role}", "at": "/d"}}'
    assert [path for path, _ in found.seed] == ["/s/s"]
    with open(os.path.join(place, "templates", "t.txt"), "a", encoding="utf-8") as file:
        file.write("{nonsense}")
    with pytest.raises(BadInput, match=r"t\.txt uses \{nonsense\}"):
        providers.program(by("mine"), AgentHome(state_dir="/s"))


def test_a_file_that_was_changed_is_read_again(place: str, providers: Providers) -> None:
    written(place, GOOD)
    assert providers.get("mine") is providers.get("mine")
    written(place, GOOD.replace("my own", "my very own"))
    assert providers.get("mine").provider.description == "my very own"


def test_a_command_makes_an_agent_generic_whatever_its_provider(providers: Providers) -> None:
    assert providers.sources("shell", None) == ("foreground",)
    assert providers.sources("shell", "sh") == ()
    assert providers.program(Agent("00", provider="shell", command="sh")).provider == "generic"
    with pytest.raises(BadInput, match="needs a command to run"):
        providers.program(by("generic"))


def test_the_launch_plan_says_how_to_read_a_program(providers: Providers, place: str) -> None:
    assert providers.program(by("shell")).state_plan() == StatePlan(sources=("foreground",), start_timeout=60)
    demo = providers.program(by("demo"))
    assert demo.state_plan() == StatePlan(sources=("osc7501",), start_timeout=60)
    assert (demo.quit_keys(), demo.stop.timeout) == (("03",), 5)
    assert providers.program(run("sh")).state_plan() == StatePlan()
    written(place, GOOD + '[status]\nsources = ["hooks", "title"]\ntitle_map = { idle = "^=", working = "a=b" }\n'
            'titles_from = "hooks"\nhook_map = { Stop = "idle" }')  # fmt: skip
    assert providers.program(by("mine")).state_plan() == StatePlan(
        sources=("hooks", "title"),
        start_timeout=60,
        titles_wait=True,
        title_map=(Sign(match="^=", state="idle"), Sign(match="a=b", state="working")),
        hook_map=(Sign(match="Stop", state="idle"),),
    )


def test_the_launch_plan_says_what_to_look_for_on_a_screen(providers: Providers, place: str) -> None:
    written(place, GOOD + """[status]
start_timeout = 0
quiet = 0.5
screen_map = { idle = '^> ?$', blocked = 'y=n' }
startup_dialogs = [
    { match = 'a=b', report = 'blocked:trust', hint = 'trust {workspace} first' },
    { match = 'c', report = 'error' },
]""")  # fmt: skip
    assert providers.program(by("mine"), AgentHome(workspace="/a\tb\nc/{model}")).state_plan() == StatePlan(
        sources=("screen",),
        dialogs=(
            Sign(match="a=b", state="blocked", kind="trust", hint="trust /a b c/{model} first"),
            Sign(match="c", state="error"),
        ),
        screen_map=(Sign(match="^> ?$", state="idle"), Sign(match="y=n", state="blocked")),
        quiet=0.5,
    )


@pytest.mark.parametrize(
    ("said", "version", "meets", "problem"),
    [
        ("tool 1.10.2 (beta)\n", "1.10.2", True, ""),
        ("1.9.0", "1.9.0", True, ""),
        ("v1.8", "1.8", False, "version 1.8 is older than 1.9"),
        ("none of your business", None, False, "its version is unknown"),
        (None, None, False, "its version is unknown"),
    ],
)
def test_a_version_is_read_and_compared_by_number(
    place: str, said: str | None, version: str | None, meets: bool, problem: str
) -> None:
    about = 'provider = { id = "mine", min_version = "1.9", version_cmd = ["sh", "-v"], install = "get it" }'
    written(place, GOOD.replace('provider = { id = "mine", description = "my own" }', about))
    asked: list[tuple[tuple[str, ...], dict[str, str]]] = []

    def ask(argv: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
        asked.append((argv, dict(environ)))
        return said

    view = Providers(place, {"PATH": os.environ["PATH"], "SECRET": "x"}, ask).look("mine")
    assert (view.version, view.meets_minimum, view.problem) == (version, meets, problem)
    assert (view.min_version, view.install, view.installed) == ("1.9", "get it", True)
    ((argv, environ),) = asked
    assert (os.path.basename(argv[0]), argv[1:]) == ("sh", ("-v",))
    assert set(environ) == {"PATH"}


def test_a_program_is_asked_for_its_version_once_and_given_up_on(place: str) -> None:
    path = os.path.join(place, "agent")
    for script, answer in (("echo 1.2.3; echo x >> asked", "1.2.3\n"), ("echo 1.2.3; exit 1", None)):
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\ncd {place}\n{script}\n")
        os.chmod(path, 0o755)
        for _ in range(2):
            assert version_text((path,), {"PATH": os.environ["PATH"]}) == answer
    with open(os.path.join(place, "asked"), encoding="ascii") as file:
        assert file.read() == "x\n"


def test_a_program_that_does_not_say_its_version_is_ended_with_all_it_started(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.path.join(place, "agent")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\nsleep 1000 &\necho $! > {place}/pid\nwait\n")
    os.chmod(path, 0o755)
    monkeypatch.setattr(host, "_VERSION_PATIENCE", 0.5)
    assert version_text((path,), {"PATH": os.environ["PATH"]}) is None
    with open(os.path.join(place, "pid"), encoding="ascii") as file:
        pid = int(file.read() or "0")
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, "its end")


@pytest.mark.parametrize("name", ["", "nobody", "../mine", "Mine", "mine.toml", "a/b", "mine\n", "x" * 300, "\0"])
def test_the_error_for_an_unknown_provider_lists_the_known_ones(place: str, providers: Providers, name: str) -> None:
    written(place, GOOD)
    with pytest.raises(BadInput, match=r"there are: .*mine.*shell"):
        providers.get(name)


def test_a_missing_program_is_named(place: str, providers: Providers) -> None:
    with pytest.raises(NoProgram, match="no-such-agent"):
        providers.program(run("no-such-agent --flag"))
    written(place, GOOD.replace('["sh", "-c"', '["no-such-agent", "-c"'))
    with pytest.raises(NoProgram, match="no-such-agent"):
        providers.program(by("mine"))


def test_a_file_that_cannot_be_run_is_no_program(place: str, providers: Providers) -> None:
    path = program(place, "agent", 0o644)
    os.mkdir(os.path.join(place, "directory"))
    for command in (path, os.path.join(place, "directory"), os.path.join(place, "missing"), "''"):
        with pytest.raises(NoProgram):
            providers.program(run(command))
    os.chmod(path, stat.S_IRWXU)
    assert providers.program(run(path)).argv == (path,)


def test_programs_are_looked_for_where_the_user_would_look(place: str) -> None:
    path = program(place, "agent")
    assert Providers(place, {"PATH": f"/nowhere:{place}"}).program(run("agent")).argv == (path,)
    with pytest.raises(NoProgram):
        Providers(place, {"PATH": "/nowhere"}).program(run("agent"))


def test_a_program_is_named_by_a_path_that_works_in_any_directory(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(place, "agent")
    monkeypatch.chdir(place)
    assert Providers(place, {"PATH": "/nowhere"}).program(run("./agent -x")).argv == (path, "-x")
    assert Providers(place, {"PATH": "."}).program(run("agent")).argv == (path,)
    monkeypatch.chdir("/")


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("sh -c 'a b'", ("-c", "a b")),
        ("sh $HOME `id` $(id) *", ("$HOME", "`id`", "$(id)", "*")),
        ("sh ; touch x | cat > y & #z", (";", "touch", "x", "|", "cat", ">", "y", "&", "#z")),
        ("sh \"\" ''", ("", "")),
        ("sh a\\ b", ("a b",)),
        ("sh 日本", ("日本",)),
        ("sh {model} {python}", ("{model}", "{python}")),
    ],
)
def test_a_command_is_split_into_arguments_and_no_shell_is_involved(
    providers: Providers, command: str, argv: tuple[str, ...]
) -> None:
    assert providers.program(run(command)).argv[1:] == argv


@pytest.mark.parametrize("command", ["", "  ", "sh 'unfinished", "sh \\"])
def test_an_invalid_command_is_refused(providers: Providers, command: str) -> None:
    with pytest.raises(BadInput):
        providers.program(run(command))


def test_an_unknown_program_gets_a_moment_before_enter_and_a_known_one_what_its_file_says(
    place: str, providers: Providers
) -> None:
    written(place, GOOD)
    assert providers.input("mine", None).submit_delay == 0.5
    assert providers.input("mine", "sh").submit_delay > 0
    assert providers.input("demo", None).submit_delay == 0
