"""Data in any form as one table for each predicate, checked against what is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from evermat.catalogue import ArityClashError
from evermat.columns import (
    ArityMismatchError,
    as_terms,
    constants,
    kinds_in,
    rows_without_columns,
    table_of_rows,
    term_table,
)
from evermat.errors import EvermatError, Label
from evermat.fact_files import read_fact_file
from evermat.io import rows_from
from evermat.lang.column_types import COLUMN_TYPES
from evermat.lang.syntax import Term
from evermat.result import Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evermat.catalogue import Catalogue, Predicate
    from evermat.lang.syntax import Atom


class FactError(EvermatError, ValueError):
    """A fact with an argument that is not a constant."""

    code: ClassVar[str] = "EM252"


class FactTypeError(EvermatError, TypeError):
    """A value of another type than the one declared for its column."""

    code: ClassVar[str] = "EM403"


def fact_tables(
    data: Mapping[str, Sequence[object]], facts: Iterable[Atom], catalogue: Catalogue
) -> dict[str, pa.Table]:
    """One table for each predicate that is mentioned.

    Args:
        data: pieces of data by predicate: frames, tables, rows, paths of files.
        facts: facts of programs.
        catalogue: knows the arity and the declared types of predicates.

    Raises:
        ArityClashError: rows that are too long or too short.
        FactTypeError: a value that a declaration rules out.
    """
    pieces: dict[str, list[pa.Table]] = {}
    for name, parts in data.items():
        for part in parts:
            table = _read(part, name, catalogue)
            if table.num_columns or table.num_rows or catalogue.arity(name) == 0:
                pieces.setdefault(name, []).append(table)
    for name, rows in _fact_rows(facts).items():
        table = table_of_rows(rows, len(rows[0]))
        pieces.setdefault(name, []).append(table)
    tables = {name: together(name, parts) for name, parts in pieces.items()}
    for name, table in tables.items():
        catalogue.check(name, table.num_columns)
        known = catalogue.get(name)
        if known is not None and known.types:
            _check_types(table, known)
    return tables


def together(name: str, tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several tables of a predicate as one."""
    first = tables[0]
    for other in tables[1:]:
        if first.num_columns != other.num_columns:
            raise ArityClashError(
                name, known=first.num_columns, found=other.num_columns
            )
    if len(tables) == 1:
        return first
    if not first.num_columns:
        return rows_without_columns(sum(table.num_rows for table in tables))
    names = first.column_names
    named = [table.rename_columns(names) for table in tables]
    if any(not table.schema.equals(first.schema) for table in named):
        named = [term_table(table) for table in named]
    return pa.concat_tables(named)


def _read(part: object, name: str, catalogue: Catalogue) -> pa.Table:
    if isinstance(part, Path):
        return read_fact_file(part, catalogue.get(name))
    if isinstance(part, Result):
        part = part.to_terms()
    try:
        # The arity matters to an empty list, which has no width of its own.
        return rows_from(part, arity=catalogue.arity(name), name=name)
    except ArityMismatchError as error:
        where = "here" if error.row is None else f"in row {error.row}"
        raise ArityClashError(
            name, known=error.expected, found=error.found, where=where
        ) from error


def _fact_rows(facts: Iterable[Atom]) -> dict[str, list[tuple[object, ...]]]:
    rows: dict[str, list[tuple[object, ...]]] = {}
    for fact in facts:
        row = tuple(_constant(fact, argument) for argument in fact.arguments)
        rows.setdefault(fact.predicate, []).append(row)
    return rows


def _constant(fact: Atom, argument: object) -> object:
    if isinstance(argument, Term):
        return argument.constant
    span = getattr(argument, "span", None) or fact.span
    raise FactError(
        f"a fact of `{fact.predicate}` has an argument that is not a constant",
        labels=() if span is None else (Label(span),),
        law="a fact has constants only",
        help="give the variable a value in a rule's body, or write a constant",
    )


def _check_types(table: pa.Table, predicate: Predicate) -> None:
    """Refuse values that the declaration of a predicate rules out."""
    for column, name, type_name in zip(
        table.columns, predicate.columns, predicate.types, strict=True
    ):
        allowed = COLUMN_TYPES[type_name]
        terms = as_terms(column, name=name)
        if kinds_in(terms) <= allowed:
            continue
        numbers = pa.array([int(kind) for kind in allowed], pa.uint8())
        fits = pc.is_in(terms.field(0), value_set=numbers)
        row = int(pc.index(fits, value=False).as_py())
        (wrong,) = constants(terms.slice(row, 1))
        raise FactTypeError(
            f"{wrong} in row {row + 1} of `{predicate.name}` is not of type "
            f"`{type_name}`",
            law=f"column `{name}` of `{predicate.name}` is declared `{type_name}`",
            help="correct the value, or the declaration",
        )
