"""Fuzzes a real server: by its own description (no failure, no answer that is not described), and with any bytes.

`python -m tests.fuzz --only api` runs until about ten thousand requests were made, `--only heads` sends heads.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from contextlib import suppress

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.shapes import bytes_for
from tests.http.raw import connect
from tests.served import Served
from tests.site import Site, short_directory

# What starts teams is tried less often: each time it is right, programs run.
_STARTING = ("/runs", "/sessions/{sessionId}/clone", "/sessions/{sessionId}/restore")
_CALLS = 35
# A description cannot say that a team must be one there is, or that a path must lead to a file.
_UNSAYABLE = "positive_data_acceptance"


def fuzz(served: Served, examples: int, starting: bool, seed: int) -> tuple[int, int, str]:
    """Exit code, number of cases and report of one run over the calls that start teams, or over all others."""
    which = [word for path in _STARTING for word in (("--include-path" if starting else "--exclude-path"), path)]
    done = subprocess.run(
        [
            os.path.join(os.path.dirname(sys.executable), "st"),
            *("run", f"{served.url}/openapi.json"),
            *("--header", f"Authorization: Bearer {served.token}"),
            *("--max-examples", str(examples), "--seed", str(seed)),
            # A stream never ends.
            *("--phases", "examples,coverage,fuzzing", "--exclude-path", "/events"),
            # Longer than the longest wait that can be asked for.
            *("--exclude-checks", _UNSAYABLE, "--request-timeout", "120", "--no-color"),
            *which,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=served.site.directory,
        env=served.site.env,
    )
    report = done.stdout + done.stderr
    cases = re.search(r"(\d+) generated", report)
    return done.returncode, int(cases[1]) if cases else 0, report


def main(wanted: int, seed: int) -> int:
    """Make about this many requests; returns 1 if a round failed."""
    with short_directory() as directory:
        site = Site(directory)
        site.env["MAS_TMUX_SERVER"] = "session"
        site.mas("init", site.root, "--provider", "shell")
        site.start()
        served = Served(site)
        try:
            results = [fuzz(served, 10, True, seed)]
            while (done := sum(cases for _, cases, _ in results)) < wanted and not any(code for code, _, _ in results):
                # Some calls can be made in few ways: what is missing is made up for in another round.
                results.append(fuzz(served, max(20, (wanted - done) // _CALLS), False, seed + len(results)))
        finally:
            site.mas("stop", "--all", code=None, timeout=600)
            served.close()
            site.close()
    for code, _, report in results:
        if code:
            sys.stdout.write(report)
    sys.stdout.write(f"{done} cases in {len(results)} rounds\n")
    return int(any(code for code, _, _ in results))


_PATIENCE = 60.0
# What a stranger may see: that a server is there, its page, and why not.
_OPEN_TO_ALL = re.compile(rb"\S (?:http://[^/ ]*)?/(?:health|login|favicon\.ico|browser/\S*|assets/\S*)?[ ?#]")


def heads(served: Served) -> tuple[bytes, ...]:
    """Sound requests without a token, of the kinds that guards look at."""
    host = served.url.removeprefix("http://").encode()
    body = b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    upgrade = (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n"
    )
    return (
        b"GET /sessions HTTP/1.1\r\nHost: " + host + b"\r\n\r\n",
        b"GET http://" + host + b"/sessions HTTP/1.1\r\nHost: " + host + b"\r\nOrigin: http://evil.example\r\n\r\n",
        b"POST /runs HTTP/1.1\r\nHost: " + host + b"\r\nAuthorization: Bearer mas-agent.x.21.y\r\n" + body,
        b"POST /runs HTTP/1.1\r\nHost: " + host + b"\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"GET /terminals HTTP/1.1\r\nHost: " + host + b"\r\n" + upgrade,
        b"GET /mcp?session=x HTTP/1.0\r\nHost: "
        + host
        + b"\r\nCookie: mas-7717=x\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
    )


def send_head(served: Served, data: bytes) -> bytes:
    """All that a server says to these bytes, with nothing behind them."""
    said = b""
    with connect(served) as wire, suppress(ConnectionError):
        wire.settimeout(_PATIENCE)
        wire.sendall(data)
        with suppress(OSError):
            # It may be closed already.
            wire.shutdown(socket.SHUT_WR)
        while block := wire.recv(1 << 16):
            said += block
    return said


def fuzz_heads(served: Served, examples: int, start: int | None = None) -> None:
    """Send this many heads: each gets an answer that is none of the owner's, or is cut off; and the server lives."""
    profile = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=start is None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )

    @profile
    @given(bytes_for(heads(served)))
    def holds(data: bytes) -> None:
        said = send_head(served, data)
        statuses = [int(one) for one in re.findall(rb"(?:^|\r\n)HTTP/1\.[01] (\d{3}) ", said)]
        assert said == b"" or statuses, said[:200]
        assert all(status < 500 or status == 503 for status in statuses), (data, said[:500])
        if not _OPEN_TO_ALL.search(data):
            assert all(status >= 300 for status in statuses), (data, said[:500])
        assert b'"sessions"' not in said

    (holds if start is None else seed(start)(holds))()
    assert served.client().get("/sessions").status_code == 200


def main_heads(examples: int, start: int) -> int:
    """Send this many heads to a server; returns 1 if one was too much for it."""
    with short_directory() as directory:
        site = Site(directory)
        site.mas("init", site.root, "--provider", "shell")
        served = Served(site)
        try:
            fuzz_heads(served, examples, start)
        except AssertionError as error:
            sys.excepthook(type(error), error, error.__traceback__)
            return 1
        finally:
            served.close()
            site.close()
    return 0
