"""Settings: flags, then the environment, then the workspace's config file. The only reader of os.environ."""

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from mas.model.errors import BadInput, Corrupt, NoWorkspace
from mas.model.fields import parse_json
from mas.model.ids import shown
from mas.model.isolation import Mode, Policy, PolicyOrWord, SessionLimits, Tier

if TYPE_CHECKING:
    from mas.model.retention import Retention

MARKER = ".masrc"
CONFIG = "config.json"
DEFAULT_PROVIDER = "demo"
DEFAULT_PORT = 7717
LEGACY_TMUX = "mas-tmux"
_LONGEST_TOKEN = 4096
_CARRIED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ")

# The variables by which a program knows which agent it is.
OF_AN_AGENT = (
    "MAS_ROOT",
    "MAS_SESSION_ID",
    "MAS_SESSION_DIR",
    "MAS_SESSION_NAME",
    "MAS_AGENT_ID",
    "MAS_TOKEN",
    "MAS_HOOKS",
    "MAS_PORT",
    "UNIT_DIR",
    "WORKFLOWS_DIR",
    "SESSION_NAME",
)


class ServerMode(StrEnum):
    """Where sessions run: the user's tmux server, one of the workspace's, one each, or whichever fits."""

    AUTO = "auto"
    DEFAULT = "default"
    WORKSPACE = "workspace"
    SESSION = "session"


class ServerStart(StrEnum):
    """Whether the workspace's HTTP server starts automatically with a session, or only by command."""

    AUTO = "auto"
    OFF = "off"


class Settings(NamedTuple):
    """The settings of this process."""

    root: str
    user_socket: str
    private_sockets: str
    tmux_server: ServerMode = ServerMode.AUTO
    server_start: ServerStart = ServerStart.AUTO
    provider: str = DEFAULT_PROVIDER
    recover: bool = False
    legacy: bool = False
    isolation: Policy = Policy()
    forced_tier: Tier | None = None
    limits: SessionLimits = SessionLimits()
    retention: "Retention | None" = None
    environ: Mapping[str, str] = MappingProxyType({})

    @property
    def carried(self) -> dict[str, str]:
        """The variables that every agent inherits from the process that starts it; a provider's file may name more."""
        return {key: self.environ[key] for key in _CARRIED if key in self.environ}


class ServerAddress(NamedTuple):
    """A server to work through, and the token it asks for."""

    url: str
    token: str | None
    certificate: str | None = None
    """The one certificate it may show, where that is known."""
    ca: str | None = None
    """A file of certificates to trust instead of the usual ones."""


class Inside(NamedTuple):
    """Where this process runs, if inside an agent of a session."""

    session: str | None
    agent: str | None
    directory: str | None
    token: str | None = None
    hooks: str | None = None
    port: str | None = None
    """Where MAS is reached at 127.0.0.1, if the agent has a network of its own."""

    @property
    def is_isolated(self) -> bool:
        """Whether the kernel lets this process reach only MAS's server; such an agent has a spool for its hooks."""
        return bool(self.hooks)


def load_settings(workspace: str | None) -> Settings:
    """The settings in force for the workspace that `workspace`, the environment or the directory names."""
    root = find_root(workspace)
    return settings_of(root, read_config(os.path.join(root, CONFIG)))


def settings_of(root: str, config: Mapping[str, Any]) -> Settings:
    """The settings for a directory with this configuration."""
    environ = os.environ
    policy, forced = _isolation(environ.get("MAS_ISOLATION"), config)
    return Settings(
        root=root,
        user_socket=_user_socket(environ),
        private_sockets=f"/tmp/mas-{os.getuid()}",  # noqa: S108 - owner and mode are checked before use
        tmux_server=_server_mode(environ.get("MAS_TMUX_SERVER") or _at(config, "tmux", "server")),
        server_start=_server_start(environ.get("MAS_SERVER") or _text(config, "server")),
        provider=environ.get("MAS_PROVIDER") or _text(config, "provider") or DEFAULT_PROVIDER,
        recover=_flag(environ.get("MAS_RECOVER"), config),
        legacy=legacy_asked(),
        isolation=policy,
        forced_tier=forced,
        limits=_part(SessionLimits, config, "limits") or SessionLimits(),
        retention=_retention(config),
        environ=dict(environ),
    )


