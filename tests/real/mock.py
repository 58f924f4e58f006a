"""A model on loopback that answers by rule, for real agent CLIs: Anthropic, OpenAI (both kinds) and Gemini.

A message with a line `RUNTOOL COMMAND` is answered with a call of the program's own shell tool, and its result with
`MOCK_DONE`. One with a line `USETOOL NAME JSON` is answered with a call of MAS's own tool of that name. Any other is
answered with its number of lines and its hash. What the users wrote is kept exactly.

Run by hand: `python -m tests.real.mock PORT` prints every request.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import urlsplit

DONE = "MOCK_DONE"
RUN = "RUNTOOL"
USE = "USETOOL"
_ASKING = "MOCK_TOOL: it needs a command."
# What shell tools are called, in the order in which they are preferred.
_SHELLS = ("Bash", "run_shell_command", "exec_command", "shell_command", "shell", "bash", "exec")
_COMMANDS = ("command", "cmd")
_numbers = count(1)

Json = dict[str, Any]


class Tool(NamedTuple):
    """A tool that a request offers."""

    name: str
    schema: Json
    namespace: str = ""
    is_script: bool = False
    """It runs a script, in which the real tools are functions."""


class Call(NamedTuple):
    """The model's wish to use one."""

    id: str
    name: str
    arguments: Json
    namespace: str = ""
    script: str = ""


class Asked(NamedTuple):
    """What of a request matters: the users' words in order, and what may be answered."""

    user: tuple[str, ...]
    tools: tuple[Tool, ...] = ()
    has_result: bool = False
    wants: Json | None = None
    everything: str = ""


class Answer(NamedTuple):
    """What the model says."""

    text: str
    call: Call | None = None


class Exchange(NamedTuple):
    """One request of a program, and what it was answered."""

    path: str
    asked: Asked
    answer: Answer


def echo(text: str) -> str:
    """The answer to a message that asks for nothing."""
    return f"MOCK_REPLY lines={len(text.splitlines())} sha={hashlib.sha256(text.encode()).hexdigest()[:12]}"


def answer_to(asked: Asked) -> Answer:
    """What the model says to a request."""
    if asked.wants is not None:
        return Answer(json.dumps(_sample(asked.wants)))
    if asked.has_result:
        return Answer(DONE)
    text = asked.user[-1] if asked.user else ""
    if call := _own_call(text, asked.tools):
        return Answer(_ASKING, call)
    commands = [line.split(" ", 1)[1] for line in text.splitlines() if line.startswith(f"{RUN} ")]
    tool = _shell(asked.tools)
    if commands and tool:
        script = _script(commands[0]) if tool.is_script else ""
        arguments = _filled(tool.schema, commands[0])
        return Answer(_ASKING, Call(f"call_{next(_numbers)}", tool.name, arguments, tool.namespace, script))
    return Answer(echo(text))


def _own_call(text: str, tools: Iterable[Tool]) -> Call | None:
    """The call of a tool of MAS that a message asks for; programs put their own words before its name."""
    wanted = next((line.split(" ", 2)[1:] for line in text.splitlines() if line.startswith(f"{USE} ")), None)
    if wanted is None:
        return None
    name, arguments = wanted
    number = f"call_{next(_numbers)}"
    for tool in tools:
        if tool.name.endswith(name):
            return Call(number, tool.name, json.loads(arguments), tool.namespace)
        if tool.is_script:
            script = f"text(JSON.stringify(await tools.mcp__mas__{name}({arguments})))"
            return Call(number, tool.name, {}, tool.namespace, script)
    return None


def _shell(tools: Iterable[Tool]) -> Tool | None:
    """The tool that runs commands; programs name it differently, and some offer several."""
    known = {tool.name: tool for tool in tools}
    return next((known[name] for name in _SHELLS if name in known), None)


def _script(command: str) -> str:
    """The same as a script: newer models of Codex have no other tool."""
    # Only this makes Codex ask a person.
    escalated = {"sandbox_permissions": "require_escalated", "justification": "The mock was told to"}
    return f"text((await tools.exec_command({json.dumps({'cmd': command} | escalated)})).output)"


