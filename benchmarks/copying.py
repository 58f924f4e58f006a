"""Copy of large templates."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from itertools import count

from tests.site import short_directory

from benchmarks.measure import Effort, Group, Row, in_turns, timed, times
from mas.store.files.tree import copy_tree

FILES = 2104
SIZE = 65_000_000
_PER_DIRECTORY = 16


def measure(effort: Effort) -> Group:
    with short_directory() as directory:
        source = os.path.join(directory, "source")
        make_templates(source)
        numbers = count()

        def copying(copy: Callable[[str], object]) -> float:
            # Nothing is removed in between: for a while after that, the disk would be slower for whoever is next.
            target = os.path.join(directory, str(next(numbers)))
            os.sync()
            return timed(lambda: copy(target))

        product, floor, python = in_turns(
            effort.repeats(9),
            lambda: copying(lambda target: copy_tree(source, target)),
            lambda: copying(lambda target: subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)),
            lambda: copying(lambda target: shutil.copytree(source, target, symlinks=True)),
        )
    return Group(
        f"Copy of 65 MB templates ({FILES:,} files)",
        (
            times("copy of the templates", product, "cp -a --reflink=auto", floor, 1.2),
            Row("shutil.copytree", python, "cp -a --reflink=auto", floor),
        ),
    )


def make_templates(root: str) -> None:
    """2,104 files of all sizes, the same at every run: half of each is text that packs well, half is noise."""
    dice = random.Random(65)
    weights = [dice.expovariate(1) for _ in range(FILES)]
    for number, weight in enumerate(weights):
        directory = os.path.join(root, f"{number // _PER_DIRECTORY:03d}")
        os.makedirs(directory, exist_ok=True)
        size = int(weight / sum(weights) * SIZE)
        with open(os.path.join(directory, f"{number:04d}.txt"), "wb") as file:
            file.write((b"an agent reads this line\n" * (size // 50 + 1))[: size // 2])
            file.write(dice.randbytes(size - size // 2))
