"""Asks by calling `mas hook PermissionRequest` and waits for what that prints, kept in `decision`; then it sleeps.

It asks whether it may run a command; with a second word it asks a question with options.

The file `pid` holds the number of the process that waits.
"""

import json
import os
import subprocess
import sys
import time


def main(question: str, *options: str) -> None:
    body = {"tool_name": "Bash", "tool_input": {"command": question}}
    if options:
        asked = {"question": question, "options": [{"label": label} for label in options]}
        body = {"tool_name": "AskUserQuestion", "tool_input": {"questions": [asked]}}
    argv = [sys.executable, "-m", "mas", "hook", "PermissionRequest"]
    asking = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with open("pid", "w", encoding="utf-8") as file:
        file.write(f"{asking.pid}\n")
    said = asking.communicate(json.dumps(body).encode())[0]
    with open("decision.tmp", "wb") as file:
        file.write(b"%d %s" % (asking.returncode, said))
    os.rename("decision.tmp", "decision")
    time.sleep(1000)


main(*sys.argv[1:])