def _filled(schema: Json, command: str) -> Json:
    """Arguments that the tool accepts: the command, and whatever else it must have."""
    properties: Json = schema.get("properties", {})
    arguments: Json = {}
    for name, kind in properties.items():
        if name in _COMMANDS:
            arguments[name] = ["sh", "-c", command] if kind.get("type") == "array" else command
        elif name == "sandbox_permissions":
            # Only this makes Codex ask a person.
            arguments[name] = "require_escalated"
        elif name in ("justification", "description"):
            arguments[name] = "The mock was told to"
        elif name in schema.get("required", ()):
            arguments[name] = _sample(kind)
    return arguments


def _sample(schema: Json) -> Any:
    """Something that a schema accepts."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        properties: Json = schema.get("properties", {})
        return {name: _sample(properties.get(name, {"type": "string"})) for name in schema.get("required", properties)}
    simple: Json = {"string": "mock", "integer": 1, "number": 1, "boolean": False, "array": [], "null": None}
    return simple.get(kind, "mock")


# --- Anthropic: /v1/messages


def _anthropic_asked(body: Json) -> Asked:
    # Among them are words of the program, such as that tools have come.
    messages = [message for message in body.get("messages", []) if message["role"] != "system"]
    blocks = [(message["role"], block) for message in messages for block in _blocks(message["content"])]
    user = [block["text"] for role, block in blocks if role == "user" and block["type"] == "text"]
    last = _blocks(messages[-1]["content"]) if messages else []
    tools = [Tool(tool["name"], tool.get("input_schema", {})) for tool in body.get("tools", [])]
    return Asked(
        _own_words(user),
        tuple(tools),
        _ends_with(last, lambda block: block["type"] == "tool_result"),
        everything=json.dumps(body, ensure_ascii=False),
    )


def _blocks(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _anthropic_message(answer: Answer) -> Json:
    content: list[Json] = [{"type": "text", "text": answer.text}]
    if answer.call:
        call = answer.call
        content.append({"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": call.arguments})
    return {
        "id": f"msg_{next(_numbers)}", "type": "message", "role": "assistant", "model": "mock", "content": content,
        "stop_reason": "tool_use" if answer.call else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }  # fmt: skip


def _anthropic_stream(answer: Answer) -> Iterator[Json]:
    whole = _anthropic_message(answer)
    yield {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        empty: Json
        if block["type"] == "text":
            empty, delta = {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty, delta = {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": block | empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 10}}
    yield {"type": "message_stop"}


# --- OpenAI: /responses


def _responses_asked(body: Json) -> Asked:
    given = body.get("input", [])
    items: list[Json] = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
    user = [
        part["text"]
        for item in items
        if item.get("type", "message") == "message" and item.get("role") == "user"
        for part in _blocks(item["content"])
        if "text" in part
    ]
    said = [item for item in items if item.get("role") != "developer" and item.get("type") != "configuration_update"]
    last = str(said[-1].get("type", "")) if said else ""
    added = [tool for item in items if item.get("type") == "additional_tools" for tool in item.get("tools", [])]
    wants = body.get("text", {}).get("format", {}).get("schema")
    return Asked(
        _own_words(user),
        tuple(_openai_tools([*(body.get("tools") or []), *added])),
        last.endswith("call_output"),
        wants,
        json.dumps(body, ensure_ascii=False),
    )


def _openai_tools(tools: Iterable[Json], namespace: str = "") -> Iterator[Tool]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _openai_tools(tool.get("tools", []), tool["name"])
        elif "function" in tool:
            yield Tool(tool["function"]["name"], tool["function"].get("parameters", {}))
        elif tool.get("type") == "function":
            yield Tool(tool["name"], tool.get("parameters", {}), namespace)
        elif tool.get("type") == "custom":
            yield Tool(tool["name"], {}, namespace, is_script=True)


def _responses_response(answer: Answer) -> Json:
    output: list[Json] = [
        {
            "type": "message", "id": f"msg_{next(_numbers)}", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": answer.text, "annotations": []}],
        }
    ]  # fmt: skip
    if answer.call:
        call = answer.call
        item = {"type": "function_call", "id": f"fc_{call.id}", "arguments": json.dumps(call.arguments)}
        if call.script:
            item = {"type": "custom_tool_call", "id": f"ctc_{call.id}", "input": call.script}
        item |= {"call_id": call.id, "name": call.name, "status": "completed"}
        output.append(item | ({"namespace": call.namespace} if call.namespace else {}))
    usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
    usage_details: Json = {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": f"resp_{next(_numbers)}", "object": "response", "status": "completed", "model": "mock",
        "output": output, "usage": usage | usage_details,
    }  # fmt: skip


def _responses_stream(answer: Answer) -> Iterator[Json]:
    whole = _responses_response(answer)
    yield {"type": "response.created", "response": whole | {"status": "in_progress", "output": []}}
    for index, item in enumerate(whole["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        if item["type"] == "message":
            yield {
                "type": "response.output_text.delta", "output_index": index, "content_index": 0,
                "item_id": item["id"], "delta": answer.text,
            }  # fmt: skip
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}


# --- OpenAI: /chat/completions


def _chat_asked(body: Json) -> Asked:
    messages = body.get("messages", [])
    user = [
        block["text"]
        for message in messages
        if message["role"] == "user"
        for block in _blocks(message["content"])
        if "text" in block
    ]
    wants = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return Asked(
        _own_words(user),
        tuple(_openai_tools(body.get("tools", []))),
        bool(messages) and messages[-1]["role"] == "tool",
        wants,
        json.dumps(body, ensure_ascii=False),
    )


def _chat_choice(answer: Answer, part: str) -> Json:
    said: Json = {"role": "assistant", "content": answer.text}
    if answer.call:
        call = answer.call
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        said["tool_calls"] = [{"index": 0, "id": call.id, "type": "function", "function": function}]
    return {"index": 0, part: said, "finish_reason": "tool_calls" if answer.call else "stop"}


def _chat_completion(answer: Answer, part: str = "message", kind: str = "chat.completion") -> Json:
    return {
        "id": f"chatcmpl-{next(_numbers)}", "object": kind, "created": 0, "model": "mock",
        "choices": [_chat_choice(answer, part)],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    }  # fmt: skip


def _chat_stream(answer: Answer) -> Iterator[Json]:
    yield _chat_completion(answer, "delta", "chat.completion.chunk")


# --- Gemini: models/X:generateContent and :streamGenerateContent


def _gemini_asked(body: Json) -> Asked:
    contents = body.get("contents", [])
    user = [part["text"] for said in contents if said.get("role") == "user" for part in said["parts"] if "text" in part]
    declared = [tool for group in body.get("tools", []) for tool in group.get("functionDeclarations", [])]
    tools = [Tool(tool["name"], tool.get("parametersJsonSchema") or tool.get("parameters", {})) for tool in declared]
    how = body.get("generationConfig", {})
    wants = how.get("responseJsonSchema") or how.get("responseSchema")
    if wants is None and how.get("responseMimeType") == "application/json":
        wants = {"type": "object"}
    last = contents[-1]["parts"] if contents else []
    return Asked(
        _own_words(user),
        tuple(tools),
        _ends_with(last, lambda part: "functionResponse" in part),
        wants,
        json.dumps(body, ensure_ascii=False),
    )


def _gemini_answer(answer: Answer) -> Json:
    parts: list[Json] = [{"text": answer.text}]
    if answer.call:
        parts.append({"functionCall": {"name": answer.call.name, "args": answer.call.arguments, "id": answer.call.id}})
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20},
        "modelVersion": "mock", "responseId": f"r{next(_numbers)}",
    }  # fmt: skip


def _gemini_stream(answer: Answer) -> Iterator[Json]:
    yield _gemini_answer(answer)


# --- the server


def _own_words(user: list[str]) -> tuple[str, ...]:
    """Without what a program adds in its user's name."""
    return tuple(text for text in user if not _is_added(text))


