"""How a session and an agent are written on the command line: the same in every command.

`SESSION` is a name or an id, `AGENT` two digits, and `SESSION:AGENT` both in one word; `SESSION:` alone is the session.
`--session SESSION` also works, and so do session and agent as two words.
"""

import argparse
from typing import NamedTuple

from mas.model.errors import BadInput, Forbidden, NoSession
from mas.model.ids import SessionId, is_agent_id, parse_agent_id, shown
from mas.service.mas import Mas
from mas.settings import Inside, as_agent, inside

Arguments = argparse.Namespace

SESSION_HELP = "a session: its name, mas-xxxxxxxx, or its UUID (the first 4 characters are enough)"
OPTIONAL_SESSION_HELP = f"{SESSION_HELP}; default: the one you are in, else the only active one"


class Word(NamedTuple):
    """A session, an agent (or another target after the colon), or both."""

    session: str | None
    rest: str | None


def split(word: str) -> Word:
    """The two parts of a word. Without a colon it is a session, or if it is two digits an agent."""
    session, colon, rest = word.rpartition(":")
    if colon:
        return Word(_there(session, word), rest or None)
    return Word(None, word) if is_agent_id(word) else Word(word, None)


def whole(word: str) -> str:
    """The session that a word names, for commands that take no agent."""
    session, colon, rest = word.rpartition(":")
    if rest and colon:
        raise BadInput(f"{shown(word)} names one agent, but this command works on whole sessions", "mas list")
    return _there(session, word) if colon else word


def _there(session: str, word: str) -> str:
    """A session before a colon: what a script left empty must not mean another one."""
    if not session:
        raise BadInput(f"No session before the colon: {shown(word)}", "mas list")
    return session


def add_session(parser: argparse.ArgumentParser, text: str = OPTIONAL_SESSION_HELP) -> None:
    """`[SESSION]`, or `--session SESSION`."""
    parser.add_argument("session", nargs="?", metavar="SESSION", help=text)
    add_session_option(parser, argparse.SUPPRESS)


def add_session_option(parser: argparse.ArgumentParser, text: str = OPTIONAL_SESSION_HELP) -> None:
    parser.add_argument("--session", dest="named", metavar="SESSION", help=text)


def add_session_and_agent(parser: argparse.ArgumentParser, agent: str) -> None:
    """`[SESSION:AGENT]`, or `[SESSION] [AGENT]`."""
    parser.add_argument("session", nargs="?", metavar="SESSION:AGENT", help=f"{OPTIONAL_SESSION_HELP}; {agent}")
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="the agent, as a separate argument")
    add_session_option(parser, argparse.SUPPRESS)


def add_as(parser: argparse.ArgumentParser, text: str, *spellings: str) -> None:
    """`--as AGENT`, and how it was called before."""
    parser.add_argument("--as", dest="sender", metavar="AGENT", help=text)
    for spelling in spellings:
        parser.add_argument(spelling, dest="sender", metavar="AGENT", help=argparse.SUPPRESS)


def session_of(mas: Mas, reference: str | None) -> SessionId:
    """The session that was given, else the one this process is in, else the only active one."""
    if reference is not None:
        return mas.resolve(reference)
    here = inside().session
    return mas.resolve(here) if here else mas.only_active()


def given_session(args: Arguments) -> str | None:
    """The session that `[SESSION]` or `--session` gives, if either does."""
    return _one([*_given(args.session), *_given(args.named)])


def session_and_agent(mas: Mas, args: Arguments) -> tuple[SessionId, str | None]:
    """The session and the agent that were given; without a session the usual one."""
    session, agent = given_session_and_agent(args)
    return session_of(mas, session), agent


def given_session_and_agent(args: Arguments) -> Word:
    """What `[SESSION:AGENT]`, `[SESSION] [AGENT]` and `--session` give."""
    words = [split(word) for word in (args.session, args.agent) if word is not None]
    session = _one([*(word.session for word in words if word.session is not None), *_given(args.named)])
    return Word(session, one_agent(*(word.rest or None for word in words)))


def one_agent(*given: str | None) -> str | None:
    """The agent that was given, maybe in several spellings; two different ones are an error."""
    agents = list(dict.fromkeys(parse_agent_id(word) for word in given if word is not None))
    if len(agents) > 1:
        raise BadInput(f"Give one agent, not {' and '.join(agents)}")
    return agents[0] if agents else None


def agents_of(mas: Mas, args: Arguments) -> list[tuple[SessionId, str]]:
    """The agents that any number of `SESSION:AGENT`, or one `SESSION` and `AGENT…`, give; none is an error."""
    words = [split(word) for word in args.agents]
    bare = [word.session for word in words if word.session is not None and not word.rest]
    base = _one([*bare, *_given(args.named)])
    wanted = [(word.session or base, parse_agent_id(word.rest)) for word in words if word.rest]
    if not wanted:
        session = session_of(mas, base)
        raise BadInput("No agent given", f"mas show {session[:8]}; mas {args.command} {session[:8]}:00")
    known: dict[str | None, SessionId] = {}
    for reference, _ in wanted:
        if reference not in known:
            known[reference] = session_of(mas, reference)
    return list(dict.fromkeys((known[reference], agent) for reference, agent in wanted))


def add_agents(parser: argparse.ArgumentParser, text: str) -> None:
    """`SESSION:AGENT…`, or `[SESSION] AGENT…`."""
    parser.add_argument("agents", nargs="*", metavar="SESSION:AGENT", help=f"{text}; or: SESSION AGENT…, or AGENT…")
    add_session_option(parser, argparse.SUPPRESS)


def session_and_target(mas: Mas, args: Arguments) -> tuple[SessionId, str | None]:
    """The session and the target of a `TARGET` word: an agent, unit or group, alone or after a colon."""
    session, colon, rest = (args.target or "").rpartition(":")
    given = _one([*([_there(session, args.target)] if colon else []), *_given(args.named)])
    try:
        return session_of(mas, given), rest or None
    except BadInput as error:
        if given is None and _is_session(mas, rest):
            raise BadInput(error.message, f"mas {args.command} {rest}:21 …") from None
        raise


def _is_session(mas: Mas, word: str) -> bool:
    try:
        return bool(mas.resolve(word))
    except (BadInput, NoSession):
        return False


def speaker(args: Arguments, session_id: SessionId, agent: str | None = None) -> str | None:
    """As which agent of the session: the one that was given, else the one this process is; None: as a person."""
    agent = one_agent(agent, args.sender)
    own = None if args.server else as_agent(None, args.workspace)
    if own:
        check_speaker(own, session_id, agent)
    here = inside()
    return here.agent if agent is None and here.session in (None, session_id) else agent


def check_speaker(own: Inside, session_id: SessionId, agent: str | None) -> None:
    """`Forbidden` where an agent would speak as another, or in another session than its own."""
    if session_id != own.session:
        raise Forbidden(f"Agent {own.agent} of session {own.session} cannot speak in another session")
    if agent not in (None, own.agent):
        raise Forbidden(f"Agent {own.agent} cannot speak as {shown(agent or '')}")


def _given(word: str | None) -> list[str]:
    return [] if word is None else [whole(word)]


def _one(references: list[str]) -> str | None:
    if len(set(references)) > 1:
        raise BadInput(f"Give one session, not {' and '.join(map(shown, references))}")
    return references[0] if references else None
