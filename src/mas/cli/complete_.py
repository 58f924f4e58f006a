"""mas complete: List the completions of an unfinished command line; the completion scripts call this.

Prints one candidate per line, a tab, and a short description. `:files` and `:directories` ask the shell to
complete paths by itself. Errors are not shown, so that the prompt stays clean.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from mas.cli.command import Arguments, opened
from mas.cli.main import ALIASES, COMMANDS, COMMON, command_parser, load, summary, top_parser
from mas.cli.render import Render
from mas.model.errors import MasError
from mas.model.ids import is_agent_id
from mas.model.keys import NAMES
from mas.service.mas import Mas
from mas.settings import ServerOptions, inside, server_address

SUMMARY = "list completions; called by the completion scripts"
WHERE = "own"
EXAMPLES = """
mas complete -- stop 55
"""
Candidate = tuple[str, str]

_PATHS = {"FILE": ":files", "DIR": ":directories"}
_GROUPS = {"managers": "the first agent of every unit", "all": "every agent", "person": "the people who read the inbox"}
# Names that no shell would take apart.
_PLAIN = re.compile(r"[\w.@+-]+")
# Looking at a session asks tmux once; a prompt must not wait for hundreds.
_MOST_LOOKS = 8


class Line(NamedTuple):
    """A command line up to the cursor."""

    start: str
    """The unfinished word."""
    glued: str
    """What comes before it in the same word: `--team=`."""
    command: str | None
    actions: list[argparse.Action]
    """What the command takes; before one is named, what `mas` itself takes."""
    words: list[str]
    """Finished words that are neither options nor their values."""
    options: dict[str, str]
    """Finished options and their values, by destination."""
    asked: argparse.Action | None
    """The option whose value the unfinished word is."""
    only_words: bool
    """Whether `--` has ended the options."""
    session: str | None
    """What comes before the colon of the unfinished word."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("line", nargs="*", help="the words of the command line; the last one may be unfinished")


def run(args: Arguments, out: Render) -> int:
    try:
        line = _read(args.line or [""])
        for candidate, about in _candidates(line, _where(line, args)):
            if candidate.startswith(":"):
                out.line(f"{candidate}\t")
            elif candidate.startswith(line.start):
                out.line(f"{line.glued}{candidate}\t{about}")
    except MasError:
        return 0
    return 0


def _where(line: Line, args: Arguments) -> Arguments:
    """The workspace or the server that the line is about."""
    workspace, *server = (
        line.options.get(name) or getattr(args, name) for name in ("workspace", *ServerOptions._fields)
    )
    workspace = workspace and os.path.expanduser(workspace)
    return Arguments(workspace=workspace, server=server_address(ServerOptions(*server), workspace))


def _read(given: list[str]) -> Line:
    """Understand a line as the parsers would, had it ended here."""
    before, start, glued, session = _typed(given)
    actions = top_parser()._actions
    command: str | None = None
    words: list[str] = []
    options: dict[str, str] = {}
    asked: argparse.Action | None = None
    only_words = False
    for word in before:
        if asked is not None:
            options[asked.dest], asked = word, None
        elif word == "--" and not only_words:
            only_words = True
        elif word.startswith("-") and word != "-" and not only_words:
            name, _, value = word.partition("=")
            action = next((action for action in actions if name in action.option_strings), None)
            if action is not None:
                options[action.dest] = value
                asked = action if action.nargs != 0 and not value else None
        elif command is None:
            command = word = ALIASES.get(word, word)
            actions = command_parser(word, load(word))._actions if word != "help" else []
        else:
            words.append(word)
    return Line(start, glued, command, actions, words, options, asked, only_words, session)


def _typed(given: list[str]) -> tuple[list[str], str, str, str | None]:
    """The words before, what of the last one is being completed, what stands before that in it, and its session."""
    *before, start = _joined(given)
    is_cut = start != given[-1]
    glued, session = "", None
    if start.startswith("--") and "=" in start:
        option, _, start = start.partition("=")
        glued = f"{option}="
        before.append(option)
    if ":" in start and not start.startswith("-"):
        session, _, start = start.rpartition(":")
        glued += f"{session}:"
    return before, start, "" if is_cut else glued, session


def _joined(given: list[str]) -> list[str]:
    """bash hands over `--team=so` and `web:21` as three words, other shells as one."""
    joined: list[str] = []
    glue = False
    for word in given:
        is_sign = word in ("=", ":")
        if joined and (glue or is_sign):
            joined[-1] += word
        else:
            joined.append(word)
        glue = is_sign
    return joined


def _candidates(line: Line, where: Arguments) -> Iterator[Candidate]:
    """What may come next, each with a few words about it."""
    if line.asked is not None:
        yield from _values(line.asked, line, where)
    elif line.start.startswith("-") and not line.only_words:
        yield from _options(line)
    elif line.command is None or (line.command == "help" and not line.words):
        yield from ((name, summary(name)) for name in COMMANDS)
        if line.command is None:
            yield "help", "show a command's options and examples"
    else:
        yield from _next_word(line, where)


