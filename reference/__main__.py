"""Prints every part of the reference that is made from the code: one JSON object, Markdown by name."""

from __future__ import annotations

import json
import sys

from reference.parts import PARTS

sys.stdout.write(json.dumps({name: make() for name, make in PARTS.items()}))