def _is_added(text: str) -> bool:
    """Whether a piece is the program's: those are wrapped in a tag."""
    return text.lstrip().startswith("<")


def _ends_with(parts: list[Json], is_result: Callable[[Json], bool]) -> bool:
    """Whether the result of a tool is the last word; a user may have spoken since."""
    said = [part for part in parts if not _is_added(part.get("text", ""))]
    return bool(said) and is_result(said[-1])


class Api(NamedTuple):
    """How one kind of request is read and answered."""

    asked: Callable[[Json], Asked]
    whole: Callable[[Answer], Json]
    stream: Callable[[Answer], Iterator[Json]]


_APIS = {
    "/messages": Api(_anthropic_asked, _anthropic_message, _anthropic_stream),
    "/responses": Api(_responses_asked, _responses_response, _responses_stream),
    "/chat/completions": Api(_chat_asked, _chat_completion, _chat_stream),
    ":generateContent": Api(_gemini_asked, _gemini_answer, _gemini_stream),
    ":streamGenerateContent": Api(_gemini_asked, _gemini_answer, _gemini_stream),
}
_COUNTS = {"/messages/count_tokens": {"input_tokens": 10}, ":countTokens": {"totalTokens": 10}}


class Mock:
    """The model while it runs: where it is, and what it was asked."""

    def __init__(self, port: int) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.exchanges: list[Exchange] = []
        self.strange: list[str] = []
        """Requests it has no rule for."""

    def said(self) -> list[str]:
        """Everything users wrote that it was sent, once for every request that held it."""
        return [text for exchange in list(self.exchanges) for text in exchange.asked.user]

    def add(self, path: str, asked: Asked) -> Answer:
        answer = answer_to(asked)
        self.exchanges.append(Exchange(path, asked, answer))
        return answer


