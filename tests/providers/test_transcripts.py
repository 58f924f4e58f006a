"""What agent programs record: files of the real ones, shortened, and what they might hold one day."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from mas.model.transcript import LARGEST_COUNT, LONGEST_DETAIL, LONGEST_TEXT, Tokens, Turn
from mas.model.transcript_text import markdown_turns, plain_turns
from mas.providers.transcripts.conversation import MOST_TEXT, count_of, time_of
from mas.providers.transcripts.readers import Reader, reader_of

_SAMPLES = os.path.join(os.path.dirname(__file__), "transcripts")
_NAME = "a0e9cece-1a75-4477-b3c1-63f979a7959b"
_AT = "2026-11-17T11:00:00.000Z"


def sample(name: str) -> bytes:
    with open(os.path.join(_SAMPLES, name), "rb") as file:
        return file.read()


def read(format_: str, data: bytes, name: str = "x.jsonl") -> Reader:
    reader = reader_of(format_, name)
    for line in data.split(b"\n"):
        reader.read(line)
    reader.flush()
    return reader


def turns(format_: str, *records: object, name: str = "x.jsonl") -> list[Turn]:
    return read(format_, b"\n".join(json.dumps(one).encode() for one in records), name).conversation.turns


def asked(turn: Turn) -> str:
    """The prompt without MAS's first line."""
    return turn.prompt.partition("\n")[2]


RUN = "RUNTOOL echo real > proof.txt; echo out"
DENIED = "RUNTOOL echo no > denied.txt"


@pytest.mark.parametrize(
    ("format_", "file", "tool", "model", "denied"),
    [
        ("claude", "claude.jsonl", "Bash", "mock", "MOCK_DONE"),
        ("codex", "codex.jsonl", "exec", "gpt-6.1-sol", "MOCK_TOOL: it needs a command."),
        ("gemini", "gemini.jsonl", "run_shell_command", "gemini-3.8-flash", "MOCK_TOOL: it needs a command."),
    ],
)
def test_a_conversation_of_the_real_program_is_read_whole(
    format_: str, file: str, tool: str, model: str, denied: str
) -> None:
    """Two turns, a restart, one turn more, and one in which a tool was denied."""
    reader = read(format_, sample(file), f"{_NAME}.jsonl")
    found = reader.conversation.turns
    assert reader.is_main
    assert len(reader.conversation.name) == len(_NAME)
    assert [asked(turn) for turn in found] == ["Hello there\nsecond line", RUN, "And after that?", DENIED]
    assert [turn.answer.partition(" ")[0] for turn in found[:3]] == ["MOCK_REPLY", "MOCK_DONE", "MOCK_REPLY"]
    assert found[3].answer == denied
    assert all(turn.finished and not turn.cut and turn.model == model for turn in found)
    assert len({turn.id for turn in found}) == 4
    assert all(turn.started_at and turn.started_at <= turn.ended_at for turn in found)
    assert [part.kind for part in found[1].parts] == ["text", "tool", "text"]
    use, refused = found[1].parts[1], found[3].parts[1]
    assert use.tool == refused.tool == tool
    assert "echo real" in (use.arguments or "")
    assert "out" in (use.text or "")
    assert (use.failed, refused.failed) == (False, True)
    # Each call of the model took ten tokens and gave ten.
    assert [turn.tokens for turn in found[:3]] == [Tokens(10, 10), Tokens(20, 20), Tokens(10, 10)]


def test_the_chat_history_of_aider_is_read() -> None:
    found = read("aider", sample("aider.md")).conversation.turns
    assert [asked(turn) for turn in found] == ["Hello there\n\nsecond line", "Again", "third"]
    assert all(turn.answer.startswith("MOCK_REPLY lines=") and turn.finished for turn in found)
    assert [turn.tokens for turn in found] == [Tokens(1400, 14), Tokens(1500, 16), Tokens(1500, 13)]
    assert {turn.model for turn in found} == {"openai/mock"}