def _options(line: Line) -> Iterator[Candidate]:
    for action in line.actions:
        again = action.dest not in line.options or isinstance(action, argparse._AppendAction)
        name = action.dest.replace("_", "-")
        text = COMMON[name][1] if name in COMMON else action.help or ""
        for option in action.option_strings:
            if again and option.startswith("--") and text != argparse.SUPPRESS:
                yield option, text


def _next_word(line: Line, where: Arguments) -> Iterator[Candidate]:
    """Candidates for the first word that is still to come."""
    slots = [action for action in line.actions if not action.option_strings]
    words = getattr(load(line.command), "WORDS", {}) if line.command and line.command != "help" else {}
    if line.words and line.words[0] in words:
        # What comes after such a word is no session.
        return
    if not line.words and line.session is None:
        yield from words.items()
    if line.session is not None and slots:
        yield from _values(slots[0], line, where)
    elif {"session", "agent"} <= {slot.dest for slot in slots}:
        # `[ID] [AGENT]`, in either order.
        if len(line.words) < len(slots):
            agent_given = any(is_agent_id(word) for word in line.words)
            for slot in slots:
                if (slot.dest == "agent") != agent_given or not line.words:
                    yield from _values(slot, line, where)
    elif slots and (len(line.words) < len(slots) or slots[-1].nargs == "*"):
        yield from _values(slots[min(len(line.words), len(slots) - 1)], line, where)


def _values(action: argparse.Action, line: Line, where: Arguments) -> Iterator[Candidate]:
    if choices := action.choices or (NAMES if action.dest == "key" else None):
        for choice in choices:
            yield str(choice), ""
    elif action.metavar in _PATHS:
        yield _PATHS[str(action.metavar)], ""
    elif action.dest == "team":
        yield from _teams(where)
    elif action.dest == "provider":
        yield from _providers(opened(where))
    elif line.session is not None:
        yield from _agents(opened(where), line, with_groups=action.dest == "target")
    elif action.dest in ("session", "sessions", "named"):
        yield from _sessions(opened(where), line)
    elif action.dest in ("agent", "agents", "as_agent", "sender", "target"):
        mas = opened(where)
        yield from _agents(mas, line, with_groups=action.dest == "target")
        if action.dest in ("agents", "target") and line.start:
            yield from _agents_of_sessions(mas, line)


def _teams(where: Arguments) -> Iterator[Candidate]:
    """The teams there are; without a workspace those that come with MAS."""
    from mas.model.teamfile import shipped_teams

    try:
        teams = opened(where).teams()
    except MasError:
        teams = shipped_teams()
    for team in teams:
        yield team.name, ""


def _sessions(mas: Mas, line: Line) -> Iterator[Candidate]:
    """The sessions that the command can take, and their tmux names once the user begins to type one."""
    status = getattr(load(line.command), "OF_STATUS", None) if line.command else None
    for info in mas.list(status).sessions:
        if info.session_id not in line.words:
            about = f"{info.status} {info.name or ''}".strip()
            yield info.session_id, about
            if info.name and _PLAIN.fullmatch(info.name) and info.name not in line.words:
                yield info.name, f"{info.status} {info.tmux_session}"
            if line.start.startswith("m"):
                yield info.tmux_session, about


def _providers(mas: Mas) -> Iterator[Candidate]:
    for provider in mas.providers():
        yield provider.id, provider.description if provider.installed else "not installed"


def _agents_of_sessions(mas: Mas, line: Line) -> Iterator[Candidate]:
    """`SESSION:AGENT` for the active sessions that the unfinished word could begin."""
    for info in mas.list("active", agents=True).sessions[:_MOST_LOOKS]:
        for title in filter(None, (info.name, info.session_id[:8])):
            if title.startswith(line.start) and _PLAIN.fullmatch(title):
                yield from ((f"{title}:{agent.id}", agent.role) for agent in info.agents)


def _agents(mas: Mas, line: Line, with_groups: bool) -> Iterator[Candidate]:
    """The agents of the session named, else of the one this is in, else of the active ones."""
    given = [word.rpartition(":")[0] if ":" in word else word for word in line.words if not is_agent_id(word)]
    # In `send` and similar commands a word is a session only if a colon follows it.
    words = given if not any(action.dest == "target" for action in line.actions) else []
    named = [word for word in (line.session, line.options.get("named"), *words) if word]
    reference = named[0] if named else inside().session
    references = [reference] if reference else [info.session_id for info in mas.list("active").sessions[:_MOST_LOOKS]]
    agents: dict[str, str] = {}
    units: dict[str, str] = {}
    for session in references:
        for agent in mas.show(mas.resolve(session)).agents:
            agents[agent.id] = agent.role
            units[agent.unit] = "unit"
    yield from sorted(agents.items())
    if with_groups and agents:
        yield from (units | _GROUPS).items()
