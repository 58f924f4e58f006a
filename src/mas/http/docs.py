"""The API's documentation as one page, made from its OpenAPI description; without scripts or outside resources."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h2{margin-top:2.5rem;border-bottom:1px solid #8886;text-transform:capitalize}
details{margin:.5rem 0;padding:.25rem .75rem;border:1px solid #8886;border-radius:.5rem}
summary{cursor:pointer;padding:.25rem 0}
code,.verb{font-family:ui-monospace,monospace}
.verb{display:inline-block;min-width:4.5rem;font-weight:700}
table{border-collapse:collapse;margin:.5rem 0}
td,th{text-align:left;padding:.15rem 1rem .15rem 0;vertical-align:top}
"""


def page(description: dict[str, Any]) -> str:
    """All calls by group: what each takes and answers."""
    groups: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, verbs in description["paths"].items():
        for verb, call in verbs.items():
            groups.setdefault(call.get("tags", ["other"])[0], []).append((path, verb, call))
    body = "".join(
        f"<h2>{escape(group)}</h2>{''.join(_call(path, verb, call) for path, verb, call in calls)}"
        for group, calls in groups.items()
    )
    title = f"{description['info']['title']} {description['info']['version']}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>{escape(title)}</h1><p>{escape(description['info'].get('description', ''))}</p>"
        "<p>The same for programs: <code>GET /openapi.json</code></p>"
        f"{body}</html>"
    )


def _call(path: str, verb: str, call: dict[str, Any]) -> str:
    rows = "".join(_row(*row) for row in _takes(call))
    answers = "".join(_row(status, "", _named(reply)) for status, reply in call.get("responses", {}).items())
    return (
        f'<details><summary><span class="verb">{verb.upper()}</span> <code>{escape(path)}</code> '
        f"{escape(call.get('summary', ''))}</summary><p>{escape(call.get('description', ''))}</p>"
        f"<table>{rows}</table><table><tr><th>answers</th></tr>{answers}</table></details>"
    )


def _takes(call: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for parameter in call.get("parameters", []):
        yield parameter["name"], parameter["in"], parameter.get("description", "")
    if body := call.get("requestBody"):
        yield "body", "json", _named(body)


def _named(part: dict[str, Any]) -> str:
    """The shape a body or an answer has, by name; for a refusal what it means."""
    for content in part.get("content", {}).values():
        schema = content.get("schema", {})
        options = [schema, *schema.get("anyOf", [])]
        names = [option["$ref"].rpartition("/")[2] for option in options if "$ref" in option]
        if names and names[0] != "Problem":
            return str(names[0])
    return str(part.get("description", ""))


def _row(name: str, where: str, text: str) -> str:
    return f"<tr><td><code>{escape(name)}</code></td><td>{escape(where)}</td><td>{escape(text)}</td></tr>"
