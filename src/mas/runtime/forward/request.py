"""What a client of a forward may ask for, by the first bytes that it sends.

A page of any site can have a name that leads to loopback (DNS rebinding), and a browser sends the cookies of
`localhost` to every port of it. So a browser gets in under the forward's own name only. Other programs may call it
`localhost`, and what is not HTTP is not looked at.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Match

LONGEST_HEAD = 64 << 10
_LONGEST_LINE = 16 << 10
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# What may become the first line of a request, and what is one.
_BEGINS = re.compile(rb"(?:%b|%b [^\x00-\x1f\x7f]*\r?)?" % (_TOKEN, _TOKEN))
_FIRST_LINE = re.compile(rb"%b ([^ ]+) HTTP/1\.[0-9]\r?" % _TOKEN)
_HOST = re.compile(r"(\[[0-9a-f:]+\]|[a-z0-9._-]+?)\.?(?::([0-9]{1,5}))?")
_PLAIN = ("localhost", "127.0.0.1", "[::1]")
_OF_BROWSERS = (b"sec-fetch-", b"origin")


class Refusal(Exception):
    """A request that is not let in; `answer` is what the client gets."""

    def __init__(self, status: str, words: str, header: str = "") -> None:
        super().__init__(words)
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n"
        body = f"MAS: {words}\n".encode()
        self.answer = f"{head}{header}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


class Doorkeeper:
    """Decides by the head of a request. `name` is the forward's own; with `may_be_plain` browsers may use others."""

    def __init__(self, name: str, may_be_plain: bool) -> None:
        self._name = name
        self._may_be_plain = may_be_plain

    def is_http(self, data: bytes) -> bool | None:
        """Whether a client that sent this speaks HTTP; None if more must come to tell."""
        line, end, _ = data.partition(b"\n")
        if end or len(line) > _LONGEST_LINE:
            return _FIRST_LINE.fullmatch(line) is not None
        return None if _BEGINS.fullmatch(line) else False

    def check(self, data: bytes) -> bool:
        """Whether a request can be let in; False if more must come to tell. `Refusal` if it may not."""
        head, end, _ = data.replace(b"\r\n", b"\n").partition(b"\n\n")
        if not end:
            if len(data) > LONGEST_HEAD:
                raise Refusal("431 Request Header Fields Too Large", "the head of the request is too long")
            return False
        first, *lines = head.split(b"\n")
        fields = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        hosts = [value.decode("latin-1").lower() for name, value in fields if name == b"host"]
        if not hosts and first.endswith((b"HTTP/1.0", b"HTTP/1.0\r")):
            return True
        found = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        host = found[1] if found else ""
        is_own = host == self._name or host.endswith(f".{self._name}")
        if found is None or not (is_own or host in _PLAIN):
            raise Refusal("403 Forbidden", f"this is not {', '.join(hosts)[:100]!r}, but http://{self._name}")
        if not (is_own or self._may_be_plain) and any(name.startswith(_OF_BROWSERS) for name, _ in fields):
            self._send_to_own_name(first, fields, found)
        return True

    def _send_to_own_name(self, first: bytes, fields: list[tuple[bytes, bytes]], host: Match[str]) -> None:
        """A browser that opens a page gets the page's right address."""
        port = f":{host[2]}" if host[2] else ""
        own = f"http://{self._name}{port}"
        target = first.split(b" ")[1].decode("latin-1")
        is_page = (b"sec-fetch-mode", b"navigate") in fields and first.startswith((b"GET ", b"HEAD "))
        if is_page and target.startswith("/") and target.isascii():
            raise Refusal("307 Temporary Redirect", f"the address is {own}{target}", f"Location: {own}{target}\r\n")
        raise Refusal("403 Forbidden", f"browsers must use {own}/")
