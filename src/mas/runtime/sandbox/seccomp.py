"""A kernel filter that refuses system calls which no agent needs and which would bypass the rest of the sandbox."""

from __future__ import annotations

from mas.runtime.sandbox.system import Buffer, machine, prctl

_PR_SET_SECCOMP = 22
_FILTER = 2
# Of `struct seccomp_data`: the number, the architecture, and the lower half of each argument.
_NUMBER, _ARCHITECTURE = 0, 4
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_OWN_ARCHITECTURE = (0xC000003E, 0xC00000B7)
# Calls of the x32 ABI have the architecture of x86_64 and this bit.
_X32 = 0x40000000

# (x86_64, aarch64)
_CLONE, _UNSHARE, _SOCKET = (56, 220), (272, 97), (41, 198)
_SEND = (((44, 206), 3), ((46, 211), 2), ((307, 269), 3))
_REFUSED = {
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "setns": (308, 268),
}
# A filter cannot see its flags, so it is refused as unknown, and programs use the older one.
_CLONE3 = (435, 435)
_NEW_NAMESPACES = 0x7E020080
_AF_UNIX, _FAMILIES = 1, (2, 10, 16)
# Kinds of sockets that rules for TCP ports do not cover: SCTP and MPTCP, and a connection made by sending.
_OTHER_STREAMS = (132, 262)
_MSG_FASTOPEN = 0x20000000

# A jump of one: over the refusal that follows.
_Step = tuple[int, int, int, int]


def install(unix_sockets: bool, all_ports: bool) -> None:
    """Refuse those calls to this process and all that it starts, for ever. Needs `no_new_privs`."""
    steps = program(machine(), unix_sockets, all_ports)
    code = Buffer(b"".join(_packed(step) for step in steps))
    pointer = Buffer(len(steps).to_bytes(8, "little") + code.address.to_bytes(8, "little"))
    prctl(_PR_SET_SECCOMP, _FILTER, pointer.address)


def program(own: int, unix_sockets: bool, all_ports: bool) -> list[_Step]:
    """The filter: what is not refused on the way is allowed."""
    steps: list[_Step] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, _OWN_ARCHITECTURE[own]), _refuse(_EPERM)]
    steps += [(_LOAD, 0, 0, _NUMBER), (_ANY_BIT, 0, 1, _X32), _refuse(_EPERM)]
    for numbers in _REFUSED.values():
        steps += [(_EQUAL, 0, 1, numbers[own]), _refuse(_EPERM)]
    steps += [(_EQUAL, 0, 1, _CLONE3[own]), _refuse(_ENOSYS)]
    for numbers in (_CLONE, _UNSHARE):
        steps += _when(numbers[own], _without_bits(0, _NEW_NAMESPACES))
    steps += _when(_SOCKET[own], _of_family((*_FAMILIES, _AF_UNIX) if unix_sockets else _FAMILIES, unix_sockets))
    if not all_ports:
        steps += _when(_SOCKET[own], _not_of_protocol(_OTHER_STREAMS))
        for numbers, flags in _SEND:
            steps += _when(numbers[own], _without_bits(flags, _MSG_FASTOPEN))
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


def _when(number: int, checks: list[_Step]) -> list[_Step]:
    """The checks, for one call only; they leave an argument loaded."""
    return [(_EQUAL, 0, len(checks) + 1, number), *checks, (_LOAD, 0, 0, _NUMBER)]


def _argument(index: int) -> _Step:
    return (_LOAD, 0, 0, 16 + 8 * index)


def _without_bits(index: int, bits: int) -> list[_Step]:
    return [_argument(index), (_ANY_BIT, 0, 1, bits), _refuse(_EPERM)]


def _of_family(families: tuple[int, ...], unix_sockets: bool) -> list[_Step]:
    checks: list[_Step] = [_argument(0)]
    if not unix_sockets:
        checks += [(_EQUAL, 0, 1, _AF_UNIX), _refuse(_EPERM)]
    checks += [(_EQUAL, len(families) - place, 0, family) for place, family in enumerate(families)]
    return [*checks, _refuse(_EAFNOSUPPORT)]


def _not_of_protocol(protocols: tuple[int, ...]) -> list[_Step]:
    checks: list[_Step] = [_argument(2)]
    for protocol in protocols:
        checks += [(_EQUAL, 0, 1, protocol), _refuse(_EPERM)]
    return checks


def _refuse(error: int) -> _Step:
    return (_RETURN, 0, 0, _ERRNO | error)


def _packed(step: _Step) -> bytes:
    code, jump_true, jump_false, value = step
    return code.to_bytes(2, "little") + bytes((jump_true, jump_false)) + value.to_bytes(4, "little")