def test_headings_and_quotations_of_the_model_are_no_words_of_aider() -> None:
    text = b"#### ask  \n\n#### a heading\n> a quotation\nthe end\n\n> Tokens: 12 sent, 3k cache write, 4 received.  \n"
    (turn,) = read("aider", text).conversation.turns
    assert (turn.prompt, turn.answer) == ("ask", "#### a heading\n> a quotation\nthe end")
    assert turn.tokens == Tokens(0, 4, 0, 3000)


def test_half_an_answer_of_aider_counts_and_grows() -> None:
    reader = reader_of("aider", "chat.md")
    for line in (b"#### ask  ", b"", b"one"):
        reader.read(line)
    reader.flush()
    assert [(turn.answer, turn.finished) for turn in reader.conversation.turns] == [("one", False)]
    reader.read(b"two")
    reader.flush()
    assert [turn.answer for turn in reader.conversation.turns] == ["one\ntwo"]


# Claude Code: what its records can be.


def claude_user(text: object, **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": f"u-{text}", "timestamp": _AT, "message": {"content": text}} | more


def claude_said(message: str, block: dict[str, Any], output: int = 1, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": output, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7}
    body = {"id": message, "model": "m", "content": [block], "usage": usage, "stop_reason": None}
    return {
        "type": "assistant",
        "uuid": f"{message}-{block}",
        "timestamp": _AT,
        "requestId": "r",
        "message": body,
    } | more


def test_one_message_in_several_lines_is_counted_once_with_its_largest_count() -> None:
    (turn,) = turns(
        "claude",
        claude_user("x"),
        claude_said("a", {"type": "thinking", "thinking": "hm"}, output=1),
        claude_said("a", {"type": "text", "text": "yes"}, output=40),
        claude_said("b", {"type": "text", "text": "no"}, output=2),
    )
    assert turn.tokens == Tokens(2, 42, 10, 14)
    assert [(part.kind, part.text) for part in turn.parts] == [("thinking", "hm"), ("text", "yes"), ("text", "no")]
    assert (turn.answer, turn.finished) == ("no", False)


def test_what_subagents_commands_and_the_program_itself_say_is_no_turn() -> None:
    found = turns(
        "claude",
        claude_user("x"),
        claude_user("<command-name>/clear</command-name>"),
        claude_user("<local-command-stdout></local-command-stdout>"),
        claude_user("for the program", isMeta=True),
        claude_user("what was said before", isCompactSummary=True),
        claude_user("to a subagent", isSidechain=True),
        claude_said("a", {"type": "text", "text": "of a subagent"}, isSidechain=True),
        claude_said("b", {"type": "text", "text": "yes"}),
        claude_user("[Request interrupted by user]"),
    )
    assert [(turn.prompt, turn.answer, turn.finished) for turn in found] == [("x", "yes", True)]


def test_an_error_of_the_service_is_the_end_of_a_turn_and_no_model() -> None:
    failed = claude_said("a", {"type": "text", "text": "API Error: 400"}, isApiErrorMessage=True)
    failed["message"]["model"] = "<synthetic>"
    (turn,) = turns("claude", claude_user("x"), failed)
    assert (turn.answer, turn.finished, turn.model, turn.tokens) == ("API Error: 400", True, None, Tokens())


# Codex.


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": _AT, "type": kind, "payload": payload}


def counted(last: int, total: int, cached: int = 0) -> dict[str, Any]:
    usage = {"input_tokens": last, "cached_input_tokens": cached, "output_tokens": 1, "reasoning_output_tokens": 1}
    info = {"last_token_usage": usage, "total_token_usage": {"total_tokens": total}}
    return codex("event_msg", type="token_count", info=info)


def test_codex_counts_the_same_call_twice_and_its_cache_as_input() -> None:
    found = turns(
        "codex",
        codex("event_msg", type="task_started", turn_id="1"),
        codex("event_msg", type="user_message", message="x"),
        counted(10, 11, cached=4),
        counted(10, 11, cached=4),
        codex("event_msg", type="task_complete", turn_id="1"),
        codex("event_msg", type="task_started", turn_id="2"),
        counted(10, 11, cached=4),
        codex("event_msg", type="token_count", info=None),
    )
    assert [turn.tokens for turn in found] == [Tokens(6, 1, 4, 0, 1), Tokens()]
    assert [turn.prompt for turn in found] == ["x", ""]


@pytest.mark.parametrize("source", ["exec", "mcp", {"subagent": {"thread_spawn": {}}}])
def test_a_conversation_that_the_agent_started_is_not_its_own(source: object) -> None:
    assert not read("codex", json.dumps(codex("session_meta", id="x", source=source)).encode()).is_main


def test_old_codex_files_without_marks_have_turns_too() -> None:
    said = codex("response_item", type="message", role="assistant", content=[{"text": "yes"}])
    found = turns(
        "codex",
        codex("event_msg", type="user_message", message="one"),
        said,
        codex("event_msg", type="user_message", message="two"),
        said,
    )
    assert [(turn.prompt, turn.answer, turn.finished) for turn in found] == [
        ("one", "yes", True),
        ("two", "yes", False),
    ]


def test_a_word_in_the_middle_of_a_turn_of_codex_belongs_to_it() -> None:
    (turn,) = turns(
        "codex",
        codex("event_msg", type="task_started", turn_id="1"),
        codex(
            "event_msg", type="item_completed", turn_id="1", item={"type": "UserMessage", "content": [{"text": "a"}]}
        ),
        codex(
            "event_msg", type="item_completed", turn_id="1", item={"type": "UserMessage", "content": [{"text": "b"}]}
        ),
    )
    assert turn.prompt == "a\n\nb"


# Gemini CLI.


def test_gemini_counts_what_it_thought_as_output_and_what_was_cached_apart() -> None:
    usage = {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 2, "total": 117}
    records: list[dict[str, Any]] = [
        {"id": "1", "timestamp": _AT, "type": "user", "content": "x"},
        {"id": "2", "timestamp": _AT, "type": "gemini", "content": "y", "tokens": None},
        {"id": "2", "timestamp": _AT, "type": "gemini", "content": "yes", "tokens": usage, "model": "m"},
        {"$rewindTo": "1"},
        {"type": "error", "timestamp": _AT, "content": "quota"},
    ]
    (turn,) = turns("gemini", *records)
    assert turn.tokens == Tokens(62, 15, 40, 0, 5)
    assert ([part.text for part in turn.parts], turn.finished) == (["yes", "quota"], True)


def test_a_subagent_of_gemini_is_not_the_agent() -> None:
    head = {"sessionId": "x", "projectHash": "y", "startTime": _AT, "kind": "subagent"}
    assert not read("gemini", json.dumps(head).encode()).is_main


# What is recorded need not be true, nor small.


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (5, 5), ("7", 7), (2.9, 2), (-1, 0), ("-1", 0), (True, 0), (None, 0), ([], 0), ("٣", 0), (float("nan"), 0),
        (float("inf"), 0), (LARGEST_COUNT + 1, 0), ("9" * 5000, 0),
    ],
)  # fmt: skip
def test_a_count_is_a_number_of_tokens_or_nothing(given: object, wanted: int) -> None:
    assert count_of(given) == wanted


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("2026-11-17T11:00:00Z", "2026-11-17T11:00:00.000Z"),
        ("2026-11-17T11:00:00.1Z", "2026-11-17T11:00:00.100Z"),
        ("2026-11-17T11:00:00.123456+00:00", "2026-11-17T11:00:00.123Z"),
        ("yesterday", ""),
        ("2026-11-17T11:00:00.000Z" * 100, ""),
        (5, ""),
    ],
)
def test_a_time_is_one_or_nothing(given: object, wanted: str) -> None:
    assert time_of(given) == wanted


