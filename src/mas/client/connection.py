"""A connection to a server: sends requests, returns results, turns refusals into errors."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import httpx

from mas.model import errors
from mas.model.errors import BadInput, MasError, NoServer, NotSignedIn
from mas.model.server import LoginCode
from mas.settings import read_token

if TYPE_CHECKING:
    import ssl

    from websockets.sync.client import ClientConnection

_CONNECT = 5.0
# A start copies templates, an archive packs a session: the server may need its time.
_ANSWER = 600.0
_FILE = "unix:"
_TOKEN = "token"  # noqa: S105 - the name of a file
# A screen comes in one frame, with all that scrolled off it.
_LARGEST_FRAME = 16 << 20
_HINT = "mas serve --detach"
_ELSEWHERE = "on that machine: mas serve --host …; check the address, the port, and firewalls in between"
_NOT_TRUSTED = "--ca FILE or MAS_CA, with the certificate of the server or of its issuer"
# OpenSSL's codes for a certificate with another name or address.
_WRONG_NAME = (62, 64)
_IN_BODY = "body."
# What may be asked twice: once more at once, on a fresh connection.
_ONCE_MORE = (0.0,)


class Connection:
    """Speaks to one server, at an address or (`unix:/path`) at its socket file. Threads may share it.

    At a socket file the token that is not given is read from the file `token` beside it, which only its user can read.
    """

    def __init__(
        self, url: str, token: str | None = None, certificate: str | None = None, ca: str | None = None
    ) -> None:
        """`certificate` (PEM) is the only one the server may show, `ca` a file of those that vouch for it."""
        transport = None
        base = url
        if url.startswith(_FILE):
            transport = httpx.HTTPTransport(uds=url.removeprefix(_FILE))
            base = "http://localhost"
        elif not url.startswith(("http://", "https://")):
            raise _not_an_address(url)
        if token and not (token.isascii() and token.isprintable() and " " not in token):
            raise BadInput("Not a valid token: a token is one word of ASCII characters", "mas token")
        self._url = url
        self._token = token
        self._trust = _only(certificate) if certificate else _vouched_by(ca) if ca else None
        try:
            self._client = httpx.Client(
                base_url=base,
                auth=self._sign,
                transport=transport,
                verify=self._trust or True,
                timeout=httpx.Timeout(_ANSWER, connect=_CONNECT),
                # The environment's proxies are not for a server on this machine or with our token.
                trust_env=False,
            )
        except httpx.InvalidURL:
            raise _not_an_address(url) from None
        if (self._client.base_url.port or 0) >= 1 << 16:
            self.close()
            raise _not_an_address(url)

    def _sign(self, request: httpx.Request) -> httpx.Request:
        request.headers.update(self._proof())
        return request

    def _proof(self) -> dict[str, str]:
        """The header that names the caller. A token beside a socket file is read each time: it may be renewed."""
        token = self._token
        if token is None and self._url.startswith(_FILE):
            token = _beside(self._url.removeprefix(_FILE))
        return {"Authorization": f"Bearer {token}"} if token else {}

    def close(self) -> None:
        self._client.close()

    def ask(self, method: str, path: str, **options: Any) -> Any:  # noqa: ANN401 - JSON
        """The answer's JSON; a refusal as the `MasError` it stands for, silence as `NoServer`."""
        response = self.raw(method, path, **options)
        try:
            return response.json()
        except ValueError:
            raise _not_ours(response) from None

    def raw(
        self,
        method: str,
        path: str,
        again: Sequence[float] | None = None,
        **options: Any,  # noqa: ANN401 - httpx's own options
    ) -> httpx.Response:
        """The response, or an error as with `ask`.

        If the connection breaks before the response, the server may or may not have got the request. It is then made
        again after each of the seconds in `again`; by default only a request that changes nothing, and once.
        """
        waits = iter(again if again is not None else _ONCE_MORE if method == "GET" else ())
        heard = False
        while True:
            try:
                response = self._client.request(method, path, **options)
            except (UnicodeEncodeError, httpx.InvalidURL):
                raise BadInput("Only valid text can be sent to a server") from None
            except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
                # Nothing that listens: only a server that was there before may be on its way back.
                heard = heard or not isinstance(error, httpx.ConnectError)
                wait = next(waits, None) if heard else None
                if wait is None:
                    raise self._silence(error) from None
                time.sleep(wait)
                continue
            except httpx.TransportError as error:
                raise self._silence(error) from None
            break
        if response.is_error:
            raise self._refusal(response)
        return response

    def websocket(self, path: str) -> ClientConnection:
        """A WebSocket to the server; refusals and silence as with `ask`."""
        from websockets.exceptions import InvalidStatus, WebSocketException
        from websockets.sync.client import connect, unix_connect

        base = self._client.base_url
        scheme = "wss" if base.scheme == "https" else "ws"
        proof = self._proof()
        options: dict[str, Any] = {
            "additional_headers": proof,
            "compression": None,
            "max_size": _LARGEST_FRAME,
            "open_timeout": _CONNECT,
        }
        uri = f"{scheme}://{base.netloc.decode()}{path}"
        try:
            if self._url.startswith(_FILE):
                opening = unix_connect(self._url.removeprefix(_FILE), uri, **options)
            else:
                trust = self._trust if scheme == "wss" else None
                opening = connect(uri, proxy=None, ssl=trust, **options)
            # Entered here; its `close` leaves it.
            opened: ClientConnection = opening.__enter__()
        except InvalidStatus as error:
            refused = error.response
            asked = httpx.Request("GET", base, headers=proof)
            raise self._refusal(
                httpx.Response(refused.status_code, content=bytes(refused.body), request=asked)
            ) from None
        except (OSError, WebSocketException) as error:
            raise self._silence(error) from None
        return opened

    def _refusal(self, response: httpx.Response) -> MasError:
        error = error_of(response)
        if isinstance(error, NotSignedIn):
            told = "rejected this token" if "Authorization" in response.request.headers else "requires a token"
            return NotSignedIn(
                f"The server at {self._url} {told}", "on its machine: mas token; then here: --token, or MAS_TOKEN"
            )
        return error

    def _silence(self, error: Exception) -> NoServer:
        return no_answer(self._url, self._client.base_url.host, error)


