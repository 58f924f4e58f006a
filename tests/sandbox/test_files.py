"""Which files an agent can write, read, and know of."""

from __future__ import annotations

import os
import sys
import tempfile

import pytest

from tests.sandbox.house import REFUSED, House
from tests.site import REPOSITORY


def test_only_what_is_writable_can_be_changed(house: House) -> None:
    own, plain = house.path("session/unit/00"), house.path("plain/file")
    os.symlink(plain, os.path.join(own, "way-out"))
    before = os.stat(plain)
    refused = [
        f"write:{plain}",
        f"write:{own}/way-out",
        f"write:{house.path('plain/new')}",
        f"write:{house.path('session/new')}",
        f"mkdir:{house.path('plain/new')}",
        f"unlink:{plain}",
        f"truncate:{plain}",
        f"rename:{own}/made {house.path('plain/made')}",
        f"rename:{own}/made {plain}",
        f"link:{plain} {own}/linked",
        "write:/etc/passwd",
        "write:/usr/new",
        "write:/proc/self/oom_score_adj",
        "write:/proc/sys/kernel/core_pattern",
        "write:/dev/new",
    ]
    if house.tier == "A":
        refused += [f"chmod:{plain}", f"utime:{plain}", "chmod:/dev/null", "chmod:/etc"]
    allowed = [
        f"write:{own}/made",
        f"mkdir:{own}/inner",
        f"write:{own}/other",
        f"rename:{own}/other {own}/inner/other",
        f"chmod:{own}/inner/other",
        f"unlink:{own}/inner/other",
        "write:/dev/null",
        "terminal:",
    ]
    found = house.attempts([*allowed, *refused])
    assert {one: found[one] for one in allowed} == dict.fromkeys(allowed, "ok")
    assert {one: found[one] for one in refused if found[one] not in REFUSED} == {}
    assert house.get("plain/file") == "as it was"
    after = os.stat(plain)
    assert (after.st_mode, after.st_mtime_ns, after.st_nlink) == (before.st_mode, before.st_mtime_ns, 1)
    assert sorted(os.listdir(house.path("plain"))) == ["file", "key"]


@pytest.mark.parametrize("above", ["/dev/shm", "/run", "/tmp"])
def test_what_may_be_read_cannot_be_written_wherever_it_is(house: House, above: str) -> None:
    if not os.access(above, os.W_OK):
        pytest.skip(f"{above} is not open to this user")
    with tempfile.TemporaryDirectory(dir=above) as shown:
        file, own = os.path.join(shown, "file"), os.path.join(shown, "own")
        os.mkdir(own)
        with open(file, "w", encoding="ascii"):
            rules = house.rules()
        rules = rules.but(read=(*rules.read, shown), write=(*rules.write, own), binds=())
        found = house.attempts([f"read:{file}", f"write:{file}", f"write:{shown}/new", f"write:{own}/new"], rules=rules)
    assert (found[f"read:{file}"], found[f"write:{own}/new"]) == ("", "ok")
    assert {found[f"write:{file}"], found[f"write:{shown}/new"]} <= REFUSED


def test_hidden_files_do_not_exist_and_neither_do_their_names(house: House) -> None:
    hidden, key = house.path("hidden"), house.path("plain/key")
    tries = [f"list:{hidden}", f"read:{hidden}/file", f"stat:{hidden}/file", f"list:{hidden}/names", f"read:{key}"]
    found = house.attempts([*tries, f"chmod:{hidden}", f"mkdir:{hidden}/new", f"chmod:{key}"])
    assert found[f"read:{hidden}/file"] in REFUSED
    assert found[f"list:{hidden}/names"] in REFUSED
    assert found[f"read:{key}"] == "EACCES"
    if house.tier == "A":
        # Only the way to what is put back is there.
        assert found[f"list:{hidden}"] == ["inner"]
        assert found[f"stat:{hidden}/file"] == "ENOENT"
        assert found[f"chmod:{hidden}"] == found[f"chmod:{key}"] == found[f"mkdir:{hidden}/new"] == "EROFS"
    else:
        assert found[f"list:{hidden}"] == "EACCES"
    assert house.get("plain/key") == "as it was"


def test_the_longest_path_decides(house: House) -> None:
    shown = house.path("hidden/inner/shown")
    tries = [f"read:{shown}/file", f"write:{shown}/file", f"write:{shown}/own/file", f"read:{shown}/secret/file"]
    found = house.attempts(tries)
    assert found[tries[0]] == "as it was"
    assert found[tries[1]] in REFUSED
    assert found[tries[2]] == "ok"
    assert found[tries[3]] in REFUSED
    assert house.get("hidden/inner/shown/own/file") == "was here"


