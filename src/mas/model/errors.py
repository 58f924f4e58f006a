"""All errors, as one tree.

MasError                anything else
├── BadInput            an argument or a field is not valid
├── NotFound            no such thing
│   ├── NoWorkspace     no workspace here or above
│   ├── NoSession       no such session
│   └── NoAgent         no such agent, unit or group in the session
├── Conflict            the state of a session or of another thing does not allow this
│   ├── BadTransition   the session's status cannot change like this
│   ├── Busy            another process is working on the session
│   ├── Archived        the session is archived
│   ├── AlreadyThere    the thing to create already exists
│   ├── ServerRunning   the workspace already has a server
│   └── AgentExited     the agent's program has exited
├── Denied              the caller is not allowed this
│   ├── NotSignedIn     the token is missing or wrong
│   └── Forbidden       the token does not allow this
├── TooMuch             too many requests at once
├── TimedOut            what was waited for did not happen in time
├── Corrupt             a file of MAS cannot be read
├── Disk                the file system failed or refused
│   ├── DiskFull        the disk is full
│   └── DiskRefused     no permission to read or write there
└── Unavailable         something that MAS needs is missing
    ├── NoTmux          tmux is missing, too old, full or does not respond
    ├── NoServer        no server is running for the workspace, or it does not respond
    ├── NoProgram       an agent's program is missing
    └── NotIsolated     this machine cannot isolate agents as required

`code` is stable and for scripts, the message is for people, `hint` is the next command.
"""

from __future__ import annotations


class MasError(Exception):
    """Anything that MAS refuses or fails to do, in words for people."""

    code = "error"

    def __init__(self, message: str, hint: str = "", field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.field = field
        """The field of the request that caused it, if one did."""


class BadInput(MasError):
    code = "bad-input"

    @classmethod
    def at(cls, field: str, why: str) -> BadInput:
        """`field` is wrong; `why` goes on with the sentence, such as `must be text`."""
        return cls(f"{field} {why}", field=field)


class NotFound(MasError):
    code = "not-found"


class NoWorkspace(NotFound):
    code = "no-workspace"

    def __init__(self, start: str, named: bool = False) -> None:
        where, hint = (f"at {start}", f"mas init {start}") if named else (f"at or above {start}", "mas init")
        super().__init__(f"No MAS workspace {where}", hint)
        self.is_named = named
        """Whether the user named the directory, so that no other is tried."""


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
    """What was waited for did not happen in time."""

    code = "timed-out"


class Corrupt(MasError):
    code = "corrupt"

    def __init__(self, path: str, why: str, hint: str = "mas repair") -> None:
        super().__init__(f"{path} is damaged: {why}", hint)
        self.path = path
        self.is_newer = False

    @classmethod
    def newer(cls, path: str, version: int) -> Corrupt:
        """A file that a newer MAS wrote: it is not damaged, and this MAS must not repair it."""
        error = cls(path, f"a newer MAS wrote it (format version {version})", "mas version")
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
