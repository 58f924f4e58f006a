"""Fields: what each must be beside its type, and which of them an error is about."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from mas.model.errors import MasError
from mas.model.ids import AGENT, shown

Record = TypeVar("Record", bound=tuple[Any, ...])


class Rule(NamedTuple):
    """What a field must be, and how it is written, where its type does not say it; `Annotated` puts it beside that.

    `shapes` reads and writes by it, and the description of the API is made from it.
    """

    must_be: str = ""
    """For people: `NAME must be …`."""
    about: str = ""
    """What the description of the API says about it."""
    test: Callable[[Any], object] | None = None
    """False or `ValueError` for what it must not be. Without `must_be`, the error's words say why: `NAME …`."""
    least: float | None = None
    most: float | None = None
    pattern: str | None = None
    longest: int | None = None
    read: Callable[[Any], Any] | None = None
    """Makes the value of what is written, where that is of another type; `ValueError` if it cannot.

    Without `must_be`, what is written is read as a `written_as` first.
    """
    write: Callable[[Any], Any] | None = None
    written_as: Any = None
    """The type of what is written."""
    word: str = ""
    """An object with nothing but this field can be written as the value of the field alone."""
    without: tuple[str, ...] = ()
    """The fields that the object does not have here."""
    is_flat: bool = False
    """Its fields are written beside the others, not in an object of their own."""
    is_written: bool = True

    def allows(self, value: Any) -> bool:  # noqa: ANN401 - a value of any kind
        """Whether a value of the right type is one that the field can have."""
        return (
            (self.pattern is None or re.fullmatch(self.pattern, value) is not None)
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.longest is None or 0 < len(value) <= self.longest)
            and (self.test is None or bool(self.test(value)))
        )


AGENT_ID = Rule("two digits, such as 00 or 21", pattern=AGENT.pattern)
FLAT = Rule(is_flat=True)
NOT_WRITTEN = Rule(is_written=False)


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
def in_field(field: str) -> Iterator[None]:
    """Whatever is refused in here is about `field`, unless the error itself names a part of it."""
    try:
        yield
    except MasError as error:
        error.field = error.field or field
        raise
