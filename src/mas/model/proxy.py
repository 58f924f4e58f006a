"""The proxy by which this machine reaches the outside, as its owner names it, and what is reached without it.

The egress process reads what this writes, so this imports nothing when it is imported.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

NO_PROXY = "none"
"""What the user's own configuration says in place of an address, so that the environment does not count."""
_WEB_PORT = 80
_LARGEST_PORT = 65535
# What stands for networks of one's own, wherever a proxy could lead; a name below one of these is never public.
_NEVER_PUBLIC = frozenset(
    ("corp", "home", "internal", "intranet", "invalid", "lan", "local", "localdomain", "localhost", "onion", "private")
)


class BadProxy(ValueError):
    """What was given cannot be used as a proxy. The words name no password."""


class Proxy:
    """Where a proxy listens, and how to sign in there: the value of a header, empty if there is nothing to say."""

    __slots__ = ("authorization", "host", "port")

    def __init__(self, host: str, port: int, authorization: str = "") -> None:
        self.host = host
        self.port = port
        self.authorization = authorization


class ProxyRules:
    """Which proxy leads to a place: `web` to port 80, `other` to every other port; `straight` lists what needs none."""

    def __init__(self, web: Proxy | None = None, other: Proxy | None = None, straight: Iterable[str] = ()) -> None:
        self.web = web
        self.other = other
        self.straight = tuple(word.lower() for word in straight)

    def proxy_for(self, name: str, port: int | None) -> Proxy | None:
        """The proxy for a name at a port, or for a look-up of the name; None if it is reached without one."""
        found = self.web if port == _WEB_PORT else self.other
        if port is None:
            found = found or self.web
        return None if found is None or any(_is_meant(word, name, port) for word in self.straight) else found

    def as_fields(self) -> dict[str, Any]:
        """What `rules_in` reads."""
        found: dict[str, Any] = {"straight": self.straight}
        for key, proxy in (("web", self.web), ("other", self.other)):
            found[key] = [proxy.host, proxy.port, proxy.authorization] if proxy else None
        return found


def rules_in(fields: Mapping[str, Any]) -> ProxyRules:
    """The rules that `as_fields` wrote; none, if there are no fields."""
    web, other = (Proxy(*fields[key]) if fields.get(key) else None for key in ("web", "other"))
    return ProxyRules(web, other, fields.get("straight", ()))


def is_never_public(name: str) -> bool:
    """Whether a name stands for a place in a network of one's own, or is a number that a proxy may take for one."""
    last = name.rpartition(".")[2]
    return last in _NEVER_PUBLIC or name.endswith(".home.arpa") or last.isdigit() or last.startswith("0x")


def _is_meant(word: str, name: str, port: int | None) -> bool:
    """Whether a word of NO_PROXY means a name: itself, everything below it, or an address in a network."""
    host, colon, number = word.rpartition(":")
    if colon and number.isdigit() and ":" not in host:
        if port is not None and port != int(number):
            return False
        word = host
    if word == "*":
        return True
    word = word.removeprefix("*").strip(".")
    if not word:
        return False
    return name == word or name.endswith(f".{word}") or ("/" in word and _is_within(name, word))


def _is_within(name: str, network: str) -> bool:
    from ipaddress import ip_address, ip_network

    try:
        return ip_address(name) in ip_network(network, strict=False)
    except ValueError:
        return False


def parse_proxy(text: str) -> Proxy:
    """The proxy at an address such as `http://user:password@proxy.corp:3128`; `BadProxy` if it is none that works."""
    from base64 import b64encode
    from urllib.parse import unquote_to_bytes, urlsplit

    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "", parts.port or _WEB_PORT
    except ValueError:
        raise BadProxy("it is no address of a proxy") from None
    if parts.scheme != "http":
        raise BadProxy(f"it begins with {parts.scheme}://, and MAS can use proxies that begin with http:// only")
    if not host or not host.isascii() or any(letter <= " " for letter in text) or port > _LARGEST_PORT:
        raise BadProxy("it is no address of a proxy")
    if parts.username is None:
        return Proxy(host, port)
    signs = unquote_to_bytes(parts.username) + b":" + unquote_to_bytes(parts.password or "")
    return Proxy(host, port, f"Basic {b64encode(signs).decode('ascii')}")


def proxies_of(
    environ: Mapping[str, str], given: str = "", straight: tuple[str, ...] = ()
) -> tuple[ProxyRules, tuple[str, ...]]:
    """The proxies that `given` or, if that is empty, the usual variables name; and which variables cannot be used."""
    if given == NO_PROXY:
        return ProxyRules(), ()
    straight = (*straight, *_variable(environ, "no_proxy")[1].replace(",", " ").split())
    if given:
        proxy = parse_proxy(given)
        return ProxyRules(proxy, proxy, straight), ()
    found: dict[str, Proxy] = {}
    unusable = []
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        called, text = _variable(environ, name)
        try:
            if text:
                found[name] = parse_proxy(text)
        except BadProxy as error:
            unusable.append(f"{called}: {error}")
    web, other = (found.get(name) or found.get("all_proxy") for name in ("http_proxy", "https_proxy"))
    return ProxyRules(web, other, straight), tuple(unusable)


def _variable(environ: Mapping[str, str], name: str) -> tuple[str, str]:
    """A variable that is written in small or in large letters, and its value."""
    found = next((one for one in (name, name.upper()) if environ.get(one)), name)
    return found, environ.get(found, "").strip()
