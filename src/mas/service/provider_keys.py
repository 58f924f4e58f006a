"""Provider keys: keep them, list them, test them with the provider, and give agents those that their programs read.

The environment of the process that starts an agent wins, then the workspace's keys, then the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from mas.model.errors import BadInput, Denied, MasError, NotFound, TimedOut, Unavailable
from mas.model.keys import KeyTest, KeyView, name_of, parse_key, tail_of, variable_of
from mas.store.server.keys import KeyStore, StoredKey

WORKSPACE, USER = "workspace", "user"
_TIMEOUT = 10.0
_REFUSED = (401, 403)


class _Api(NamedTuple):
    """How a provider's API is asked for the models that a key may use."""

    base: str
    path: str
    header: str
    prefix: str = ""
    base_variables: tuple[str, ...] = ()
    more: tuple[tuple[str, str], ...] = ()


_BEARER = ("Authorization", "Bearer ")
_ANTHROPIC = _Api(
    "https://api.anthropic.com",
    "/v1/models",
    "X-Api-Key",
    base_variables=("ANTHROPIC_BASE_URL",),
    more=(("Anthropic-Version", "2023-06-01"),),
)
_GOOGLE = _Api(
    "https://generativelanguage.googleapis.com",
    "/v1beta/models",
    "X-Goog-Api-Key",
    base_variables=("GOOGLE_GEMINI_BASE_URL",),
)
_APIS = {
    "ANTHROPIC_API_KEY": _ANTHROPIC,
    "ANTHROPIC_AUTH_TOKEN": _ANTHROPIC._replace(header=_BEARER[0], prefix=_BEARER[1]),
    "OPENAI_API_KEY": _Api(
        "https://api.openai.com/v1", "/models", *_BEARER, base_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE")
    ),
    "GEMINI_API_KEY": _GOOGLE,
    "GOOGLE_API_KEY": _GOOGLE,
    # Its list of models is open to all; this asks about the key itself.
    "OPENROUTER_API_KEY": _Api(
        "https://openrouter.ai/api/v1", "/key", *_BEARER, base_variables=("OPENROUTER_BASE_URL",)
    ),
    "DEEPSEEK_API_KEY": _Api(
        "https://api.deepseek.com", "/models", *_BEARER, base_variables=("DEEPSEEK_BASE_URL", "DEEPSEEK_API_BASE")
    ),
}


