"""Forwards that the server keeps: only the owner has them, and they end with the session or the server."""

from __future__ import annotations

import socket

import httpx
import psutil
import pytest

from tests.isolation.test_network import Team, lives
from tests.page_key import PageKey, page_of
from tests.served import Served
from tests.site import Site, until


def processes(served: Served) -> list[psutil.Process]:
    """Those of the server's forwards."""
    found = psutil.Process(served.pid).children(recursive=True)
    return [one for one in found if "runtime/forward/" in " ".join(one.cmdline())]


def fetched(forward: dict[str, object]) -> int:
    with httpx.Client(trust_env=False, timeout=30) as client:
        url = f"http://127.0.0.1:{forward['local']}/"
        host = str(forward["url"]).removeprefix("http://").rstrip("/")
        return client.get(url, headers={"Host": host}).status_code


def is_free(port: object) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", int(str(port))))
        except OSError:
            return False
        return True


def test_the_server_keeps_a_forward_until_it_is_closed(served: Served) -> None:
    team = Team(served.site)
    team.ask("23", "serve", 3000)
    client, where = served.client(), f"/sessions/{team.id}"
    assert client.get(f"{where}/ports").json() == {"network": "names", "ports": [{"port": 3000, "agent": "23"}]}
    made = client.post(f"{where}/forwards", json={"port": 3000})
    assert made.status_code == 200
    forward = made.json()
    local = forward["local"]
    assert forward == {
        "sessionId": team.id,
        "port": 3000,
        "local": local,
        "url": f"http://3000-{team.id[:8]}.localhost:{local}/",
        "network": "names",
        "listening": True,
    }
    assert fetched(forward) == 200
    # Asked for again, it is the same one; at another port it cannot be.
    assert client.post(f"{where}/forwards", json={"port": 3000}).json() == forward
    assert client.post(f"{where}/forwards", json={"port": 3000, "local": local - 1}).status_code == 409
    assert client.get(f"{where}/forwards").json() == {"forwards": [forward]}
    assert len(processes(served)) == 2
    assert client.delete(f"{where}/forwards/3000").json() == forward
    assert is_free(local)
    assert processes(served) == []
    assert client.delete(f"{where}/forwards/3000").status_code == 404


def test_an_agent_cannot_ask_for_a_forward_nor_for_the_ports(served: Served) -> None:
    team = Team(served.site)
    token = served.site.mas("token", "--session", team.id, "--agent", "21").stdout.strip()
    for client in (served.client(token), served.on_socket(token, "agents.sock")):
        # A control: the token is good.
        assert client.get(f"/sessions/{team.id}/agents").status_code == 200
        assert client.get(f"/sessions/{team.id}/ports").status_code == 403
        assert client.get(f"/sessions/{team.id}/forwards").status_code == 403
        assert client.post(f"/sessions/{team.id}/forwards", json={"port": 3000}).status_code == 403
        assert client.delete(f"/sessions/{team.id}/forwards/3000").status_code == 403
    assert served.client("").post(f"/sessions/{team.id}/forwards", json={"port": 3000}).status_code == 401


def test_bad_ports_are_refused(served: Served) -> None:
    team = Team(served.site, team="solo")
    client, where = served.client(), f"/sessions/{team.id}/forwards"
    for port in (0, -1, 65536, "3000", None, 7717, 3128, 443):
        assert client.post(where, json={"port": port}).status_code == 422, port
    for body in ({}, {"port": 3000, "local": 0}, {"port": 3000, "more": 1}):
        assert client.post(where, json=body).status_code == 422, body
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = client.post(where, json={"port": 3000, "local": taken.getsockname()[1]})
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong-state")
    # The page's own port is taken as well.
    assert client.post(where, json={"port": 3000, "local": int(served.url.rpartition(":")[2])}).status_code == 409
    assert processes(served) == []


def test_a_session_has_a_number_of_forwards_at_most(served: Served) -> None:
    team = Team(served.site, team="solo")
    client, where = served.client(), f"/sessions/{team.id}/forwards"
    made = [client.post(where, json={"port": 3000 + number}).json() for number in range(16)]
    refused = client.post(where, json={"port": 4000})
    assert (refused.status_code, refused.json()["code"]) == (429, "too-much")
    running = processes(served)
    assert len(running) == 32
    # All of them end with the session, and the server waits for them.
    served.site.mas("stop", team.id)
    assert not any(map(lives, running))
    assert all(is_free(one["local"]) for one in made)
    until(lambda: psutil.Process(served.pid).children(recursive=True) == [], "no zombie is left", 20)
    assert client.get(where).json() == {"forwards": []}


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_server_that_ends_leaves_no_forward(served: Served, how: str) -> None:
    team = Team(served.site, team="solo")
    forward = served.client().post(f"/sessions/{team.id}/forwards", json={"port": 3000}).json()
    running = processes(served)
    assert len(running) == 2
    getattr(served, how)()
    until(lambda: not any(map(lives, running)), "their end")
    assert is_free(forward["local"])
    served.restart()
    assert served.client().get(f"/sessions/{team.id}/forwards").json() == {"forwards": []}


def test_a_browser_on_another_machine_is_told_what_to_do_instead(site: Site) -> None:
    served = Served(site, "--behind-proxy", "--allow-host", "mas.example")
    try:
        team = Team(site, team="solo")
        assert page_of(served).call(f"/sessions/{team.id}/forwards", {"port": 3000}).is_success
        code = served.client().post("/login-codes").json()["code"]
        far = PageKey(served.client(""), code, "mas.example", Host="mas.example", Origin="https://mas.example")
        far.headers["Authorization"] = f"Bearer {far.sign_in()}"
        refused = far.call(f"/sessions/{team.id}/forwards", {"port": 3000})
        assert refused.status_code == 409
        there, here = f"mas forward {team.id[:8]} 3000 3000", "ssh -L 3000:127.0.0.1:3000 mas.example"
        assert refused.json()["hint"] == f"there: {there}; here: {here}"
    finally:
        served.close()


def test_the_command_can_leave_a_forward_to_the_server(served: Served) -> None:
    team = Team(served.site)
    team.ask("21", "serve", 3000)
    mas = served.site.mas
    url = mas("forward", "--detach", team.id, "3000").stdout.strip()
    local = int(url.rstrip("/").rpartition(":")[2])
    assert fetched({"url": url, "local": local}) == 200
    assert mas("forward", "--list", team.id).stdout.split() == ["PORT", "AGENT", "FORWARD", "3000", "21", url]
    assert f"Closed {url}" in mas("forward", "--stop", team.id, "3000").stderr
    assert is_free(local)
    assert mas("forward", "--stop", team.id, "3000", code=3).stderr.startswith("error: No forward leads to port 3000")
    served.stop()
    assert "No server is running" in mas("forward", "--detach", team.id, "3000", code=7).stderr
