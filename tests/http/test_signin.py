"""Signing in: a code that is good once becomes a cookie that only this server's page can use."""

from __future__ import annotations

import httpx
import pytest

from mas.service.access import CODE_LIFE, COOKIE_LIFE, Access
from mas.store.layout import Layout
from mas.store.server.secrets import Secrets
from tests.http.raw import ask, request
from tests.served import Served
from tests.site import Site


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def elapsed() -> Clock:
    """One that no page can set."""
    return Clock()


@pytest.fixture
def access(bare: Site, clock: Clock, elapsed: Clock) -> Access:
    bare.mas("init", bare.root)
    return Access(Secrets(Layout(bare.root)), clock, elapsed)


def test_a_code_is_good_once(shared: Served) -> None:
    login = shared.client().post("/login-codes").json()
    assert login["url"] == f"{shared.url}/login?code={login['code']}"
    first, second = shared.client(""), shared.client("")
    answer = first.get(login["url"])
    assert answer.status_code == 303
    # An address without the code, so that it stays in no history.
    assert answer.headers["location"] == "/"
    assert first.get("/sessions").status_code == 200
    answer = second.get(login["url"])
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert second.get("/sessions").status_code == 401


def test_a_guessed_code_is_none(shared: Served) -> None:
    code = shared.client().post("/login-codes").json()["code"]
    for guess in ("", " ", code[:-1], f"{code}0", code.upper(), "0" * 48, "é", "%00", "x" * 200):
        answer = shared.client("").get("/login", params={"code": guess})
        assert answer.status_code == 401, guess
        assert "set-cookie" not in answer.headers
    assert shared.client("").get("/login", params={"code": "x" * 201}).status_code == 422


def test_only_the_owner_makes_codes(shared: Served) -> None:
    assert shared.client("").post("/login-codes").status_code == 401
    assert shared.on_socket().post("/login-codes").status_code == 201
    url = shared.site.mas("url").stdout.strip()
    assert shared.client("").get(url).status_code == 303


def test_the_cookie_is_kept_from_scripts_and_other_sites(shared: Served) -> None:
    cookie = shared.client("").get(shared.client().post("/login-codes").json()["url"]).headers["set-cookie"]
    name, *attributes = cookie.lower().split("; ")
    port = shared.url.rpartition(":")[2]
    assert name.startswith(f"mas-{port}=")
    assert set(attributes) == {"httponly", "samesite=strict", "path=/", f"max-age={COOKIE_LIFE}"}
    assert shared.token not in cookie


def test_an_altered_cookie_is_none(shared: Served) -> None:
    browser = shared.client("")
    browser.get(shared.client().post("/login-codes").json()["url"])
    ((name, good),) = browser.cookies.items()
    until, _, proof = good.partition(".")
    for value in (
        "",
        ".",
        until,
        proof,
        f"{until}.",
        f"{int(until) + 1}.{proof}",
        f"{until}.{proof[:-1]}",
        f"{until}.{proof}0",
        f"{until}.{'0' * 64}",
        f"0{until}.{proof}",
        f"{until}0.{proof}",
        f"²{until}.{proof}",
        f"{'9' * 5000}.{proof}",
        shared.token,
        "\xff",
    ):
        answer = ask(shared, request(shared, "GET /sessions", f"Cookie: {name}={value}", token=False))
        assert answer.status == 401, value[:80]
    assert ask(shared, request(shared, "GET /sessions", f"Cookie: {name}={good}", token=False)).status == 200


def test_the_cookies_of_other_programs_on_the_machine_are_not_in_the_way(shared: Served) -> None:
    """Browsers send those of all ports, whatever is in them."""
    browser = shared.client("")
    browser.get(shared.client().post("/login-codes").json()["url"])
    ((name, good),) = browser.cookies.items()
    for others in ('a={"b": [1, 2]}', "a=b=c; d", "mas-1=x; mas=y", "=x", 'a="unfinished', "\xe9=\xff"):
        given = f"Cookie: {others}; {name}={good}; z={others}"
        assert ask(shared, request(shared, "GET /sessions", given, token=False)).status == 200, others


def test_two_servers_of_one_machine_do_not_sign_each_other_out(shared: Served, served: Served) -> None:
    browser = httpx.Client(trust_env=False, timeout=60)
    with browser:
        for server in (shared, served):
            browser.get(server.client().post("/login-codes").json()["url"])
        for server in (shared, served):
            assert browser.get(f"{server.url}/sessions").status_code == 200


def test_signing_out_forgets_the_cookie(shared: Served) -> None:
    browser = shared.client("")
    browser.get(shared.client().post("/login-codes").json()["url"])
    answer = browser.post("/logout", headers={"Origin": shared.url})
    assert answer.status_code == 204
    assert not browser.cookies
    assert browser.get("/sessions").status_code == 401


def test_a_code_is_good_for_minutes(access: Access, elapsed: Clock) -> None:
    early, late = access.new_code(), access.new_code()
    elapsed.now += CODE_LIFE - 1
    assert access.spend_code(early)
    assert not access.spend_code(early)
    elapsed.now += 1
    assert not access.spend_code(late)


def test_a_code_is_good_for_no_longer_when_the_clock_is_set_back(access: Access, clock: Clock, elapsed: Clock) -> None:
    code = access.new_code()
    elapsed.now += CODE_LIFE
    clock.now -= CODE_LIFE
    assert not access.spend_code(code)


def test_unused_codes_do_not_pile_up(access: Access) -> None:
    codes = [access.new_code() for _ in range(1000)]
    assert sum(access.spend_code(code) for code in codes) == 64
    assert len(set(codes)) == 1000


def test_a_cookie_is_good_for_a_month_and_no_longer_than_the_token(access: Access, clock: Clock) -> None:
    cookie = access.cookie()
    assert access.knows_cookie(cookie)
    clock.now += COOKIE_LIFE - 1
    assert access.knows_cookie(cookie)
    clock.now += 1
    assert not access.knows_cookie(cookie)
    clock.now -= COOKIE_LIFE
    assert access.knows_cookie(cookie)
    access.renew_owner_token()
    assert not access.knows_cookie(cookie)


def test_a_code_is_no_longer_good_than_the_token(access: Access) -> None:
    code = access.new_code()
    access.renew_owner_token()
    assert not access.spend_code(code)