@contextmanager
def mock_model(port: int = 0) -> Iterator[Mock]:
    """A mock that runs for as long as one is in the `with` block."""
    mock = Mock(port)
    thread = threading.Thread(target=mock.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield mock
    finally:
        mock.server.shutdown()
        mock.server.server_close()
        thread.join()


def _handler(mock: Mock) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._reply(b"", "text/plain")

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path.endswith("/models"):
                self._json({"object": "list", "data": [{"id": "mock", "object": "model"}], "models": []})
            else:
                mock.strange.append(f"GET {path}")
                self._json({"error": {"message": "no such thing", "type": "not_found_error"}}, 404)

        def do_POST(self) -> None:
            path = urlsplit(self.path).path
            body = self._body()
            counted = next((count for end, count in _COUNTS.items() if path.endswith(end)), None)
            api = next((api for end, api in _APIS.items() if path.endswith(end)), None)
            if counted is not None:
                self._json(counted)
            elif api is None:
                mock.strange.append(f"POST {path}")
                self._json({"error": {"message": "no such thing", "type": "not_found_error"}}, 404)
            else:
                answer = mock.add(path, api.asked(body))
                if body.get("stream") or path.endswith(":streamGenerateContent"):
                    self._stream(api.stream(answer), named="/messages" in path or "/responses" in path)
                else:
                    self._json(api.whole(answer))

        def _body(self) -> Json:
            if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
                data = b"".join(self._chunks())
            else:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            encoding = self.headers.get("Content-Encoding", "").lower()
            if encoding == "gzip":
                data = gzip.decompress(data)
            elif encoding == "deflate":
                data = zlib.decompress(data)
            elif encoding == "zstd":
                import zstandard

                data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
            read = json.loads(data or b"{}")
            return read if isinstance(read, dict) else {}

        def _chunks(self) -> Iterator[bytes]:
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass

        def _stream(self, events: Iterable[Json], named: bool) -> None:
            """Server-sent events, in chunks as real ones come."""
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in events:
                name = f"event: {event['type']}\n" if named else ""
                self._chunk(f"{name}data: {json.dumps(event)}\n\n".encode())
            if "/chat/" in self.path:
                self._chunk(b"data: [DONE]\n\n")
            self._chunk(b"")

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

        def _json(self, body: Json, status: int = 200) -> None:
            self._reply(json.dumps(body).encode(), "application/json", status)

        def _reply(self, data: bytes, kind: str, status: int = 200) -> None:
            if data and "gzip" in self.headers.get("Accept-Encoding", ""):
                data = gzip.compress(data)
            else:
                kind = f"{kind}; charset=utf-8"
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if data[:2] == b"\x1f\x8b":
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Says nothing by itself."""

    return Handler


def _main(port: int) -> None:
    with mock_model(port) as mock:
        sys.stderr.write(f"{mock.url}\n")
        seen = 0
        while True:
            threading.Event().wait(0.2)
            for exchange in mock.exchanges[seen:]:
                line = {
                    "path": exchange.path, "user": exchange.asked.user, "answer": exchange.answer,
                    "tools": [tool.name for tool in exchange.asked.tools],
                }  # fmt: skip
                sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
            sys.stdout.flush()
            seen = len(mock.exchanges)


if __name__ == "__main__":
    _main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
