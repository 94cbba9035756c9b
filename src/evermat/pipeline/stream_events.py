"""Change events: a sign, a predicate and values; and the reasons why some are bad.

| form    | an event                                                                  |
| ------- | ------------------------------------------------------------------------- |
| JSON    | `{"sign": "+", "predicate": "edge", "values": ["a", 1]}`, one per line     |
| CSV     | `+,edge,a,1`, one per line                                                |
| columns | `sign`, `predicate` and `values`, an array of strings, as in change feeds |

A JSON string is a string, a number is a number, and `{"term": "<http://…>"}` is any
term. In CSV and in columns, values are terms as strings: `1` is a number, `"1"` is not.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evermat.columns import constants, read_terms
from evermat.errors import EvermatError
from evermat.lang.syntax import is_auxiliary
from evermat.pipeline.files import read_json
from evermat.values import Constant, constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Row = tuple[Constant, ...]
Parser = Callable[[Any], tuple[object, object, object]]
"""Extracts the sign, the predicate and the values of an event."""

_SIGNS = {"+": True, "-": False}


class BadEventError(Exception):
    """An event that cannot be applied; the message is the reason."""


@dataclass(frozen=True, slots=True)
class BadEvent:
    """An event that cannot be applied, for the table of dead letters.

    Attributes:
        position: its place in the batch, from 0.
    """

    position: int
    event: str
    reason: str


@dataclass(frozen=True, slots=True)
class GoodEvent:
    """An event that could be read.

    Attributes:
        position: its place in the batch, from 0.
        text: the original event.
        is_insertion: whether the fact is inserted; otherwise it is deleted.
    """

    position: int
    text: str
    is_insertion: bool
    predicate: str
    row: Row


@dataclass(slots=True)
class Events:
    """The parsed events of a batch.

    Attributes:
        count: the number of events.
        good: events that could be read, in their order.
        bad: events that could not.
    """

    count: int = 0
    good: list[GoodEvent] = field(default_factory=list)
    bad: list[BadEvent] = field(default_factory=list)

    @property
    def insert(self) -> dict[str, list[Row]]:
        """Rows to insert, by predicate."""
        return changes_of(self.good)[0]

    @property
    def delete(self) -> dict[str, list[Row]]:
        """Rows to delete, by predicate."""
        return changes_of(self.good)[1]


def changes_of(
    events: Iterable[GoodEvent],
) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
    """Return rows to insert and rows to delete; the last event about a fact counts."""
    last = {(event.predicate, event.row): event.is_insertion for event in events}
    insert: dict[str, list[Row]] = {}
    delete: dict[str, list[Row]] = {}
    for (predicate, row), is_insertion in last.items():
        side = insert if is_insertion else delete
        side.setdefault(predicate, []).append(row)
    return insert, delete


def read_events(
    raw: Iterable[object],
    parse: Parser,
    arities: Mapping[str, int],
) -> Events:
    """Read a batch of events in order.

    Args:
        raw: the events; lines may be bytes.
        parse: extracts the sign, the predicate and the values of one.
        arities: of the known predicates.
    """
    events = Events()
    known = dict(arities)
    for position, each in enumerate(raw):
        events.count += 1
        text = _text(each)
        try:
            event = _decoded(each) if isinstance(each, bytes) else each
            sign, predicate, row = _checked(*parse(event), known)
        except (BadEventError, EvermatError) as error:
            reason = getattr(error, "message", None) or str(error)
            events.bad.append(BadEvent(position, text, reason))
            continue
        known.setdefault(predicate, len(row))
        events.good.append(GoodEvent(position, text, sign, predicate, row))
    return events


def _text(event: object) -> str:
    """Return an event to display."""
    match event:
        case str():
            return event
        case bytes():
            return event.decode("utf-8", "backslashreplace")
        case _:
            return json.dumps(event, default=str)


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte 0x{line[error.start]:02x} at position {error.start}"
        raise BadEventError(message) from error


def _checked(
    sign: object, predicate: object, values: object, known: Mapping[str, int]
) -> tuple[bool, str, Row]:
    if not isinstance(sign, str) or sign not in _SIGNS:
        message = f"the sign is {sign!r}, neither `+` nor `-`"
        raise BadEventError(message)
    if not isinstance(predicate, str) or not predicate or is_auxiliary(predicate):
        message = f"{predicate!r} cannot be the name of a predicate"
        raise BadEventError(message)
    if not isinstance(values, list | tuple):
        message = f"the values are {values!r}, not a list"
        raise BadEventError(message)
    arity = known.get(predicate)
    if arity is None and sign == "-":
        message = f"there is nothing to delete: `{predicate}` is not known"
        raise BadEventError(message)
    if arity is not None and arity != len(values):
        message = f"`{predicate}` has {arity} arguments, not {len(values)}"
        raise BadEventError(message)
    return _SIGNS[sign], predicate, tuple(map(_constant, values))


def _constant(value: object) -> Constant:
    match value:
        case None:
            message = "a value is missing"
            raise BadEventError(message)
        case {"term": str() as text}:
            return _term(text)
        case dict() | list():
            message = f"{value!r} is not a value"
            raise BadEventError(message)
        case _:
            return constant(value)


def _term(text: str) -> Constant:
    return constants(read_terms(pa.array([text])))[0]


# -------------------------------------------------------------------------- forms


def from_json(line: str) -> tuple[object, object, object]:
    """Parse an event on a line of JSON."""
    try:
        event = read_json(line)
    except ValueError as error:
        message = f"this is no JSON: {error}"
        raise BadEventError(message) from error
    if not isinstance(event, dict):
        message = "this is no JSON object"
        raise BadEventError(message)
    for name in ("sign", "predicate", "values"):
        if name not in event:
            message = f"`{name}` is missing"
            raise BadEventError(message)
    return event["sign"], event["predicate"], event["values"]


def from_csv(line: str) -> tuple[object, object, object]:
    """Parse an event on a line of CSV."""
    try:
        fields = next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration) as error:
        message = f"this is no line of CSV: {error}"
        raise BadEventError(message) from error
    if len(fields) < 2:  # noqa: PLR2004  a sign and a predicate
        message = "a sign, a predicate and values were expected"
        raise BadEventError(message)
    return fields[0], fields[1], [{"term": text} for text in fields[2:]]


def from_columns(event: Mapping[str, Any]) -> tuple[object, object, object]:
    """Parse an event in columns."""
    values = event.get("values")
    if values is not None:
        values = [None if text is None else {"term": str(text)} for text in values]
    return event.get("sign"), event.get("predicate"), values
