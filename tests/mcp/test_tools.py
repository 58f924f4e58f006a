"""The tools of agents, asked for with the SDK's own client: over standard input, and behind a real server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from mas.http.limits import ServerLimits
from mas.mcp import tools as tools_of
from mas.model.schema import schema_of
from mas.store.agent.launch_plan import launch_path, read_plan
from tests.golden import golden
from tests.served import Served
from tests.site import Site, until

TOOLS = ["send_message", "read_inbox", "list_team", "read_output", "wait_for", "report_status"]
Work = Callable[[Client], Awaitable[None]]


def over_stdio(site: Site, env: dict[str, str], *args: str, mode: str = "auto") -> Callable[[Work], None]:
    """Asks `mas mcp`, started as a program of an agent would start it."""

    @asynccontextmanager
    async def connected() -> AsyncIterator[Client]:
        with open(os.path.join(site.directory, "mcp.txt"), "a", encoding="utf-8") as said:
            command = StdioServerParameters(
                command=sys.executable, args=["-m", "mas", "mcp", *args], env={**site.env, **env}, cwd=site.root
            )
            async with Client(stdio_client(command, said), mode=mode) as client:
                yield client

    return lambda work: asyncio.run(_do(connected, work))


def over_http(served: Served, token: str, query: str = "", mode: str = "auto") -> Callable[[Work], None]:
    """Asks the server."""

    @asynccontextmanager
    async def connected() -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
            Client(streamable_http_client(f"{served.url}/mcp{query}", http_client=http), mode=mode) as client,
        ):
            yield client

    return lambda work: asyncio.run(_do(connected, work))


async def _do(connected: Callable[[], Any], work: Work) -> None:
    async with connected() as client:
        await work(client)


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.content[0], types.TextContent)
    assert json.loads(result.content[0].text) == result.structured_content
    found: dict[str, Any] = result.structured_content
    return found


async def outcome(client: Client, tool: str, **arguments: Any) -> str:
    """What it answers, or why not."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


def environment_of(site: Site, session: str, agent: str) -> dict[str, str]:
    return dict(read_plan(launch_path(site.session(session), agent)).env)


@pytest.fixture(params=["stdio", "stdio without a server", "http"])
def place(request: pytest.FixtureRequest, site: Site) -> Iterator[tuple[Site, str, Callable[[Work], None]]]:
    """A workspace, a session in it, and the tools of its agent 21."""
    session = site.start("--team", "dev")
    env = environment_of(site, session, "21")
    served = None if request.param == "stdio without a server" else Served(site)
    try:
        way = over_http(served, env["MAS_TOKEN"]) if served and request.param == "http" else over_stdio(site, env)
        yield site, session, way
    finally:
        if served:
            served.close()


def test_an_agent_sees_its_team_writes_reads_and_reports(place: tuple[Site, str, Callable[[Work], None]]) -> None:
    site, session, way = place
    site.mas("send", "21", "true from a person")

    async def work(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)
        team = await answer(client, "list_team")
        assert team["you"] == "21"
        assert [agent["id"] for agent in team["agents"]] == ["00", "20", "21", "22", "23"]
        sent = await answer(client, "send_message", target="22", message="echo hallo ✓")
        assert sent["agents"] == ["22"]
        inbox = await answer(client, "read_inbox", limit=None)
        assert [(message["from"], message["message"]) for message in inbox["messages"]] == [
            ("person", "true from a person")
        ]
        assert (await answer(client, "read_output", agent="22", lines=10))["agent"] == "22"
        assert (await answer(client, "report_status", text="testing"))["agent"] == "21"

    way(work)
    assert [message["from"] for message in site.json("inbox", session, "22")["messages"]] == ["21"]
    reports = {agent["id"]: agent["report"] for agent in site.json("show", session)["agents"]}
    assert reports["21"] == "testing"
    until(lambda: "hallo ✓" in site.mas("output", session, "22").stdout, "the message arrives")


def test_programs_see_the_tools_as_promised() -> None:
    tools = [
        {"name": tool.name, "description": tool.description, "inputSchema": schema_of(tool.arguments)}
        for tool in tools_of.TOOLS
    ]
    golden("mcp/tools.json", json.dumps(tools, indent=1, sort_keys=True) + "\n")


def test_an_agent_that_waits_more_often_than_it_may_is_refused(served: Served) -> None:
    session = served.site.start()
    token = environment_of(served.site, session, "00")["MAS_TOKEN"]
    share = ServerLimits().waiters.of_agent

    async def work(client: Client) -> None:
        calls = [outcome(client, "wait_for", until="blocked", timeout=5) for _ in range(2 * share)]
        found = await asyncio.gather(*calls)
        refused = [
            text for text in found if text.startswith(f"Too many calls are waiting: {share} of agent 00 of {session}")
        ]
        assert refused
        assert len(found) - len(refused) >= share
        assert await answer(client, "wait_for", until="blocked", timeout=1)

    over_http(served, token)(work)


def test_an_agent_waits_for_others_and_for_their_replies(place: tuple[Site, str, Callable[[Work], None]]) -> None:
    site, session, way = place

    async def work(client: Client) -> None:
        never = await answer(client, "wait_for", agent="22", until="exited", timeout=1)
        assert (never["end"], [one["agent"] for one in never["agents"]]) == ("timeout", ["22"])
        waiting = asyncio.create_task(answer(client, "wait_for", agent="22", until="replied", timeout=60))
        reply = 0
        while not waiting.done():
            # It is a reply only once a caller waits; so again and again.
            await asyncio.to_thread(site.mas, "send", "--session", session, "--from", "22", "21", f"true {reply}")
            reply += 1
        assert waiting.result()["end"] == "reached"
        assert waiting.result()["reply"]["message"].startswith("true ")
        assert "it can be: idle" in await refusal(client, "wait_for", until="tomorrow")

    way(work)


