"""Put into every Python program of a round by its path: a clock that may jump and a disk that may be slow.

Both are told by sixteen bytes of memory that all of them share, so that they change while the programs run.
`time.time` and `time.time_ns` jump; whatever opens, makes, renames, removes or syncs a file waits.
"""

import mmap
import os
import struct
import sys
import time

_SLOW = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"}


def _inject(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    shared = mmap.mmap(fd, 16, mmap.MAP_SHARED, mmap.PROT_READ)
    os.close(fd)
    now, now_ns, sync = time.time, time.time_ns, os.fsync

    def jumped() -> float:
        return float(struct.unpack_from("=d", shared, 0)[0])

    def wait() -> None:
        most = struct.unpack_from("=d", shared, 8)[0]
        if most:
            # The clock's last digits are chance enough, and cost no import.
            time.sleep(most * (time.monotonic_ns() & 0xFF) / 0xFF)

    def slow_sync(fd: int) -> None:
        wait()
        sync(fd)

    def audit(event: str, _: object) -> None:
        if event in _SLOW:
            wait()

    time.time = lambda: now() + jumped()
    time.time_ns = lambda: now_ns() + int(jumped() * 1e9)
    os.fsync = slow_sync  # type: ignore[assignment]
    sys.addaudithook(audit)


if _control := os.environ.get("MAS_TORTURE"):
    _inject(_control)
