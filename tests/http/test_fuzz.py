"""The server under fuzzing, bounded; `make fuzz` does ten thousand cases."""

from __future__ import annotations

import pytest

from tests.http.fuzz import fuzz, fuzz_heads
from tests.served import Served


@pytest.mark.parametrize("starting", [False, True], ids=["all calls", "what starts teams"])
def test_no_request_makes_the_server_fail_or_answer_what_it_does_not_describe(served: Served, starting: bool) -> None:
    served.site.start()
    code, cases, report = fuzz(served, examples=1, starting=starting, seed=1)
    assert code == 0, report
    assert cases > 20, report
    served.site.mas("stop", "--all")


def test_no_head_makes_the_server_fail_or_opens_it(served: Served) -> None:
    fuzz_heads(served, examples=60)
