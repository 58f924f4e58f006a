"""One property for all parsers: they hold what they promise, refuse in the way they say, and are done soon."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz import files, network, streams, transcripts, words  # noqa: F401 - they add their parsers
from tests.fuzz.ground import Ground, Parser
from tests.fuzz.shapes import Input, bytes_for
from tests.site import short_directory

# Seconds of processor time: far more than any of them takes, however busy the machine is.
_LONGEST = 20.0


class TookTooLong(BaseException):
    """Not an `Exception`, so that no parser takes it for a refusal."""


def try_one(parser: Parser, ground: Ground, data: bytes) -> None:
    """Give it these bytes; a refusal is fine."""
    with suppress(parser.refusal):
        _run(parser, ground, data)


def _run(parser: Parser, ground: Ground, data: bytes) -> None:
    try:
        with _in_time():
            parser.run(ground, data)
    except BaseException as error:
        error.add_note(f"{parser.name} was given {Input(data)!r}")
        raise


def try_many(parser: Parser, examples: int, start: int | None = None) -> None:
    """Give it this many different bytes, from a seed or always the same."""
    profile = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=start is None,
        print_blob=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    with short_directory() as directory:
        ground = Ground(directory)

        @profile
        @given(bytes_for(parser.samples))
        def holds(data: bytes) -> None:
            try_one(parser, ground, data)

        for sample in parser.samples:
            # If it were refused, what is tried would not even be nearly sound.
            _run(parser, ground, sample)
        (holds if start is None else seed(start)(holds))()


@contextmanager
def _in_time() -> Iterator[None]:
    def too_long(number: int, frame: FrameType | None) -> None:
        raise TookTooLong(f"over {_LONGEST:.0f} seconds of processor time")

    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, _LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
