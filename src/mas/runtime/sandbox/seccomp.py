"""A kernel filter that lets an agent make the system calls that programs need, and no others.

A call that nobody listed does not exist: what a new kernel can do is closed until the table opens it. Those that are
known to be refused are so with the error that programs expect.
"""

from __future__ import annotations

from mas.model.launch import MARK_LIMIT
from mas.model.system_calls import NEVER, OPENABLE, REFUSED_IN_B, UNSUPPORTED_IN_B, numbers
from mas.runtime.sandbox.system import machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mas.model.launch import Rules

# Of `struct seccomp_data`: the number and the architecture; arguments are 64 bits from 16 on, the lower half first.
_NUMBER, _ARCHITECTURE = 0, 4
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS, _EPROTONOSUPPORT, _EOPNOTSUPP, _EAFNOSUPPORT = 1, 38, 93, 95, 97
_OWN_ARCHITECTURE = (0xC000003E, 0xC00000B7)
# Calls of the x32 ABI have the architecture of x86_64 and this bit.
_X32 = 0x40000000

_NEW_NAMESPACES = 0x7E020080
_AF_UNIX, _AF_NETLINK, _FAMILIES = 1, 16, (2, 10, 16)
_NETLINK_ROUTE = 0
# Kinds of sockets that rules for TCP ports do not cover: SCTP and MPTCP, and a connection made by sending.
_OTHER_STREAMS = (132, 262)
# Streams, datagrams and raw ones; a sequence of packets is SCTP, too.
_KIND, _KINDS = 0xF, (1, 2, 3)
_MSG_FASTOPEN = 0x20000000
_FASTOPEN_FLAGS = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
# Where a call has the mode of a file; those that may create one have flags before it.
_SET_ID_BITS = 0o6000
_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
_MODES_IF_CREATED = {"open": 2, "openat": 3}
_CREATES = 0o100 | 0o20000000
# No other process is meant if this argument is 0.
_PROCESS = {
    "prlimit64": 0, "sched_setaffinity": 0, "sched_setscheduler": 0, "sched_setparam": 0, "sched_setattr": 0,
    "move_pages": 0, "setpriority": 1, "ioprio_set": 1,
}  # fmt: skip
# And what means all processes of the user.
_USER = {"setpriority": 2, "ioprio_set": 3}
# With a lease on a file no other process can open it at once: not even MAS its own logs, which agents may read.
_SET_LEASE = 1024
# Ordinary execution, without random addresses (debuggers, sanitizers), an old version's number, and just asking.
_PERSONALITIES = (0, 0x40000, 0x20000, 0xFFFFFFFF)

_Step = tuple[int, int, int, int]
_Checks = dict[str, list[_Step]]


def packed(rules: Rules, own_processes: bool) -> bytes:
    """The filter for this machine, as the kernel reads it.

    `own_processes`: it is for a process namespace, where no other process can be reached by its number.
    """
    return b"".join(map(_packed, program(machine(), rules, own_processes)))


def program(own: int, rules: Rules, own_processes: bool) -> list[_Step]:
    """The filter: first calls that depend on their arguments, then a search for the number among ranges."""
    known = numbers(own)
    steps: list[_Step] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, _OWN_ARCHITECTURE[own]), _refuse(_EPERM)]
    steps += [(_LOAD, 0, 0, _NUMBER), (_ANY_BIT, 0, 1, _X32), _refuse(_EPERM)]
    for name, checks in _all_checks(rules, own_processes).items():
        if name in known:
            steps += _when(known[name], checks)
    return [*steps, *_search(_ranges(_results(own, rules)))]


def _results(own: int, rules: Rules) -> dict[int, int]:
    """What is returned for each number that has another result than `ENOSYS`."""
    closed = {name: pair[own] for name, pair in (OPENABLE | NEVER).items() if name not in rules.system_calls}
    known = numbers(own)
    found = dict.fromkeys(known.values(), _ALLOW) | dict.fromkeys(closed.values(), _ERRNO | _EPERM)
    if rules.tier == "B":
        refused = (*REFUSED_IN_B, *(() if rules.ports else ("listen",)))
        found |= {known[name]: _ERRNO | _EPERM for name in refused if name in known}
        found |= {known[name]: _ERRNO | _EOPNOTSUPP for name in UNSUPPORTED_IN_B if name in known}
    return found


def _ranges(results: dict[int, int]) -> list[tuple[int, int]]:
    """The first number of each run of numbers with one result, and that result."""
    ranges: list[tuple[int, int]] = []
    for number in range(max(results) + 2):
        result = results.get(number, _ERRNO | _ENOSYS)
        if not ranges or ranges[-1][1] != result:
            ranges.append((number, result))
    return ranges


