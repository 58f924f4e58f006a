"""What a run leaves to chance follows from one seed: another one in every run, the same when a test is run again."""

from __future__ import annotations

import os
import random

SEED = "MAS_TORTURE_SEED"


def draw_seed() -> None:
    """Choose the seed of this run and of every process it starts; one that is set is used."""
    os.environ.setdefault(SEED, str(random.SystemRandom().randrange(1 << 32)))


def dice() -> random.Random:
    """Of the running test: the same for the same seed."""
    return random.Random(f"{os.environ[SEED]} {os.environ['PYTEST_CURRENT_TEST']}")
