"""Archives: what comes back is what went in, and a file that was tampered with brings nothing back."""

from __future__ import annotations

import io
import os
import random
import socket
import tarfile
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zstandard import ZstdCompressionParameters, ZstdCompressor, ZstdDecompressor

from mas.model.errors import Corrupt, DiskFull
from mas.model.ids import SessionId
from mas.store.files import pack
from mas.store.files.descent import Cursor
from mas.store.files.tree import remove_tree, usage
from mas.store.layout import Layout
from mas.store.workspace.archives import ArchiveInfo, Archives
from mas.store.workspace.workspace import Workspace
from tests.site import short_directory
from tests.store.samples import NOW, mode, new_id, ordinary_user, picture, put, read

ID = new_id()
NAMES = (
    st.binary(min_size=1, max_size=120)
    .map(os.fsdecode)
    .filter(lambda name: not {"/", "\0"} & {*name} and name not in {".", ".."})
)


@pytest.fixture
def archives(layout: Layout) -> Archives:
    os.mkdir(layout.session(ID).root, 0o700)
    return Archives(layout)


def info(session_id: SessionId = ID) -> ArchiveInfo:
    return ArchiveInfo(session_id, NOW, NOW, "a name", 13, 0)


def there_and_back(archives: Archives, layout: Layout) -> None:
    """Archive the session, remove it, and bring it back."""
    archives.pack(info(), None)
    remove_tree(layout.session(ID).root)
    archives.make_room(ID)
    archives.unpack(ID, None)


def set_times(root: str) -> None:
    """Give everything a time of its own, also before 1970; a tar keeps them to the microsecond."""
    for number, path in enumerate(sorted(picture(root)), start=-3):
        os.utime(os.path.join(root, path), (number * 0.5, number * 0.5), follow_symlinks=False)


def file(name: str, data: bytes = b"evil") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    return member, data


def other(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = kind, target, 0o755
    return member, b""


def sparse(size: int, *parts: tuple[int, int]) -> tuple[tarfile.TarInfo, bytes]:
    """A file of that size that says to hold something in the given parts."""
    numbers = "".join(f"{number}\n" for number in (len(parts), *(number for part in parts for number in part)))
    member, data = file("sparse", numbers.encode().ljust(512, b"\0") + b"x" * sum(length for _, length in parts))
    member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(size)}
    return member, data


