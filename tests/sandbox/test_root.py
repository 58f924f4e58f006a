"""A listed root: it is empty but for what is named, and nothing leads back to the machine's own."""

from __future__ import annotations

import os
import socket
import sys

from tests.sandbox.house import House

# What every view has, beside what its rules name.
ALWAYS = {"dev", "proc", "run"}


def test_the_root_holds_what_is_named_and_nothing_else(listed: House) -> None:
    rules = listed.rules()
    named = (*rules.read, *rules.write, *(path for path, _ in rules.links), *(place for _, place in rules.binds))
    found = listed.attempts(["list:/", "list:/run", "list:/.."])
    assert set(found["list:/"]) == {path.split("/")[1] for path in named} | ALWAYS
    assert found["list:/.."] == found["list:/"]
    assert found["list:/run"] == []
    # The machine itself has more.
    assert set(os.listdir("/")) - set(found["list:/"])


def test_nothing_of_the_machine_s_own_root_is_left_among_the_mounts(listed: House) -> None:
    found = listed.attempts(["run:cut -d' ' -f5 /proc/self/mountinfo"])
    places = set(found["run:cut -d' ' -f5 /proc/self/mountinfo"].split())
    rules = listed.rules()
    named = {*rules.read, *rules.write, *(place for _, place in rules.binds)}
    allowed = (*named, "/dev", "/proc", *rules.hide)
    strange = {one for one in places - {"/"} if not any(one == path or one.startswith(path + "/") for path in allowed)}
    assert strange == set()


def test_what_is_not_named_does_not_exist(listed: House) -> None:
    path = listed.path("socket")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path)
        one.listen()
        rules = listed.rules()
        fewer = rules.but(
            read=tuple(place for place in rules.read if place != listed.site.directory),
            hide=(),
            write=(*rules.write, listed.path("session/unit/00")),
        )
        tries = [f"unix:{path}", f"read:{listed.path('plain/file')}", f"stat:{listed.path('plain')}"]
        assert listed.attempts(tries, rules=fewer) == dict.fromkeys(tries, "ENOENT")
        # They are seen by one who is shown the directory.
        shown = listed.attempts(tries, rules=rules.but(hide=()))
        assert shown[f"read:{listed.path('plain/file')}"] == "as it was"
        assert shown[f"unix:{path}"] in ("ok", "EACCES")


def test_no_directory_on_the_way_can_be_written(listed: House) -> None:
    ways = ["/", "/run", "/sys", "/var", os.path.dirname(sys.base_prefix)]
    tries = [f"write:{os.path.join(way, 'new')}" for way in ways]
    found = listed.attempts(tries)
    assert set(found.values()) <= {"EROFS", "EACCES", "ENOENT"}


def test_links_at_the_root_lead_where_they_did(listed: House) -> None:
    found = listed.attempts(["readlink:/bin", "run:/bin/sh -c 'echo here'"])
    assert found["readlink:/bin"] == (os.readlink("/bin") if os.path.islink("/bin") else "EINVAL")
    assert found["run:/bin/sh -c 'echo here'"] == "here\n"


def test_a_copy_is_shown_instead_of_a_directory(listed: House) -> None:
    listed.put("plain/hosts")
    rules = listed.rules()
    rules = rules.but(
        read=tuple(path for path in rules.read if path != "/etc"), copies=((listed.path("plain"), "/etc"),)
    )
    found = listed.attempts(["read:/etc/hosts", "read:/etc/passwd", "write:/etc/hosts"], rules=rules)
    assert found == {"read:/etc/hosts": "as it was", "read:/etc/passwd": "ENOENT", "write:/etc/hosts": "EROFS"}


def test_shared_memory_has_a_size(viewed: House) -> None:
    fill = "run:head -c 3000000 /dev/zero > /dev/shm/x 2>/dev/null; stat -c %s /dev/shm/x"
    found = viewed.attempts([fill], rules=viewed.rules(shared_memory=1 << 20))
    assert int(found[fill]) == 1 << 20
