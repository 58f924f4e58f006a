"""What an agent planted in its session: nothing outside is read, copied or changed by it, and nothing waits for it."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
import tarfile
from collections.abc import Callable
from contextlib import suppress

import pytest
from zstandard import ZstdDecompressor

from mas.model.errors import MasError
from mas.model.ids import SessionId
from tests.e2e.standin import ASLEEP
from tests.served import Served
from tests.site import Site, until

SECRET = "the-secret-of-somebody-else"
ODD = os.fsdecode(b"a\nb\x1b[31m\xff\xe2\x80\xae")


class Outside:
    """A directory that nothing of MAS has to do with."""

    def __init__(self, site: Site) -> None:
        self.root = os.path.join(site.directory, "outside")
        for name in ("key", "agent-00.log", "agent-00.events.jsonl", "ROLE.md", "session.log", "00/key", "uuid"):
            path = os.path.join(self.root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{SECRET}\n")
        self.key = os.path.join(self.root, "key")
        self._before = self.picture()

    def picture(self) -> dict[str, tuple[int, str]]:
        found = {}
        for directory, directories, files in os.walk(self.root):
            for name in [".", *directories, *files]:
                path = os.path.join(directory, name)
                info = os.lstat(path)
                data = b""
                if stat.S_ISREG(info.st_mode):
                    with open(path, "rb") as file:
                        data = file.read()
                found[path] = info.st_mode, hashlib.sha256(data).hexdigest()
        return found

    def is_untouched(self) -> bool:
        return self.picture() == self._before


@pytest.fixture
def outside(site: Site) -> Outside:
    return Outside(site)


def plant(site: Site, session: str, outside: Outside) -> None:
    """What can be planted where agents may write."""
    for place in (site.session(session, "unit", "00"), site.session(session, "workflows")):
        os.symlink(outside.key, os.path.join(place, "link"))
        os.symlink(outside.root, os.path.join(place, "directory"))
        os.symlink("../../../../../outside/key", os.path.join(place, "relative"))
        os.symlink("/proc/self/root", os.path.join(place, "magic"))
        os.mkfifo(os.path.join(place, "pipe"))
        os.mkfifo(os.path.join(place, ODD))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.join(place, "s"))
        with open(os.path.join(place, "sparse"), "wb") as file:
            file.truncate(1 << 42)
    role = site.session(session, "unit", "00", "ROLE.md")
    if os.path.lexists(role):
        os.unlink(role)
    os.symlink(outside.key, role)


def holds_the_secret(root: str) -> list[str]:
    """The files below that have it, read without following a link."""
    found = []
    for directory, _, files in os.walk(root):
        for name in files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            if stat.S_ISREG(info.st_mode) and info.st_size < 1 << 24:
                with open(path, "rb") as file:
                    if SECRET.encode() in file.read():
                        found.append(path)
    return found


def test_a_session_full_of_traps_lives_its_whole_life(site: Site, outside: Outside) -> None:
    session = site.start(*ASLEEP)
    plant(site, session, outside)
    clone = site.json("clone", session)
    assert any("pipe" in warning for warning in clone["warnings"])
    assert all(warning.isprintable() for warning in clone["warnings"])
    copy = site.session(clone["sessionId"], "unit", "00")
    assert os.readlink(os.path.join(copy, "link")) == outside.key
    assert os.stat(os.path.join(copy, "sparse")).st_blocks < 1000
    said = [site.mas(*args).stdout for args in (["logs"], ["logs", session, "00"], ["output", session, "00"])]
    said += [site.mas("stats").stdout, site.mas("show", session).stdout]
    site.mas("stop", session)
    site.mas("restore", session)
    site.mas("stop", session)
    site.mas("archive", session)
    packed = site.path("sessions", ".mas", "archive", f"{session}.tar.zst")
    assert os.path.getsize(packed) < 1 << 20
    with open(packed, "rb") as file, tarfile.open(fileobj=ZstdDecompressor().stream_reader(file), mode="r|") as tar:
        for member in tar:
            if member.isreg() and member.size < 1 << 24:
                content = tar.extractfile(member)
                assert content is not None
                assert SECRET.encode() not in content.read()
    site.mas("unarchive", session)
    assert os.path.islink(site.session(session, "unit", "00", "link"))
    site.mas("delete", session, "--yes")
    site.mas("undelete", session)
    site.mas("delete", session, clone["sessionId"], "--yes")
    site.mas("prune", "--older-than", "0s", "--yes", code=None)
    assert not any(SECRET in text for text in said)
    assert holds_the_secret(site.root) == []
    assert outside.is_untouched()


TRAPS: dict[str, Callable[[Site, str, Outside], None]] = {
    "logs": lambda site, session, outside: swap(site.session(session, "logs"), outside.root),
    "unit": lambda site, session, outside: swap(site.session(session, "unit"), outside.root),
    "unit 00": lambda site, session, outside: swap(site.session(session, "unit", "00"), outside.root),
    "agents": lambda site, session, outside: swap(site.session(session, ".mas", "agents"), outside.root),
    "workflows": lambda site, session, outside: swap(site.session(session, "workflows"), outside.root),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_link_in_the_middle_of_a_path_leads_nowhere(site: Site, outside: Outside, trap: str) -> None:
    mas = site.local()
    session = SessionId(site.start("--team", "solo", "--provider", "shell"))
    TRAPS[trap](site, session, outside)
    said: list[str] = []
    steps: tuple[Callable[[], str], ...] = (
        lambda: mas.logs(session, None, 100),
        lambda: mas.logs(session, "00", 100),
        lambda: str(mas.show(session)),
        lambda: mas.clone(session, None, False).session_id,
        lambda: str(mas.stop(session)),
        lambda: str(mas.restore(session)),
        lambda: str(until(lambda: mas.output(session, "00", 100).text, "something on its screen")),
        lambda: str(mas.stop(session)),
        lambda: str(mas.archive(session)),
    )
    for step in steps:
        # That something is in the way may be said.
        with suppress(MasError):
            said.append(step())
    assert not any(SECRET in text for text in said), said
    assert holds_the_secret(site.root) == []
    assert outside.is_untouched()


def swap(path: str, target: str) -> None:
    if os.path.lexists(path):
        shutil.rmtree(path)
    os.symlink(target, path)


def test_an_agent_whose_unit_became_a_link_is_not_started_there(site: Site, outside: Outside) -> None:
    session = site.start("--team", "solo", "--command", "touch touched")
    until(lambda: os.path.exists(site.session(session, "unit", "00", "touched")), "the agent's work")
    site.mas("stop", session)
    swap(site.session(session, "unit", "00"), os.path.join(outside.root, "00"))
    site.mas("restore", session)
    until(lambda: "cannot enter its unit directory" in site.mas("output", session, "00").stdout, "the refusal")
    assert outside.is_untouched()


def test_the_server_shows_nothing_from_outside_and_waits_for_no_pipe(served: Served) -> None:
    site = served.site
    outside = Outside(site)
    session = site.start(*ASLEEP)
    plant(site, session, outside)
    client = served.client()
    for path in (
        "unit/00/link",
        "unit/00/directory/key",
        "unit/00/relative",
        "unit/00/pipe",
        "unit/00/magic/etc/passwd",
    ):
        answer = client.get(f"/sessions/{session}/file", params={"path": path})
        assert answer.status_code == 404, (path, answer.text)
    listing = client.get(f"/sessions/{session}/files", params={"path": "unit/00"})
    assert listing.status_code == 200
    kinds = {entry["name"]: entry["kind"] for entry in listing.json()["entries"]}
    assert (kinds["link"], kinds["pipe"], kinds["directory"]) == ("link", "other", "link")
    part = client.get(f"/sessions/{session}/file", params={"path": "unit/00/sparse", "offset": 1 << 41})
    assert len(part.content) <= 4 << 20
    assert outside.is_untouched()
