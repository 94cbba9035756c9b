"""Rows of a source into facts; rows that are wrong are set aside with the reason.

One definition for both engines: the embedded one calls it in its own process, Spark in
the tasks that read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from operator import gt, lt
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import TERM, column_names, terms_of_kind
from evermat.pipeline.config import Argument, Column
from evermat.pipeline.conversions import NAMES, converted, lexical
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evermat.pipeline.config import FactMap, Source

REJECTED = pa.schema(
    [
        ("source", pa.string()),
        ("file", pa.string()),
        ("position", pa.int64()),
        ("column", pa.string()),
        ("reason", pa.string()),
        ("row", pa.string()),
    ]
)
"""Rows that were rejected. The position is where a line begins in its file, in bytes
from 0, or the number of a row of Parquet, from 0."""

HOLE = re.compile(r"\{([^{}]+)\}")
"""A column in a template."""

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a source.

    Attributes:
        columns: by name, as they were read.
        file: where they are from, if that is known.
        positions: where each row is in the file.
        texts: the lines they were read from, if they were lines.
    """

    columns: dict[str, pa.Array]
    length: int
    file: str | None = None
    positions: pa.Array | None = None
    texts: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """What rows became: facts by predicate, and the rows that were rejected."""

    facts: list[tuple[str, pa.Table]]
    rejected: pa.Table
    rows: int


class Mapper:
    """Turns rows of a source into facts."""

    def __init__(self, source: Source, names: Sequence[str]) -> None:
        """Make a mapper for rows with columns of these names."""
        self._source = source
        declared = {column.name: column for column in source.columns}
        self._columns = [
            declared.get(name) or Column(name) for name in (declared or names)
        ]
        self._facts = [
            (each, each.arguments or self._all_columns()) for each in source.facts
        ]

    def _all_columns(self) -> tuple[Argument, ...]:
        return tuple(Argument("column", column.name) for column in self._columns)

    def map(self, rows: Rows) -> Mapped:
        """The facts of some rows."""
        wrong = _Wrong(rows.length)
        terms = {
            column.name: _checked(column, rows.columns[column.name], wrong)
            for column in self._columns
        }
        keep = wrong.others
        if keep is not None:
            terms = {name: column.filter(keep) for name, column in terms.items()}
        length = rows.length - wrong.count
        facts = [
            (each.predicate, _facts(each, arguments, terms, length))
            for each, arguments in self._facts
        ]
        return Mapped(facts, self._rejected(rows, wrong), rows.length)

    def _rejected(self, rows: Rows, wrong: _Wrong) -> pa.Table:
        numbers = sorted(wrong.reasons)
        reasons = [wrong.reasons[number] for number in numbers]
        at = pa.array(numbers, pa.int64())
        texts = (
            [self._row_text(rows, number) for number in numbers]
            if rows.texts is None
            else rows.texts.take(at).to_pylist()
        )
        positions = (
            pa.nulls(len(numbers), pa.int64())
            if rows.positions is None
            else rows.positions.take(at)
        )
        return pa.table(
            [
                pa.array([self._source.name] * len(numbers), pa.string()),
                pa.array([rows.file] * len(numbers), pa.string()),
                positions.cast(pa.int64()),
                pa.array([column for column, _ in reasons], pa.string()),
                pa.array([reason for _, reason in reasons], pa.string()),
                pa.array(texts, pa.string()),
            ],
            schema=REJECTED,
        )

    def _row_text(self, rows: Rows, number: int) -> str:
        values = {
            column.name: _python_value(rows.columns[column.name][number])
            for column in self._columns
        }
        return json.dumps(values, ensure_ascii=False, default=str)


class _Wrong:
    """The rows that are wrong, each with a column and the first reason found."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.reasons: dict[int, tuple[str, str]] = {}

    def note(
        self, column: str, is_wrong: pa.Array, reason: Callable[[int], str]
    ) -> None:
        """Note the rows that are true (null counts as false)."""
        if not pc.any(is_wrong, min_count=0).as_py():
            return
        for number in pc.indices_nonzero(is_wrong).to_pylist():
            self.reasons.setdefault(number, (column, reason(number)))

    @property
    def count(self) -> int:
        return len(self.reasons)

    @property
    def others(self) -> pa.Array | None:
        """Which rows are fine; None stands for all."""
        if not self.reasons:
            return None
        numbers = pa.array(sorted(self.reasons), pa.int64())
        every = pa.array(range(self.length), pa.int64())
        return pc.invert(pc.is_in(every, value_set=numbers))


def _checked(column: Column, values: pa.Array, wrong: _Wrong) -> pa.Array:
    """The terms of a column; rows that break a rule are noted."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    terms = converted(values, column.type)
    missing = pc.is_null(values)
    if column.required:
        wrong.note(column.name, missing, lambda _: "no value")
    unfit = pc.and_(pc.invert(missing), pc.is_null(terms))
    expected = NAMES.get(column.type or "", "a value")
    wrong.note(
        column.name,
        unfit,
        lambda at: f"{_shown(_python_value(values[at]))} is not {expected}",
    )
    if _has_rules(column):
        texts = lexical(terms)
        for is_wrong, reason in _Rules(column).broken(texts):
            wrong.note(column.name, is_wrong, partial(_told, texts, reason))
    return terms


def _told(texts: pa.Array, reason: str, row: int) -> str:
    return f"{_shown(texts[row].as_py())} {reason}"


def _has_rules(column: Column) -> bool:
    bounds = (column.pattern, column.minimum, column.maximum)
    return bool(column.one_of) or any(bound is not None for bound in bounds)


