"""Lets what a parser does guide which bytes it is given next, by atheris: `python -m tests.fuzz.guided NAME`.

All further arguments are libFuzzer's: `-runs=…`, `-seed=…`, a directory to begin with, a file to try again.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["mas"]):
    from tests.fuzz.properties import try_one
from tests.fuzz.ground import PARSERS, Ground
from tests.site import short_directory


def main() -> None:
    """Never returns: libFuzzer ends the process."""
    parser = PARSERS[sys.argv.pop(1)]
    with short_directory() as directory:
        ground = Ground(directory)
        atheris.Setup(sys.argv, lambda data: try_one(parser, ground, data))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
