"""JSON Schema of what `shapes` reads: made from the same fields and rules, for the API and for the tools of agents."""

from __future__ import annotations

from inspect import getdoc
from typing import Any, get_args, get_origin

from mas.model.fields import Rule
from mas.model.shapes import is_pairs, options, ruled, words_of, written_fields
from mas.model.views import camel

Schema = dict[str, Any]
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(kind: type) -> Schema:
    """What such an object can be, if its fields are no objects of ours."""
    return _object(kind, (), {})


def body_of(kind: type) -> tuple[Schema, dict[str, Schema]]:
    """What such a body of a request, or none, can be; and every object in it by its name in the API's description."""
    bodies: dict[str, Schema] = {}
    return _or_null(_reference(kind, (), bodies)), bodies


def reference_to(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _reference(kind: type, without: tuple[str, ...], bodies: dict[str, Schema]) -> Schema:
    name = f"{kind.__name__.removesuffix('Body')}Body"
    body = _object(kind, without, bodies) | {"title": name, "description": getdoc(kind)}
    for key in body["properties"].keys() - body["required"]:
        body["properties"][key] = _or_null(body["properties"][key])
    if bodies.setdefault(name, body) != body:
        # The same kind stands elsewhere with other fields.
        name = f"{name}{len(bodies)}"
        bodies[name] = body | {"title": name}
    return reference_to(name)


def _or_null(schema: Schema) -> Schema:
    kinds = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    return {"anyOf": [*kinds, {"type": "null"}]}


def _object(kind: type, without: tuple[str, ...], bodies: dict[str, Schema]) -> Schema:
    fields = written_fields(kind, without)
    return {
        "type": "object",
        "properties": {camel(field.name): _field(field.hint, field.rule, bodies) for field in fields},
        "required": [camel(field.name) for field in fields if not field.has_default],
        "additionalProperties": False,
    }


def _field(hint: Any, rule: Rule, bodies: dict[str, Schema]) -> Schema:  # noqa: ANN401 - a type of any kind
    """What a field can be."""
    kinds = [schema for kind in options(rule.written_as or hint) for schema in _kinds(kind, rule, bodies)]
    rules = {
        "description": rule.about or None,
        "minimum": rule.least,
        "maximum": rule.most,
        "pattern": rule.pattern and f"^{rule.pattern}$",
        "maxLength": rule.longest,
        "minLength": rule.longest and 1,
    }
    schema = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return schema | {name: value for name, value in rules.items() if value is not None}


def _kinds(hint: Any, rule: Rule, bodies: dict[str, Schema]) -> list[Schema]:  # noqa: ANN401 - a type of any kind
    inner = get_args(hint)
    if words := words_of(hint):
        return [{"type": "string", "enum": [str(word) for word in words]}]
    if hasattr(hint, "_fields"):
        of_word = [_field(*field[1:3], bodies) for field in written_fields(hint) if field.name == rule.word]
        return [*of_word, _reference(hint, rule.without, bodies)]
    if get_origin(hint) is dict or is_pairs(hint):
        item = (inner if get_origin(hint) is dict else get_args(inner[0]))[1]
        return [{"type": "object", "additionalProperties": _field(*ruled(item), bodies) or True}]
    if get_origin(hint) in (tuple, list):
        return [{"type": "array", "items": _field(*ruled(inner[0]), bodies)}]
    return [{} if hint is Any else {"type": _TYPES[getattr(hint, "__supertype__", hint)]}]