def test_text_of_an_agent_moves_no_cursor_and_is_valid() -> None:
    (turn,) = turns("claude", claude_user("a\x1b[2J\r\x9b1m\u202eb\n\tc\ud800d"))
    assert turn.prompt == "a[2J1mb\n\tc?d"
    turn.prompt.encode()


def test_what_is_kept_is_bounded_and_says_so() -> None:
    long = "x" * (2 * LONGEST_TEXT)
    use = {"type": "tool_use", "id": "c", "name": "n" * 1000, "input": {"a": long}}
    (turn,) = turns(
        "claude", claude_user(long), claude_said("a", {"type": "text", "text": long}), claude_said("b", use)
    )
    assert (len(turn.prompt), len(turn.answer)) == (LONGEST_TEXT, LONGEST_TEXT)
    assert len(turn.parts[1].arguments or "") == LONGEST_DETAIL
    assert len(turn.parts[1].tool or "") < 1000

    reader = reader_of("claude", "x.jsonl")
    for number in range(100):
        reader.read(json.dumps(claude_user(f"{number} {long}")).encode())
        reader.read(json.dumps(claude_said(f"m{number}", {"type": "text", "text": long})).encode())
    conversation = reader.conversation
    assert conversation.is_cut
    assert conversation.size <= MOST_TEXT
    assert conversation.size >= sum(len(turn.prompt) + len(turn.answer) for turn in conversation.turns)
    # What was dropped is still counted.
    tokens = conversation.dropped
    for turn in conversation.turns:
        tokens = tokens.plus(turn.tokens)
    assert tokens == Tokens(100, 100, 500, 700)