def _search(ranges: list[tuple[int, int]]) -> list[_Step]:
    if len(ranges) == 1:
        return [(_RETURN, 0, 0, ranges[0][1])]
    middle = len(ranges) // 2
    low = _search(ranges[:middle])
    return [(_AT_LEAST, len(low), 0, ranges[middle][0]), *low, *_search(ranges[middle:])]


def _all_checks(rules: Rules, own_processes: bool) -> _Checks:
    """What is checked of which call; the most frequent calls first."""
    checks: _Checks = {}
    for name, mode in _MODES_IF_CREATED.items():
        created = _without_bits(mode, _SET_ID_BITS)
        checks[name] = [_argument(mode - 1), (_ANY_BIT, 0, len(created), _CREATES), *created]
    checks["socket"] = _socket(unix=rules.tier == "A", all_streams=rules.tier == "A" and rules.ports is None)
    # Only for these are there pairs; but the kernel would load and enter any other family first.
    checks["socketpair"] = _one_of(0, (_AF_UNIX,), _EAFNOSUPPORT)
    checks["fcntl"] = _not_one_of(1, (_SET_LEASE,))
    checks["clone"] = checks["unshare"] = _without_bits(0, _NEW_NAMESPACES)
    checks |= {name: _without_bits(mode, _SET_ID_BITS) for name, mode in _MODES.items()}
    checks["personality"] = _one_of(0, _PERSONALITIES, _EPERM)
    if rules.ports is not None:
        checks |= {name: _without_bits(flags, _MSG_FASTOPEN) for name, flags in _FASTOPEN_FLAGS.items()}
    if not own_processes:
        for name, place in _PROCESS.items():
            all_of_user = _not_one_of(0, (_USER[name],)) if name in _USER else []
            checks[name] = [*all_of_user, *_one_of(place, (0,), _EPERM)]
    checks["setrlimit"] = _not_one_of(0, (MARK_LIMIT,))
    # Asking for it, without a pointer to a new one, is free.
    new = [_argument(2), (_EQUAL, 0, 2, 0), (_LOAD, 0, 0, 16 + 8 * 2 + 4), (_EQUAL, 1, 0, 0), _refuse(_EPERM)]
    changed = [_argument(1), (_EQUAL, 0, len(new), MARK_LIMIT), *new]
    checks["prlimit64"] = [*checks.get("prlimit64", []), *changed]
    return checks


def _socket(unix: bool, all_streams: bool) -> list[_Step]:
    families = (*_FAMILIES, _AF_UNIX) if unix else _FAMILIES
    checks = [] if unix else _not_one_of(0, (_AF_UNIX,))
    checks += _one_of(0, families, _EAFNOSUPPORT)
    route = _one_of(2, (_NETLINK_ROUTE,), _EPROTONOSUPPORT)
    checks += [_argument(0), (_EQUAL, 0, len(route), _AF_NETLINK), *route]
    if all_streams:
        return checks
    argument, *kinds = _one_of(1, _KINDS, _EPERM)
    others = [argument, (_AND, 0, 0, _KIND), *kinds, *_not_one_of(2, _OTHER_STREAMS)]
    return [*checks, _argument(0), (_EQUAL, len(others), 0, _AF_UNIX), *others]


def _when(number: int, checks: list[_Step]) -> list[_Step]:
    """The checks, for one call only; they leave an argument loaded."""
    return [(_EQUAL, 0, len(checks) + 1, number), *checks, (_LOAD, 0, 0, _NUMBER)]


def _argument(index: int) -> _Step:
    return (_LOAD, 0, 0, 16 + 8 * index)


def _without_bits(index: int, bits: int) -> list[_Step]:
    return [_argument(index), (_ANY_BIT, 0, 1, bits), _refuse(_EPERM)]


def _one_of(index: int, values: tuple[int, ...], error: int) -> list[_Step]:
    equal = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(index), *equal, _refuse(error)]


def _not_one_of(index: int, values: tuple[int, ...]) -> list[_Step]:
    checks = [_argument(index)]
    for value in values:
        checks += [(_EQUAL, 0, 1, value), _refuse(_EPERM)]
    return checks


def _refuse(error: int) -> _Step:
    return (_RETURN, 0, 0, _ERRNO | error)


def _packed(step: _Step) -> bytes:
    code, jump_true, jump_false, value = step
    return code.to_bytes(2, "little") + bytes((jump_true, jump_false)) + value.to_bytes(4, "little")
