"""What a process gives up: its capabilities, all ways to gain new ones, root's account, and system calls."""

from __future__ import annotations

import os

from mas.runtime.sandbox.system import Buffer, libc, prctl

_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_SET_SECUREBITS = 28
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _CLEAR_ALL = 47, 4
# Root is an ordinary user, a change of account changes no capability, none is ever raised again; all that is permanent.
_NO_ROOT = 0xEF
_PR_SET_SECCOMP, _FILTER = 22, 2
_FILTER_STEP = 8
_EPERM, _EINVAL = 1, 22
_CAPABILITIES_V3 = 0x20080522


def gain_none(wholly: bool) -> None:
    """Have no program that is run from here on gain a capability. `wholly`: a bounding set that stays is an error."""
    if _drop_bounding_set(wholly):
        prctl(_PR_SET_SECUREBITS, _NO_ROOT)


def drop(account: tuple[int, int] | None) -> None:
    """Become the account, if any, and keep no capability."""
    if account:
        _become(account)
    prctl(_PR_CAP_AMBIENT, _CLEAR_ALL)
    libc("capset", _CAPABILITIES_V3.to_bytes(4, "little") + bytes(4), bytes(24))
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def filter_calls(steps: bytes) -> None:
    """Have a filter decide about all system calls of this process and all that it starts. Needs `no_new_privs`."""
    code = Buffer(steps)
    count = len(steps) // _FILTER_STEP
    pointer = Buffer(count.to_bytes(8, "little") + code.address.to_bytes(8, "little"))
    prctl(_PR_SET_SECCOMP, _FILTER, pointer.address)


def _become(account: tuple[int, int]) -> None:
    """Be another user for good, in no other group than its own."""
    uid, gid = account
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _drop_bounding_set(wholly: bool) -> bool:
    """Whether this process may do so; if there is nothing in it, that does not matter."""
    dropped = False
    for capability in range(64):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
            dropped = True
        except OSError as error:
            if error.errno == _EINVAL:
                # The kernel knows no more of them.
                break
            if not prctl(_PR_CAPBSET_READ, capability):
                continue
            if wholly or error.errno != _EPERM:
                raise
            return False
    return dropped
