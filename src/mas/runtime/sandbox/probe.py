"""What this machine can enforce, found by trying it with a temporary process in temporary directories.

The trial is a separate program, `python -ISE probe.py HOW`: the caller may have threads, and threads do not go well
with new namespaces. Its results depend on the machine alone: what it inherits from the caller, it sheds first.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mas.model.launch import Rules

# A trial that takes longer has no result.
_PATIENCE = 30.0
# What an attempt that is not refused adds to the exit status.
_WROTE, _SAW, _REACHED, _UNUSABLE = 1, 2, 4, 8
_HOLES = {
    _WROTE: "a file outside could be written",
    _SAW: "a hidden file could be read",
    _REACHED: "a process outside could be reached",
    _UNUSABLE: "its own directory could not be written",
}
# Added by every attempt that came to its end: a program that could not even start exits with a small number, too.
_ENDED = 16
# How a trial prints its result: it works, or it does not, and why. Anything else is no result.
_YES, _NO = "+", "-"
# A lack of processes, memory or descriptors: it says nothing of what the machine allows.
_LACKS = (11, 12, 23, 24)
_ATTEMPT = f"""
import os, sys
own, outside, hidden, pid, space = sys.argv[1:]
def works(action):
    try:
        action()
    except OSError:
        return False
    return True