def test_what_is_less_below_something_writable_is_less(house: House) -> None:
    unit = house.path("session/unit")
    for name in ("00/kept", "00/gone"):
        os.mkdir(os.path.join(unit, name))
        house.put(f"session/unit/{name}/file")
    os.mkdir(os.path.join(unit, "00/own"))
    rules = house.rules(
        write=(os.path.join(unit, "00"),),
        read=(*house.rules().read, os.path.join(unit, "00/kept")),
        hide=(os.path.join(unit, "00/gone"),),
    )
    tries = ["read:kept/file", "write:kept/file", "chmod:kept/file", "read:gone/file", "write:own/file"]
    # By Landlock nothing new can be made beside what is less, so the report goes where all is writable.
    report = os.path.join(unit, "00/own/report.json")
    found = house.attempts(tries, rules=rules, report=report)
    assert found["read:kept/file"] == "as it was"
    assert found["write:kept/file"] in REFUSED
    assert found["read:gone/file"] in REFUSED
    assert found["write:own/file"] == "ok"
    if house.tier == "A":
        assert found["chmod:kept/file"] == "EROFS"


def test_no_directory_on_the_way_to_what_is_less_can_get_another_name(house: House) -> None:
    """Else what is hidden would have another path at the next start, which no rule names."""
    unit = house.path("session/unit/00")
    for name in ("a/b/gone", "c/kept", "own"):
        os.makedirs(os.path.join(unit, name))
    for name in ("a/b/gone/file", "c/kept/file"):
        house.put(f"session/unit/00/{name}")
    rules = house.rules(
        write=(unit,),
        read=(*house.rules().read, os.path.join(unit, "c/kept")),
        hide=(os.path.join(unit, "a/b/gone"),),
    )
    tries = [f"rename:{unit}/{name} {unit}/own/x" for name in ("a", "a/b", "a/b/gone", "c", "c/kept")]
    report = f"{unit}/own/report.json"
    found = house.attempts([*tries, f"write:{unit}/own/y"], rules=rules, report=report)
    assert found.pop(f"write:{unit}/own/y") == "ok"
    assert {one: result for one, result in found.items() if result not in {*REFUSED, "EBUSY"}} == {}


def test_temporary_files_and_shared_memory_are_its_own(viewed: House) -> None:
    name = f"mas-{os.path.basename(viewed.site.directory)}"
    found = viewed.attempts([f"shm:{name}", "list:/dev/shm", "write:/tmp/mine", "write:/var/tmp/mine", "list:/tmp"])
    assert found[f"shm:{name}"] == "ok"
    assert found["list:/dev/shm"] == [name]
    assert not os.path.exists(f"/dev/shm/{name}")
    assert viewed.get("tmp/mine") == viewed.get("tmp2/mine") == "was here"
    assert set(found["list:/tmp"]) <= {"mine", os.path.basename(viewed.site.directory), *_ways_to_the_chain()}
    assert not os.path.exists("/tmp/mine")


def test_devices_are_the_few_that_every_program_needs(viewed: House) -> None:
    found = viewed.attempts(["list:/dev", "list:/dev/pts", "pty:"])
    few = "core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
    assert set(found["list:/dev"]) <= set(few.split(" "))
    assert found["list:/dev/pts"] == ["ptmx"]
    assert found["pty:"] == "/dev/pts/0"


def test_an_agent_starts_where_it_should_with_the_mask_it_should(house: House) -> None:
    found = house.attempts(["umask:", "run:id -u && pwd"], before="umask 027")
    assert found["umask:"] == [0o027, house.path("session/unit/00")]
    assert found["run:id -u && pwd"] == f"{os.getuid()}\n{house.path('session/unit/00')}\n"


def test_an_agent_has_its_terminal_and_no_other_descriptor(house: House) -> None:
    leak = (
        "import os, sys; os.dup2(os.open(os.devnull, 0), 40); terminal = os.open(sys.argv[1], os.O_RDWR);"
        "[os.dup2(terminal, fd) for fd in range(10)]; os.execv(sys.argv[2], sys.argv[2:])"
    )
    found = house.attempts(["descriptors:"], before=f'exec {sys.executable} -c "{leak}" "$@"')
    assert found["descriptors:"] == [0, 1, 2]


def _ways_to_the_chain() -> set[str]:
    """Where the test's own Python is, if that is in /tmp too."""
    places = [os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, REPOSITORY)]
    return {path.split("/")[2] for path in places if path.startswith("/tmp/")}
