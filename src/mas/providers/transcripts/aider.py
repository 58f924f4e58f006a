"""Aider: its chat history, which is Markdown.

What was asked are lines that begin with `####`, what it reported lines that begin with `>`. Both end with two spaces,
by which they differ from headings and quotations of the model. It records no times, and its counts are rounded.
"""

from __future__ import annotations

import re

from mas.model.transcript import LONGEST_TEXT, Tokens
from mas.providers.transcripts.conversation import Conversation, text_part, tool_part

_STARTED = "# aider chat started at "
_MODEL = re.compile(r"(?:Main model|Model): (\S{1,128})")
_TOKENS = "Tokens: "
_COUNT = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(k?) (sent|cache write|cache hit|received)")
_DID = re.compile(r"(Applied edit to|Running|Add file to the chat|Commit) (.{1,400})")


class AiderReader:
    """Reads one such file, line by line."""

    def __init__(self, name: str) -> None:
        self.conversation = Conversation()
        self.conversation.name = name
        self.is_main = True
        self._model = ""
        self._asked: list[str] = []
        self._said: list[str] = []
        self._length = 0
        self._number = 0

    def read(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").removesuffix("\r")
        is_own = text.endswith("  ")
        if text.startswith("####") and is_own:
            if not self._asked:
                self._end_of_words()
            self._asked.append(text.removeprefix("####").removeprefix(" ").removesuffix("  "))
            return
        self._end_of_question()
        if text.startswith(_STARTED):
            self._end_of_words()
            self.conversation.end("")
        elif text.startswith("> ") and is_own:
            self._end_of_words()
            self._reported(text.removeprefix("> ").strip())
        elif (text.strip() or self._said) and self._length < LONGEST_TEXT:
            self._said.append(text)
            self._length += len(text) + 1

    def flush(self) -> None:
        """No more lines for now: what there is of the last words counts."""
        if self._said and self.conversation.last_name:
            text = "\n".join(self._said).strip("\n")
            self.conversation.say(f"said {self._number}", "", [text_part(text, "")])
            if self._model:
                self.conversation.uses(self._model)

    def _end_of_question(self) -> None:
        if self._asked:
            self.conversation.ask("", "", "\n".join(self._asked))
            self._asked = []

    def _end_of_words(self) -> None:
        self.flush()
        self._said, self._length = [], 0
        self._number += 1

    def _reported(self, text: str) -> None:
        if model := _MODEL.match(text):
            self._model = model[1]
        elif text.startswith(_TOKENS):
            found = {kind: int(float(count) * (1000 if scale else 1)) for count, scale, kind in _COUNT.findall(text)}
            written = found.get("cache write", 0)
            sent = max(0, found.get("sent", 0) - written)
            if self.conversation.last_name:
                # They are those of all calls since the question.
                tokens = Tokens(sent, found.get("received", 0), found.get("cache hit", 0), written)
                self.conversation.count("", tokens)
                self.conversation.end("")
        elif (did := _DID.match(text)) and self.conversation.is_open:
            self.conversation.say(f"did {self._number}", "", [tool_part(did[1], did[2], "")._replace(text="")])
