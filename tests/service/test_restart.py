"""What is known of an agent's last run, whatever the agent did to the file that records it."""

from __future__ import annotations

import pytest

from mas.model.ids import SessionId
from mas.service.agents.restart import _begun_at
from tests.site import Site
from tests.store.samples import new_id, put


@pytest.mark.parametrize(
    "rest", [b'"at":"2026"}', b'"at":[', b'"at":' + b"[" * 100_000], ids=["a start", "cut", "deep"]
)
def test_rubbish_in_the_file_is_no_beginning(bare: Site, rest: bytes) -> None:
    world, session = bare.world(), SessionId(new_id())
    put("/", world.layout.session(session).agent_events("00"), b'{"event":"start",' + rest + b"\n")
    assert _begun_at(world, session, "00") == ("2026" if rest.endswith(b"}") else "")