def find_root(workspace: str | None) -> str:
    """The workspace: the flag, then MAS_WORKSPACE_ROOT, then the nearest parent with a marker file."""
    named = workspace or os.environ.get("MAS_WORKSPACE_ROOT")
    if named:
        root = os.path.realpath(named)
        if not os.path.isfile(os.path.join(root, MARKER)):
            raise NoWorkspace(root, named=True)
        return root
    try:
        here = start = os.path.realpath(os.getcwd())
    except FileNotFoundError:
        raise NoWorkspace("this directory, which no longer exists") from None
    while not os.path.isfile(os.path.join(here, MARKER)):
        parent = os.path.dirname(here)
        if parent == here:
            raise NoWorkspace(start)
        here = parent
    return here


class ServerOptions(NamedTuple):
    """What the command line says about a server to work through."""

    url: str | None = None
    token: str | None = None
    token_file: str | None = None
    ca: str | None = None


def server_address(options: ServerOptions, workspace: str | None) -> ServerAddress | None:
    """The server to work through: the flags, then the environment; None for a workspace on this machine."""
    if options.url and workspace:
        raise BadInput("Give a workspace (--workspace) or a server (--url), not both")
    url = options.url or (None if workspace else os.environ.get("MAS_URL"))
    if not url:
        for flag, given in (("--token", options.token), ("--token-file", options.token_file), ("--ca", options.ca)):
            if given:
                raise BadInput(f"{flag} needs a server: give one with --url or MAS_URL")
        return None
    return ServerAddress(url, _token(options), ca=options.ca or os.environ.get("MAS_CA") or None)


def _token(options: ServerOptions) -> str | None:
    """The nearest token: on the command line, in a file named there, in the environment, in a file named there."""
    if options.token or options.token_file:
        return options.token or read_token(options.token_file or "")
    file = os.environ.get("MAS_TOKEN_FILE")
    return os.environ.get("MAS_TOKEN") or (read_token(file) if file else None)


def at_once(path: str, flags: int) -> int:
    """Opens a file that the user named: a pipe without a writer is empty, and not waited for."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    os.set_blocking(fd, True)
    return fd


def read_token(path: str) -> str:
    """The token in a file, which holds nothing else."""
    try:
        with open(path, encoding="ascii", opener=at_once) as file:
            token = file.read(_LONGEST_TOKEN).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise BadInput(
            f"Cannot read a token from {path}: {reason}", "mas token > FILE, on the server's machine"
        ) from None
    if not token:
        raise BadInput(f"The token file {path} is empty", "mas token > FILE, on the server's machine")
    return token


def legacy_asked() -> bool:
    """Whether the environment asks for the old single mode."""
    return os.environ.get("MAS_SESSION_MODE") == "legacy" or os.environ.get("SESSION_NAME") == LEGACY_TMUX


def inside() -> Inside:
    known = ("MAS_SESSION_ID", "MAS_AGENT_ID", "MAS_SESSION_DIR", "MAS_TOKEN", "MAS_HOOKS", "MAS_PORT")
    return Inside(*map(os.environ.get, known))


def as_agent(url: str | None, workspace: str | None) -> Inside | None:
    """The agent whose program this is, unless another server or workspace is meant than its own."""
    here = inside()
    is_agent = here.session and here.agent and here.token and not (url or workspace or os.environ.get("MAS_URL"))
    return here if is_agent else None


def legacy_home() -> str:
    return os.path.join(os.path.expanduser("~"), ".mas")


def wants_colour(stream_is_terminal: bool) -> bool:
    return stream_is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def has_browser() -> bool:
    """Whether a page can be shown to the person at this terminal."""
    far = os.environ.get("SSH_CONNECTION")
    return not far and bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin")


def off_path() -> str | None:
    """The directory to add to PATH so that `mas` is this program; None if it is so already, or there is none to add."""
    from shutil import which

    own = os.path.join(os.path.dirname(sys.executable), "mas")
    found = which("mas")
    if not os.path.exists(own) or (found and os.path.realpath(found) == os.path.realpath(own)):
        return None
    return os.path.dirname(own)


def read_config(path: str) -> Mapping[str, Any]:
    """The workspace's configuration; a missing file means defaults, an unreadable one is an error."""
    # Written by people, so repaired by people: MAS could only guess.
    hint = f"correct it, or: mv {path} {path}.bad; mas init {os.path.dirname(path)}"
    try:
        with open(path, "rb") as file:
            config = parse_json(file.read())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise Corrupt(path, str(error), hint) from None
    except OSError as error:
        raise Corrupt(path, error.strerror or "unreadable", hint) from None
    if not isinstance(config, dict):
        raise Corrupt(path, "not an object", hint)
    return config


