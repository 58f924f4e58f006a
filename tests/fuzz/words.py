"""What comes in requests and on the command line."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from mas.model.browser import Place
from mas.model.errors import BadInput, NoSession, NotSignedIn
from mas.model.ids import find_session, parse_name
from mas.model.isolation import Isolation, Limits, Policy, SessionLimits, parse_size, shown_size
from mas.model.message import LARGEST, parse_message, parse_message_id
from mas.model.principal import Principal, named_by
from mas.model.run import Run, parse_run, run_body
from mas.model.shapes import unwire
from mas.model.views import AgentView, SessionDetail, wire
from mas.pane.typed import Typed
from mas.service.access import Access
from mas.service.browsers import Browsers, Hello
from mas.store.files.safe_open import parse_path
from mas.store.server.browsers import BrowserFile
from mas.store.server.secrets import Secrets
from tests.fuzz.files import RUN
from tests.fuzz.ground import AGENT, ID, NOW, PARSERS, Ground, is_typed


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


@PARSERS.of(RUN, "{}", '{"sessionMode":"isolated","team":"pair"}')
def run(ground: Ground, data: bytes) -> None:
    """A run is understood, or refused by what is wrong with it; written down, it is the same."""
    asked = parse_run(_json(data))
    assert is_typed(Run, asked)
    assert parse_run(json.loads(json.dumps(run_body(asked)))) == asked._replace(
        isolation=asked.policy, limits=asked.all_limits
    )


@PARSERS.of("hello\n\tworld", "größe")
def message(ground: Ground, data: bytes) -> None:
    """What may be sent can be pasted: nothing in it is a key, and the launcher knows it by its header alone."""
    text = parse_message(_text(data))
    assert len(text.encode()) <= LARGEST
    notes: list[tuple[str, str]] = []
    watching = Typed(lambda what, name: notes.append((what, name)))
    header = "[MAS from=person to=00 id=m-0123456789abcdef]"
    watching.feed(f"\x1b[200~{header}\n{text}\x1b[201~\r".encode())
    watching.tell()
    assert notes[:2] == [("typed", "m-0123456789abcdef"), ("entered", "m-0123456789abcdef")]


@PARSERS.of("512MiB", "1.5 GiB", "7B", refusal=ValueError)
def size(ground: Ground, data: bytes) -> None:
    number = parse_size(_text(data))
    assert 1 <= number <= 1 << 62
    shown = shown_size(number)
    assert "." in shown or parse_size(shown) == number


@PARSERS.of("unit/00/a file", "./a//b", "")
def path(ground: Ground, data: bytes) -> None:
    """A path leads down from where it begins, or is refused."""
    names = parse_path(_text(data))
    below = os.path.normpath(os.path.join("/top", *names))
    assert below == "/top" or below.startswith("/top/")


@PARSERS.of(ID, ID[:8], f"mas-{ID[:8]}", "m-0123456789abcdef", "a name")
def names(ground: Ground, data: bytes) -> None:
    for parse in (lambda text: find_session(text, [(ID, "a name")]), parse_message_id, parse_name):
        with suppress(BadInput, NoSession):
            assert is_typed(str, parse(_text(data)))


@PARSERS.of(f"mas-agent.{ID}.{AGENT}.x", f"mas-page.{'0' * 32}.9.{'0' * 64}", f"9.{'0' * 32}.{'0' * 64}")
def token(ground: Ground, data: bytes) -> None:
    """No token, bearer, ticket or proof that MAS did not issue opens anything."""
    access = Access(Secrets(ground.layout))
    browsers = Browsers(Secrets(ground.layout), BrowserFile(ground.layout), lambda: 0.0, lambda: 0.0)
    text = _text(data)
    assert is_typed(Principal | None, named_by(text))
    assert access.who(text) is None
    assert browsers.bearer_of(text, "host") is None
    assert browsers.spend_ticket(text, "host", "/docs") is None
    with suppress(NotSignedIn):
        assert not browsers.admit(Place("host", "http://host"), Hello(text, text, text, text))


_DETAIL = SessionDetail(
    *(
        ID,
        "mas-x",
        None,
        "active",
        NOW,
        NOW,
        NOW,
        "/x",
        "/x/unit",
        "/x/workflows",
        {AGENT: "/x/unit/00"},
        "/x/config.json",
    ),
    *({AGENT: "/x/logs"}, "/tmp/x", None, {"STATUS": "active"}),
    agents=(AgentView(AGENT, "meta", "boss", "shell", None, "idle", "", "hooks", "%1", None),),
    isolation=Isolation("A", "bwrap", ("x",), policy=Policy(ports=(1,))),
    limits=SessionLimits(Limits(memory=1 << 30, cpu=1.5)),
)


# The client puts that into words.
@PARSERS.of(json.dumps(wire(_DETAIL)), refusal=ValueError)
def answer(ground: Ground, data: bytes) -> None:
    """What a server answers is what is expected of it, or nothing is taken of it."""
    assert is_typed(SessionDetail, unwire(SessionDetail, _json(data)))
