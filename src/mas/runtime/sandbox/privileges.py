"""What a process gives up: its capabilities, all ways to gain new ones, and root's account."""

from __future__ import annotations

import os

from mas.runtime.sandbox.system import libc, prctl

_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_SET_SECUREBITS = 28
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _CLEAR_ALL = 47, 4
# Root is an ordinary user, a change of account changes no capability, none is ever raised again; all that is permanent.
_NO_ROOT = 0xEF
_EPERM = 1
_CAPABILITIES_V3 = 0x20080522


def drop(account: tuple[int, int] | None, wholly: bool) -> None:
    """Become the account, if any, and keep no capability. `wholly`: a bounding set that stays is an error."""
    if _drop_bounding_set(wholly):
        prctl(_PR_SET_SECUREBITS, _NO_ROOT)
    if account:
        _become(account)
    prctl(_PR_CAP_AMBIENT, _CLEAR_ALL)
    libc("capset", _CAPABILITIES_V3.to_bytes(4, "little") + bytes(4), bytes(24))
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _become(account: tuple[int, int]) -> None:
    """Be another user for good, in no other group than its own."""
    uid, gid = account
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _drop_bounding_set(wholly: bool) -> bool:
    """Whether there was something to drop, and this process may."""
    dropped = False
    for capability in range(64):
        try:
            if not prctl(_PR_CAPBSET_READ, capability):
                continue
        except OSError:
            # The kernel knows no more of them.
            break
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError as error:
            if wholly or error.errno != _EPERM:
                raise
            return False
        dropped = True
    return dropped
