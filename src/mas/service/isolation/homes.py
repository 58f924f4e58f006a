"""People's homes as agents see them: hidden, except for installed tools, and never their secrets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from glob import escape, glob

import mas

# What programs keep to act in a person's name, as patterns below the home. The one list of them.
SECRETS = (
    ".ssh", ".gnupg", ".pki", ".password-store", ".netrc", "_netrc", ".authinfo*", ".git-credentials",
    ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli", ".config/op", ".config/rclone",
    ".config/gcloud", ".aws", ".azure", ".boto", ".s3cfg", ".oci", ".bluemix", ".config/doctl", ".config/heroku",
    ".config/scaleway", ".config/hcloud", ".fly", ".wrangler", ".config/.wrangler", ".vercel", ".netlify", ".kube",
    ".docker", ".config/containers", ".config/helm", ".terraform.d", ".terraformrc", ".vault-token", ".npmrc",
    ".yarnrc*", ".config/pnpm", ".pypirc", ".config/pypoetry", ".config/pip", ".pip", ".gem/credentials",
    ".bundle/config", ".cargo/credentials*", ".m2/settings*.xml", ".gradle/gradle.properties", ".nuget", ".composer",
    ".config/composer", ".config/uv/credentials*", ".local/share/uv/credentials*", ".cache/huggingface/token",
    ".huggingface", ".pgpass", ".my.cnf", ".mylogin.cnf", ".config/sops", ".config/age", ".age", ".claude*",
    ".config/claude*", ".codex", ".gemini", ".aider*", ".copilot", ".config/github-copilot", ".cursor", ".continue",
    ".config/opencode", ".local/share/opencode", ".local/share/goose", ".config/goose", ".qwen", ".grok", ".mas",
    ".config/mas", ".local/state/mas",
    ".mozilla", ".thunderbird", ".config/google-chrome*", ".config/chromium", ".config/BraveSoftware",
    ".config/vivaldi", ".config/microsoft-edge*", ".config/opera", ".config/Code*", ".config/Slack", ".config/discord",
    ".config/Signal", ".local/share/keyrings", ".local/share/kwalletd", ".kde*/share/apps/kwallet", ".config/keybase",
    ".electrum", ".bitcoin", ".ethereum", ".Xauthority", ".ICEauthority", ".local/share/evolution", ".config/evolution",
    ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
    "snap/firefox", "snap/chromium", "Library/Keychains", "Library/Application Support",
)  # fmt: skip
# Tool chains that look for themselves in the home, which for agents is another directory.
_ROOTS = {
    "RUSTUP_HOME": ".rustup",
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "NVM_DIR": ".nvm",
    "VOLTA_HOME": ".volta",
    "ASDF_DATA_DIR": ".asdf",
    "SDKMAN_DIR": ".sdkman",
}
_PROGRAMS = ("bin", "sbin", ".bin", "shims")
_SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "sbin", "sys", "usr")


def is_in(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or is below it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


class Homes:
    """The homes of the users that MAS works for. All paths are resolved, and missing ones are left out."""

    def __init__(self, environ: Mapping[str, str], others: Iterable[str] = ()) -> None:
        import pwd

        self._environ = environ
        homes = [environ.get("HOME", ""), *others]
        try:
            homes.append(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:
            pass
        self.first = os.path.realpath(homes[0]) if os.path.isabs(homes[0]) else ""
        self.all = tuple(dict.fromkeys(filter(_is_home, map(os.path.realpath, filter(os.path.isabs, homes)))))

    def own(self, path: str) -> str:
        """A path of the user's: `~` is the home that the environment names."""
        return self.first + path[1:] if path == "~" or path.startswith("~/") else path

    def tool_chain(self, path: str) -> Iterator[str]:
        """What the programs on `path` need: their install prefixes, and MAS's own Python and code."""
        for directory in path.split(":"):
            if os.path.isabs(directory):
                yield from self._installed(os.path.realpath(directory))
        yield from self.roots.values()
        package = os.path.dirname(mas.__file__)
        for place in (sys.prefix, sys.base_prefix, os.path.dirname(package)):
            yield self._share(os.path.realpath(place))

    @cached_property
    def roots(self) -> dict[str, str]:
        """Variables that name tool chains which lie in a home."""
        found: dict[str, str] = {}
        for name, place in _ROOTS.items():
            for path in (self._environ.get(name, ""), *(f"{home}/{place}" for home in self.all)):
                if os.path.isabs(path) and self._of(real := os.path.realpath(path)) and os.path.isdir(real):
                    found.setdefault(name, real)
        return found

    def without_links(self, path: str) -> str:
        """A path in a home with its links resolved, because agents cannot see them; other paths unchanged."""
        return os.path.realpath(path) if os.path.isabs(path) and self._of(os.path.normpath(path)) else path

    def program(self, path: str) -> Iterator[str]:
        """What one program needs that need not be on PATH: its file, and where it is installed."""
        real = os.path.realpath(path)
        yield real
        if os.path.basename(os.path.dirname(real)) in _PROGRAMS:
            yield from self._installed(os.path.dirname(real))
        elif self._share(real) != real:
            yield self._share(real)

    def secrets(self) -> Iterator[str]:
        """The known secrets there are."""
        for home in self.all:
            start = escape(home)
            for pattern in SECRETS:
                yield from map(os.path.realpath, glob(f"{start}/{pattern}"))

    def _installed(self, directory: str) -> Iterator[str]:
        """A directory of programs with what belongs to them, but never a whole home."""
        home = self._of(directory)
        if home == directory:
            return
        yield directory
        prefix = os.path.dirname(directory)
        if home and prefix == f"{home}/.local":
            yield f"{prefix}/lib"
            yield from self._linked(directory)
        elif os.path.basename(directory) in _PROGRAMS and prefix not in (home, "/") and prefix.count("/") > 1:
            yield prefix

    def _linked(self, directory: str) -> Iterator[str]:
        """What programs in `~/.local/bin` are links to: pipx, uv and others keep them in `~/.local/share`."""
        try:
            names = os.listdir(directory)
        except OSError:
            return
        for name in names:
            path = os.path.join(directory, name)
            if os.path.islink(path) and self._of(real := os.path.realpath(path)):
                yield self._share(real)

    def _share(self, path: str) -> str:
        """All of a program that keeps itself in `~/.local/share`; other paths as they are."""
        for home in self.all:
            start = f"{home}/.local/share/"
            if path.startswith(start):
                return start + path[len(start) :].partition("/")[0]
        return path

    def _of(self, path: str) -> str | None:
        """The home that a path is in."""
        return next((home for home in self.all if is_in(path, home)), None)


def _is_home(path: str) -> bool:
    """Whether that is a directory of a person's: accounts of services live anywhere."""
    return path != "/" and path.split("/")[1] not in _SYSTEM and os.path.isdir(path)