def test_a_refusal_is_an_error_of_mas(place: tuple[Site, str, Callable[[Work], None]]) -> None:
    site, session, way = place

    async def work(client: Client) -> None:
        assert "may not write to 00 (hierarchy" in await refusal(client, "send_message", target="00", message="psst")
        assert "may not read the screen of 00" in await refusal(client, "read_output", agent="00")
        assert "No agent, unit or group 'nobody'" in await refusal(client, "send_message", target="nobody", message="x")
        assert "message is missing" in await refusal(client, "send_message", target="22")
        assert "Unknown field 'from' in send_message" in await refusal(
            client, "send_message", target="22", message="I am somebody else", **{"from": "23"}
        )
        assert "limit must be a whole number" in await refusal(client, "read_inbox", limit=0)
        assert "limit is 'all'; it must be a whole number from 1 to 100" in await refusal(
            client, "read_inbox", limit="all"
        )
        assert "agent is '../..'; it must be two digits" in await refusal(client, "read_output", agent="../..")
        assert "Unknown field 'all' in list_team (known: none)" in await refusal(client, "list_team", all=True)
        assert "text must be 1 to 2000 characters" in await refusal(client, "report_status", text=7)
        assert "The report is empty" in await refusal(client, "report_status", text=" ")
        assert "there are: send_message" in await refusal(client, "stop_everything")

    way(work)
    assert {message["from"] for message in site.json("inbox", session)["messages"]} <= {"21"}


def test_an_agent_may_not_speak_as_another_nor_reach_another_session(served: Served) -> None:
    site = served.site
    own, other = (site.start("--team", "pair") for _ in range(2))
    env = environment_of(site, own, "21")
    assert "cannot speak as '23'" in site.mas("mcp", "--as", "23", env=env, code=8).stderr
    assert (
        "works only for its own session, given by its id" in site.mas("mcp", "--session", other, env=env, code=8).stderr
    )

    async def work(client: Client) -> None:
        assert (await answer(client, "list_team"))["you"] == "21"
        await answer(client, "send_message", target="23", message="true hello")
        assert (await answer(client, "read_inbox"))["messages"] == []

    # What the address says counts for the owner only.
    over_http(served, env["MAS_TOKEN"], f"?session={other}&agent=23")(work)
    assert [message["from"] for message in site.json("inbox", own, "23")["messages"]] == ["21"]
    assert site.json("inbox", other)["messages"] == []


def test_a_person_has_them_too_and_can_be_any_agent(served: Served) -> None:
    site = served.site
    session = site.start("--team", "pair")

    async def person(client: Client) -> None:
        assert (await answer(client, "list_team"))["you"] == "person"
        await answer(client, "send_message", target="21", message="true hello")
        assert "you are not running as one" in await refusal(client, "report_status", text="busy")

    async def agent(client: Client) -> None:
        assert (await answer(client, "list_team"))["you"] == "23"
        assert (await answer(client, "report_status", text="busy"))["agent"] == "23"

    over_http(served, served.token)(person)
    over_http(served, served.token, f"?session={session}&agent=23")(agent)
    over_stdio(site, {})(person)
    over_stdio(site, {}, "--session", session, "--as", "23")(agent)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_programs_of_either_generation_of_the_protocol_are_understood(served: Served, mode: str) -> None:
    site = served.site
    session = site.start("--team", "pair")
    env = environment_of(site, session, "21")

    async def work(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        assert (await answer(client, "list_team"))["you"] == "21"

    over_http(served, env["MAS_TOKEN"], mode=mode)(work)
    over_stdio(site, env, mode=mode)(work)


def test_no_caller_is_admitted_without_a_token(served: Served) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert served.client("").post("/mcp", json=body).status_code == 401
    assert served.client("mas-agent.x").post("/mcp", json=body).status_code == 401
    assert served.client("").get("/mcp").status_code == 401
    answered = served.client().post("/mcp", json=body, headers={"Origin": "http://evil.example"})
    assert answered.status_code == 403


def test_an_agents_tools_follow_the_server_as_it_goes_and_comes_back(served: Served) -> None:
    site = served.site
    session = site.start("--team", "pair")

    async def work(client: Client) -> None:
        await answer(client, "report_status", text="with a server")
        await asyncio.to_thread(served.stop)
        await answer(client, "report_status", text="without one")
        await asyncio.to_thread(served.restart)
        await answer(client, "report_status", text="with the next")

    over_stdio(site, environment_of(site, session, "21"))(work)
    assert "with the next" in site.mas("logs", session).stdout


def test_the_server_loads_nothing_for_it_before_the_first_caller(served: Served) -> None:
    def has_sdk() -> bool:
        with open(f"/proc/{served.pid}/maps", encoding="utf-8") as file:
            return "cryptography" in file.read()

    served.client().get("/sessions")
    assert not has_sdk()

    async def work(client: Client) -> None:
        await client.list_tools()

    over_http(served, served.token)(work)
    assert has_sdk()
