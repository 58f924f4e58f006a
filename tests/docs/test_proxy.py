"""Behind a proxy that does what the guide says, a browser signs in, and events and terminals are live."""

from __future__ import annotations

import json
import socket

import httpx
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from tests.docs.proxy import CLIENT, proxied
from tests.page_key import PageKey
from tests.served import Served
from tests.site import Site, until

NAME = "mas.example.org"


def test_the_page_its_events_and_its_terminals_work_behind_a_proxy(site: Site) -> None:
    session = site.start()
    served = Served(site, "--behind-proxy", "--allow-host", NAME)
    try:
        code = site.mas("url").stdout.strip().rpartition("=")[2]
        with proxied(int(served.url.rpartition(":")[2])) as port:
            page = {"Host": NAME, "Origin": f"https://{NAME}", "Connection": "close"}
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}", headers=page, trust_env=False, timeout=60
            ) as browser:
                key = PageKey(browser, code, NAME)
                browser.headers["Authorization"] = f"Bearer {key.sign_in()}"
                assert [found["sessionId"] for found in browser.get("/sessions").json()["sessions"]] == [session]
                _events_come_as_they_happen(browser, session)
                elsewhere = browser.post(f"/sessions/{session}/stop", headers={"Origin": "https://evil.example"})
                assert elsewhere.status_code == 403
                assert browser.get("/health", headers={"Host": "other.example"}).status_code == 403
                where = f"/sessions/{session}/agents/00/terminal"
                ticket = key.ticket(where)
            _a_terminal_is_live(port, where, ticket)
        with open(served.log, encoding="utf-8") as file:
            clients = {json.loads(line).get("client") for line in file}
        assert CLIENT in clients
    finally:
        served.close()


def _events_come_as_they_happen(browser: httpx.Client, session: str) -> None:
    with browser.stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        sent = browser.post(f"/sessions/{session}/messages", json={"target": "00", "message": "true"})
        assert sent.status_code < 300, sent.text
        # The stream is still open: what is read here was not kept back until its end.
        assert any(line == "event: message" for line in lines)


def _a_terminal_is_live(port: int, where: str, ticket: str) -> None:
    line = socket.create_connection(("127.0.0.1", port))
    offered = [Subprotocol("mas"), Subprotocol(f"ticket.{ticket}")]
    with connect(f"ws://{NAME}{where}", sock=line, origin=Origin(f"https://{NAME}"), subprotocols=offered) as terminal:
        seen: list[str] = []

        def shows() -> bool:
            seen.append(str(terminal.recv(timeout=60)))
            return "true" in "".join(seen)

        until(shows, "what was typed to the agent")
