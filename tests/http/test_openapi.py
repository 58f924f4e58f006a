"""The API's description is a promise: it is kept as a file, and the answers keep it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_type_hints

from mas.http.wire import shape
from mas.model import approvals, catalog, files, message, views
from tests.golden import golden
from tests.served import Served


def test_the_description_is_as_promised(served: Served) -> None:
    description = served.client().get("/openapi.json").json()
    description["info"]["version"] = "{version}"
    golden("openapi.json", json.dumps(description, indent=1, sort_keys=True) + "\n")


def test_every_call_says_what_it_answers_and_how_it_refuses(served: Served) -> None:
    for path, verb, call in _calls(served.client().get("/openapi.json").json()):
        statuses = set(call["responses"])
        assert statuses & {"200", "201", "202"}, (verb, path)
        assert {"401", "403", "422", "429"} <= statuses, (verb, path)
        assert call["summary"], (verb, path)
        assert call["description"], (verb, path)


def test_a_shape_has_the_fields_of_its_value_in_camel_case() -> None:
    for module in (views, catalog, files, message, approvals):
        for kind in vars(module).values():
            if isinstance(kind, type) and hasattr(kind, "_fields") and bytes not in get_type_hints(kind).values():
                names = set(shape(kind).model_fields)
                assert len(names) == len(kind._fields), kind
                assert not any("_" in name for name in names), kind


def test_the_page_for_people_names_every_call_and_needs_nothing_from_elsewhere(served: Served) -> None:
    page = served.client().get("/docs").text
    for path, _, _ in _calls(served.client().get("/openapi.json").json()):
        assert f"<code>{path}</code>" in page
    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page


def _calls(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, verbs in description["paths"].items():
        for verb, call in verbs.items():
            yield path, verb, call
