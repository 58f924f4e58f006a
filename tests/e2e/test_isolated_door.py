"""An agent that sees nothing of MAS's state but the server's address reaches MAS by that, and by nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from mas.store.agent.launch_plan import launch_path, read_plan
from tests.served import Served
from tests.site import Site, until


def shut_in(site: Site, session: str, agent: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `mas` as that agent, where nothing is visible but the address and an empty session directory."""
    env = cell(site, session, agent)

    def run(*args: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        return site.mas(*args, env=env | more, cwd=env["MAS_SESSION_DIR"], code=code)

    return run


def cell(site: Site, session: str, agent: str) -> dict[str, str]:
    root = os.path.join(site.directory, "cell")
    own = os.path.join(root, "sessions", session)
    os.makedirs(own, exist_ok=True)
    os.makedirs(os.path.join(root, "sessions", ".mas"), exist_ok=True)
    if not os.path.lexists(os.path.join(root, "sessions", ".mas", "address")):
        os.symlink(site.path("sessions", ".mas", "address"), os.path.join(root, "sessions", ".mas", "address"))
    env = dict(read_plan(launch_path(site.session(session), agent)).env)
    return env | {"MAS_WORKSPACE_ROOT": root, "MAS_SESSION_DIR": own, "MAS_HOOKS": os.path.join(own, "hooks")}


def url_file(site: Site) -> str:
    return site.path("sessions", ".mas", "address", "url")


def test_all_that_agents_do_works_with_nothing_but_the_address(served: Served) -> None:
    site = served.site
    session = site.start("--team", "pair", "--provider", "demo")
    mas = shut_in(site, session, "21")
    until(lambda: json.loads(mas("show", "--json").stdout)["agents"][1]["state"] == "idle", "agent 23")
    mas("send", "23", "hello")
    mas("report", "busy")
    mas("wait", "23", "--timeout", "30")
    assert "demo" in mas("output", "23").stdout
    assert mas("ask", "23", "who are you?", "--timeout", "30").stdout
    site.mas("send", "21", "good morning")
    assert [message["message"] for message in json.loads(mas("inbox", "--json").stdout)["messages"]] == ["good morning"]
    assert mas("show", session[:8]).stdout
    assert {message["from"] for message in site.json("inbox", "23")["messages"]} == {"21"}
    assert os.listdir(os.path.join(site.directory, "cell")) == ["sessions"]


def test_without_a_server_the_error_in_an_isolated_agent_says_what_to_run_outside(site: Site) -> None:
    session = site.start("--team", "pair")
    mas = shut_in(site, session, "21")
    for args in (["send", "23", "x"], ["show"], ["wait", "23"]):
        done = mas(*args, code=7)
        assert "No server is running" in done.stderr
        assert "mas serve --detach" in done.stderr
    for command in ("list", "token"):
        assert "An isolated agent cannot use" in mas(command, code=8).stderr
    # One that is not isolated has the workspace itself.
    env = dict(read_plan(launch_path(site.session(session), "21")).env)
    site.mas("report", "busy", env=env)


def test_the_address_of_a_server_that_was_killed_is_known_for_it(served: Served) -> None:
    site = served.site
    session = site.start("--team", "pair")
    mas = shut_in(site, session, "21")
    with open(url_file(site), encoding="utf-8") as file:
        assert file.read() == f"{served.url}\n"
    mas("report", "busy")
    served.kill()
    assert os.path.exists(url_file(site))
    assert "No server is running" in mas("report", "busy", code=7).stderr
    # Others who look do not take each other for the server.
    with open(url_file(site), "rb"):
        env = dict(read_plan(launch_path(site.session(session), "21")).env)
        site.mas("report", "busy", env=env)
    served.restart()
    mas("report", "at it again")
    served.stop()
    assert not os.path.exists(url_file(site))


def test_tools_of_an_isolated_agent_wait_for_the_server(site: Site) -> None:
    session = site.start("--team", "pair")
    env = {**site.env, **cell(site, session, "21")}

    async def use() -> None:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "mas", "mcp"], env=env, cwd=env["MAS_SESSION_DIR"]
        )
        with open(os.path.join(site.directory, "mcp.txt"), "w", encoding="utf-8") as said:
            async with Client(stdio_client(command, said)) as client:
                refused = await client.call_tool("list_team", {})
                assert refused.is_error
                assert "mas serve --detach" in str(refused.content)
                served = await asyncio.to_thread(Served, site)
                try:
                    team = await client.call_tool("list_team", {})
                finally:
                    await asyncio.to_thread(served.close)
                assert not team.is_error

    asyncio.run(use())


def test_a_server_with_tls_is_known_by_its_certificate_whatever_that_is_for(
    site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("tls")
    both = [make_certificate(str(place / name)) for name in ("right", "wrong")]
    session = site.start("--team", "pair")
    mas = shut_in(site, session, "21")
    served = Served(site, "--tls-cert", both[0], "--tls-key", both[0])
    try:
        mas("report", "busy")
        with open(url_file(site), encoding="utf-8") as file:
            text = file.read()
        assert "PRIVATE KEY" not in text
        with open(both[1], encoding="utf-8") as file:
            other = file.read()
        wrong = text.partition("\n")[0] + "\n" + other[other.index("-----BEGIN CERT") :]
        # In place, so that the lock stays.
        with open(url_file(site), "w", encoding="utf-8") as file:
            file.write(wrong)
        assert "certificate" in mas("report", "busy", code=7).stderr.lower()
    finally:
        served.close()


def make_certificate(path: str) -> str:
    """A certificate for a name that no machine has, after its key in one file."""
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", f"{path}.key", "-out", f"{path}.crt", "-days", "2", "-subj", "/CN=elsewhere"]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl, which makes the certificate, is not installed")
    with open(path, "wb") as file:
        for half in ("key", "crt"):
            with open(f"{path}.{half}", "rb") as part:
                file.write(part.read())
    return path
