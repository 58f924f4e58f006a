"""Shapes: a value's fields are listed once, in its NamedTuple; JSON and TOML are read and written from that list."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from mas.model.errors import BadInput
from mas.model.fields import Rule
from mas.model.ids import shown
from mas.model.views import camel

Value = TypeVar("Value")
_KINDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}
_NO_RULE = Rule()


class Field(NamedTuple):
    """One field of a value: its type, and the rule for it beyond its type."""

    name: str
    hint: Any
    rule: Rule
    has_default: bool
    default: Any

    @property
    def is_any_text(self) -> bool:
        return self.rule is _NO_RULE and str in options(self.hint)


def read(
    kind: type[Value], body: object, place: str = "", *, called: str = "", snake: bool = False, newer: bool = False
) -> Value:
    """The value that `body` stands for; `BadInput` names the field that is wrong.

    `place` is where `body` stands in the whole, and `called` what the whole is called in errors. A null is the same as
    a field left out. With `snake`, fields are spelt as in TOML files (`file_size`), else as in JSON (`fileSize`). With
    `newer`, a newer MAS may have written it: unknown fields are ignored.
    """
    return cast(Value, _Reader(called, snake, newer).value(kind, body, place))


def unwire(kind: type[Value], body: object) -> Value:
    """The value that `wire` turned into `body`; `ValueError` if `body` cannot come from one.

    Fields that `kind` does not have are ignored, so that a newer server is understood.
    """
    try:
        return cast(Value, _Reader(kind.__name__, newer=True, is_answer=True).value(kind, body, ""))
    except BadInput as error:
        raise ValueError(error.message) from None


def write(value: Any, *, snake: bool = False) -> dict[str, Any]:  # noqa: ANN401 - a NamedTuple of any kind
    """What `read` turns back into the same value. Fields with their default value are left out."""
    body: dict[str, Any] = {}
    kind: type = type(value)
    for field in fields_of(kind):
        item = getattr(value, field.name)
        if not field.rule.is_written or item is None or (field.has_default and item == field.default):
            continue
        if field.rule.is_flat:
            body |= write(item, snake=snake)
        else:
            body[field.name if snake else camel(field.name)] = _written(item, field.hint, field.rule, snake)
    return body


def _written(item: Any, hint: Any, rule: Rule, snake: bool) -> Any:  # noqa: ANN401 - types and values of any kind
    if rule.write:
        return rule.write(item)
    if hasattr(item, "_fields"):
        body = write(item, snake=snake)
        return body[rule.word] if rule.word and body.keys() == {rule.word} else body
    if isinstance(item, dict) or is_pairs(hint):
        return {key: list(inner) if isinstance(inner, tuple) else inner for key, inner in dict(item).items()}
    if isinstance(item, tuple):
        inner = get_args(hint)[0]
        return [_written(one, *ruled(inner), snake) for one in item]
    return item.value if isinstance(item, Enum) else item


@cache
def fields_of(kind: type, is_answer: bool = False) -> tuple[Field, ...]:
    """The fields of a NamedTuple; a response of the API has no rules for its fields."""
    hints = get_type_hints(kind, include_extras=not is_answer)
    usual: dict[str, Any] = kind._field_defaults  # type: ignore[attr-defined] # every NamedTuple has them
    return tuple(Field(name, *ruled(hint), name in usual, usual.get(name)) for name, hint in hints.items())


@cache
def ruled(hint: Any) -> tuple[Any, Rule]:  # noqa: ANN401 - a type of any kind
    """A type, and the rule for its values."""
    return get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, _NO_RULE)


@cache
def options(hint: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a type of any kind
    """The types that a value can have, without None."""
    if get_origin(hint) not in (Union, UnionType):
        return (hint,)
    return tuple(option for option in get_args(hint) if option is not NoneType)


@cache
def words_of(hint: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a type of any kind
    """All values of a type that has only a few."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(hint) if isinstance(hint, type) and issubclass(hint, Enum) else ()