@dataclass(frozen=True)
class _Rules:
    """What the values of a column must be like."""

    column: Column

    def broken(self, texts: pa.Array) -> list[tuple[pa.Array, str]]:
        """For each rule, the rows that break it and what to say of them."""
        column = self.column
        found = []
        if column.pattern is not None:
            fits = pc.match_substring_regex(texts, rf"^(?:{column.pattern})$")
            found.append((pc.invert(fits), f"does not match {column.pattern}"))
        if column.one_of:
            fits = pc.is_in(texts, value_set=pa.array(column.one_of, pa.string()))
            absent = pc.and_(pc.invert(fits), pc.is_valid(texts))
            found.append((absent, f"is not one of {', '.join(column.one_of)}"))
        bounds = (
            (column.minimum, pc.less, "below"),
            (column.maximum, pc.greater, "above"),
        )
        for bound, is_beyond, word in bounds:
            if isinstance(bound, str):
                # Dates and moments in UTC are in order as texts are.
                found.append((is_beyond(texts, bound), f"is {word} {bound}"))
            elif bound is not None:
                numbers = _numbers(texts)
                is_text = pc.and_(pc.is_null(numbers), pc.is_valid(texts))
                found.append((is_text, "is not a number"))
                beyond = _beyond(texts, numbers, bound, is_beyond)
                found.append((beyond, f"is {word} {bound}"))
        return found


def _beyond(
    texts: pa.Array,
    numbers: pa.Array,
    bound: int | Decimal,
    is_beyond: Callable[[pa.Array, pa.Scalar], pa.Array],
) -> pa.Array:
    """Which numbers are beyond a bound, exactly.

    Rounding keeps the order of numbers. So floats tell, unless they are the same; then
    the texts are compared, digit by digit.
    """
    limit = Decimal(bound)
    rounded = pa.scalar(float(limit))
    beyond = is_beyond(numbers, rounded)
    is_close = pc.fill_null(pc.equal(numbers, rounded), fill_value=False)
    if not pc.any(is_close, min_count=0).as_py():
        return beyond
    compare = gt if is_beyond is pc.greater else lt
    close = texts.filter(is_close).dictionary_encode()
    exactly = [compare(Decimal(text), limit) for text in close.dictionary.to_pylist()]
    return pc.replace_with_mask(
        beyond, is_close, pa.array(exactly, pa.bool_()).take(close.indices)
    )


def _numbers(texts: pa.Array) -> pa.Array:
    """Texts as numbers, null where they are none."""
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.array([_number(text) for text in texts.to_pylist()], pa.float64())


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _python_value(scalar: pa.Scalar) -> object:
    """The value for people to see; Python has no moments after the year 9999."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return scalar.cast(pa.string()).as_py()


def _shown(value: object) -> str:
    text = str(value)
    return f"`{text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}`"


# ---------------------------------------------------------------------------- facts


def _facts(
    facts: FactMap,
    arguments: Sequence[Argument],
    terms: dict[str, pa.Array],
    length: int,
) -> pa.Table:
    """The facts that rows become; those that lack a value are left out."""
    columns = [_argument(argument, terms, length) for argument in arguments]
    is_declared = len(facts.declared) == len(columns)
    names = facts.declared if is_declared else column_names(len(columns))
    table = pa.table(columns, names=names)
    keep = None
    for column in columns:
        if column.null_count:
            valid = pc.is_valid(column)
            keep = valid if keep is None else pc.and_(keep, valid)
    return table if keep is None else table.filter(keep)


def _argument(argument: Argument, terms: dict[str, pa.Array], length: int) -> pa.Array:
    match argument.kind:
        case "column":
            return _in_language(terms[argument.text], argument.language)
        case "iri":
            texts = _filled(argument.text, terms, length, encode=True)
            return _of_kind(Kind.IRI, texts)
        case "text":
            texts = _filled(argument.text, terms, length, encode=False)
            return _in_language(_of_kind(Kind.STRING, texts), argument.language)
        case "value":
            texts = pa.repeat(pa.scalar(argument.text), length)
            return terms_of_kind(Kind(argument.value_kind), texts)


def _in_language(terms: pa.Array, language: str | None) -> pa.Array:
    if language is None:
        return terms
    prefix = pa.scalar(f"{language.lower()}\0")
    texts = pc.binary_join_element_wise(prefix, lexical(terms), "")
    return _of_kind(Kind.LANGUAGE, texts)


def _of_kind(kind: Kind, texts: pa.Array) -> pa.Array:
    """Terms of a kind, null where the text is."""
    if not texts.null_count:
        return terms_of_kind(kind, texts)
    kinds = pa.repeat(pa.scalar(int(kind), pa.uint8()), len(texts))
    return pa.StructArray.from_arrays(
        [kinds, texts], fields=list(TERM), mask=pc.is_null(texts)
    )


def _filled(
    template: str, terms: dict[str, pa.Array], length: int, *, encode: bool
) -> pa.Array:
    """A template with the values of its columns put in."""
    parts: list[pa.Array | pa.Scalar] = []
    for at, piece in enumerate(HOLE.split(template)):
        if at % 2:
            texts = lexical(terms[piece])
            parts.append(_percent_encoded(texts) if encode else texts)
        elif piece:
            parts.append(pa.scalar(piece))
    if not any(isinstance(part, pa.Array) for part in parts):
        return pa.repeat(pa.scalar(template), length)
    joined = pc.binary_join_element_wise(*parts, "")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def holes(template: str) -> list[str]:
    """The columns that a template names."""
    return HOLE.findall(template)


def _percent_encoded(texts: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(texts, r"[^A-Za-z0-9_.~\-]")
    if not pc.any(special, min_count=0).as_py():
        return texts
    encoded = texts.dictionary_encode()
    safe = [quote(text, safe="") for text in encoded.dictionary.to_pylist()]
    return pa.array(safe, pa.string()).take(encoded.indices)
