"""Codex: `sessions/**/rollout-*.jsonl`, which may be compressed once they are old (`.zst`).

Its subagents, and what is run with `codex exec`, have such files too: they say so in their first line.
"""

from __future__ import annotations

from mas.model.transcript import Part, Tokens
from mas.providers.transcripts.conversation import (
    Conversation,
    Fields,
    count_of,
    object_of,
    record_in,
    text_of,
    text_part,
    thinking_part,
    time_of,
    tool_part,
    words_of,
)

_OVER = ("task_complete", "turn_complete", "turn_aborted")
_BEGUN = ("task_started", "turn_started")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")
# Files of a person's own conversations; older versions do not say.
_OF_PEOPLE = ("cli", "vscode", "unknown", "")


class CodexReader:
    """Reads one such file, line by line."""

    def __init__(self, name: str) -> None:
        self.conversation = Conversation()
        self.conversation.name = name.partition(".jsonl")[0].removeprefix("rollout-")
        self.is_main = True
        self._model = ""
        self._number = 0
        self._counted = 0
        self._says_begun = False

    def read(self, line: bytes) -> None:
        record = record_in(line)
        kind, payload, at = record.get("type"), object_of(record.get("payload")), time_of(record.get("timestamp"))
        if kind == "session_meta":
            source = payload.get("source", "")
            self.is_main = source in _OF_PEOPLE if isinstance(source, str) else False
            self.conversation.name = text_of(payload.get("id"))[:64] or self.conversation.name
        elif kind == "turn_context":
            self._model = text_of(payload.get("model"))
        elif kind == "event_msg":
            self._event(payload, at)
        elif kind == "response_item":
            self._item(payload, at)
        elif kind == "token_usage_record":
            self._count(payload.get("usage"), payload.get("thread_token_usage"))

    def flush(self) -> None:
        """Every line counts by itself."""

    def _event(self, payload: Fields, at: str) -> None:
        kind = payload.get("type")
        if kind in _BEGUN:
            self._says_begun = True
            self.conversation.ask(text_of(payload.get("turn_id")), at, "")
        elif kind == "user_message":
            self._heard(payload, text_of(payload.get("message")), at)
        elif kind == "item_completed":
            item = object_of(payload.get("item"))
            if item.get("type") == "UserMessage":
                self._heard(payload, words_of(item.get("content")), at)
        elif kind == "token_count":
            info = object_of(payload.get("info"))
            self._count(info.get("last_token_usage"), info.get("total_token_usage"))
        elif kind in _OVER:
            self.conversation.end(at)

    def _heard(self, payload: Fields, text: str, at: str) -> None:
        # Older versions do not say when a turn begins, or of which turn the words are.
        same = self.conversation.last_name if self._says_begun and self.conversation.is_open else ""
        self.conversation.ask(text_of(payload.get("turn_id")) or same, at, text)

    def _item(self, item: Fields, at: str) -> None:
        kind = item.get("type")
        self._number += 1
        name = text_of(item.get("id")) or str(self._number)
        if kind == "message" and item.get("role") == "assistant":
            self._say(name, at, text_part(words_of(item.get("content")), at))
        elif kind == "reasoning":
            if text := words_of(item.get("summary")):
                self._say(name, at, thinking_part(text, at))
        elif kind in _CALLS:
            given = next((item[key] for key in ("arguments", "input", "action") if item.get(key) is not None), "")
            part = tool_part(item.get("name") or str(kind).removesuffix("_call"), given, at)
            self._say(text_of(item.get("call_id")) or name, at, part)
        elif isinstance(kind, str) and kind.endswith("_output"):
            self._returned(item, at)

    def _say(self, key: str, at: str, part: Part) -> None:
        self.conversation.say(key, at, [part])
        if self._model:
            self.conversation.uses(self._model)

    def _returned(self, item: Fields, at: str) -> None:
        output = item.get("output")
        body = object_of(output)
        text = words_of(body.get("content")) if body else words_of(output)
        failed = body.get("success") is False or text.startswith("aborted by user")
        self.conversation.returned(text_of(item.get("call_id")), at, text, failed)

    def _count(self, last: object, total: object) -> None:
        """The same call is counted more than once: by how much there was in all, one is told from the next."""
        usage, in_all = object_of(last), count_of(object_of(total).get("total_tokens"))
        if not usage or (in_all and in_all == self._counted):
            return
        self._counted = in_all
        cached, written = count_of(usage.get("cached_input_tokens")), count_of(usage.get("cache_write_input_tokens"))
        tokens = Tokens(
            max(0, count_of(usage.get("input_tokens")) - cached - written),
            count_of(usage.get("output_tokens")),
            cached,
            written,
            count_of(usage.get("reasoning_output_tokens")),
        )
        self._number += 1
        self.conversation.count(str(self._number), tokens)
