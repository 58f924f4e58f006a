"""A stand-in for Codex that starts MAS's tools as Codex does: with the few variables that its configuration names.

It calls the tool that a file `call-N` in its directory names (a JSON list of name and arguments), and writes the result
to `result-N`.
"""

import json
import os
import subprocess
import sys
import time
import tomllib
from itertools import count
from typing import Any

# What Codex passes on in any case.
_USUAL = ("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ")


def tools() -> dict[str, Any]:
    """MAS's entry in the configuration: the file, and over it what the command line says."""
    with open(os.path.join(os.environ["CODEX_HOME"], "config.toml"), "rb") as file:
        found = tomllib.load(file)["mcp_servers"]["mas"]
    for flag, word in zip(sys.argv, sys.argv[1:], strict=False):
        if flag == "-c":
            found |= tomllib.loads(word)["mcp_servers"]["mas"]
    assert isinstance(found, dict)
    return found


def ask(server: "subprocess.Popen[str]", method: str, params: dict[str, Any], number: int | None) -> Any:
    """Send a request and return its result; without a number it is a notice, which has none."""
    request = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
    assert server.stdin
    assert server.stdout
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    while number is not None:
        said = json.loads(server.stdout.readline())
        if said.get("id") == number:
            return said["result"]
    return None


def main() -> None:
    found = tools()
    names = (*_USUAL, *found["env_vars"])
    env = {name: os.environ[name] for name in names if name in os.environ}
    words = [found["command"], *found["args"]]
    with subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        ask(server, "initialize", about, 0)
        ask(server, "notifications/initialized", {}, None)
        for number in count(1):
            while not os.path.exists(f"call-{number}"):
                time.sleep(0.02)
            with open(f"call-{number}", encoding="utf-8") as file:
                name, arguments = json.load(file)
            result = ask(server, "tools/call", {"name": name, "arguments": arguments}, number)
            with open(f"result-{number}.new", "w", encoding="utf-8") as file:
                json.dump(result, file)
            os.rename(f"result-{number}.new", f"result-{number}")


if __name__ == "__main__":
    main()
