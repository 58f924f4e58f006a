"""What the page does to sign in, for clients that are no browser."""

from __future__ import annotations

import hmac
import os
from typing import Any

import httpx

from tests.served import Served


def mac(secret: str, text: str) -> str:
    return hmac.digest(secret.encode(), text.encode(), "sha256").hex()


class PageKey:
    """A key of a browser at `host`: the code of a sign-in link at first, then the one that the server gave."""

    def __init__(self, client: httpx.Client, code: str, host: str | None = None, **headers: str) -> None:
        self.client = client
        self.host = host or client.base_url.netloc.decode()
        self.headers = headers
        self.secret = code
        self.name = mac(code, "name")[:32]
        self.bearer = ""

    def call(self, path: str, body: Any) -> httpx.Response:
        return self.client.post(path, json=body, headers=self.headers)

    def hello(self, nonce: str = "0" * 32) -> dict[str, Any]:
        """The server's greeting."""
        answer = self.call("/browser/hello", {"nonce": nonce, "keys": [self.name]})
        assert answer.status_code == 200, answer.text
        greeting: dict[str, Any] = answer.json()
        return greeting

    def is_proven_by(self, greeting: dict[str, Any], nonce: str = "0" * 32) -> bool:
        words = f"server {self.name} {self.host} {nonce} {greeting['challenge']}"
        return bool(greeting["proofs"] == [mac(self.secret, words)])

    def prove(self, greeting: dict[str, Any], nonce: str = "0" * 32) -> httpx.Response:
        """The page's proof; what it returns."""
        challenge = greeting["challenge"]
        proof = mac(self.secret, f"page {self.name} {self.host} {nonce} {challenge}")
        return self.call("/browser/bearer", {"key": self.name, "nonce": nonce, "challenge": challenge, "proof": proof})

    def sign_in(self) -> str:
        """As the page does; the bearer."""
        nonce = os.urandom(16).hex()
        greeting = self.hello(nonce)
        assert self.is_proven_by(greeting, nonce)
        answer = self.prove(greeting, nonce)
        assert answer.status_code == 200, answer.text
        given = answer.json()
        if given["key"]:
            seal = int(mac(self.secret, f"seal {greeting['challenge']}"), 16)
            self.name, self.secret = given["key"]["name"], f"{int(given['key']['sealed'], 16) ^ seal:064x}"
        self.bearer = given["bearer"]
        return self.bearer

    def ticket(self, target: str) -> str:
        answer = self.client.post(
            "/browser/ticket",
            json={"target": target},
            headers=self.headers | {"Authorization": f"Bearer {self.bearer}"},
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["ticket"])


def page_of(served: Served, client: httpx.Client | None = None, **headers: str) -> PageKey:
    """A page of a browser that has signed in; its client sends the bearer from now on, and the page's origin."""
    code = served.client().post("/login-codes").json()["code"]
    browser = client or served.client("")
    key = PageKey(browser, code, headers.get("Host"), Origin=str(browser.base_url).rstrip("/"), **headers)
    browser.headers["Authorization"] = f"Bearer {key.sign_in()}"
    return key