def test_a_turn_without_end_keeps_its_newest_parts() -> None:
    reader = reader_of("claude", "x.jsonl")
    reader.read(json.dumps(claude_user("x")).encode())
    for number in range(5000):
        reader.read(json.dumps(claude_said(f"m{number}", {"type": "text", "text": str(number)})).encode())
    (turn,) = reader.conversation.turns
    assert turn.cut
    assert turn.answer == "4999"
    assert len(turn.parts) <= 2000
    assert turn.tokens == Tokens(5000, 5000, 25_000, 35_000)


@pytest.mark.parametrize("format_", ["claude", "codex", "gemini", "aider"])
def test_nonsense_is_passed_over(format_: str) -> None:
    kinds = ("user", "assistant", "system", "gemini", "event_msg", "response_item", "session_meta", "info", "error")
    values: tuple[object, ...] = (None, 1, "x", [], [1, [2]], {}, {"content": 5}, {"content": [{"type": "text"}]})
    lines = [
        json.dumps(
            {"type": kind, "message": value, "payload": value, "content": value, "timestamp": value, "id": value}
        )
        for kind in kinds
        for value in values
    ]
    data = "\n".join(lines).encode() + b"\n" + b"[" * 100_000 + b"\n\xff\xfe{\n\0\n" + b'{"type":"user"'
    read(format_, data)


def test_turns_are_readable_as_text_and_as_markdown() -> None:
    found = read("claude", sample("claude.jsonl")).conversation.turns
    text = plain_turns(found[1:2])
    assert text.split("\n")[0] == f"[{found[1].started_at[:19].replace('T', ' ')} UTC · mock]"
    assert f"> {RUN}" in text.split("\n")
    assert '* Bash {"command": "echo real > proof.txt; echo out", "description": "The mock was told to"}' in text
    assert text.endswith("    out\nMOCK_DONE")
    marked = markdown_turns([found[1]._replace(parts=(found[1].parts[1]._replace(text="```\nx"),))])
    assert "\n````\n```\nx\n````" in marked
    assert marked.endswith("*20 in, 20 out tokens*")
