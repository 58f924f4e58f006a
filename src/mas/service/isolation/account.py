"""The account that agents run as if MAS itself runs as root."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

from mas.model.errors import BadInput
from mas.model.ids import shown
from mas.model.isolation import Policy

_FIELD = "isolation.runAs"


class Account(NamedTuple):
    """An account of this machine."""

    name: str
    uid: int
    gid: int
    home: str

    def closed_at(self, directory: str) -> str | None:
        """The first directory on the way into `directory` whose mode closes it to this account; None if none does."""
        groups = set(os.getgrouplist(self.name, self.gid))
        here, steps = os.path.realpath(directory), []
        while here != "/":
            steps.append(here)
            here = os.path.dirname(here)
        for step in reversed(steps):
            info = os.stat(step)
            own = stat.S_IXUSR if info.st_uid == self.uid else stat.S_IXGRP if info.st_gid in groups else stat.S_IXOTH
            if not info.st_mode & own:
                return step
        return None


def account_for(policy: Policy, environ: Mapping[str, str], directory: str) -> tuple[Account | None, str]:
    """The account for agents that work below `directory`, None for the user of MAS itself; and warnings about it.

    The policy's account, which must be able to reach the directory, or else who became root by sudo, if that one can.
    """
    if policy.run_as:
        return _named(policy.run_as, directory), ""
    sudo = environ.get("SUDO_UID", "")
    if os.getuid() != 0 or not sudo.isdecimal() or sudo == "0":
        return None, ""
    account = find_account(sudo)
    if account is None:
        return None, ""
    if closed := account.closed_at(directory):
        return None, f"Agents run as root without its privileges, because {account.name} cannot enter {closed}"
    return account, ""


def find_account(name: str) -> Account | None:
    """The account called so, or of that number."""
    import pwd

    try:
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except (KeyError, OverflowError):
        return None
    return Account(found.pw_name, found.pw_uid, found.pw_gid, found.pw_dir)


def _named(name: str, directory: str) -> Account | None:
    account = find_account(name)
    if account is None:
        raise BadInput(f"{_FIELD}: there is no account {shown(name)}", field=_FIELD)
    if account.uid == os.getuid():
        return None
    if os.getuid() != 0:
        raise BadInput(f"{_FIELD}: only root can run agents as {shown(name)}", field=_FIELD)
    if closed := account.closed_at(directory):
        raise BadInput(f"{_FIELD}: {shown(name)} cannot enter {closed}", f"namei -l {directory}", _FIELD)
    return account