@cache
def is_pairs(hint: Any) -> bool:  # noqa: ANN401 - a type of any kind
    """Whether such a tuple is written as an object, from names to what belongs to each."""
    first = get_args(hint)[0] if get_origin(hint) is tuple else None
    return get_origin(first) is tuple and get_args(first)[1] is not Ellipsis


class _Reader(NamedTuple):
    """Reads one body: what people write, or a response of the API, which has every field and perhaps newer ones."""

    called: str
    snake: bool = False
    newer: bool = False
    is_answer: bool = False

    def value(self, hint: Any, body: Any, place: str, rule: Rule = _NO_RULE) -> Any:  # noqa: ANN401 - types and JSON of any kind
        if rule is _NO_RULE:
            hint, rule = ruled(hint)
        if body is None and NoneType in get_args(hint):
            return None
        if rule.read:
            return self._made(rule, body, place)
        kind, *others = kinds = options(hint)
        if others:
            # No two types of a union are written alike.
            return self.value(next((one for one in kinds if isinstance(body, _plain(one))), kind), body, place, rule)
        if kind is Any:
            return body
        if words := words_of(kind):
            return self._word(words, body, place)
        if hasattr(kind, "_fields"):
            return self._record(kind, body, place, rule)
        self._check(kind, body, place, rule)
        if _plain(kind) is dict:
            return self._names(kind, body, place)
        if _plain(kind) is list:
            inner = get_args(kind)[0]
            return tuple(self.value(inner, item, f"{place}[{index}]") for index, item in enumerate(body))
        return float(body) if kind is float and not self.is_answer else body

    def _made(self, rule: Rule, body: Any, place: str) -> Any:  # noqa: ANN401 - JSON
        if not rule.must_be:
            body = self.value(rule.written_as, body, place)
        try:
            return rule.read(body) if rule.read else body
        except ValueError:
            raise self._wrong(place, body, rule.must_be) from None

    def _word(self, words: tuple[Any, ...], body: Any, place: str) -> Any:  # noqa: ANN401 - JSON
        for word in words:
            if body == word and isinstance(body, str):
                return word
        raise BadInput.at(place, f"is {shown(str(body))}; it can be: {', '.join(words)}")

    def _names(self, kind: Any, body: dict[str, Any], place: str) -> Any:  # noqa: ANN401 - types and JSON of any kind
        pairs = is_pairs(kind)
        name, inner = get_args(get_args(kind)[0] if pairs else kind)
        rule = ruled(name)[1]
        for key in body:
            if not self._allows(rule, key, place):
                raise BadInput.at(place, f"has {shown(key)}, which is not {rule.must_be}")
        found = {
            key: self.value(inner, item, f"{place}.{key if key.isprintable() else shown(key)}")
            for key, item in body.items()
        }
        return tuple(found.items()) if pairs else found

    def _check(self, kind: Any, body: Any, place: str, rule: Rule) -> None:  # noqa: ANN401 - types and JSON of any kind
        plain = _plain(kind)
        fits = isinstance(body, (int, float) if plain is float else plain)
        if not fits or isinstance(body, bool) != (plain is bool):
            raise self._wrong(place, body, rule.must_be or self._called(plain))
        if self.is_answer:
            return
        if plain is str:
            self._check_text(body, place)
        if not self._allows(rule, body, place):
            raise self._wrong(place, body, rule.must_be)

    def _allows(self, rule: Rule, value: Any, place: str) -> bool:  # noqa: ANN401 - a value of any kind
        try:
            return rule.allows(value)
        except ValueError as error:
            if rule.must_be:
                return False
            raise BadInput.at(place, str(error)) from None

    def _check_text(self, text: str, place: str) -> None:
        """Text that can be an argument of a program."""
        if "\0" in text:
            raise BadInput.at(place, "must not hold a NUL character")
        try:
            text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise BadInput.at(place, "must be valid UTF-8") from None

    def _record(self, kind: Any, body: Any, place: str, rule: Rule) -> Any:  # noqa: ANN401 - a NamedTuple of any kind
        if rule.word and isinstance(body, str):
            hint = next(field.hint for field in fields_of(kind) if field.name == rule.word)
            return kind(**{rule.word: self.value(hint, body, place)})
        if not isinstance(body, Mapping):
            raise self._wrong(place, body, self._called(dict))
        known = _keys(kind, rule.without, self.is_answer, self.snake)
        given: dict[str, str] = {}
        for key in body:
            name = known.get(key)
            if name in given:
                raise BadInput(f"{given[name]} and {key} in {place or self.called} are the same")
            if name:
                given[name] = key
            elif not self.newer:
                raise self._unknown(key, place, set(known.values()))
        return self._filled(kind, body, place, given)

    def _filled(self, kind: Any, body: Mapping[str, Any], place: str, given: dict[str, str]) -> Any:  # noqa: ANN401 - a NamedTuple of any kind
        values: dict[str, Any] = {}
        for field in fields_of(kind, self.is_answer):
            key = given.get(field.name) if field.rule.is_written else None
            if field.rule.is_flat:
                values[field.name] = self._filled(options(field.hint)[0], body, place, given)
            elif key is None and not field.has_default:
                raise BadInput.at(_inside(place, self._key(field.name)), "is missing")
            elif key is not None and type(body[key]) is str and body[key].isprintable() and field.is_any_text:
                # Most fields are of this kind, and a listing reads thousands of them.
                values[field.name] = body[key]
            elif key is not None and (body[key] is not None or not field.has_default or self.newer):
                values[field.name] = self.value(field.hint, body[key], _inside(place, key), field.rule)
        return kind(**values)

    def _called(self, plain: type) -> str:
        return "a table" if self.snake and plain is dict else _KINDS[plain]

    def _key(self, name: str) -> str:
        return name if self.snake else camel(name)

    def _unknown(self, key: Any, place: str, known: set[str]) -> BadInput:  # noqa: ANN401 - JSON
        there_are = ", ".join(sorted(map(self._key, known))) or "none"
        why = f"Unknown field {shown(str(key))} in {place or self.called} (known: {there_are})"
        return BadInput(why, field=_inside(place, str(key)[:60]))

    def _wrong(self, place: str, body: Any, must_be: str) -> BadInput:  # noqa: ANN401 - JSON
        found = f"is {shown(body)}; it " if isinstance(body, str) and must_be not in _KINDS.values() else ""
        return BadInput(f"{place or self.called.capitalize()} {found}must be {must_be}", field=place)