def no_answer(url: str, host: str, error: Exception) -> NoServer:
    """The error for a server that did not answer, with what to do about it."""
    import socket
    import ssl

    causes = list(_causes(error))
    why = str(error) or type(error).__name__
    if untrusted := next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None):
        reason = untrusted.verify_message or why
        return NoServer(
            f"The certificate of {url} is not trusted: {reason}",
            "use the name that the certificate is for" if untrusted.verify_code in _WRONG_NAME else _NOT_TRUSTED,
        )
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return NoServer(f"TLS with {url} failed: {why}", "is it http:// rather than https://?")
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return NoServer(f"There is no host {host!r}: {why}", "check the name in --url or MAS_URL")
    return NoServer(f"No answer from {url}: {why}", _HINT if _is_here(url, host) else _ELSEWHERE)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _is_here(url: str, host: str) -> bool:
    """Whether a server is meant that listens on this machine only."""
    import ipaddress

    if url.startswith(_FILE) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _vouched_by(ca: str) -> ssl.SSLContext:
    """Trust in what the certificates in a file vouch for, and in nothing else."""
    import ssl

    try:
        if not os.path.isfile(ca):
            # A pipe would be waited for.
            raise ValueError("no such file" if not os.path.lexists(ca) else "not a file")
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"Cannot use {ca} as certificates to trust: {error}", "--ca takes a file in PEM format"
        ) from None
    # The server's own certificate may be in the file, rather than that of who signed it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _only(certificate: str) -> ssl.SSLContext:
    """Trust in one certificate, whatever names it is for."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=certificate)
    except (ssl.SSLError, ValueError):
        raise NoServer("The server's certificate cannot be read", _HINT) from None
    return context


def error_of(response: httpx.Response) -> MasError:
    """The error that a refusal stands for."""
    try:
        body = response.json()
        code, detail, hint = str(body["code"]), str(body["detail"]), str(body.get("hint", ""))
        places = [str(item["where"]) for item in body.get("errors") or ()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return _not_ours(response)
    error = error_named(code, detail, hint)
    if len(places) == 1 and places[0].startswith(_IN_BODY):
        error.field = places[0].removeprefix(_IN_BODY)
    return error


def error_named(code: str, message: str, hint: str = "") -> MasError:
    """The error with that code."""
    kind = _KINDS.get(code, MasError)
    error = kind.__new__(kind)
    MasError.__init__(error, message, hint)
    # A code that has no class of its own still is a promise.
    error.code = code
    return error


def _not_ours(response: httpx.Response) -> NoServer:
    return NoServer(f"This is not a MAS server: HTTP {response.status_code} from {response.url.host}", "mas serve")


def _not_an_address(url: str) -> BadInput:
    return BadInput(f"Not the address of a server: {url[:100]!r} (http://…, https://… or unix:/…)", "mas serve")


def _kinds(kind: type[MasError]) -> dict[str, type[MasError]]:
    """Every error by its code; where one code is for several, the most general."""
    found = {kind.code: kind} if "code" in kind.__dict__ else {}
    for inner in kind.__subclasses__():
        if inner.__module__ == errors.__name__:
            found = _kinds(inner) | found
    return found


_KINDS = _kinds(MasError)


def _beside(socket: str) -> str | None:
    """The owner's token, as it is kept beside the server's socket file; None if this user cannot read one there."""
    try:
        return read_token(os.path.join(os.path.dirname(socket), _TOKEN))
    except BadInput:
        return None


def login_code(socket: str, token: str) -> LoginCode:
    """A one-time code from the server at a socket file."""
    connection = Connection(f"{_FILE}{socket}", token)
    try:
        body = connection.ask("POST", "/login-codes")
    finally:
        connection.close()
    return LoginCode(body["code"], body["url"], body["expiresAt"])
