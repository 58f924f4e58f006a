"""The same view by bubblewrap, for machines that allow namespaces to it alone."""

from __future__ import annotations

import os
import sys

from mas.runtime.sandbox.system import open_place
from mas.runtime.sandbox.view import LISTED, is_below, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mas.model.launch import Rules

_ALWAYS = "--unshare-ipc --unshare-pid --die-with-parent --as-pid-1"
_ALL = "--ro-bind / /"
_FRESH = "--proc /proc --dev /dev"
# What `inside` needs to give up all capabilities for good, these too; as root to seal the devices, and to be another.
_CAPABILITIES = "--cap-drop ALL --cap-add CAP_SETPCAP"
_OF_ROOT = "--cap-add CAP_SYS_ADMIN"
_OTHER_ACCOUNT = "--cap-add CAP_SETUID --cap-add CAP_SETGID"
_BINDS = {"read": "--ro-bind", "write": "--bind", "bind": "--bind", "copy": "--ro-bind"}
# The bytes of a tmpfs that hides a directory.
_COVER = str(1 << 20)
_INSIDE = os.path.join(os.path.dirname(__file__), "inside.py")


def find() -> str:
    """Where bubblewrap is; `OSError` if it is not installed."""
    for directory in os.environ.get("PATH", os.defpath).split(":"):
        path = os.path.join(directory, "bwrap")
        # A relative one would be in the agent's own directory.
        if os.path.isabs(directory) and os.access(path, os.X_OK):
            return path
    raise OSError(2, "bubblewrap (bwrap) is not installed")


def command(rules: Rules, descriptors: tuple[int, ...]) -> list[str]:
    """How to run our own `inside` in the view of the rules."""
    listed = rules.root == LISTED
    words = [find(), *_ALWAYS.split(" "), *([] if listed else _ALL.split(" ")), *_FRESH.split(" ")]
    words += [*_CAPABILITIES.split(" "), "--perms", "1777", "--size", str(rules.shared_memory), "--tmpfs", "/dev/shm"]  # noqa: S108
    words += _OF_ROOT.split(" ") if not os.geteuid() else []
    words += _OTHER_ACCOUNT.split(" ") if rules.account else []
    sealed = ["/dev", "/proc"]
    covers = []
    if listed:
        # Bubblewrap's own root is empty.
        sealed.append("/")
        covers.append("/")
        words += ["--perms", "0755", "--dir", "/run"]
    for kind, path, source in steps(rules):
        # Bubblewrap would follow a link.
        os.close(open_place(source))
        if kind == "hide" and os.path.isdir(path):
            words += ["--perms", "0555", "--size", _COVER, "--tmpfs", path]
            sealed.append(path)
            covers.append(path)
        elif kind == "hide":
            # What is bound so is no device, so it cannot be opened.
            words += ["--ro-bind", "/dev/null", path]
        else:
            words += _way_to(path, covers)
            # What is below /dev may be a device, and there is no read-only way to bind one.
            is_device = is_below(path, "/dev")
            words += [_BINDS[kind] if not is_device else "--dev-bind", source, path]
            sealed += [path] if is_device and kind in ("read", "copy") else []
            covers += [path] if kind == "bind" else []
    for path, target in rules.links:
        words += [*_way_to(path, covers), "--symlink", target, path]
    for path in sealed:
        words += ["--remount-ro", path]
    words += ["--chdir", "/", "--", sys.executable, "-ISE", _INSIDE]
    return [*words, *map(str, descriptors)]


def _way_to(path: str, covers: list[str]) -> list[str]:
    """The directories between what was covered and what is put back: by itself bubblewrap lets only root through."""
    words: list[str] = []
    above = os.path.dirname(path)
    while any(is_below(above, cover) for cover in covers):
        words = ["--perms", "0755", "--dir", above, *words]
        above = os.path.dirname(above)
    return words