def write(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
def same_processes():
    os.kill(int(pid), 0)
    if os.readlink("/proc/self/ns/pid") != space:
        raise OSError
found = 0 if works(lambda: write(own + "/made")) else {_UNUSABLE}
found |= {_WROTE} if works(lambda: write(outside + "/made")) else 0
found |= {_SAW} if works(lambda: os.listdir(hidden)) and os.listdir(hidden) else 0
found |= {_SAW} if works(lambda: open(hidden + "/secret")) else 0
found |= {_REACHED} if works(same_processes) else 0
sys.exit({_ENDED} | found)
"""


class NotTried(Exception):
    """Why a trial has no result; it says nothing of the machine, and the next one may have one."""


def probe(how: str) -> str:
    """Empty if `namespaces`, `bwrap` or `landlock` can isolate a process on this machine, if one in namespaces has
    processes of its own (`proc`), or if there can be a `network` of a session's own, or a `full` one; else why not.

    `NotTried` if that could not be found out.
    """
    import subprocess

    try:
        done = subprocess.run(
            [sys.executable, "-ISE", __file__, how],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotTried(f"it could not be tried: {error}") from None
    if done.stdout[:1] in (_YES, _NO):
        return done.stdout[1:].strip().rpartition("\n")[2]
    printed = done.stderr.strip() or f"exit status {done.returncode}"
    raise NotTried(f"it could not be tried: {printed.splitlines()[-1]}")


def landlock_abi() -> int:
    """Which version of Landlock the kernel has; 0 is none."""
    from mas.runtime.sandbox.landlock import abi

    return abi()


def _try(how: str) -> str:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="mas-probe-") as made:
        directory = os.path.realpath(made)
        own, outside, hidden = (os.path.join(directory, name) for name in ("own", "outside", "hidden"))
        for path in (own, outside, hidden):
            os.mkdir(path)
        with open(os.path.join(hidden, "secret"), "w", encoding="ascii"):
            pass
        os.chdir(own)
        status = _run(how, (own, outside, hidden))
        os.chdir("/")
    found = os.waitstatus_to_exitcode(status)
    if found & ~(_ENDED - 1) != _ENDED:
        raise ChildProcessError(f"the attempt ended on the way with status {found}")
    return "; ".join(words for bit, words in _HOLES.items() if found & bit)


def _rules(how: str, write: tuple[str, ...] = (), read: tuple[str, ...] = (), hide: tuple[str, ...] = ()) -> Rules:
    """A listed root with the system, this Python and these places."""
    from mas.model.launch import Rules
    from mas.runtime.sandbox.places import WHOLE, followed
    from mas.runtime.sandbox.view import LISTED, is_below

    tier = "B" if how == "landlock" else "A"
    package = __file__.rsplit("/", 4)[0]
    chain = (sys.prefix, sys.base_prefix, package, sys.executable, *(("/proc",) if tier == "B" else ()))
    seen, links = followed((*WHOLE, *chain, *read))
    outside = tuple(link for link in links.items() if not any(is_below(link[0], place) for place in seen))
    return Rules(tier=tier, how=how, root=LISTED, write=write, read=tuple(seen), links=outside, hide=hide)


def _run(how: str, places: tuple[str, str, str]) -> int:
    """The wait status of the attempt."""
    from mas.runtime.sandbox.enter import SandboxProgram, start

    own, _, hidden = places
    rules = _rules(how, write=(own,), read=(os.path.dirname(own),), hide=(hidden,))
    argv = (sys.executable, "-ISE", "-c", _ATTEMPT, *places, str(os.getpid()), os.readlink("/proc/self/ns/pid"))
    master, slave = os.openpty()
    started = start(rules, SandboxProgram(argv, dict(os.environ), lambda: None), master, slave)
    if started.ended < 0:
        return os.waitpid(started.agent, 0)[1]
    status = int.from_bytes(os.read(started.ended, 4), "little")
    os.close(started.ended)
    os.waitpid(started.keepers[0], 0)
    return status


def _try_processes() -> str:
    from mas.runtime.sandbox.enter import SandboxFailed, SandboxProgram, start

    master, slave = os.openpty()
    program = SandboxProgram((sys.executable, "--version"), {}, lambda: None)
    try:
        started = start(_rules("namespaces"), program, master, slave)
    except SandboxFailed as error:
        # It is asked only where namespaces work: then this says nothing of them.
        raise ChildProcessError(str(error)) from None
    return "" if started.keepers else "a new /proc is refused here"


def _try_network() -> str:
    from mas.runtime.network.space import make_space

    try:
        make_space(None, ())
    except OSError as error:
        return _refusal(error)
    return ""


def _try_full() -> str:
    """Start what a network of the kind `full` needs, and end it."""
    from shutil import which
    from tempfile import TemporaryDirectory

    from mas.runtime.network.pasta import PROGRAM, be_nobody, end_pasta, keep_pasta, running_pasta
    from mas.runtime.network.space import make_space

    program = which(PROGRAM)
    if not program:
        return f"{PROGRAM} is not installed: apt install passt"
    with TemporaryDirectory(prefix="mas-probe-") as made:
        directory = os.open(made, os.O_RDONLY)
        try:
            keep_pasta(program, directory, make_space(None, (), be_nobody)[0])
        except OSError as error:
            return _refusal(error)
        end_pasta(running_pasta(directory))
    return ""


def _refusal(error: OSError) -> str:
    if error.errno in _LACKS:
        raise error
    return error.strerror or str(error) or type(error).__name__


def _shed_inheritance() -> None:
    """Undo what this process has from the caller and would change the result."""
    import resource
    import signal

    # No listed root has the caller's own directory, and the caller may have removed it.
    os.chdir("/")
    os.umask(0o077)
    # While it is ignored, no child's exit status is kept.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
        most = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most, most))


def _main(how: str) -> None:
    from mas.runtime.sandbox.enter import SandboxFailed

    _shed_inheritance()
    try:
        others = {"proc": _try_processes, "network": _try_network, "full": _try_full}
        why = others[how]() if how in others else _try(how)
    except SandboxFailed as error:
        why = str(error) or type(error).__name__
    except OSError as error:
        sys.exit(str(error))
    os.write(1, f"{_NO if why else _YES}{why}\n".encode("utf-8", "replace"))


if __name__ == "__main__":
    # -I keeps out everything of the caller; the package itself is four directories up.
    sys.path.insert(0, __file__.rsplit("/", 4)[0])
    _main(sys.argv[1])
