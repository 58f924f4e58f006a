"""Everything that can go wrong, as one tree.

MasError                anything else
├── BadInput            what was asked for makes no sense
├── NotFound            no such thing
│   ├── NoWorkspace     no workspace here or above
│   ├── NoSession       no such session
│   └── NoAgent         no such agent, unit or group in the session
├── Conflict            the session is not in a state for this
│   ├── BadTransition   that step is not allowed
│   ├── Busy            another process is at work on the session
│   ├── Archived        the session has been archived
│   ├── AlreadyThere    the thing to be made exists
│   ├── ServerRunning   the workspace already has a server
│   └── AgentExited     the agent's program has ended
├── Denied              who asks may not
│   ├── NotSignedIn     no token, or a wrong one
│   └── Forbidden       a token, but not for this
├── TooMuch             more at once than MAS takes
├── TimedOut            what was waited for did not come in time
├── Corrupt             a file of ours cannot be read
├── Disk                the file system said no
│   ├── DiskFull        no room is left
│   └── DiskRefused     not ours to read or write there
└── Unavailable         something MAS needs is not there
    ├── NoTmux          tmux is missing, too old, full or does not answer
    ├── NoServer        no server runs for the workspace, or it does not answer
    ├── NoProgram       an agent's program is missing
    └── NotIsolated     this machine cannot isolate agents as it was asked to

`code` is a promise to scripts, the sentence is for people, `hint` is the next command.
"""

from __future__ import annotations


class MasError(Exception):
    """Anything MAS refuses or fails to do, said for people."""

    code = "error"
    field = ""
    """The field of what was sent in that it is about, where it is about one."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadInput(MasError):
    code = "bad-input"


class NotFound(MasError):
    code = "not-found"


class NoWorkspace(NotFound):
    code = "no-workspace"

    def __init__(self, start: str, named: bool = False) -> None:
        where, hint = (f"at {start}", f"mas init {start}") if named else (f"at or above {start}", "mas init")
        super().__init__(f"No MAS workspace {where}", hint)
        self.is_named = named
        """Whether somebody named the place, so that no other will do."""


class NoSession(NotFound):
    code = "session-not-found"

    def __init__(self, session_id: str, hint: str = "mas list") -> None:
        super().__init__(f"Session not found: {session_id}", hint)


class NoAgent(NotFound):
    code = "agent-not-found"


class Conflict(MasError):
    code = "wrong-state"


class BadTransition(Conflict):
    code = "wrong-state"

    def __init__(self, session_id: str, now: str, wanted: str, hint: str = "") -> None:
        super().__init__(f"Session {session_id} is {now} and cannot become {wanted}", hint)


class Busy(Conflict):
    code = "busy"


class Archived(Conflict):
    code = "archived"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session {session_id} is archived", f"mas unarchive {session_id}")


class AlreadyThere(Conflict):
    code = "exists"


class ServerRunning(Conflict):
    code = "server-running"


class AgentExited(Conflict):
    code = "agent-exited"


class Denied(MasError):
    code = "denied"


class NotSignedIn(Denied):
    code = "unauthorized"


class Forbidden(Denied):
    code = "forbidden"


class TooMuch(MasError):
    code = "too-much"


class TimedOut(MasError):
    """What was waited for did not come in time."""

    code = "timed-out"


class Corrupt(MasError):
    code = "corrupt"

    def __init__(self, path: str, why: str, hint: str = "mas repair") -> None:
        super().__init__(f"{path} is damaged: {why}", hint)
        self.path = path
        self.is_newer = False

    @classmethod
    def newer(cls, path: str, version: int) -> Corrupt:
        """A file that is whole, and written by a newer MAS: nothing for this one to mend."""
        error = cls(path, f"it was written by a newer MAS (version {version} of it)", "mas version")
        error.is_newer = True
        return error


class Disk(MasError):
    code = "disk"


class DiskFull(Disk):
    code = "disk-full"


class DiskRefused(Disk):
    code = "disk-refused"


class Unavailable(MasError):
    code = "unavailable"


class NoTmux(Unavailable):
    code = "no-tmux"


class NoServer(Unavailable):
    code = "no-server"


class NoProgram(Unavailable):
    code = "no-program"


class NotIsolated(Unavailable):
    code = "not-isolated"
