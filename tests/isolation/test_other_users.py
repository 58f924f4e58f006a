"""Another user of the machine, who is no agent and no owner: what of a workspace it can read is what is documented."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys

import pytest

from tests.served import Served
from tests.site import until

# Of a workspace that is not closed as a whole; as the threat model says.
READABLE = ("config.json", ".masrc", "unit", "workflows", "templates", "providers")
# Tries to open everything below a directory, and to connect to it, as a user without any other right.
_LOOK = """
import json, os, socket, stat, sys
found = {"read": [], "listed": [], "connected": []}
def look(path):
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            names = os.listdir(path)
            found["listed"].append(path)
            for name in names:
                look(os.path.join(path, name))
        elif stat.S_ISSOCK(mode):
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(path)
                one.sendall(b"GET /sessions HTTP/1.0\\r\\n\\r\\n")
                found["connected"] += [path] if one.recv(1) else []
        elif stat.S_ISREG(mode):
            os.close(os.open(path, os.O_RDONLY))
            found["read"].append(path)
    except OSError:
        return
for path in sys.argv[1:]:
    look(path)
print(json.dumps(found))
"""


def test_another_user_reads_what_is_documented_and_nothing_else(served: Served) -> None:
    if os.getuid():
        pytest.skip("only root can be another user, to see what that one sees")
    other = pwd.getpwnam("nobody")
    site = served.site
    os.chmod(site.directory, 0o755)
    session = site.start("--team", "solo")
    site.mas("send", "--session", session, "00", "--force", "a secret message")
    until(lambda: os.path.exists(site.session(session, "logs", "agent-00.log")), "its log")
    with open(site.session(session, "unit", "00", "work"), "w", encoding="utf-8") as file:
        file.write("a secret")
    os.chmod(file.name, 0o644)
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    places = [site.root, f"/tmp/mas-{os.getuid()}", os.path.dirname(site.user_socket)]
    done = subprocess.run(
        [python, "-I", "-c", _LOOK, *places],
        user=other.pw_uid,
        group=other.pw_gid,
        extra_groups=[],
        env={},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    open_ones = [site.path(name) for name in READABLE]
    # A control: it is another user that can look.
    assert site.path("config.json") in found["read"]
    assert [path for path in found["read"] if not path.startswith(tuple(open_ones))] == []
    listed = {site.root, site.path("sessions"), site.path("sessions", ".mas", "address")}
    assert [path for path in found["listed"] if path not in listed and not path.startswith(tuple(open_ones))] == []
    assert found["connected"] == []
    # Nor does the server at its address: no token, no answer but a sign of life.
    with served.client("") as nobody:
        assert nobody.get("/sessions").status_code == 401
        told = nobody.get("/health").json()
        assert not told.get("version")
        assert not told.get("isolation")
