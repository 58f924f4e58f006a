"""The parts of the reference that are made from the code.

`python -m reference` prints all of them for the site: one JSON object, Markdown by name.
`python -m reference write` puts their short forms into the pages in docs/reference.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from reference.parts import PARTS, with_short_parts

if sys.argv[1:] == ["write"]:
    for path in sorted((Path(__file__).parent.parent / "docs" / "reference").glob("*.md")):
        path.write_text(with_short_parts(path.read_text("utf-8")), "utf-8")
else:
    sys.stdout.write(json.dumps({name: part.whole() for name, part in PARTS.items()}))
