"""Providers: what to run for an agent, checked before anything is started."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator

import pytest

from mas.model.errors import BadInput, NoProgram
from mas.model.team import Agent
from mas.providers.provider import Providers
from tests.site import short_directory

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
    return Providers(place, {"PATH": os.environ["PATH"], "SHELL": "/bin/sh"})


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
    return Agent("00", "meta", command=command)


def by(provider: str, model: str | None = None) -> Agent:
    return Agent("00", "meta", provider=provider, model=model)


def test_every_built_in_provider_loads_and_can_be_run(providers: Providers) -> None:
    assert {"demo", "shell"} <= set(providers.names())
    for name in providers.names():
        assert providers.get(name).id == name
    assert providers.program(by("shell")).argv[1:] == ("-l",)
    demo = providers.program(by("demo")).argv
    assert demo[0] == sys.executable
    assert os.path.isfile(demo[-1])


def test_a_workspaces_own_file_is_read_and_wins(place: str, providers: Providers) -> None:
    written(place, GOOD)
    mine = providers.get("mine")
    assert (mine.description, mine.submit_delay, mine.env) == ("my own", 0.5, (("KEY", "value"),))
    found = providers.program(by("mine", model="large; rm -rf"))
    assert os.path.basename(found.argv[0]) == "sh"
    assert found.argv[1:] == ("-c", "x large; rm -rf", "/bin/sh")
    assert found.env == (("KEY", "value"),)
    written(place, GOOD.replace('"mine"', '"shell"'), "shell")
    assert providers.get("shell").description == "my own"


def test_an_agent_resumes_where_its_provider_can(place: str, providers: Providers) -> None:
    written(place, GOOD)
    assert providers.program(by("mine"), resume=True).argv[1:] == ("--resume",)
    assert providers.program(by("shell"), resume=True).argv[1:] == ("-l",)


@pytest.mark.parametrize("name", ["", "nobody", "../mine", "Mine", "mine.toml", "a/b", "mine\n", "x" * 300, "\0"])
def test_an_unknown_provider_is_told_with_the_ones_there_are(place: str, providers: Providers, name: str) -> None:
    written(place, GOOD)
    with pytest.raises(BadInput, match=r"there are: .*mine.*shell"):
        providers.get(name)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("not toml", "not TOML"),
        (b"\xff\xfe", "not TOML"),
        ("", "provider is missing"),
        ("provider = 'mine'", "provider must be a table"),
        ("provider = { description = 'x' }\n[launch]", "provider.id is missing"),
        ("provider = { id = 'other' }\n[launch]\nargv = ['sh']", "provider.id must be 'mine'"),
        ("provider = { id = 'mine' }", "launch is missing"),
        ("provider = { id = 'mine' }\nlaunch = 7", "launch must be a table"),
        ("provider = { id = 'mine' }\n[launch]", "launch.argv is missing"),
        ("provider = { id = 'mine' }\n[launch]\nargv = []", "argv is empty"),
        ("provider = { id = 'mine' }\n[launch]\nargv = 'sh'", "lists of text"),
        ("provider = { id = 'mine' }\n[launch]\nargv = ['sh', 7]", "lists of text"),
        ("provider = { id = 'mine' }\n[launch]\nargv = ['sh', \"a\\u0000b\"]", "NUL"),
        ("provider = { id = 'mine' }\n[launch]\nargv = ['sh']\nresume = 'x'", "lists of text"),
        ("provider = { id = 'mine' }\n[launch]\nargv = ['sh', '{nonsense}']", "{nonsense}"),
        ("provider = { id = 'mine' }\n[launch]\nargv = ['sh']\nresume = ['{nonsense}']", "{nonsense}"),
        ("provider = { id = 'mine' }\n[launch]\nargv = ['sh']\nenv = 7", "env must be a table"),
        ("provider = { id = 'mine' }\n[launch]\nargv = ['sh']\nenv = { 'A=B' = 'x' }", "A=B"),
        ("provider = { id = 'mine' }\n[launch]\nargv = ['sh']\nenv = { A = \"\\u0000\" }", "A"),
        ("provider = { id = 'mine' }\ninput = 7\n[launch]\nargv = ['sh']", "input must be a table"),
        ("provider = { id = 'mine' }\ninput.submit_delay = 'x'\n[launch]\nargv = ['sh']", "submit_delay"),
        ("provider = { id = 'mine' }\ninput.submit_delay = -1\n[launch]\nargv = ['sh']", "submit_delay"),
        ("provider = { id = 'mine' }\ninput.submit_delay = inf\n[launch]\nargv = ['sh']", "submit_delay"),
        ("provider = { id = 'mine' }\ninput.submit_delay = nan\n[launch]\nargv = ['sh']", "submit_delay"),
    ],
)
def test_a_file_that_describes_no_provider_is_named_with_what_is_wrong(
    place: str, providers: Providers, text: str | bytes, complaint: str
) -> None:
    path = written(place, text)
    with pytest.raises(BadInput) as refused:
        providers.get("mine")
    assert path in refused.value.message
    assert complaint in refused.value.message


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


def test_a_program_is_told_by_a_path_that_holds_in_any_directory(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_command_is_split_into_words_and_no_shell_is_involved(
    providers: Providers, command: str, argv: tuple[str, ...]
) -> None:
    assert providers.program(run(command)).argv[1:] == argv


@pytest.mark.parametrize("command", ["", "  ", "sh 'unfinished", "sh \\"])
def test_a_command_that_is_none_is_refused(providers: Providers, command: str) -> None:
    with pytest.raises(BadInput):
        providers.program(run(command))


def test_an_unknown_program_gets_a_moment_before_enter_and_a_known_one_what_its_file_says(
    place: str, providers: Providers
) -> None:
    written(place, GOOD)
    assert providers.submit_delay("mine", None) == 0.5
    assert providers.submit_delay("mine", "sh") > 0
    assert providers.submit_delay("demo", None) == 0
