"""scripts/setup says what is missing and what it does, and needs no newer bash than macOS has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from glob import glob

import pytest

from tests.site import REPOSITORY, short_directory

# What bash 3.2 lacks, or gets wrong.
_TOO_NEW = {
    "mapfile": r"\b(mapfile|readarray)\b",
    "associative arrays": r"\b(declare|local|typeset)\s+-\w*A",
    "name references": r"\b(declare|local|typeset)\s+-\w*n\b",
    "case conversion": r"\$\{\w+(\[[^]]*\])?(,,?|\^\^?)",
    "transformations": r"\$\{\w+@[A-Za-z]\}",
    "negative indices": r"\$\{\w+\[-\d+\]\}",
    "|& and &>>": r"\|&|&>>",
    "coprocesses": r"^\s*coproc\b",
    "globstar": r"\bglobstar\b",
    "wait -n": r"\bwait\s+-n\b",
    "printf of times": r"%\([^)]*\)T",
    "test -v": r"\[\[?\s+-v\s",
    ";& in case": r";;?&",
    "an array that may be empty under set -u": r'(?<!\+)"\$\{\w+\[@\]\}"',
}
_SCRIPTS = sorted(
    path
    for place in ("scripts/*", "shell/*.sh", ".ci/run")
    for path in glob(os.path.join(REPOSITORY, place))
    if os.path.isfile(path)
)


def too_new(text: str) -> set[str]:
    """What of a script bash 3.2 would not understand."""
    code = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    return {name for name, pattern in _TOO_NEW.items() if re.search(pattern, code, re.MULTILINE)}


@pytest.mark.parametrize("path", _SCRIPTS, ids=os.path.basename)
def test_scripts_need_no_newer_bash_than_macos_has(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        assert too_new(file.read()) == set()


def test_a_script_that_needs_a_newer_bash_is_noticed() -> None:
    lines = {
        "mapfile": "mapfile -t wanted < <(missing)",
        "associative arrays": "local -A seen",
        "name references": "declare -n other=$1",
        "case conversion": 'echo "${name,,}" "${name^}"',
        "transformations": 'echo "${name@Q}"',
        "negative indices": 'echo "${words[-1]}"',
        "|& and &>>": "make |& tee log",
        "coprocesses": "coproc cat",
        "globstar": "shopt -s globstar",
        "wait -n": "wait -n",
        "printf of times": "printf '%(%s)T'",
        "test -v": "if [[ -v name ]]; then",
        ";& in case": "    a) echo ;&",
        "an array that may be empty under set -u": 'install "${wanted[@]}"',
    }
    assert lines.keys() == _TOO_NEW.keys()
    for name, line in lines.items():
        assert name in too_new(f"set -eu\n{line}\n"), line
    assert too_new('# mapfile is not there\necho "${1:-}" "${words[@]+"${words[@]}"}" 2>&1 >>log') == set()


class Machine:
    """A PATH of its own, with what a test puts there beside what the script itself is written with."""

    def __init__(self, directory: str) -> None:
        self.bin = os.path.join(directory, "bin")
        self.tree = os.path.join(directory, "tree")
        os.makedirs(os.path.join(self.tree, "scripts"))
        os.mkdir(self.bin)
        shutil.copy(os.path.join(REPOSITORY, "scripts", "setup"), os.path.join(self.tree, "scripts"))
        for name in ("awk", "bash", "dirname", "env", "tr", "touch", "mkdir", "chmod", "cat"):
            os.symlink(str(shutil.which(name)), os.path.join(self.bin, name))
        self.has("uname", "echo Linux")
        self.has("id", "echo 1000")
        self.has("bwrap")
        self.has("tmux", "echo tmux 3.3a")
        # A Python that makes a venv of itself and says yes to all.
        self.has("python3", 'case "$*" in "-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python;; esac')
        os.symlink(str(shutil.which("cp")), os.path.join(self.bin, "cp"))

    def has(self, name: str, does: str = ":") -> None:
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/bash\n{does}\n")
        os.chmod(path, 0o755)

    def lacks(self, *names: str) -> None:
        for name in names:
            os.remove(os.path.join(self.bin, name))

    def setup(self, what: str = "run", code: int = 0) -> str:
        # MAS_TEST_BASH: an older one, where there is one.
        bash = os.environ.get("MAS_TEST_BASH", "bash")
        argv = [bash, os.path.join(self.tree, "scripts", "setup"), what]
        done = subprocess.run(argv, env={"PATH": self.bin}, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == code, (done.stdout, done.stderr)
        assert done.stdout == ""
        return done.stderr


@pytest.fixture
def machine() -> Iterator[Machine]:
    with short_directory() as directory:
        yield Machine(directory)


def test_every_step_is_announced_before_it_is_taken(machine: Machine) -> None:
    said = machine.setup().splitlines()
    assert [line.split(" (")[0] for line in said] == [
        "setup: making .venv with ",
        "setup: installing Python packages into .venv",
        "setup: installing Node into .venv, to build the web page",
    ]
    assert all("(" in line for line in said), "how long it takes, or how much it is, is not said"


def test_pip_does_not_build_the_page_if_its_progress_is_not_shown(machine: Machine) -> None:
    seen = os.path.join(machine.tree, "seen")
    keeps = f'*"-e .") echo "$MAS_SKIP_WEB" >{seen};;'
    machine.has("python3", f'case "$*" in "-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python;; {keeps} esac')
    machine.setup()
    with open(seen, encoding="utf-8") as file:
        assert file.read() == "1\n"


def test_all_that_is_missing_is_named_at_once(machine: Machine) -> None:
    machine.lacks("tmux", "bwrap")
    machine.has("apt-get")
    said = machine.setup(code=1)
    assert "missing: tmux\n" in said
    assert "not required: bubblewrap" in said
    assert "run: sudo apt-get install tmux bubblewrap " in said
    assert not os.path.exists(os.path.join(machine.tree, ".venv"))


@pytest.mark.parametrize(("version", "code"), [("2.9a", 1), ("3.1c", 1), ("3.2", 0), ("next-3.5", 0), ("10.0", 0)])
def test_a_tmux_that_is_too_old_counts_as_missing(machine: Machine, version: str, code: int) -> None:
    machine.has("tmux", f"echo tmux {version}")
    assert ("missing: tmux" in machine.setup(code=code)) is bool(code)


def test_without_bubblewrap_it_goes_on(machine: Machine) -> None:
    machine.lacks("bwrap")
    assert "install with your package manager: bubblewrap" in machine.setup()
    assert os.path.exists(os.path.join(machine.tree, ".venv", ".run"))


def test_on_macos_the_hint_is_for_brew_and_bubblewrap_is_not_asked_for(machine: Machine) -> None:
    machine.lacks("tmux", "bwrap")
    machine.has("uname", "echo Darwin")
    said = machine.setup(code=1)
    assert "run: brew install tmux " in said
    assert "bubblewrap" not in said
    assert "apt-get" not in said


def test_root_on_debian_gets_what_is_missing_installed(machine: Machine) -> None:
    machine.lacks("tmux", "bwrap")
    machine.has("id", "echo 0")
    machine.has("apt-get", 'echo "apt-get $*" >&2; case "$*" in *bubblewrap) exit 100;; esac')
    said = machine.setup()
    assert "installing Debian packages: tmux bubblewrap" in said
    assert "--no-install-recommends tmux\n" in said
    assert "bubblewrap could not be installed; going on" in said


def test_a_python_that_is_too_old_is_named_first(machine: Machine) -> None:
    machine.lacks("tmux")
    machine.has("python3", 'case "$*" in -V) echo Python 3.9.6;; *) exit 1;; esac')
    said = machine.setup(code=1)
    assert "Python 3.11 or newer is needed, found: Python 3.9.6" in said
    assert "PYTHON=" in said
