"""Tables of solutions: for each variable a column of numbers that stand for terms.

A query numbers the terms that it meets (`Terms`), so that joins, differences and groups
are about integers. `UNBOUND` says that a solution gives a variable no value.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rdflib.term import BNode, Literal, URIRef

from evermat.columns import TERM, table_of_rows, term_table
from evermat.values import XSD, Constant, Kind, constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

RdfTerm: TypeAlias = URIRef | BNode | Literal

Part: TypeAlias = Any
"""A node of the algebra as rdflib has it, or an expression; they have no types."""


def constant_of(term: RdfTerm) -> Constant:
    """Our constant for a term."""
    return constant(term)


def term_of(value: Constant) -> RdfTerm:
    """The term for a constant."""
    return _TERMS[value.kind](value.text)


def _double(text: str) -> Literal:
    name = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(text, text)
    return Literal(name, datatype=URIRef(XSD + "double"))


def _typed(text: str) -> Literal:
    datatype, _, lexical = text.partition("\0")
    return Literal(lexical, datatype=URIRef(datatype))


def _language(text: str) -> Literal:
    language, _, lexical = text.partition("\0")
    return Literal(lexical, lang=language.partition("--")[0])


def _of_type(name: str) -> Callable[[str], Literal]:
    datatype = URIRef(XSD + name)
    return lambda text: Literal(text, datatype=datatype)


_TERMS: dict[Kind, Callable[[str], RdfTerm]] = {
    Kind.STRING: Literal,
    Kind.IRI: URIRef,
    Kind.BLANK: BNode,
    Kind.INTEGER: _of_type("integer"),
    Kind.DECIMAL: _of_type("decimal"),
    Kind.DOUBLE: _double,
    Kind.BOOLEAN: _of_type("boolean"),
    Kind.TYPED: _typed,
    Kind.LANGUAGE: _language,
}


Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

Flags: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"

UNBOUND = -1


class Terms:
    """The terms of one query, numbered as they come."""

    def __init__(self) -> None:
        self._keys: pa.Array = pa.array([], pa.large_string())
        self._known: dict[int, RdfTerm] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def numbers(self, column: pa.Array | pa.ChunkedArray) -> Numbers:
        """The numbers of the terms in a term column."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.array([], TERM)
        kind = pc.cast(column.field(0), pa.large_string())
        text = pc.cast(column.field(1), pa.large_string())
        encoded = pc.binary_join_element_wise(
            kind, text, pa.scalar("", pa.large_string())
        ).dictionary_encode()
        words = encoded.dictionary
        places = pc.index_in(words, value_set=self._keys)
        new = words.filter(pc.is_null(places))
        if len(new):
            self._keys = pa.concat_arrays([self._keys, new])
            places = pc.index_in(words, value_set=self._keys)
        numbers: Numbers = places.to_numpy(zero_copy_only=False).astype(np.int64)
        found: Numbers = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
        return found

    def number(self, term: RdfTerm) -> int:
        """The number of a term."""
        (number,) = self.all_numbers([term])
        return int(number)

    def all_numbers(self, terms: Sequence[RdfTerm | None]) -> Numbers:
        """The numbers of some terms; None is unbound."""
        found = np.full(len(terms), UNBOUND, np.int64)
        bound = [at for at, term in enumerate(terms) if term is not None]
        if bound:
            rows = [(constant_of(terms[at]),) for at in bound]  # type: ignore[arg-type]
            table = term_table(table_of_rows(rows, 1))
            found[bound] = self.numbers(table.column(0))
        return found

    def term(self, number: int) -> RdfTerm:
        """The term with a number."""
        known = self._known.get(number)
        if known is None:
            key = self._keys[number].as_py()
            known = term_of(Constant(Kind(int(key[0])), key[1:]))
            self._known[number] = known
        return known

    def column(self, numbers: Numbers) -> pa.Array:
        """A term column, with nulls for what is unbound."""
        places = pa.array(numbers, mask=numbers == UNBOUND)
        keys = self._keys.take(places)
        kinds = pc.cast(pc.utf8_slice_codeunits(keys, 0, 1), pa.uint8())
        texts = pc.cast(pc.utf8_slice_codeunits(keys, 1), pa.string())
        return pa.StructArray.from_arrays(
            [kinds, texts], fields=list(TERM), mask=pc.is_null(keys)
        )


class Solutions:
    """Solutions of a pattern, duplicates included.

    Attributes:
        columns: for each variable the number of its term in each solution.
        size: how many solutions there are.
    """

    def __init__(self, columns: Mapping[str, Numbers], size: int) -> None:
        self.columns = dict(columns)
        self.size = size

    @classmethod
    def one(cls) -> Solutions:
        """The solution that binds nothing."""
        return cls({}, 1)

    def column(self, name: str) -> Numbers:
        """The column of a variable, also of one that no solution binds."""
        found = self.columns.get(name)
        return np.full(self.size, UNBOUND, np.int64) if found is None else found

    def take(self, places: Numbers) -> Solutions:
        """The solutions at some places."""
        columns = {name: each[places] for name, each in self.columns.items()}
        return Solutions(columns, len(places))

    def where(self, chosen: Flags) -> Solutions:
        """The solutions that are chosen."""
        return self.take(np.flatnonzero(chosen))

    def extended(self, name: str, column: Numbers) -> Solutions:
        """The solutions with another variable."""
        return Solutions({**self.columns, name: column}, self.size)

    def project(self, names: Iterable[str]) -> Solutions:
        """The solutions with some variables only."""
        return Solutions({name: self.column(name) for name in names}, self.size)

    def distinct(self) -> Solutions:
        """The solutions, each once, in the order in which they first come."""
        groups, _ = grouped([*self.columns.values()], self.size)
        _, first = np.unique(groups, return_index=True)
        return self.take(np.sort(first).astype(np.int64))

    def slice(self, start: int, length: int | None) -> Solutions:
        """Some consecutive solutions."""
        end = self.size if length is None else min(self.size, start + length)
        return self.take(np.arange(min(start, end), end))

    def rows(self) -> Iterator[dict[str, int]]:
        """The solutions as dictionaries of what is bound."""
        names = [*self.columns]
        if not names:
            yield from ({} for _ in range(self.size))
        for row in zip(*(self.columns[name].tolist() for name in names), strict=True):
            yield {
                name: number
                for name, number in zip(names, row, strict=True)
                if number != UNBOUND
            }


