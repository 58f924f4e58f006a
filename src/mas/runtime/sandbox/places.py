"""What of the machine every agent sees in a listed root: the one list of it, and links followed to where they lead."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import glob

# Programs and what they need that is the same for every user, read-only.
WHOLE = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu", "/snap",
    "/var/lib/snapd/snap", "/home/linuxbrew", "/var/lib/ca-certificates", "/var/cache/fontconfig", "/var/lib/dpkg",
    "/sys/devices/system/cpu", "/sys/kernel/mm",
)  # fmt: skip
# Of these, what is not for agents: sockets of services that work for everybody.
NEVER = ("/nix/var/nix/daemon-socket", "/usr/local/etc/ssl/private")
ETC = "/etc"
# Directories of /etc, as patterns. None has keys or passwords in it.
ETC_DIRECTORIES = (
    "ImageMagick-*", "R", "alternatives", "ca-certificates", "chromium.d", "crypto-policies", "dotnet", "emacs",
    "fonts", "ghc", "glvnd", "java*", "ld.so.conf.d", "maven", "perl", "php", "pki/ca-trust", "pki/java",
    "pki/tls/certs", "profile.d", "python3*", "ssl/certs", "terminfo", "vim", "vulkan", "xdg",
)  # fmt: skip
# Files of /etc, as patterns: agents get copies, without lines that sign in somewhere.
ETC_FILES = (
    "bash.bashrc", "bashrc", "debian_version", "default/locale", "environment", "fedora-release", "gai.conf",
    "gitconfig", "host.conf", "hosts", "inputrc", "ld.so.cache", "ld.so.conf", "locale.alias", "locale.conf",
    "locale.gen", "localtime", "lsb-release", "magic", "magic.mime", "mailcap", "mime.types", "nanorc", "networks",
    "npmrc", "nsswitch.conf", "os-release", "pip.conf", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "profile",
    "protocols", "redhat-release", "resolv.conf", "rpc", "services", "shells", "ssl/cert.pem", "ssl/openssl.cnf",
    "system-release", "timezone", "wgetrc", "zsh/*", "zshenv", "zshrc", "zprofile",
)  # fmt: skip
# The same, reduced to root, nobody and the agent's own account.
ETC_ACCOUNTS = ("passwd", "group")
_MOST_LINKS = 40


def follow(path: str) -> tuple[str, dict[str, str]]:
    """Where an absolute path really is, and all links on the way there with what each says."""
    links: dict[str, str] = {}
    real = ""
    todo = _names(path)
    hops = 0
    while todo:
        name = todo.pop()
        if name == "..":
            real = real.rpartition("/")[0]
            continue
        place = f"{real}/{name}"
        try:
            target = os.readlink(place)
        except OSError:
            real = place
            continue
        links[place] = target
        hops += 1
        if hops > _MOST_LINKS:
            return path, {}
        todo += _names(target)
        real = "" if target.startswith("/") else real
    return real or "/", links


def followed(paths: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Those of the absolute paths that exist, resolved, and all links on the way to them."""
    found: list[str] = []
    links: dict[str, str] = {}
    for path in filter(os.path.isabs, paths):
        real, on_the_way = follow(path)
        if real != "/" and os.path.exists(real):
            found.append(real)
            links |= on_the_way
    return found, links


def in_etc(patterns: Iterable[str]) -> Iterator[str]:
    """The paths in /etc that match."""
    for pattern in patterns:
        path = f"{ETC}/{pattern}"
        if "*" in pattern:
            yield from glob(path)
        elif os.path.exists(path):
            yield path


def _names(path: str) -> list[str]:
    """The names of a path, the last first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
