"""Claude Code: `projects/*/{conversation}.jsonl`.

One message of the model is several lines of the same `message.id`, one for each block, and its tokens are in all of
them. What its subagents do is recorded elsewhere, or marked as a side chain.
"""

from __future__ import annotations

from mas.model.transcript import Tokens
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

# What a turn can end with; `tool_use` and `pause_turn` are followed by more.
_ENDS = ("end_turn", "stop_sequence", "max_tokens", "refusal")
_TURN_OVER = ("turn_duration", "stop_hook_summary")
# Words of a person to the program, or of the program to itself.
_NOT_ASKED = ("<command-name>", "<command-message>", "<local-command-", "<bash-", "Caveat: ")
_INTERRUPTED = "[Request interrupted by user"


class ClaudeReader:
    """Reads one such file, line by line."""

    def __init__(self, name: str) -> None:
        self.conversation = Conversation()
        self.conversation.name = name.removesuffix(".jsonl")
        self.is_main = True

    def read(self, line: bytes) -> None:
        record = record_in(line)
        if record.get("isSidechain") is True:
            return
        kind, at = record.get("type"), time_of(record.get("timestamp"))
        if kind == "user":
            self._heard(record, at)
        elif kind == "assistant":
            self._said(record, at)
        elif kind == "system" and record.get("subtype") in _TURN_OVER:
            self.conversation.end(at)

    def flush(self) -> None:
        """Every line counts by itself."""

    def _heard(self, record: Fields, at: str) -> None:
        content = object_of(record.get("message")).get("content")
        for block in objects_of(content):
            if block.get("type") == "tool_result":
                text = words_of(block.get("content"))
                self.conversation.returned(text_of(block.get("tool_use_id")), at, text, block.get("is_error") is True)
        text = words_of(content)
        if text.startswith(_INTERRUPTED):
            self.conversation.end(at)
        elif text and not (record.get("isMeta") or record.get("isCompactSummary") or text.startswith(_NOT_ASKED)):
            self.conversation.ask(text_of(record.get("uuid")), at, text)

    def _said(self, record: Fields, at: str) -> None:
        message = object_of(record.get("message"))
        name = f"{text_of(message.get('id'))} {text_of(record.get('uuid'))}"
        for number, block in enumerate(objects_of(message.get("content"))):
            kind = block.get("type")
            if kind == "text":
                self.conversation.say(f"{name} {number}", at, [text_part(text_of(block.get("text")), at)])
            elif kind == "thinking" and text_of(block.get("thinking")):
                self.conversation.say(f"{name} {number}", at, [thinking_part(text_of(block.get("thinking")), at)])
            elif kind in ("tool_use", "server_tool_use"):
                use = tool_part(block.get("name"), block.get("input"), at)
                self.conversation.say(text_of(block.get("id")) or f"{name} {number}", at, [use])
        model = text_of(message.get("model"))
        if model and not model.startswith("<"):
            self.conversation.uses(model)
            self._count(message, record)
        if message.get("stop_reason") in _ENDS or record.get("isApiErrorMessage") is True:
            self.conversation.end(at)

    def _count(self, message: Fields, record: Fields) -> None:
        usage = object_of(message.get("usage"))
        tokens = Tokens(
            count_of(usage.get("input_tokens")),
            count_of(usage.get("output_tokens")),
            count_of(usage.get("cache_read_input_tokens")),
            count_of(usage.get("cache_creation_input_tokens")),
            count_of(object_of(usage.get("output_tokens_details")).get("thinking_tokens")),
        )
        name = text_of(message.get("id")) or text_of(record.get("uuid"))
        self.conversation.count(f"{name} {text_of(record.get('requestId'))}", tokens)
