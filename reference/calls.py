"""The calls of the API and the shapes of what goes over the wire, from its description as it is promised."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

from mas.model.views import camel
from reference.markdown import code, paragraphs, plain, sentence, table

_PROMISE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "golden", "openapi.json")
_SHAPES = "shapes.md"
_UNTAGGED = "events"
_ORDER = ("sessions", "agents", "messages", "approvals", "files", "events", "upkeep", "about", "sign in")
_PROBLEM = "Problem"
_WHOLE = (
    "Every parameter and field is at `/docs` and `/openapi.json` of a server that runs, and on this page in the site"
    " that `make docs` builds."
)

Schema = dict[str, Any]


def description() -> Schema:
    """The API's description; a test sees to it that the server has the same."""
    with open(_PROMISE, encoding="utf-8") as file:
        read: Schema = json.load(file)
    return read


def calls() -> str:
    """Every call by group: what it takes, returns and refuses."""
    return paragraphs(
        part
        for group, found in _groups().items()
        for part in (f"## {group.capitalize()}", *(_call(verb, path, call) for verb, path, call in found))
    )


def call_summaries() -> str:
    """Every call by group, a line each."""
    head = ("call", "what it does", "returns")
    tables = ((group, table(head, map(_summary, found))) for group, found in _groups().items())
    return paragraphs([_WHOLE, *(part for group, rows in tables for part in (f"## {group.capitalize()}", rows))])


def shape_summaries() -> str:
    """Every shape, a line each."""
    schemas = description()["components"]["schemas"]
    rows = ((code(name), sentence(_as_on_the_wire(schema.get("description", "")))) for name, schema in schemas.items())
    return paragraphs([_WHOLE, table(("shape", "what it is"), ((name, plain(text)) for name, text in rows))])


def _groups() -> dict[str, list[tuple[str, str, Schema]]]:
    groups: dict[str, list[tuple[str, str, Schema]]] = {group: [] for group in _ORDER}
    for path, verbs in description()["paths"].items():
        for verb, call in verbs.items():
            groups.setdefault(call.get("tags", [_UNTAGGED])[0], []).append((verb, path, call))
    return groups


def _summary(one: tuple[str, str, Schema]) -> tuple[str, str, str]:
    verb, path, call = one
    good = (_schema_of(reply) for status, reply in call["responses"].items() if status < "300")
    kinds = dict.fromkeys(re.sub(r"\[(\w+)\]\([^)]*\)", r"`\1`", _kind(schema)) for schema in good)
    return code(f"{verb.upper()} {path}"), plain(sentence(_as_on_the_wire(call["description"]))), " or ".join(kinds)


def shapes() -> str:
    """Every shape with its fields."""
    schemas = description()["components"]["schemas"]
    return paragraphs(_shape(name, schema) for name, schema in schemas.items())


def _call(verb: str, path: str, call: Schema) -> str:
    return paragraphs(
        (
            f"### {verb.upper()} {path}",
            _as_on_the_wire(call["description"]),
            table(("takes", "in", "type", "meaning"), _takes(call)),
            _answers(call),
        )
    ).strip()


def _takes(call: Schema) -> Iterator[tuple[str, str, str, str]]:
    for parameter in call.get("parameters", []):
        kind = _kind(parameter["schema"]) + _default(parameter["schema"])
        meaning = plain(parameter.get("description", "")) or _meaning(parameter["schema"])
        yield code(parameter["name"]), parameter["in"], kind, meaning
    if body := call.get("requestBody"):
        yield "", "body", _kind(_schema_of(body)), ""


def _answers(call: Schema) -> str:
    """What it returns, by status, and the statuses of its refusals."""
    kinds = {status: _kind(_schema_of(reply)) for status, reply in call["responses"].items()}
    refusals = [status for status, kind in kinds.items() if _PROBLEM in kind]
    good = (f"{status} with {kind}" for status, kind in kinds.items() if status not in refusals)
    return f"Returns {' or '.join(good)}. Refuses with {', '.join(refusals)}."


def _schema_of(part: Schema) -> Schema:
    media, content = next(iter(part["content"].items()))
    schema: Schema = content.get("schema", {})
    return schema if "json" in media else {"media": media}


def _shape(name: str, schema: Schema) -> str:
    fields = [(code(field), _kind(inner, "") + _default(inner), _meaning(inner)) for field, inner in _in_order(schema)]
    head = ("field", "type", "meaning") if any(field[2] for field in fields) else ("field", "type")
    return paragraphs(
        (
            f"### {name}",
            _as_on_the_wire(schema.get("description", "")),
            ", ".join(map(code, schema.get("enum", ()))),
            table(head, (field[: len(head)] for field in fields)),
        )
    ).strip()


def _meaning(schema: Schema) -> str:
    said = (option.get("description", "") for option in (schema, *schema.get("anyOf", ())))
    return plain(next(filter(None, said), ""))


def _in_order(schema: Schema) -> list[tuple[str, Schema]]:
    """The fields of a shape: those that are always there first, as the code has them."""
    needed = schema.get("required", [])
    return sorted(
        schema.get("properties", {}).items(),
        key=lambda field: needed.index(field[0]) if field[0] in needed else len(needed),
    )


def _as_on_the_wire(text: str) -> str:
    """What the code says of its fields, with the names they have in JSON."""
    named = re.sub(r"`([a-z]+(?:_[a-z]+)+)`", lambda match: code(camel(match[1])), text)
    return re.sub(r"\bNone\b", code("null"), named)


def _kind(schema: Schema, page: str = _SHAPES) -> str:
    """The type in words; what may be null may be left out."""
    if options := schema.get("anyOf"):
        some = [_kind(option, page) for option in options if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(some)) + (", or none" if len(some) < len(options) else "")
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}]({page}#{name.lower()})"
    if "media" in schema:
        return code(schema["media"])
    if words := schema.get("enum") or ([schema["const"]] if "const" in schema else None):
        return ", ".join(code(str(word)) for word in words)
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'], page)}"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"object of {_kind(inner, page)}" if isinstance(inner, dict) and inner else "object"
    names = {"string": "text", "boolean": "true or false", "integer": "whole number", "number": "number"}
    return names.get(schema.get("type", ""), "anything") + _bounds(schema)


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        return ""
    return f" from {_number(low)}" + ("" if high is None else f" to {_number(high)}")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _default(schema: Schema) -> str:
    return f" = {code(json.dumps(schema['default']))}" if schema.get("default") is not None else ""
