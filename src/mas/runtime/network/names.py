"""Names inside a session's network: each has an address of its own there, by which connections are known again."""

from __future__ import annotations

import os
import time

from mas.model.network import is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

A, AAAA = 1, 28
OK, FORMAT_ERROR, FAILED, NO_NAME, NOT_IMPLEMENTED, REFUSED = 0, 1, 2, 3, 4, 5
_HEADER = 12
_INTERNET = 1
_RESPONSE, _RECURSION = 0x8000, 0x0180
_OPCODE = 0x7800
_LIFE = 60
_FIRST = (127 << 24) | (64 << 16)
_SIZE = 1 << 16
_OURS = "127.64."
LONGEST_QUERY = 512
# Addresses below this one are of names with listeners of their own.
_FREE_FROM = 1024
_MOST = 8192
# For how long an address stays that of a name which nothing is connected to: programs keep answers for a while.
_KEPT = 600.0
_ENDS = "."


class Question:
    """A query for one name."""

    __slots__ = ("id", "kind", "name", "raw")

    def __init__(self, number: int, name: str, kind: int, raw: bytes) -> None:
        self.id = number
        self.name = name
        self.kind = kind
        self.raw = raw


def parse_question(packet: bytes) -> Question:
    """The question of a DNS query; `ValueError` if it is none, or none about a host."""
    if not _HEADER < len(packet) <= LONGEST_QUERY:
        raise ValueError("not the length of a query")
    number, flags, questions = (int.from_bytes(packet[at : at + 2], "big") for at in (0, 2, 4))
    if flags & (_RESPONSE | _OPCODE) or questions != 1:
        raise ValueError("not one question")
    labels, at = [], _HEADER
    while size := packet[at]:
        label = packet[at + 1 : at + 1 + size]
        at += size + 1
        # The two highest bits would point elsewhere, which a question has no need for.
        if size > 63 or at >= len(packet):
            raise ValueError("not a name")
        labels.append(label.decode("ascii", "replace").lower())
    kind, group = (int.from_bytes(packet[at + 1 + more : at + 3 + more], "big") for more in (0, 2))
    if len(packet) < at + 5 or group != _INTERNET:
        raise ValueError("not a question about the internet")
    name = ".".join(labels)
    # A dot within a label would make two names look alike.
    if any("." in label for label in labels) or not is_name(name):
        name = ""
    return Question(number, name, kind, packet[_HEADER : at + 5])


def answer(question: Question, code: int, address: str = "") -> bytes:
    """The answer to a query: an error, an address, or that there is none of that kind."""
    has = bool(address) and question.kind == A
    words = (question.id, _RESPONSE | _RECURSION | code, 1, int(has), 0, 0)
    record = b""
    if has:
        packed = bytes(int(part) for part in address.split("."))
        record = b"\xc0\x0c" + b"".join(word.to_bytes(2, "big") for word in (A, _INTERNET))
        record += _LIFE.to_bytes(4, "big") + (4).to_bytes(2, "big") + packed
    return b"".join(word.to_bytes(2, "big") for word in words) + question.raw + record


def _line(name: str, address: str) -> str:
    return f"{address} {name} {_ENDS}\n"


class Names:
    """The addresses of names. They are stored: programs use answers even after the egress process was restarted."""

    def __init__(self, path: str, fixed: Mapping[str, str]) -> None:
        self._fixed = dict(fixed)
        self._by_address = {address: name for name, address in fixed.items()}
        self._addresses: dict[str, str] = {}
        self._used: dict[str, float] = {}
        self._open: dict[str, int] = {}
        self._next = _FREE_FROM
        self._path = path
        self._lines = 0
        self._read()

    def _read(self) -> None:
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return
        self._lines = len(lines)
        for line in lines[-_MOST:]:
            words = line.split(" ")
            # A line that a full disk has cut short has no end, or two of them.
            if len(words) != 3 or words[2] != _ENDS:
                continue
            address, name, _ = words
            if address.startswith(_OURS) and is_name(name) and self._by_address.get(address) is None:
                self._keep(name, address)

    def _write(self, name: str, address: str) -> None:
        """Store the address of one more name; now and then only what is still known."""
        self._lines += 1
        try:
            if self._lines <= 2 * _MOST:
                with open(self._path, "a", encoding="ascii") as file:
                    file.write(_line(name, address))
                return
            self._lines = len(self._addresses)
            with open(f"{self._path}.tmp", "w", encoding="ascii") as file:
                file.writelines(_line(*one) for one in self._addresses.items())
            os.rename(f"{self._path}.tmp", self._path)
        except OSError:
            # On a full disk it is known until this process ends.
            return

    def fix(self, fixed: Mapping[str, str]) -> None:
        """Give more names an address that stays theirs; one that they had before still leads to them."""
        self._fixed |= fixed
        self._by_address |= {address: name for name, address in fixed.items()}

    def address_of(self, name: str) -> str:
        """The address of a name inside; empty if there is no room for another one."""
        found = self._fixed.get(name) or self._addresses.get(name)
        if found:
            self._used[name] = time.monotonic()
            return found
        if len(self._addresses) >= _MOST and not self._forget_one():
            return ""
        for _ in range(_SIZE):
            self._next = self._next + 1 if self._next < _SIZE - 2 else _FREE_FROM
            number = _FIRST + self._next
            address = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
            if address not in self._by_address:
                break
        self._keep(name, address)
        self._write(name, address)
        return address

    def name_of(self, address: str) -> str:
        """The name that has this address inside; empty if none has."""
        return self._by_address.get(address, "")

    def open(self, name: str) -> None:
        """A connection to the name begins; its address stays its own until all are closed."""
        self._open[name] = self._open.get(name, 0) + 1

    def close(self, name: str) -> None:
        left = self._open.pop(name, 0) - 1
        if left > 0:
            self._open[name] = left

    def _keep(self, name: str, address: str) -> None:
        self._by_address.pop(self._addresses.get(name, ""), None)
        self._addresses[name] = address
        self._by_address[address] = name
        self._used[name] = time.monotonic()

    def _forget_one(self) -> bool:
        """Forget the name that was not used for longest, if that was long ago."""
        before = time.monotonic() - _KEPT
        old = [(at, name) for name, at in self._used.items() if at < before and name in self._addresses]
        old = [one for one in old if one[1] not in self._open]
        if not old:
            return False
        name = min(old)[1]
        del self._by_address[self._addresses.pop(name)], self._used[name]
        return True
