"""The server with other limits than usual: tests cannot wait for those, or would need more than there is.

python tests/http/impatient.py --port 0 '{"head_time": 0.3}'
"""

from __future__ import annotations

import argparse
import json

from mas.http.limits import ServerLimits
from mas.http.server import Options, serve


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("limits", type=json.loads)
    given = parser.parse_args()
    serve(None, Options(port=given.port, limits=ServerLimits(**given.limits)), lambda info: None)


if __name__ == "__main__":
    main()