def plant(archives: Archives, *members: tuple[tarfile.TarInfo, bytes]) -> None:
    """An archive that MAS did not write."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member, content in members:
            tar.addfile(member, io.BytesIO(content))
    plant_bytes(archives, ZstdCompressor().compress(data.getvalue()))


def plain_of(archives: Archives) -> bytes:
    return ZstdDecompressor().decompressobj().decompress(read(archives.path(ID)))


def plant_bytes(archives: Archives, data: bytes) -> None:
    with open(archives.path(ID), "wb") as archive:
        archive.write(data)


@given(st.dictionaries(NAMES, st.binary(max_size=50) | NAMES, max_size=6))
@settings(max_examples=40)
def test_a_session_comes_back_as_it_went_whatever_its_names(things: dict[str, bytes | str]) -> None:
    with short_directory() as directory:
        layout = Layout(directory)
        Workspace(layout).prepare()
        root = layout.session(ID).root
        os.mkdir(root, 0o700)
        for name, thing in things.items():
            if isinstance(thing, bytes):
                put(root, name, thing)
            else:
                os.symlink(thing, os.path.join(root, name))
        before = picture(root, times=False)
        there_and_back(Archives(layout), layout)
        assert picture(root, times=False) == before


def test_everything_a_session_can_hold_comes_back(layout: Layout, archives: Archives, place: str) -> None:
    root = layout.session(ID).root
    outside = put(place, "outside", "mine")
    put(root, "unit/00/日本語/ö.md", "text")
    put(root, "unit/00/" + "long" * 60, "x")
    put(root, "/".join([root, *["deep" * 10] * 20, "file"]), "x")
    put(root, "unit/locked/file", b"\0" * 100_000, 0o400)
    put(root, "unit/program", "#!/bin/sh", 0o755)
    put(root, "unit/empty")
    os.mkdir(os.path.join(root, "unit", "nothing"))
    os.link(os.path.join(root, "unit", "program"), os.path.join(root, "unit", "same"))
    for name, to in {"away": outside, "dangling": "x" * 200, "up": "../..", "dir": "unit"}.items():
        os.symlink(to, os.path.join(root, name))
    os.chmod(os.path.join(root, "unit", "locked"), 0o500)
    set_times(root)
    before = picture(root)
    there_and_back(archives, layout)
    assert picture(root) == before
    assert os.stat(os.path.join(root, "unit", "same")).st_nlink == 1
    assert mode(root) == 0o700
    remove_tree(root)


def test_shut_directories_come_back_shut_for_an_ordinary_user(place: str) -> None:
    with ordinary_user(place):
        layout = Layout(place)
        Workspace(layout).prepare()
        os.mkdir(layout.session(ID).root, 0o700)
        put(layout.session(ID).root, "locked/inner/file", "x", 0o400)
        os.symlink("file", layout.session(ID).at("locked", "inner", "link"))
        for name in ("inner", ""):
            os.chmod(layout.session(ID).at("locked", name), 0o500)
        set_times(layout.session(ID).root)
        before = picture(layout.session(ID).root)
        there_and_back(Archives(layout), layout)
        assert picture(layout.session(ID).root) == before
        remove_tree(layout.session(ID).root)


def test_pipes_and_sockets_are_left_out(layout: Layout, archives: Archives) -> None:
    root = layout.session(ID).root
    os.mkfifo(os.path.join(root, "pipe"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.join(root, "s"))
    put(root, "file", "x")
    there_and_back(archives, layout)
    assert os.listdir(root) == ["file"]


def test_an_archive_is_listed_with_what_is_known_of_it(layout: Layout, archives: Archives) -> None:
    put(layout.session(ID).root, "file", b"x" * 1000)
    assert archives.pack(info(), None) == ()
    (packed,) = archives.list()
    assert packed == info()._replace(size=os.stat(archives.path(ID)).st_size, held=len(plain_of(archives)))
    assert mode(archives.path(ID)) == 0o600
    for note in (b"", b"garbage", b"[]", b"{}", b'{"x":1}'):
        put(layout.archive, f"{ID}.json", note)
        assert [found.session_id for found in archives.list()] == [ID]
    archives.remove(ID)
    assert os.listdir(layout.archive) == []


def test_only_archives_are_listed(layout: Layout, archives: Archives) -> None:
    for name in (f"{ID}.tar.zst.tmp", "x.tar.zst", f"{ID}.json", ID, "../x", ".tar.zst"):
        put(layout.archive, name.replace("/", "_"), "x")
    assert list(archives.list()) == []


def test_half_an_archive_is_dropped_and_a_whole_one_kept(layout: Layout, archives: Archives) -> None:
    put(layout.archive, f"{ID}.tar.zst.tmp", "half")
    put(layout.archive, f"{ID}.json", "{}")
    archives.drop_half(ID)
    assert os.listdir(layout.archive) == []
    archives.pack(info(), None)
    put(layout.archive, f"{ID}.tar.zst.tmp", "half")
    archives.drop_half(ID)
    assert sorted(os.listdir(layout.archive)) == [f"{ID}.json", f"{ID}.tar.zst"]


@pytest.mark.parametrize("spoilt", [b"spoilt", ZstdCompressor().compress(b"\0" * 10240)], ids=["garbled", "another"])
def test_an_archive_that_does_not_read_back_never_gets_its_name(
    layout: Layout, archives: Archives, monkeypatch: pytest.MonkeyPatch, spoilt: bytes
) -> None:
    put(layout.session(ID).root, "file", os.urandom(50_000))
    before = picture(layout.session(ID).root)
    real = os.fsync

    def spoil(fd: int) -> None:
        os.ftruncate(fd, 0)
        os.pwrite(fd, spoilt, 0)
        real(fd)

    monkeypatch.setattr(os, "fsync", spoil)
    with pytest.raises(Corrupt):
        archives.pack(info(), None)
    assert not archives.has(ID)
    assert list(archives.list()) == []
    assert picture(layout.session(ID).root) == before


def test_progress_is_reported_in_bytes(layout: Layout, archives: Archives) -> None:
    for name in ("a", "b"):
        put(layout.session(ID).root, name, b"x" * 1000)
    told: list[tuple[int, int]] = []
    archives.pack(info(), lambda done, total: told.append((done, total)))
    assert told[-1] == (2000, 2000)


TAMPERED = {
    "climbing out": [file("../evil")],
    "climbing out from within": [other("a", tarfile.DIRTYPE), file("a/../../evil")],
    "absolute": [file("/tmp/mas-evil")],
    "absolute directory": [other("/tmp/mas-evil", tarfile.DIRTYPE)],
    "absolute link": [other("/tmp/mas-evil", tarfile.SYMTYPE, "x")],
    "hard link": [other("evil", tarfile.LNKTYPE, "/etc/passwd")],
    "hard link inside": [file("a"), other("b", tarfile.LNKTYPE, "a")],
    "device": [other("evil", tarfile.CHRTYPE)],
    "block device": [other("evil", tarfile.BLKTYPE)],
    "pipe": [other("evil", tarfile.FIFOTYPE)],
    "file through a link": [other("a", tarfile.SYMTYPE, "../../.."), file("a/evil")],
    "link through a link": [other("a", tarfile.SYMTYPE, "../../.."), other("a/evil", tarfile.SYMTYPE, "x")],
    "link through a link, the other way round": [
        other("a/evil", tarfile.SYMTYPE, "x"),
        other("a", tarfile.SYMTYPE, "../../.."),
    ],
    "link through two links": [
        other("d", tarfile.DIRTYPE),
        other("d/a", tarfile.SYMTYPE, "../../../.."),
        other("d/a/evil", tarfile.SYMTYPE, "x"),
    ],
    "directory through a link": [other("a", tarfile.SYMTYPE, "../../.."), other("a/evil", tarfile.DIRTYPE)],
    "file twice": [file("a", b"one"), file("a", b"two")],
    "directory twice": [other("a", tarfile.DIRTYPE), other("a", tarfile.DIRTYPE)],
    "link twice": [other("a", tarfile.SYMTYPE, "x"), other("a", tarfile.SYMTYPE, "y")],
    "link over a directory": [other("a", tarfile.DIRTYPE), other("a", tarfile.SYMTYPE, "..")],
    "file over a directory": [other("a", tarfile.DIRTYPE), file("a")],
    "file below a file": [file("a"), file("a/b")],
    "file in no directory": [file("a/b")],
    "no name": [file(".")],
    "dots inside": [other("a", tarfile.DIRTYPE), file("a/./b")],
    "empty link": [other("a", tarfile.SYMTYPE, "")],
    "long name": [file("x" * 300)],
    "long path": [file("/".join(["x" * 200] * 30))],
    "long link": [other("a", tarfile.SYMTYPE, "x" * 5000)],
    "long name of a directory": [other("x" * 300, tarfile.DIRTYPE)],
    "sparse beyond any file": [sparse(1 << 62)],
    "sparse beyond its end": [sparse(5, (4, 10))],
}


@pytest.mark.parametrize("members", TAMPERED.values(), ids=TAMPERED)
def test_members_mas_would_not_have_written_are_refused_and_nothing_appears_outside(
    layout: Layout, archives: Archives, place: str, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    plant(archives, *members)
    before = {path: fact for path, fact in picture(place, times=False).items() if ID not in path}
    planted = read(archives.path(ID))
    with pytest.raises(Corrupt) as refused:
        archives.unpack(ID, None)
    assert refused.value.path == archives.path(ID)
    assert {path: fact for path, fact in picture(place, times=False).items() if ID not in path} == before
    assert not os.path.lexists("/tmp/mas-evil")
    assert read(archives.path(ID)) == planted


def test_a_time_no_file_can_have_is_refused(layout: Layout, archives: Archives) -> None:
    member, data = file("a")
    member.pax_headers = {"mtime": "1e400"}
    plant(archives, (member, data))
    with pytest.raises(Corrupt):
        archives.unpack(ID, None)


@pytest.mark.parametrize(
    "data",
    [b"", b"garbage", b"\x28\xb5\x2f\xfd", ZstdCompressor().compress(b""), ZstdCompressor().compress(b"x" * 9999)],
)
def test_what_is_no_archive_is_refused(archives: Archives, data: bytes) -> None:
    plant_bytes(archives, data)
    with pytest.raises(Corrupt):
        archives.unpack(ID, None)


@pytest.fixture
def packed(layout: Layout, archives: Archives) -> bytes:
    """A real archive, part of it such as does not compress."""
    root = layout.session(ID).root
    for number in range(20):
        put(root, f"unit/{number:02d}/noise", random.Random(number).randbytes(500))
        put(root, f"unit/{number:02d}/text", "some words\n" * 50)
    archives.pack(info(), None)
    return read(archives.path(ID))


def unpacked(archives: Archives, layout: Layout) -> dict[str, object]:
    remove_tree(layout.session(ID).root)
    archives.make_room(ID)
    archives.unpack(ID, None)
    return dict(picture(layout.session(ID).root))


def test_every_flipped_bit_is_seen(layout: Layout, archives: Archives, packed: bytes) -> None:
    whole = unpacked(archives, layout)
    for position in range(0, len(packed), 97):
        spoilt = bytearray(packed)
        spoilt[position] ^= 1 << position % 8
        plant_bytes(archives, bytes(spoilt))
        with suppress(Corrupt):
            assert unpacked(archives, layout) == whole, f"byte {position}"


def test_an_early_end_is_not_believed_before_the_checksum_was_seen(layout: Layout, archives: Archives) -> None:
    """Damage that leaves zeros where a member begins looks like the end of a tar."""
    root = layout.session(ID).root
    put(root, "a", "x")
    put(root, "b", random.Random(1).randbytes(3 << 20))
    archives.pack(info(), None)
    plain = bytearray(ZstdDecompressor().decompressobj().decompress(read(archives.path(ID))))
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        member = tar.getmember("b")
    plain[member.offset : member.offset_data] = bytes(member.offset_data - member.offset)
    packed = bytearray(ZstdCompressor(write_checksum=True).compress(bytes(plain)))
    packed[-1] ^= 1
    plant_bytes(archives, bytes(packed))
    with pytest.raises(Corrupt, match="checksum"):
        unpacked(archives, layout)


def test_an_archive_that_was_cut_off_never_gives_half_a_session(
    layout: Layout, archives: Archives, packed: bytes
) -> None:
    whole = unpacked(archives, layout)
    for cut in cuts(packed):
        plant_bytes(archives, packed[:cut])
        with suppress(Corrupt):
            assert unpacked(archives, layout) == whole, f"cut at {cut}"


def cuts(packed: bytes) -> Iterator[int]:
    yield from range(0, len(packed), 211)
    yield from range(len(packed) - 40, len(packed))


def test_a_tar_that_was_cut_off_between_two_members_is_seen(layout: Layout, archives: Archives, packed: bytes) -> None:
    plain = ZstdDecompressor().decompressobj().decompress(packed)
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        starts = [member.offset for member in tar][1:]
    for cut in (*starts[::5], *(start + 100 for start in starts[::5])):
        plant_bytes(archives, ZstdCompressor().compress(plain[:cut]))
        with pytest.raises(Corrupt):
            unpacked(archives, layout)


def test_a_damaged_header_is_not_taken_for_the_end(layout: Layout, archives: Archives, packed: bytes) -> None:
    plain = bytearray(ZstdDecompressor().decompressobj().decompress(packed))
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        member = tar.getmembers()[10]
    plain[member.offset_data - 512 + 3] ^= 1
    plant_bytes(archives, ZstdCompressor().compress(bytes(plain)))
    with pytest.raises(Corrupt):
        unpacked(archives, layout)


def test_huge_files_of_nothing_are_packed_in_no_time_and_come_back_as_such(layout: Layout, archives: Archives) -> None:
    root = layout.session(ID).root
    os.makedirs(root, exist_ok=True)
    for name, where in (("empty", ()), ("some", (0, 1 << 30)), (os.fsdecode(b"\xff\n"), (4096,))):
        with open(os.path.join(root, name), "wb") as file:
            for place in where:
                file.seek(place)
                file.write(b"here")
            file.truncate(1 << 42)
    there_and_back(archives, layout)
    for name in ("empty", "some", os.fsdecode(b"\xff\n")):
        info = os.stat(os.path.join(root, name))
        assert (info.st_size, info.st_blocks * 512 < 1 << 20) == (1 << 42, True)
    with open(os.path.join(root, "some"), "rb") as file:
        file.seek((1 << 30) - 1)
        assert file.read(6) == b"\0here\0"
        file.seek(0)
        assert file.read(5) == b"here\0"


def bomb(kind: bytes, size: int) -> bytes:
    """A member of that many zeros, which are next to nothing when compressed."""
    member = tarfile.TarInfo("bomb")
    member.type, member.size = kind, size
    packing = ZstdCompressor().compressobj()
    packed = packing.compress(member.tobuf(tarfile.PAX_FORMAT)[-512:])
    for _ in range(size >> 20):
        packed += packing.compress(bytes(1 << 20))
    return packed + packing.compress(bytes(1024)) + packing.flush()


def test_a_bomb_stops_at_the_size_that_the_archive_declares(layout: Layout, archives: Archives) -> None:
    put(layout.session(ID).root, "file", b"x" * 5000)
    archives.pack(info(), None)
    remove_tree(layout.session(ID).root)
    archives.make_room(ID)
    plant_bytes(archives, bomb(tarfile.REGTYPE, 64 << 20))
    with pytest.raises(Corrupt, match="more than the 10240 bytes that were packed"):
        archives.unpack(ID, None)
    assert usage(layout.session(ID).root).disk <= 1 << 20


@pytest.mark.parametrize("note", [True, False], ids=["that says so", "whose note is lost"])
def test_an_archive_larger_than_the_disk_is_refused_before_anything_is_written(
    layout: Layout, archives: Archives, monkeypatch: pytest.MonkeyPatch, note: bool
) -> None:
    put(layout.session(ID).root, "file", bytes(8 << 20))
    archives.pack(info(), None)
    remove_tree(layout.session(ID).root)
    archives.make_room(ID)
    if not note:
        os.unlink(os.path.join(layout.archive, f"{ID}.json"))
    real = os.statvfs(layout.root)
    small = os.statvfs_result((real.f_bsize, 1024, 4096, 1024, 1024, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda path: small)
    with pytest.raises(DiskFull):
        archives.unpack(ID, None)
    assert os.listdir(layout.session(ID).root) == []
    monkeypatch.undo()
    archives.unpack(ID, None)
    assert os.stat(layout.session(ID).at("file")).st_size == 8 << 20


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_header_is_never_read_into_memory_that_is_no_header(archives: Archives, kind: bytes) -> None:
    plant_bytes(archives, bomb(kind, 64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt, match="a header of"):
            archives.unpack(ID, None)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_size_that_is_only_declared_fills_nothing(layout: Layout, archives: Archives) -> None:
    member = tarfile.TarInfo("huge")
    member.size = 1 << 60
    plant_bytes(archives, ZstdCompressor().compress(member.tobuf(tarfile.GNU_FORMAT) + bytes(2048)))
    with pytest.raises(Corrupt):
        archives.unpack(ID, None)
    assert usage(layout.session(ID).root).disk < 1 << 20


def test_members_are_forgotten_one_after_the_other(archives: Archives) -> None:
    """Millions of them would otherwise take a gigabyte of memory for each."""
    plant(archives, *(file(f"{number:06d}", b"") for number in range(2000)))
    with pack._opened(archives.path(ID)) as archive:
        assert max(len(vars(archive.tar)["members"]) for _ in archive.members()) == 1


def test_a_window_larger_than_any_we_write_is_refused(archives: Archives) -> None:
    far = ZstdCompressionParameters.from_level(1, window_log=28)
    packing = ZstdCompressor(compression_params=far).compressobj()
    plant_bytes(archives, packing.compress(bytes(10240)) + packing.flush())
    with pytest.raises(Corrupt, match="memory"):
        archives.unpack(ID, None)


def test_unpacked_files_do_not_run_as_another_user(layout: Layout, archives: Archives) -> None:
    member, data = file("program", b"#!/bin/sh")
    member.mode = 0o6755
    directory, _ = other("directory", tarfile.DIRTYPE)
    directory.mode = 0o7777
    plant(archives, (member, data), (directory, b""))
    archives.unpack(ID, None)
    assert (mode(layout.session(ID).at("program")), mode(layout.session(ID).at("directory"))) == (0o755, 0o777)


def test_a_tree_deeper_than_any_path_comes_back(layout: Layout, archives: Archives) -> None:
    """With relative steps an agent can go deeper than any path leads."""
    names = ["d" * 150] * 300
    with Cursor(layout.session(ID).root) as there:
        for name in names:
            os.mkdir(name, dir_fd=there.fd)
            there.down(name)
        os.symlink("nowhere", "link", dir_fd=there.fd)
        put("/proc/self/fd", f"{there.fd}/file", "work")
    there_and_back(archives, layout)
    with Cursor(layout.session(ID).root) as there:
        there.go(names)
        assert sorted(os.listdir(there.fd)) == ["file", "link"]
        assert read(f"/proc/self/fd/{there.fd}/file") == b"work"


def test_what_is_too_deep_for_an_archive_is_left_out_and_reported(
    layout: Layout, archives: Archives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "_LONGEST_PATH", 1000)
    put(layout.session(ID).root, "kept", "x")
    with Cursor(layout.session(ID).root) as there:
        for _ in range(30):
            os.mkdir("d" * 150, dir_fd=there.fd)
            there.down("d" * 150)
    (left_out,) = archives.pack(info(), None)
    assert left_out.startswith("d" * 150)
    assert left_out.endswith("…")
    remove_tree(layout.session(ID).root)
    archives.make_room(ID)
    archives.unpack(ID, None)
    assert os.path.isfile(layout.session(ID).at("kept"))


def test_what_agents_have_shut_is_archived_and_comes_back_shut(place: str) -> None:
    with ordinary_user(place):
        layout = Layout(place)
        Workspace(layout).prepare()
        root = layout.session(ID).root
        os.mkdir(root, 0o700)
        put(root, "unit/00/shut/inner/file", "x", 0o000)
        for name in ("inner", ""):
            os.chmod(layout.session(ID).at("unit", "00", "shut", name), 0o000)
        there_and_back(Archives(layout), layout)
        assert mode(layout.session(ID).at("unit", "00", "shut")) == 0
        for name in ("", "inner"):
            os.chmod(layout.session(ID).at("unit", "00", "shut", name), 0o700)
        assert mode(layout.session(ID).at("unit", "00", "shut", "inner", "file")) == 0
        remove_tree(root)
