"""Between the pane and the agent every byte passes, in both directions, and all output is in the log."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from threading import Thread

from tests.agents.pane_flood import blocks
from tests.pane.pane import Pane, pane, stand_in
from tests.site import Site, until

ALL = bytes(range(256)) * 16
ESCAPE = 0x1B


def digest(data: bytes | bytearray) -> str:
    return hashlib.sha256(data).hexdigest()


def shown(one: Pane, count: int) -> bool:
    return len(one.output) >= count


def test_all_byte_values_pass_both_ways_and_into_the_log(bare: Site) -> None:
    with pane(bare, *stand_in("echo"), str(len(ALL))) as one:
        one.expect(b"<ready>")
        one.send(ALL)
        one.expect(b"<done>")
        assert one.wait() == 0
        assert one.output.startswith(b"<ready>" + ALL + b"<done>")
        assert one.log() == b"<ready>" + ALL + b"<done>"


def test_each_byte_passes_alone(bare: Site) -> None:
    with pane(bare, *stand_in("echo"), "256") as one:
        one.expect(b"<ready>")
        for value in range(256):
            one.send(bytes([value]))
            if value != ESCAPE:
                # An escape may begin a report; no terminal shows anything of it before the next byte.
                until(partial(shown, one, len(b"<ready>") + value + 1), f"byte {value}")
        assert one.wait() == 0
        assert one.log() == b"<ready>" + bytes(range(256)) + b"<done>"


def test_a_plain_program_gets_its_line_ends_translated_once(bare: Site) -> None:
    with pane(bare, "printf", "one\\ntwo\\n") as one:
        assert one.wait() == 0
        assert one.output.startswith(b"one\r\ntwo\r\n\x1b")
        assert one.log() == b"one\r\ntwo\r\n"


def test_twenty_megabytes_arrive_whole_and_in_order(bare: Site) -> None:
    size = 20_000_000
    with pane(bare, *stand_in("flood"), str(size)) as one:
        assert one.wait() == 0
        wanted = digest(blocks(size))
        assert digest(one.output[:size]) == wanted
        assert digest(one.log()) == wanted


def test_what_is_typed_waits_for_an_agent_that_does_not_read_yet(bare: Site) -> None:
    data = blocks(1 << 20)
    gate = os.path.join(bare.directory, "gate")
    with pane(bare, *stand_in("echo"), str(len(data)), gate) as one:
        one.expect(b"<ready>")
        typing = Thread(target=one.send, args=(data,))
        typing.start()
        with open(gate, "w", encoding="ascii"):
            pass
        typing.join()
        assert one.wait() == 0
        assert digest(one.output[len(b"<ready>") :][: len(data)]) == digest(data)


def test_an_agent_whose_output_is_not_read_waits_and_nothing_is_lost(bare: Site) -> None:
    size = 4_000_000
    with pane(bare, *stand_in("flood"), str(size)) as one:
        one.pause()
        until(lambda: one.events() and os.path.exists(one.session + "/logs/agent-00.log"), "output in the log")
        until(lambda: len(one.log()) > 100_000, "the log to grow")
        assert one.process.poll() is None
        one.go_on()
        assert one.wait() == 0
        assert digest(one.output[:size]) == digest(blocks(size)) == digest(one.log())


def test_an_exit_is_recorded_at_once_even_if_the_output_is_not_read(bare: Site) -> None:
    size = 150_000
    gate = os.path.join(bare.directory, "gate")
    command = 'while [ ! -e "$0" ]; do sleep 0.01; done; exec "$@"'
    with pane(bare, "sh", "-c", command, gate, *stand_in("flood"), str(size)) as one:
        one.event("start")
        one.pause()
        with open(gate, "w", encoding="ascii"):
            pass
        assert one.event("exit")["status"] == 0
        assert digest(one.log()) == digest(blocks(size))
        one.go_on()
        assert one.wait() == 0


def test_output_that_was_the_agents_last_is_not_lost(bare: Site) -> None:
    for number in range(10):
        with pane(bare, "printf", f"last words {number}") as one:
            assert one.wait() == 0
            assert one.output.startswith(f"last words {number}".encode())
            assert one.log().endswith(f"last words {number}".encode())
