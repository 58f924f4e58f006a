"""Every example in the help really works."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable

import pytest

from mas.cli.main import COMMANDS, load
from mas.model.ids import SessionId
from mas.service.local import LocalMas
from tests.shell.front import mas_program
from tests.site import Site, until
from tests.terminal import Terminal

NAMED = ("550e8400",)
TALKS = "sh -c 'echo ready; exec cat'"
ELSEWHERE = "serve --host 10.0.0.5 --tls-cert cert.pem --tls-key key.pem"


def team(site: Site, name: str = "dev") -> str:
    return site.start("--team", name, "--command", TALKS, "--name", "web")


def ready(site: Site) -> str:
    """A team that takes messages and reports its state."""
    session = site.start("--team", "dev", "--provider", "demo", "--name", "web")
    site.mas("wait", "--session", session)
    return session


def active(site: Site) -> list[str]:
    return [team(site)]


def stopped(site: Site) -> list[str]:
    session = team(site, "solo")
    site.mas("stop", session)
    return [session]


def asking(site: Site) -> list[str]:
    """A session whose agents 00 and 21 wait for an answer."""
    session = site.start("--team", "dev", "--provider", "demo", "--name", "web")
    mas = site.local()
    for agent in ("00", "21"):
        until(lambda agent=agent: state(mas, session, agent) == "idle", agent)  # type: ignore[misc]
        site.mas("send", agent, "/ask go on")
        until(lambda agent=agent: state(mas, session, agent) == "blocked", agent)  # type: ignore[misc]
    return [session]


def state(mas: LocalMas, session: str, wanted: str) -> str:
    return next(agent.state for agent in mas.show(SessionId(session)).agents if agent.id == wanted)


def archived(site: Site) -> list[str]:
    (session,) = stopped(site)
    site.mas("archive", session)
    return [session]


def deleted(site: Site) -> list[str]:
    (session,) = stopped(site)
    site.mas("delete", session, "--yes")
    return [session]


def nothing(site: Site) -> list[str]:
    return []


def serving(site: Site) -> list[str]:
    site.mas("serve", "--detach", "--port", "0")
    return []


def certified(site: Site) -> list[str]:
    for name in ("cert.pem", "key.pem"):
        with open(site.path(name), "w", encoding="utf-8") as file:
            file.write("no certificate")
    return []


def with_a_key(site: Site) -> list[str]:
    with open(site.path("key.txt"), "w", encoding="utf-8") as file:
        file.write("sk-0123456789")
    site.mas("keys", "set", "anthropic", input="sk-0123456789")
    return []


def policed(site: Site) -> list[str]:
    with open(site.path("config.json"), encoding="utf-8") as file:
        config = json.load(file) | {"retention": {"maxAge": "30d"}}
    with open(site.path("config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return stopped(site)


def old_project(site: Site) -> list[str]:
    os.makedirs(os.path.join(site.home, "old-project", "unit", "00"))
    return []


# What there must be before an example makes sense; the sessions stand in for the ids the examples name.
BEFORE: dict[str, Callable[[Site], list[str]]] = {
    **dict.fromkeys(("send", "wait", "ask"), lambda site: [ready(site)]),
    "restore": stopped,
    "archive": stopped,
    "unarchive": archived,
    "undelete": deleted,
    "delete": stopped,
    "prune": stopped,
    "prune --policy --dry-run": policed,
    "migrate": old_project,
    "keys": with_a_key,
    "url": serving,
    "forward --detach web 3000": lambda site: serving(site) or [team(site, "solo")],
    **dict.fromkeys(("approvals", "approve", "deny"), asking),
    "serve": nothing,
    "serve --stop": serving,
    ELSEWHERE: certified,
    "stop web 550e8400": lambda site: [team(site, "solo"), team(site, "solo")][::-1],
    **dict.fromkeys(("up", "init", "start", "doctor", "repair", "completion", "version", "complete"), nothing),
}
ASKS = ("mas delete web",)
# What makes sense in an agent's pane only.
AS_AGENT = {"MAS_AGENT_ID": "21"}


def command_of(example: str) -> str:
    return next(match[0] for match in re.finditer(r"[a-z-]+", example) if match[0] in COMMANDS)


def examples() -> list[str]:
    return [line for command in COMMANDS for line in load(command).EXAMPLES.strip().splitlines()]


@pytest.mark.parametrize("example", examples())
def test_an_example_works_as_it_stands(site: Site, example: str) -> None:
    command = command_of(example)
    before = BEFORE.get(example.removeprefix("mas "), BEFORE.get(command, active))
    # No bash can run what is meant for zsh; there it is enough that something comes.
    typed = example.replace("eval", "test -n") if "zsh" in example else example
    for named, session in zip(NAMED, before(site), strict=False):
        typed = typed.replace(named, session[:8])
    for name, text in (("run.json", '{"team": "solo"}'), ("brief.md", "read this"), ("question.md", "how is it?")):
        with open(site.path(name), "w", encoding="utf-8") as file:
            file.write(text)
    os.makedirs(os.path.join(site.home, ".config", "fish", "completions"))
    env = {**site.env, "PATH": f"{os.path.dirname(mas_program(site))}:{site.env['PATH']}"}
    if command == "report" and "web:" not in example:
        env |= AS_AGENT
    # No provider can be reached from here: it is enough that one is asked.
    env |= {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"} if command == "keys" else {}
    # A browser, where the machine has none.
    typed = typed.replace("xdg-open", "test -n")
    with Terminal(["/bin/bash", "-c", typed], env, site.root) as shell:
        leave(site, shell, example)
        text = shell.end()
    if ELSEWHERE in example:
        # Nobody has a certificate here: it is enough that the server looks for one.
        assert "error: Cannot use" in text
        return
    if example.startswith("mas transcript"):
        assert "records no conversation that MAS can read" in text
        return
    if example == "mas keys test":
        assert "anthropic: Cannot reach http://127.0.0.1:9" in text
        return
    assert [line for line in text.splitlines() if line.startswith(("error", "Traceback"))] == [], text
    wanted = -signal.SIGINT if "--follow" in example else 130 if "--watch" in example else 0
    assert shell.code == wanted, text


def leave(site: Site, shell: Terminal, example: str) -> None:
    """Do what a person would: answer, detach, look long enough."""
    if example in ASKS:
        shell.until("[y/N]")
        shell.type("y\n")
    elif example == "mas keys set anthropic":
        shell.until("Key of anthropic: ")
        shell.type("sk-9876543210\n")
    elif command_of(example) == "transcript":
        # The agents here are commands, which record nothing: it ends by itself.
        shell.until("records no conversation")
    elif "attach" in example:
        shell.until("[mas-")
        # By command, not by keys: keys that come too fast are a paste to tmux.
        site.tmux("detach-client", "-s", site.tmux("list-clients", "-F", "#{client_session}"))
    elif example == "mas serve":
        shell.until("http://127.0.0.1:")
        shell.type("\x03")
    elif command_of(example) == "mcp":
        # Whoever started it closes its input.
        shell.type("\x04")
    elif "--follow" in example:
        shell.until("ready")
        shell.type("\x03")
    elif "--watch" in example:
        shell.until("\x1b[J")
        shell.type("\x03")
