"""What this machine can enforce, found by trying it with a temporary process in temporary directories.

The trial is a separate program, `python -ISE probe.py HOW`: the caller may have threads, and threads do not go well
with new namespaces.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mas.model.launch import Rules

# How long a trial may take; a sandbox that is not entered by then does not count.
_PATIENCE = 30.0
# What an attempt that is not refused adds to the exit status.
_WROTE, _SAW, _REACHED, _UNUSABLE = 1, 2, 4, 8
_HOLES = {
    _WROTE: "a file outside could be written",
    _SAW: "a hidden file could be read",
    _REACHED: "a process outside could be reached",
    _UNUSABLE: "its own directory could not be written",
}
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
sys.exit(found)
"""
_PORTS_SINCE = 4
_SINCE = {
    3: "files outside can be cut short (truncate)",
    _PORTS_SINCE: "TCP ports cannot be restricted",
    5: "devices it can open can be controlled (ioctl)",
}
_SCOPES_SINCE = 6


def probe(how: str) -> str:
    """Empty if `namespaces`, `bwrap` or `landlock` can isolate a process on this machine, or there can be a `network`
    of a session's own, or a `full` one; else why not."""
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
        return f"it could not be tried: {error}"
    if done.returncode == 0:
        return ""
    printed = (done.stdout.strip() or done.stderr.strip() or f"exit status {done.returncode}").splitlines()
    return printed[-1]


def landlock_abi() -> int:
    """Which version of Landlock the kernel has; 0 is none."""
    from mas.runtime.sandbox.landlock import abi

    return abi()


def not_enforced(tier: str, abi: int, how: str) -> tuple[str, ...]:
    """What this tier does not enforce on this kernel, a line each; empty for a tier that enforces all."""
    if tier == "D":
        return ("file modes only: every agent can reach whatever its user can",)
    lines = []
    if tier == "B":
        lines += [
            "mode and times of files outside can be changed where the user owns them",
            "what files outside there are, and when they change, can be seen, but not their content",
            "names and arguments of other processes can be seen",
            "UDP ports can be used",
            "new terminals, unix sockets, shared memory, ports to listen at (but by ports) and /tmp are not there",
        ]
    if abi == 1:
        lines.append("files cannot be moved between directories, even its own")
    lines += [words for since, words in _SINCE.items() if abi < since and (tier == "B" or since == _PORTS_SINCE)]
    if abi < _SCOPES_SINCE:
        lines.append("abstract unix sockets outside can be reached")
        if tier == "B":
            lines.append("processes of the same user can be sent signals")
    if tier == "A" and how == "namespaces" and _shows_processes():
        lines.append("names and arguments of other processes can be seen: a new /proc is refused here")
    return tuple(lines)


def _shows_processes() -> bool:
    """Whether a process in namespaces still sees all others."""
    import subprocess

    try:
        done = subprocess.run(
            [sys.executable, "-ISE", __file__, "proc"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != 0


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
    if os.WIFSIGNALED(status):
        return f"the trying process was killed by signal {os.WTERMSIG(status)}"
    found = os.WEXITSTATUS(status)
    return (
        "; ".join(words for bit, words in _HOLES.items() if found & bit) if found < 2 * _UNUSABLE else f"exit {found}"
    )


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


def _has_own_processes() -> bool:
    from mas.runtime.sandbox.enter import SandboxProgram, start

    master, slave = os.openpty()
    program = SandboxProgram((sys.executable, "--version"), {}, lambda: None)
    started = start(_rules("namespaces"), program, master, slave)
    return bool(started.keepers)


def _try_pasta() -> None:
    """Start what a network of the kind `full` needs, and end it; `OSError` if that fails."""
    from shutil import which
    from tempfile import TemporaryDirectory

    from mas.runtime.network.pasta import PROGRAM, be_nobody, end_pasta, keep_pasta, running_pasta
    from mas.runtime.network.space import make_space

    program = which(PROGRAM)
    if not program:
        raise OSError(2, f"{PROGRAM} is not installed: apt install passt")
    space, _ = make_space(None, (), be_nobody)
    with TemporaryDirectory(prefix="mas-probe-") as made:
        directory = os.open(made, os.O_RDONLY)
        keep_pasta(program, directory, space)
        end_pasta(running_pasta(directory))


def _main(how: str) -> int:
    from mas.runtime.network.space import make_space
    from mas.runtime.sandbox.enter import SandboxFailed

    try:
        if how == "proc":
            return 0 if _has_own_processes() else 1
        if how == "network":
            make_space(None, ())
            return 0
        if how == "full":
            _try_pasta()
            return 0
        why = _try(how)
    except SandboxFailed as error:
        why = str(error) or type(error).__name__
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
    os.write(1, f"{why}\n".encode("utf-8", "replace"))
    return 1 if why else 0


if __name__ == "__main__":
    # -I keeps out everything of the caller; the package itself is four directories up.
    sys.path.insert(0, __file__.rsplit("/", 4)[0])
    sys.exit(_main(sys.argv[1]))