def workspace_policy(root: str) -> Policy:
    """The workspace's isolation policy as `config.json` has it now; a process that stays has read an older one."""
    return _part(PolicyOrWord, read_config(os.path.join(root, CONFIG)), "isolation") or Policy()


def _user_socket(environ: Mapping[str, str]) -> str:
    """The socket that plain `tmux ls` would ask here."""
    if inside := environ.get("TMUX"):
        return inside.rsplit(",", 2)[0]
    return os.path.join(environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}", "default")  # noqa: S108


def _server_mode(word: str | None) -> ServerMode:
    try:
        return ServerMode(word or ServerMode.AUTO)
    except ValueError:
        raise BadInput(f"tmux.server is {shown(word or '')}; it can be: {', '.join(ServerMode)}") from None


def _server_start(word: str | None) -> ServerStart:
    try:
        return ServerStart(word or ServerStart.AUTO)
    except ValueError:
        raise BadInput(f"server is {shown(word or '')}; it can be: {', '.join(ServerStart)}") from None


def _isolation(word: str | None, config: Mapping[str, Any]) -> tuple[Policy, Tier | None]:
    """How agents are isolated where nothing nearer says so, and the tier that is forced on all of them, if any."""
    policy = _part(PolicyOrWord, config, "isolation") or Policy()
    if not word:
        return policy, None
    if word in set(Tier):
        return policy, Tier(word)
    if word not in set(Mode):
        raise BadInput(f"MAS_ISOLATION is {shown(word)}; it can be: {', '.join((*Mode, *Tier))}")
    return policy._replace(enforce=Mode(word)), None


def _retention(config: Mapping[str, Any]) -> "Retention | None":
    if config.get("retention") is None:
        return None
    from mas.model.retention import Retention

    kept: Retention = _part(Retention, config, "retention")
    return kept


def _part(kind: Any, config: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401 - a value of any kind
    """The value under `key`; None where there is none: few workspaces have one, and every command would pay for it."""
    if config.get(key) is None:
        return None
    from mas.model.shapes import read

    return read(kind, config[key], f"config.json: {key}")


def _flag(word: str | None, config: Mapping[str, Any]) -> bool:
    if word is not None:
        return word.lower() in ("1", "true", "yes", "on")
    value = config.get("recover", False)
    if not isinstance(value, bool):
        raise BadInput("recover must be true or false in config.json")
    return value


def _text(config: Mapping[str, Any], key: str) -> str | None:
    value = config.get(key)
    if value is not None and not isinstance(value, str):
        raise BadInput(f"{key} must be text in config.json")
    return value


def _at(config: Mapping[str, Any], section: str, key: str) -> str | None:
    inner = config.get(section, {})
    if not isinstance(inner, dict):
        raise BadInput(f"{section} must be an object in config.json")
    return _text(inner, key)
