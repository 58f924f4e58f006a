"""Fields of JSON and TOML input: read with their types, or an error that names the field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from mas.model.errors import BadInput, MasError
from mas.model.ids import shown

Record = TypeVar("Record", bound=tuple[Any, ...])


def parse_json(data: str | bytes | bytearray) -> Any:  # noqa: ANN401 - raw JSON
    """The value of a JSON text; `ValueError` if it is not JSON or is nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def parse_record(kind: type[Record], body: Any) -> Record:  # noqa: ANN401 - raw JSON
    """The named tuple that a JSON object has the fields of; `ValueError` if it has others, or one of another type."""
    try:
        record = kind(**body)
    except TypeError as error:
        raise ValueError(str(error)) from None
    for (name, hint), value in zip(kind.__annotations__.items(), record, strict=True):
        wanted: Any = getattr(hint, "__supertype__", hint)
        if isinstance(value, bool) or not isinstance(value, wanted):
            raise ValueError(f"{name} cannot be {shown(str(value))}")
    return record


@contextmanager
def about(field: str) -> Iterator[None]:
    """Whatever is refused in here is about `field`, or about the part of it that the sentence begins with."""
    try:
        yield
    except MasError as error:
        begins = error.message.partition(" ")[0].rstrip(":")
        error.field = begins if begins.startswith(f"{field}.") else field
        raise


def known(body: Any, what: str, fields: set[str]) -> Mapping[str, Any]:  # noqa: ANN401 - raw JSON
    """`body` as an object with no other keys than `fields`, or `BadInput` naming the stranger."""
    if not isinstance(body, Mapping):
        raise BadInput(f"{what} must be an object")
    for key in body:
        if key not in fields:
            raise BadInput(f"Unknown field {shown(str(key))} in {what} (known: {', '.join(sorted(fields))})")
    return body


def text(body: Mapping[str, Any], key: str) -> str | None:
    """The string under `key`, None where there is none; `BadInput` for anything that cannot be an argument."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadInput(f"{key} must be text")
    if "\0" in value:
        raise BadInput(f"{key} must not hold a NUL character")
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise BadInput(f"{key} must be valid UTF-8") from None
    return value