@cache
def written_fields(kind: Any, without: tuple[str, ...] = (), is_answer: bool = False) -> tuple[Field, ...]:  # noqa: ANN401 - a NamedTuple of any kind
    """The fields that such a value is written with: its own, and those of its flat fields."""
    found: list[Field] = []
    for field in fields_of(kind, is_answer):
        if field.rule.is_flat:
            found += written_fields(options(field.hint)[0], without)
        elif field.rule.is_written and field.name not in without:
            found.append(field)
    return tuple(found)


@cache
def _keys(kind: Any, without: tuple[str, ...], is_answer: bool, snake: bool) -> dict[str, str]:  # noqa: ANN401 - a NamedTuple of any kind
    """The fields by their keys. A team file may have JSON's spelling too."""
    names = [field.name for field in written_fields(kind, without, is_answer)]
    return {camel(name): name for name in names} | ({name: name for name in names} if snake else {})


def _inside(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


@cache
def _plain(kind: Any) -> type:  # noqa: ANN401 - a type of any kind
    """What JSON and TOML have for such a type."""
    kind = object if kind is Any else ruled(getattr(kind, "__supertype__", kind))[0]
    if get_origin(kind) is dict or is_pairs(kind) or hasattr(kind, "_fields"):
        return dict
    if get_origin(kind) is tuple:
        return list
    return str if words_of(kind) else cast(type, kind)