class ProviderKeys:
    """The keys of one workspace and of its user. Without a workspace, those of the user alone."""

    def __init__(
        self,
        workspace: KeyStore | None,
        user: Callable[[], tuple[KeyStore, ...]],
        environ: Mapping[str, str],
        now: Callable[[], str],
    ) -> None:
        self._workspace = workspace
        self._user = user
        self._environ = environ
        self._now = now

    def set(self, name: str, text: str, for_user: bool) -> KeyView:
        """Keep a key; one that was there for the same variable is replaced."""
        variable, key = variable_of(name), parse_key(text)
        store = self._stores(for_user)[0]
        stored = StoredKey(key, self._now())
        store.change(variable, stored)
        used = any(view.used for view in self.list() if (view.variable, view.place) == (variable, store.place))
        where = USER if for_user else WORKSPACE
        return KeyView(name_of(variable), variable, where, store.place, tail_of(key), stored.set_at, used)

    def delete(self, name: str, for_user: bool) -> tuple[str, ...]:
        """Forget a key wherever it is kept; returns from where."""
        variable = variable_of(name)
        places = tuple(store.place for store in self._stores(for_user) if store.change(variable, None))
        if not places:
            raise NotFound(f"No key is kept for {variable}", "mas keys list")
        return places

    def list(self) -> tuple[KeyView, ...]:
        """All that is kept, and which of it agents get."""
        seen: set[str] = set(self._environ)
        found = []
        for where, store in self._all():
            for variable, stored in store.load().items():
                used = variable not in seen
                seen.add(variable)
                tail = tail_of(stored.key)
                found.append(KeyView(name_of(variable), variable, where, store.place, tail, stored.set_at, used))
        return tuple(sorted(found, key=lambda view: (view.name, not view.used)))

    def values(self) -> dict[str, str]:
        """The key for each variable that one is kept for; a keyring that is locked stops no start."""
        found: dict[str, str] = {}
        for _, store in self._all():
            try:
                kept = store.load()
            except Unavailable:
                continue
            for variable, stored in kept.items():
                found.setdefault(variable, stored.key)
        return found

    def origins(self) -> dict[str, str]:
        """Where the key of each variable comes from, in words, with its last characters."""
        found = {
            variable: f"from the environment (…{tail_of(key)})"
            for variable, key in self._environ.items()
            if variable in _APIS and key
        }
        for view in self.list():
            if view.used:
                found[view.variable] = f"from {view.place} (…{view.tail})"
        return found

    def test(self, name: str | None) -> tuple[KeyTest, ...]:
        """Ask the providers' APIs whether the keys that agents get are good.

        An error if the one key that is named is not; of all keys, each is reported.
        """
        if name:
            return (self._tested(variable_of(name)),)
        wanted = sorted({*self.values(), *(_APIS.keys() & self._environ.keys())})
        if not wanted:
            raise NotFound("No key is kept, and none is in the environment", "mas keys set anthropic")
        return tuple(map(self._outcome, wanted))

    def _outcome(self, variable: str) -> KeyTest:
        try:
            return self._tested(variable)
        except MasError as error:
            return KeyTest(name_of(variable), variable, "", "", False, error.message)

    def _tested(self, variable: str) -> KeyTest:
        where = "environment" if variable in self._environ else "kept"
        key = self._environ[variable] if variable in self._environ else self.values().get(variable)
        if not key:
            lacks = "is empty in the environment" if where == "environment" else "has no key that is kept"
            raise NotFound(f"{variable} {lacks}", f"mas keys set {name_of(variable)}; mas keys list")
        api = _APIS.get(variable)
        if api is None:
            message = "MAS does not know how to test this key"
            return KeyTest(name_of(variable), variable, where, "", False, message)
        base = next((self._environ[name] for name in api.base_variables if self._environ.get(name)), api.base)
        url = f"{base.rstrip('/')}{api.path}"
        _ask(url, {api.header: f"{api.prefix}{key}", **dict(api.more)}, variable)
        return KeyTest(name_of(variable), variable, where, url, True, "the provider accepts it")

    def _all(self) -> Iterator[tuple[str, KeyStore]]:
        if self._workspace:
            yield WORKSPACE, self._workspace
        for store in self._user():
            yield USER, store

    def _stores(self, for_user: bool) -> tuple[KeyStore, ...]:
        if for_user:
            return self._user()
        if self._workspace is None:
            raise BadInput("There is no workspace here to keep a key in", "mas keys set NAME --user")
        return (self._workspace,)


def _ask(url: str, headers: dict[str, str], variable: str) -> None:
    """Send one request with the key; an error if the provider does not accept it. No error repeats the key."""
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        """Follows no redirect: the key would go to another server."""

        def redirect_request(self, *_: object) -> None:
            return None

    _check_address(url)
    try:
        with build_opener(Stay).open(Request(url, headers=headers), timeout=_TIMEOUT):  # noqa: S310 - checked above
            return
    except HTTPError as error:
        error.close()
        if error.code in _REFUSED:
            hint = f"get a new key from the provider, then: mas keys set {name_of(variable)}"
            raise Denied(f"{url} refuses the key of {variable} (status {error.code})", hint) from None
        raise MasError(f"{url} returned status {error.code}: whether the key is good is unknown", "try again") from None
    except TimeoutError:
        raise TimedOut(f"{url} did not answer within {_TIMEOUT:.0f} s", "check the network and HTTPS_PROXY") from None
    except (URLError, OSError, ValueError) as error:
        if isinstance(getattr(error, "reason", None), TimeoutError):
            raise TimedOut(f"{url} did not answer within {_TIMEOUT:.0f} s", "check the network") from None
        why = getattr(error, "reason", None) or type(error).__name__
        raise Unavailable(f"Cannot reach {url}: {why}", "check the network, HTTPS_PROXY and the base URL") from None


def _check_address(url: str) -> None:
    """A key goes over TLS only, but for this machine."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise BadInput("The base URL of the provider is not valid") from None
    if parts.scheme != "https" and not (parts.scheme == "http" and host in ("127.0.0.1", "::1", "localhost")):
        raise BadInput(f"A key is only sent over https, not to {url}", "check the variable with the base URL")
