"""Files over the API: what lies in a session's directory, and never what a link there leads to."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest

from mas.model.errors import BadInput, NotFound
from mas.store.files.safe_open import opened_beneath, parse_path
from tests.served import Served
from tests.site import until

SECRET = "nobody may read this over the API"


class Place:
    """A session's `unit/00`, where its agent may write, and a secret outside."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.session = served.site.start()
        self.unit = served.site.session(self.session, "unit", "00")
        os.makedirs(self.unit, exist_ok=True)
        self.outside = os.path.join(served.site.directory, "outside")
        os.makedirs(os.path.join(self.outside, "inner"), exist_ok=True)
        self.secret = os.path.join(self.outside, "secret")
        for path in (self.secret, os.path.join(self.outside, "inner", "secret")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(SECRET)

    def file(self, path: str, **options: int) -> httpx.Response:
        return self._get("file", path, **options)

    def download(self, path: str) -> httpx.Response:
        return self._get("download", path)

    def files(self, path: str) -> httpx.Response:
        return self._get("files", path)

    def _get(self, what: str, path: str, **options: int) -> httpx.Response:
        params: dict[str, str | int] = {"path": path, **options}
        return self.served.client().get(f"/sessions/{self.session}/{what}", params=params)

    def put(self, name: str, data: bytes = b"mine\n") -> str:
        path = os.path.join(self.unit, name)
        with open(path, "wb") as file:
            file.write(data)
        return path


@pytest.fixture(scope="module")
def place(shared: Served) -> Iterator[Place]:
    made = Place(shared)
    yield made
    shared.client().post(f"/sessions/{made.session}/stop")


def test_a_file_is_read_as_it_is_and_never_shown_as_a_page(place: Place) -> None:
    place.put("page.html", b"<script>alert(1)</script>\xff")
    answer = place.file("unit/00/page.html")
    assert answer.status_code == 200
    assert answer.content == b"<script>alert(1)</script>\xff"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-file-size"] == "26"
    assert place.file("unit/00/page.html", offset=8, most=5).content == b"alert"
    assert place.file("unit/00/page.html", offset=1 << 40).content == b""


def test_a_whole_file_is_downloaded_however_large(place: Place) -> None:
    data = os.urandom(1 << 10) * (5 << 10)
    place.put("large", data)
    answer = place.download("unit/00/large")
    assert answer.content == data
    assert answer.headers["content-length"] == str(len(data))
    assert answer.headers["content-disposition"].startswith("attachment;")
    place.put("none", b"")
    assert place.download("unit/00/none").content == b""
    assert place.download("unit/00/absent").status_code == 404
    assert place.download("unit/00").status_code == 422


def test_a_download_of_a_file_that_becomes_shorter_breaks_off(place: Place) -> None:
    path = place.put("shrinking", bytes(32 << 20))
    where = f"/sessions/{place.session}/download?path=unit/00/shrinking"
    with place.served.client().stream("GET", where) as answer:
        os.truncate(path, 10)
        with pytest.raises(httpx.RemoteProtocolError):
            answer.read()


def test_any_name_can_be_listed(place: Place) -> None:
    for name in ("ü & ?#%.txt", 'a"b\\c', "new\nline", "-x", "日本"):
        place.put(name, name.encode())
        assert place.file(f"unit/00/{name}").content == name.encode()
        assert "\n" not in place.file(f"unit/00/{name}").headers["content-disposition"]
    os.mkdir(os.path.join(place.unit.encode(), b"\xff\xfe"))
    listed = place.files("unit/00")
    assert listed.status_code == 200
    os.rmdir(os.path.join(place.unit.encode(), b"\xff\xfe"))


@pytest.mark.parametrize(
    "path",
    [
        ".session",
        ".session.lock",
        ".mas",
        ".mas/x",
        "metadata.json",
        "config.json",
        "unit/../.session",
        "unit/./../.session",
        "unit/00/../../.session",
        "unit/../../../../config.json",
        "../.sessions.index",
        "../.mas/server/token",
        "/etc/passwd",
        "//etc/passwd",
        "unit//../.session",
        "unit\0/00",
        "./.session",
        "Unit/00",
        "unit /00",
        "",
        ".",
        "/",
        "a" * 4096,
    ],
)
def test_only_what_agents_work_on_is_shown(place: Place, path: str) -> None:
    answer = place.file(path)
    assert answer.status_code == 422, answer.text
    assert place.files(path).status_code == (200 if path in ("", ".") else 422)
    if path in ("", "."):
        assert [entry["name"] for entry in place.files(path).json()["entries"]] == ["unit", "workflows", "logs"]


@pytest.mark.parametrize(
    "path", ["unit/nothing", "unit/00/nothing", "unit/00/x/y/z", f"unit/{'a' * 300}", "unit/\ufffd"]
)
def test_a_missing_file_is_not_found(place: Place, path: str) -> None:
    assert place.file(path).status_code == 404
    assert place.files(path).status_code == 404


def test_a_link_is_shown_and_never_followed(place: Place) -> None:
    os.symlink(place.secret, os.path.join(place.unit, "link"))
    os.symlink(place.outside, os.path.join(place.unit, "linked"))
    os.symlink("page.html", os.path.join(place.unit, "near"))
    os.symlink("/proc/self/environ", os.path.join(place.unit, "environ"))
    place.put("page.html")
    for path in ("link", "linked/secret", "linked/inner/secret", "near", "environ", "linked"):
        answer = place.file(f"unit/00/{path}")
        assert answer.status_code == 404, path
        assert SECRET not in answer.text
    for path in ("linked", "linked/inner", "link"):
        assert place.files(f"unit/00/{path}").status_code == 404, path
    kinds = {entry["name"]: entry["kind"] for entry in place.files("unit/00").json()["entries"]}
    assert {kinds[name] for name in ("link", "linked", "near", "environ")} == {"link"}
    for name in ("link", "linked", "near", "environ"):
        os.unlink(os.path.join(place.unit, name))


def test_a_link_in_place_of_the_places_shown_is_not_followed(shared: Served) -> None:
    place = Place(shared)
    shared.client().post(f"/sessions/{place.session}/stop")
    for name in ("unit", "workflows", "logs"):
        path = shared.site.session(place.session, name)
        os.rename(path, f"{path}.before")
        os.symlink(place.outside, path)
        assert place.file(f"{name}/secret").status_code == 404
        assert place.files(name).status_code == 404
        os.unlink(path)
        os.rename(f"{path}.before", path)


def test_a_hard_link_is_the_file_itself(place: Place) -> None:
    os.link(place.put("one", b"the same"), os.path.join(place.unit, "two"))
    assert place.file("unit/00/two").content == b"the same"


def test_a_pipe_a_socket_and_a_device_are_not_read(place: Place) -> None:
    os.mkfifo(os.path.join(place.unit, "pipe"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.join(place.unit, "socket"))
        names = ["pipe", "socket"]
        if os.getuid() == 0:
            try:
                os.mknod(os.path.join(place.unit, "zero"), 0o20644, os.makedev(1, 5))
                names.append("zero")
            except PermissionError:
                pass
        for name in names:
            assert place.file(f"unit/00/{name}").status_code == 404, name
            assert place.files(f"unit/00/{name}").status_code == 404, name
        kinds = {entry["name"]: entry["kind"] for entry in place.files("unit/00").json()["entries"]}
        assert {kinds[name] for name in names} == {"other"}
        for name in names:
            os.unlink(os.path.join(place.unit, name))


def test_a_directory_is_not_a_file_and_a_file_is_no_directory(place: Place) -> None:
    place.put("file")
    assert place.file("unit/00").status_code == 422
    assert place.files("unit/00/file").status_code == 422
    assert place.file("unit/00/file/more").status_code == 404


def test_a_directory_that_becomes_a_link_while_it_is_read_leads_nowhere(place: Place) -> None:
    """An agent swaps the two as fast as it can; whatever the moment, what is outside stays there."""
    inner = os.path.join(place.unit, "inner")
    kept = os.path.join(place.unit, "kept")
    os.mkdir(inner)
    with open(os.path.join(inner, "secret"), "w", encoding="utf-8") as file:
        file.write("inside")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            os.rename(inner, kept)
            os.symlink(os.path.join(place.outside, "inner"), inner)
            os.unlink(inner)
            os.rename(kept, inner)

    swapping = threading.Thread(target=swap)
    swapping.start()
    root = place.served.site.session(place.session)
    seen = {"inside": 0, "nothing": 0}
    try:
        for _ in range(5000):
            try:
                with opened_beneath(root, ("unit", "00", "inner", "secret")) as fd:
                    found = os.pread(fd, 100, 0).decode()
            except NotFound:
                found = "nothing"
            assert found in seen
            seen[found] += 1
        statuses = {place.file("unit/00/inner/secret").status_code for _ in range(50)}
        assert statuses <= {200, 404}
        assert all(SECRET not in place.file("unit/00/inner/secret").text for _ in range(20))
    finally:
        over.set()
        swapping.join()
    assert seen["inside"]
    assert seen["nothing"]


def test_a_listing_of_a_busy_directory_leaves_out_what_has_gone(place: Place) -> None:
    os.mkdir(os.path.join(place.unit, "busy"))
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            paths = [place.put(f"busy/{number}") for number in range(20)]
            for path in paths:
                os.unlink(path)

    working = threading.Thread(target=work)
    working.start()
    try:
        assert {place.files("unit/00/busy").status_code for _ in range(40)} == {200}
    finally:
        over.set()
        working.join()


@pytest.mark.parametrize("how", ["link", "directory", "pipe"])
def test_what_is_not_a_log_is_neither_read_nor_waited_for(shared: Served, how: str) -> None:
    place = Place(shared)
    client = shared.client()
    client.post(f"/sessions/{place.session}/stop")
    logs = shared.site.session(place.session, "logs")
    names = ("session.log", "api.log", "agent-00.log")
    if how == "directory":
        os.rename(logs, f"{logs}.before")
        os.symlink(place.outside, logs)
        for name in names:
            with open(os.path.join(place.outside, name), "w", encoding="utf-8") as file:
                file.write(SECRET)
    else:
        for name in names:
            # In one step: the server may just be writing there.
            made = os.path.join(logs, f"{name}.made")
            os.mkfifo(made) if how == "pipe" else os.symlink(place.secret, made)
            os.rename(made, os.path.join(logs, name))
    before = _contents(place.outside)
    for path in ("logs", "logs?agent=00", "agents/00/output"):
        answer = client.get(f"/sessions/{place.session}/{path}")
        assert answer.status_code == 200, (path, answer.text)
        assert SECRET not in answer.text
        assert answer.json()["text"] == ""
    # What the server writes down about the session goes nowhere either, and keeps nothing else from being written.
    client.get(f"/sessions/{place.session}/stats", headers={"X-Request-ID": f"marked-{how}"})
    until(lambda: f"marked-{how}" in _read(shared.log), "the server goes on writing its log")
    assert _contents(place.outside) == before
    for name in names:
        if how == "directory":
            os.unlink(os.path.join(place.outside, name))


def test_a_path_is_taken_apart_before_the_disk_is_touched() -> None:
    assert parse_path("unit/./00//x") == ("unit", "00", "x")
    assert parse_path("") == ()
    for path in ("/x", "..", "a/..", "../a", "a/../b", "a\0b", "\0", "a" * 5000):
        with pytest.raises(BadInput):
            parse_path(path)
    assert parse_path("...") == ("...",)
    assert parse_path("..a/b..") == ("..a", "b..")


def _contents(directory: str) -> dict[str, bytes]:
    found = {}
    for path, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.join(path, name)] = file.read()
    return found


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