def grouped(columns: Sequence[Numbers], size: int) -> tuple[Numbers, int]:
    """Number rows so that equal ones have the same number; and how many there are."""
    numbers = np.zeros(size, np.int64)
    count = min(size, 1)
    for column in columns:
        pairs = numbers * (int(column.max(initial=0)) + 2) + (column + 1)
        values, numbers = np.unique(pairs, return_inverse=True)
        numbers, count = numbers.astype(np.int64), len(values)
    return numbers, count


# --------------------------------------------------------------------------- joins


def joined(left: Solutions, right: Solutions) -> Solutions:
    """All unions of a solution of each that agree on what both bind."""
    return merged(left, right, *pairs(left, right))


def merged(
    left: Solutions, right: Solutions, at_left: Numbers, at_right: Numbers
) -> Solutions:
    """The unions of pairs of solutions."""
    columns = {}
    for name in dict.fromkeys((*left.columns, *right.columns)):
        mine, other = left.columns.get(name), right.columns.get(name)
        if mine is None:
            columns[name] = right.columns[name][at_right]
        elif other is None:
            columns[name] = mine[at_left]
        else:
            values = mine[at_left]
            is_open = values == UNBOUND
            columns[name] = np.where(is_open, other[at_right], values)
    return Solutions(columns, len(at_left))


def union(parts: Sequence[Solutions]) -> Solutions:
    """The solutions of all parts, one after the other."""
    names = dict.fromkeys(name for part in parts for name in part.columns)
    columns = {
        name: np.concatenate([part.column(name) for part in parts]) for name in names
    }
    return Solutions(columns, sum(part.size for part in parts))


def pairs(
    left: Solutions, right: Solutions, *, sharing: bool = False
) -> tuple[Numbers, Numbers]:
    """The places of solutions that agree on the variables that both bind.

    Args:
        left: some solutions.
        right: others.
        sharing: only pairs that bind at least one variable both.
    """
    shared = [name for name in left.columns if name in right.columns]
    found = []
    parts = product(_by_binding(left, shared), _by_binding(right, shared))
    for (left_binds, left_at), (right_binds, right_at) in parts:
        both = [name for name in left_binds if name in right_binds]
        if both or not sharing:
            here = _matches(
                [left.columns[name][left_at] for name in both],
                [right.columns[name][right_at] for name in both],
                len(left_at),
                len(right_at),
            )
            found.append((left_at[here[0]], right_at[here[1]]))
    if not found:
        nothing = np.empty(0, np.int64)
        return nothing, nothing
    at_left, at_right = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(at_left, kind="stable")
    return at_left[order], at_right[order]


def _by_binding(
    solutions: Solutions, names: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], Numbers]]:
    """Groups of solutions that bind the same ones of some variables."""
    bound = [solutions.columns[name] != UNBOUND for name in names]
    open_ones = [flags.astype(np.int64) for flags in bound if not flags.all()]
    groups, count = grouped(open_ones, solutions.size)
    for group in range(count):
        places = np.flatnonzero(groups == group)
        first = places[0]
        mine = (name for name, flags in zip(names, bound, strict=True) if flags[first])
        yield tuple(mine), places


def _matches(
    left: Sequence[Numbers], right: Sequence[Numbers], lefts: int, rights: int
) -> tuple[Numbers, Numbers]:
    """The places of equal rows; of all rows, if there are no columns."""
    columns = [np.concatenate(each) for each in zip(left, right, strict=True)]
    groups, _ = grouped(columns, lefts + rights)
    mine, others = groups[:lefts], groups[lefts:]
    order = np.argsort(others, kind="stable")
    others = others[order]
    low = np.searchsorted(others, mine, "left")
    counts = np.searchsorted(others, mine, "right") - low
    at_left = np.repeat(np.arange(lefts), counts)
    starts = np.cumsum(counts) - counts
    places = np.arange(len(at_left)) - np.repeat(starts - low, counts)
    return at_left, order[places].astype(np.int64)


def expanded_where(
    solutions: Solutions, names: Sequence[str], value: Callable[[dict[str, int]], int]
) -> Numbers:
    """A number for each solution that depends on some variables only.

    The function is called once for each combination of what these are bound to.
    """
    columns = [solutions.columns[name] for name in names if name in solutions.columns]
    groups, count = grouped(columns, solutions.size)
    _, first = np.unique(groups, return_index=True)
    chosen = solutions.project(n for n in names if n in solutions.columns).take(
        first.astype(np.int64)
    )
    values = np.fromiter(map(value, chosen.rows()), np.int64, count)
    return values[groups]
