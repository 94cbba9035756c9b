"""Types of text columns: guessed conservatively, or requested by the user.

Guessing never maps two different strings to the same constant. A column becomes

- integers, if every string is a whole number in its shortest form: `007` and `+7` keep
  a column as strings;
- doubles, if every string is a number, some have a point or an exponent, and no two
  different strings (such as `1.1` and `1.10`) are the same number;
- Booleans, if every string is `true` or `false`;
- strings otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import (
    ArityMismatchError,
    TermSyntaxError,
    read_terms,
    terms_of_kind,
)
from evermat.errors import EvermatError, Label
from evermat.values import XSD, Kind, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SAMPLE = 1000
_WHOLE = "^(0|-?[1-9][0-9]*)$"
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"


class UnknownTypeError(EvermatError, ValueError):
    """A column type that does not exist."""

    code = "EM716"

    def __init__(self, name: object) -> None:
        super().__init__(
            f"there is no column type `{name}`", help=f"use one of {', '.join(TYPES)}"
        )


class UnknownColumnError(EvermatError, ValueError):
    """A column that a table does not have."""

    code = "EM718"

    def __init__(self, name: str, known: Sequence[str], where: str = "") -> None:
        near = get_close_matches(name, known, n=1)
        columns = ", ".join(f"`{each}`" for each in known)
        super().__init__(
            f"{where or 'the table'} has no column `{name}`",
            help=f"did you mean `{near[0]}`?" if near else f"it has {columns}",
        )


class ValueFormatError(EvermatError, ValueError):
    """A string that does not fit the type requested for its column.

    Attributes:
        text: the string.
        row: its row in the table, from 1.
        expected: the expected format.
    """

    code = "EM717"

    def __init__(
        self, text: str, row: int, expected: str, labels: tuple[Label, ...] = ()
    ) -> None:
        self.text = text
        self.row = row
        self.expected = expected
        where = "" if labels else f" in row {row}"
        super().__init__(
            f"`{text}`{where} is not {expected}",
            labels=labels,
            help="correct the file, or choose another type for the column",
        )


def guessed(texts: pa.Array) -> pa.Array:
    """Convert strings to integers, doubles or Booleans, or return them unchanged."""
    if _all_match(texts, _WHOLE):
        try:
            return texts.cast(pa.int64())
        except pa.ArrowInvalid:
            return terms_of_kind(Kind.INTEGER, texts)
    if _all_match(texts, _NUMBER) and _has_point(texts):
        numbers = texts.cast(pa.float64())
        distinct = pc.count_distinct(texts).as_py()
        return numbers if pc.count_distinct(numbers).as_py() == distinct else texts
    if _all_match(texts, "^(true|false)$"):
        return pc.equal(texts, "true")
    return texts


def _has_point(texts: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, "[.eE]")).as_py())


def _all_match(texts: pa.Array, pattern: str) -> bool:
    # In most columns that do not match, an early value already fails.
    return bool(
        len(texts)
        and pc.all(pc.match_substring_regex(texts[:_SAMPLE], pattern)).as_py()
        and pc.all(pc.match_substring_regex(texts, pattern)).as_py()
    )


def typed(texts: pa.Array, type_name: str) -> pa.Array:
    """Convert strings to constants of a type requested by name.

    Raises:
        UnknownTypeError: there is no such type.
        ValueFormatError: a string does not fit the type.
    """
    if type_name not in TYPES:
        raise UnknownTypeError(type_name)
    return TYPES[type_name](texts)


def types_by_column(
    types: Sequence[str | None] | Mapping[str, str] | None, names: Sequence[str]
) -> list[str | None]:
    """Return the type requested for each column, None where it is not specified.

    Raises:
        UnknownTypeError: there is no such type.
        UnknownColumnError: a type is requested for a column that does not exist.
        ArityMismatchError: there are more or fewer types than columns.
    """
    if types is None:
        return [None] * len(names)
    if isinstance(types, str):
        types = [types] * len(names)
    if isinstance(types, Mapping):
        nowhere = set(types) - set(names)
        if nowhere:
            raise UnknownColumnError(min(nowhere), names)
        ordered = [types.get(name) for name in names]
    elif len(types) == len(names):
        ordered = list(types)
    else:
        raise ArityMismatchError(len(types), len(names))
    unknown = set(ordered) - {None, *TYPES}
    if unknown:
        raise UnknownTypeError(min(unknown, key=str))
    return ordered


def _integers(texts: pa.Array) -> pa.Array:
    texts = pc.utf8_trim_whitespace(texts)
    _require(texts, r"^[+-]?[0-9]+$", "an integer")
    try:
        return pc.replace_substring_regex(texts, r"^\+", "").cast(pa.int64())
    except pa.ArrowInvalid:
        return _by_distinct(texts, "integer", Kind.INTEGER, "an integer")


def _decimals(texts: pa.Array) -> pa.Array:
    return _by_distinct(texts, "decimal", Kind.DECIMAL, "a decimal number")


def _doubles(texts: pa.Array) -> pa.Array:
    texts = pc.utf8_trim_whitespace(texts)
    number = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
    _require(texts, rf"^([+-]?({number}|INF|inf)|NaN|nan)$", "a number")
    return pc.replace_substring_regex(texts, r"^\+", "").cast(pa.float64())


def _booleans(texts: pa.Array) -> pa.Array:
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    _require(lower, "^(true|false|1|0)$", "true or false", shown=texts)
    return pc.is_in(lower, value_set=pa.array(["true", "1"]))


def _iris(texts: pa.Array) -> pa.Array:
    plain = pc.replace_substring_regex(texts, r"^<([^<>]*)>$", r"\1")
    _require(plain, r'^[^\x00-\x20<>"{}|^`\\]+$', "an IRI", shown=texts)
    return terms_of_kind(Kind.IRI, plain)


def _terms(texts: pa.Array) -> pa.Array:
    try:
        return read_terms(texts)
    except TermSyntaxError as error:
        raise ValueFormatError(error.text, error.row, "a term") from error


def _require(
    texts: pa.Array, pattern: str, expected: str, *, shown: pa.Array | None = None
) -> None:
    fits = pc.match_substring_regex(texts, pattern)
    row = pc.index(fits, value=False).as_py()
    if row >= 0:
        text = (texts if shown is None else shown)[row].as_py()
        raise ValueFormatError(text, row + 1, expected)


def _by_distinct(texts: pa.Array, datatype: str, kind: Kind, expected: str) -> pa.Array:
    encoded = texts.dictionary_encode()
    converted = []
    for text in encoded.dictionary.to_pylist():
        term = literal(text, XSD + datatype)
        if term.kind != kind:
            raise ValueFormatError(text, pc.index(texts, text).as_py() + 1, expected)
        converted.append(term.text)
    return terms_of_kind(kind, pa.array(converted, pa.string()).take(encoded.indices))


TYPES: dict[str, Callable[[pa.Array], pa.Array]] = {
    "string": lambda texts: texts,
    "integer": _integers,
    "decimal": _decimals,
    "double": _doubles,
    "boolean": _booleans,
    "iri": _iris,
    "term": _terms,
}
"""The types that can be requested, and the conversions of strings into them."""
