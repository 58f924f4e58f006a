"""Calls `mas hook` for each of its arguments, `NAME` or `NAME=JSON`, keeps what each said in `said`; then it waits.

`said` is whole once `done` is there.
"""

import subprocess
import sys
import time


def main(calls: list[str]) -> None:
    with open("said", "wb") as file:
        for call in calls:
            name, _, payload = call.partition("=")
            argv = [sys.executable, "-m", "mas", "hook", name]
            done = subprocess.run(argv, input=payload.encode(), capture_output=True, check=False)
            file.write(done.stdout + done.stderr)
    with open("done", "w", encoding="utf-8"):
        pass
    time.sleep(1000)


main(sys.argv[1:])
