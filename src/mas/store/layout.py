"""The paths and modes of all files of a workspace."""

import os
from typing import NamedTuple

from mas.model.ids import identity, is_session_id

OPEN_DIR = 0o755
PRIVATE_DIR = 0o700
PRIVATE_FILE = 0o600


class SessionPaths(NamedTuple):
    """The files of one session."""

    root: str

    def at(self, *names: str) -> str:
        return "/".join((self.root, *names))

    @property
    def record(self) -> str:
        return f"{self.root}/.session"

    @property
    def metadata(self) -> str:
        return f"{self.root}/metadata.json"

    @property
    def config(self) -> str:
        return self.at("config.json")

    @property
    def lock(self) -> str:
        return self.at(".session.lock")

    @property
    def unit(self) -> str:
        return self.at("unit")

    @property
    def workflows(self) -> str:
        return self.at("workflows")

    @property
    def logs(self) -> str:
        return self.at("logs")

    @property
    def private(self) -> str:
        return self.at(".mas")

    @property
    def home(self) -> str:
        """The home of its agents, where they are isolated."""
        return self.at(".home")

    @property
    def temporary(self) -> str:
        return self.at(".tmp")

    def agent_log(self, agent: str) -> str:
        return self.at("logs", f"agent-{agent}.log")

    def agent_events(self, agent: str) -> str:
        return self.at("logs", f"agent-{agent}.events.jsonl")

    def session_log(self) -> str:
        return f"{self.root}/logs/session.log"


class Layout(NamedTuple):
    """The paths of one workspace. `sessions/.mas` is MAS's own: on the same file system as the sessions,
    so that moving one in or out is a single rename."""

    root: str

    def at(self, *names: str) -> str:
        return os.path.join(self.root, *names)

    @property
    def sessions(self) -> str:
        return self.at("sessions")

    @property
    def unit(self) -> str:
        return self.at("unit")

    @property
    def workflows(self) -> str:
        return self.at("workflows")

    @property
    def registry_index(self) -> str:
        return self.at("sessions", ".sessions.index")

    @property
    def journal(self) -> str:
        return self.at("sessions", ".index")

    @property
    def private(self) -> str:
        return self.at("sessions", ".mas")

    @property
    def registry_lock(self) -> str:
        return self.at("sessions", ".mas", "registry.lock")

    @property
    def intents(self) -> str:
        return self.at("sessions", ".mas", "intents")

    @property
    def trash(self) -> str:
        return self.at("sessions", ".mas", "trash")

    @property
    def doomed(self) -> str:
        return self.at("sessions", ".mas", "doomed")

    @property
    def archive(self) -> str:
        return self.at("sessions", ".mas", "archive")

    @property
    def server(self) -> str:
        return self.at("sessions", ".mas", "server")

    @property
    def address(self) -> str:
        return self.at("sessions", ".mas", "address")

    @property
    def sockets(self) -> str:
        return self.at("sessions", ".mas", "tmux")

    @property
    def events(self) -> str:
        return self.at("sessions", ".mas", "events")

    def home(self) -> str:
        """The workspace's identity: what it has open carries it, and a copy of the workspace has another."""
        status = os.stat(self.sessions)
        return identity(status.st_dev, status.st_ino)

    def session(self, session_id: str) -> SessionPaths:
        return SessionPaths(f"{self.root}/sessions/{session_id}")

    def is_session(self, session_id: str) -> bool:
        """Whether there is a real directory of that session, not a link to one."""
        path = self.session(session_id).root
        return os.path.isdir(path) and not os.path.islink(path)

    def directories(self) -> set[str]:
        """The ids of all session directories."""
        with os.scandir(self.sessions) as entries:
            return {
                entry.name for entry in entries if is_session_id(entry.name) and entry.is_dir(follow_symlinks=False)
            }
