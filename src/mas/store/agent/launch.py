"""Launch files: what the launcher in each pane runs. Written at every start, read by `mas.pane`.

Plain NUL-separated text, because the launcher starts once per agent and a JSON reader would cost it a third
of its start. Imports nothing but `os` for the same reason.
"""

from __future__ import annotations

import os

from mas.store.files.descriptors import SAFE

_SECTION = "\0\0"


def launch_path(session_dir: str, agent: str) -> str:
    return os.path.join(session_dir, ".mas", "launch", agent)


def gate_path(session_dir: str) -> str:
    return os.path.join(session_dir, ".mas", "launch", "gate")


def was_cut_short(session_dir: str, opener: str) -> bool:
    """Whether the process that opened this team died before its session was whole: its intent is still there."""
    sessions, session_id = os.path.split(session_dir)
    try:
        with open(os.path.join(sessions, ".mas", "intents", session_id), "rb") as file:
            intent = file.read()
    except OSError:
        return False
    opening = b'"verb": "start"' in intent or b'"verb": "restore"' in intent
    return opening and f'"pid": {opener},'.encode() in intent


def write_launch(
    path: str, argv: list[str], env: dict[str, str], options: dict[str, str], resume: list[str] | None = None
) -> None:
    """Keep what to run: arguments, environment, the launcher's own options, and the arguments to go on with."""
    pairs = ("\0".join(f"{key}={value}" for key, value in part.items()) for part in (env, options))
    text = _SECTION.join([_words(argv), *pairs, *([_words(resume)] if resume else [])])
    # Not blocking: a pipe in its place would have us wait for ever.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | SAFE | os.O_NONBLOCK
    fd = os.open(path, flags, 0o600)
    with open(fd, "wb") as file:
        os.fchmod(fd, 0o600)
        file.write(os.fsencode(text))


def read_launch(path: str) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Arguments, environment and options, as they were written."""
    with open(path, "rb") as file:
        argv, env, options = os.fsdecode(file.read()).split(_SECTION)[:3]
    return _arguments(argv), _pairs(env), _pairs(options)


def read_resume(path: str) -> list[str]:
    """The arguments by which the program goes on with what it was doing; none where it cannot."""
    with open(path, "rb") as file:
        rest = os.fsdecode(file.read()).split(_SECTION)[3:]
    return _arguments(rest[0]) if rest else []


def _words(argv: list[str]) -> str:
    # An empty argument would look like the end of a section, so each one carries a mark.
    return "\0".join(f"={argument}" for argument in argv)


def _arguments(text: str) -> list[str]:
    return [argument[1:] for argument in text.split("\0")]


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split("\0") if pair)
