"""Gemini CLI: `.gemini/tmp/*/chats/session-*.jsonl`.

A message is recorded again, with the same id, once more of it is known. When it resumes a conversation, or a turn was
cancelled, it writes down again what it will send to the model from then on: such messages have no tokens, and their
text is in blocks. They were said before.
"""

from __future__ import annotations

from mas.model.transcript import Part, Tokens
from mas.providers.transcripts.conversation import (
    Conversation,
    Fields,
    count_of,
    object_of,
    objects_of,
    record_in,
    text_of,
    text_part,
    thinking_part,
    time_of,
    tool_part,
    words_of,
)

_CONTEXT = "<session_context>"
_CANCELLED = "Request cancelled."
_FAILED = ("error", "cancelled")


class GeminiReader:
    """Reads one such file, line by line."""

    def __init__(self, name: str) -> None:
        self.conversation = Conversation()
        self.conversation.name = name.removesuffix(".jsonl")
        self.is_main = True
        self._repeated_at = ""

    def read(self, line: bytes) -> None:
        record = record_in(line)
        kind, at = record.get("type"), time_of(record.get("timestamp"))
        if "kind" in record and "sessionId" in record:
            self.is_main = record["kind"] != "subagent"
            self.conversation.name = text_of(record["sessionId"])[:64] or self.conversation.name
        elif kind == "user":
            self._heard(record, at)
        elif kind == "gemini":
            self._said(record, at)
        elif kind == "error" or (kind == "info" and record.get("content") == _CANCELLED):
            self._ended(kind, words_of(record.get("content")), at)

    def flush(self) -> None:
        """Every line counts by itself."""

    def _heard(self, record: Fields, at: str) -> None:
        content = record.get("content")
        blocks = [{"text": content}] if isinstance(content, str) else objects_of(content)
        text = words_of([block for block in blocks if not text_of(block.get("text")).startswith(_CONTEXT)])
        if text and (not at or at != self._repeated_at):
            self.conversation.ask(text_of(record.get("id")), at, text)

    def _said(self, record: Fields, at: str) -> None:
        content, name = record.get("content"), text_of(record.get("id"))
        if not isinstance(content, str):
            if self.conversation.is_open:
                self.conversation.take_back()
            self._repeated_at = at
            return
        thoughts = [
            thinking_part(f"{text_of(one.get('subject'))}: {text_of(one.get('description'))}".strip(": "), at)
            for one in objects_of(record.get("thoughts"))
        ]
        calls = [_tool(call, at) for call in objects_of(record.get("toolCalls"))]
        said = [text_part(content, at)] if content else []
        self.conversation.say(name or at, at, [*thoughts, *said, *calls])
        if model := text_of(record.get("model")):
            self.conversation.uses(model)
        if usage := object_of(record.get("tokens")):
            self.conversation.count(name or at, _tokens(usage))

    def _ended(self, kind: object, text: str, at: str) -> None:
        if kind == "error" and text and self.conversation.is_open:
            self.conversation.say(f"error {at}", at, [text_part(text, at)])
        self.conversation.end(at)


def _tool(call: Fields, at: str) -> Part:
    part = tool_part(call.get("name"), call.get("args"), at)
    responses = [
        object_of(object_of(one.get("functionResponse")).get("response")) for one in objects_of(call.get("result"))
    ]
    texts = [text_of(one.get("output")) or text_of(one.get("error")) for one in responses]
    returned = text_part("\n".join(filter(None, texts)), at).text if responses else None
    return part._replace(text=returned, failed=call.get("status") in _FAILED)


def _tokens(usage: Fields) -> Tokens:
    names = ("input", "output", "cached", "thoughts", "tool", "total")
    given, output, cached, thoughts, tool, total = (count_of(usage.get(name)) for name in names)
    # What was cached is part of the input, unless the sum says otherwise.
    if total != given + output + thoughts + tool + cached or not cached:
        given = max(0, given - cached)
    return Tokens(given + tool, output + thoughts, cached, 0, thoughts)
