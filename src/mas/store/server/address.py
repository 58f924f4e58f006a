"""The address of the workspace's server: `sessions/.mas/address/url`, the only part of MAS's state that agents see.

Its first line is where the server listens; where that is by TLS, the server's certificate follows, so that an agent
knows it for the one it looks for. The file is locked for as long as the server runs: so the file of a
killed one is recognised. An agent can lock the file too; then only that agent waits for it, and no other process.
"""

import os
from typing import NamedTuple

from mas.store.files.atomic import ensure_directory
from mas.store.files.descriptors import NEW, READ, remove_file, try_lock, write_all
from mas.store.layout import OPEN_DIR

_URL = "url"
_LARGEST = 1 << 16
_OPEN_FILE = 0o644
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


class Address(NamedTuple):
    """Where a server listens, and the certificate it shows there, if any."""

    url: str
    certificate: str | None = None


def publish(directory: str, address: Address) -> int:
    """Tell agents where the server is, for as long as what is answered stays open."""
    ensure_directory(directory, OPEN_DIR)
    half = os.path.join(directory, f".{_URL}.tmp")
    remove_file(half)
    fd = os.open(half, os.O_RDWR | NEW, _OPEN_FILE)
    os.fchmod(fd, _OPEN_FILE)
    # Locked before it has its name: otherwise it could look like the file of a killed server.
    try_lock(fd)
    write_all(fd, f"{address.url}\n{address.certificate or ''}".encode())
    os.rename(half, os.path.join(directory, _URL))
    return fd


def path_in(directory: str) -> str:
    return os.path.join(directory, _URL)


def withdraw(directory: str) -> None:
    remove_file(path_in(directory))


def find(session_dir: str) -> Address | None:
    """Where the server of an agent's workspace is, found only from the path of the agent's session."""
    path = os.path.join(os.path.dirname(session_dir), ".mas", "address", _URL)
    try:
        fd = os.open(path, READ)
    except OSError:
        return None
    try:
        if try_lock(fd, shared=True):
            return None
        url, _, certificate = os.read(fd, _LARGEST).decode("utf-8", "replace").partition("\n")
    except OSError:
        return None
    finally:
        os.close(fd)
    return Address(url, certificate or None)


def first_certificate(path: str) -> str | None:
    """The server's own certificate out of the file it is given in, which may hold its key as well."""
    with open(path, encoding="ascii", errors="replace") as file:
        text = file.read()
    begin, end = text.find(_BEGIN), text.find(_END)
    return text[begin : end + len(_END)] + "\n" if 0 <= begin < end else None
