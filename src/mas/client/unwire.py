"""Makes values of the model from JSON: the reverse of `wire`."""

from __future__ import annotations

from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from mas.model.views import camel

Value = TypeVar("Value")


def unwire(kind: type[Value], body: object) -> Value:
    """The value of type `kind` that `wire` made `body` of; `ValueError` if it cannot have been one.

    Fields that `kind` does not have are passed over, so that a newer server is understood.
    """
    return cast(Value, _read(kind, body))


def _read(hint: Any, body: Any) -> Any:  # noqa: ANN401 - types and JSON of any kind
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if body is None and NoneType in inner:
            return None
        return _read(next(option for option in inner if option is not NoneType), body)
    if origin is tuple:
        return tuple(_read(inner[0], item) for item in _checked(list, body))
    if origin is dict:
        return {key: _read(inner[1], item) for key, item in _checked(dict, body).items()}
    if hint is Any:
        return body
    if hasattr(hint, "_fields"):
        return _record(hint, _checked(dict, body))
    if issubclass(hint, Enum):
        return hint(body)
    return _checked(hint, body)


def _record(kind: Any, body: dict[str, Any]) -> Any:  # noqa: ANN401 - a NamedTuple of any kind
    fields = {name: (camel(name), hint) for name, hint in _hints(kind).items()}
    missing = [named for name, (named, _) in fields.items() if named not in body and name not in kind._field_defaults]
    if missing:
        raise ValueError(f"{kind.__name__} without {', '.join(missing)}")
    return kind(**{name: _read(hint, body[named]) for name, (named, hint) in fields.items() if named in body})


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _checked(kind: type, body: Any) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(body, (int, float) if kind is float else kind):
        raise ValueError(f"{kind.__name__} expected, not {type(body).__name__}")
    return body
