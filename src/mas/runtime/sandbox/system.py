"""System calls that Python lacks, through the C half of `ctypes`: all of `ctypes` would cost every agent 3 ms."""

from __future__ import annotations

import _ctypes
import os

# (x86_64, aarch64): all numbers above 423 are the same everywhere.
_NUMBERS = {
    "clone": (56, 220),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "close_range": (436, 436),
    "openat2": (437, 437),
    "mount_setattr": (442, 442),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}
_MACHINES = ("x86_64", "aarch64")

# A link in the place of a file of ours is an error, and no program that is started later has the file open.
SAFE = os.O_NOFOLLOW | os.O_CLOEXEC
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
_RESOLVE_NO_SYMLINKS = 0x04
_CLOSE_RANGE_CLOEXEC = 4
_SIGKILL = 9


class _Long(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "l"


class _Int(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "i"


class _Byte(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "b"


# As if they were Python's own: its lock is kept, so that a process made by a call goes on in the same thread.
_HOW = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO | _ctypes.FUNCFLAG_PYTHONAPI


class _Function(_ctypes.CFuncPtr):
    _flags_ = _HOW
    _restype_ = _Int


class _SystemCall(_ctypes.CFuncPtr):
    _flags_ = _HOW
    _restype_ = _Long


_found: dict[str, _Function | _SystemCall] = {}
_machine: list[int] = []


def machine() -> int:
    """Which of the two known machines this is: 0 is x86_64, 1 is aarch64; `OSError` on any other."""
    if not _machine:
        this = os.uname()
        if this.sysname != "Linux" or this.machine not in _MACHINES:
            raise OSError(38, f"no system calls are known for {this.sysname} on {this.machine}")
        _machine.append(_MACHINES.index(this.machine))
    return _machine[0]


def libc(name: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library; `OSError`, which names it, if it answers -1."""
    if name not in _found:
        library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # None is this program with all it uses
        kind = _SystemCall if name == "syscall" else _Function
        _found[name] = kind(_ctypes.dlsym(library, name))
    # A plain number would be cut to 32 bits.
    given = [_Long(one) if isinstance(one, int) else one for one in arguments]
    answer: int = _found[name](*given)
    if answer == -1:
        number = _ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return answer


def call(name: str, *arguments: int | bytes | None) -> int:
    """Make a system call; `OSError`, which names it, if it fails."""
    try:
        return libc("syscall", _NUMBERS[name][machine()], *arguments)
    except OSError as error:
        raise OSError(error.errno, f"{name}: {os.strerror(error.errno or 0)}") from None


def prctl(option: int, *values: int) -> int:
    """Change something of this process; `OSError` if that is refused."""
    return libc("prctl", option, *(*values, 0, 0, 0, 0)[:4])


def die_with_parent() -> None:
    """Have the kernel end this process when its parent is killed. A change of account undoes it."""
    prctl(PR_SET_PDEATHSIG, _SIGKILL)


def close_on_exec(first: int) -> None:
    """Have a program that is run next get no descriptor from `first` on."""
    call("close_range", first, 0xFFFFFFFF, _CLOSE_RANGE_CLOEXEC)


def open_place(path: str) -> int:
    """A descriptor of a place on disk. Rules name resolved paths: a link on the way was put there since."""
    how = (os.O_PATH | os.O_CLOEXEC).to_bytes(8, "little") + bytes(8) + _RESOLVE_NO_SYMLINKS.to_bytes(8, "little")
    try:
        return call("openat2", AT_FDCWD, os.fsencode(path), how, len(how))
    except OSError as error:
        raise OSError(error.errno, f"{path}: {os.strerror(error.errno or 0)}") from None


class Buffer:
    """Bytes at an address, for as long as this is kept."""

    def __init__(self, data: bytes) -> None:
        class Bytes(_ctypes.Array):  # type: ignore[type-arg]
            _type_ = _Byte
            _length_ = len(data)

        self._kept = Bytes.from_buffer_copy(data)
        self.address: int = _ctypes.addressof(self._kept)
