"""Data in any form as one table for each predicate, checked against what is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

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
from evermat.engine_abilities import StagedRows
from evermat.errors import EvermatError, Label
from evermat.fact_files import read_fact_file
from evermat.garbage import collection_paused
from evermat.io import rows_from
from evermat.lang.column_types import COLUMN_TYPES
from evermat.lang.syntax import Term
from evermat.result import Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evermat.catalogue import Catalogue, Predicate
    from evermat.lang.syntax import Atom
    from evermat.values import Constant


class FactError(EvermatError, ValueError):
    """A fact with an argument that is not a constant."""

    code: ClassVar[str] = "EM252"


class FactTypeError(EvermatError, TypeError):
    """A value of another type than the one declared for its column."""

    code: ClassVar[str] = "EM403"


_MOMENTS = frozenset(
    each.id
    for each in (
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns")),
        *(pa.timestamp("s"), pa.duration("s"), pa.month_day_nano_interval()),
    )
)
"""Types of columns with dates and times."""

Stage = Callable[[Sequence[object], str], pa.Table | StagedRows]
"""Takes frames where they are, given with the name of their predicate."""


def fact_tables(
    data: Mapping[str, Sequence[object]],
    facts: Sequence[Atom],
    catalogue: Catalogue,
    stage: Stage | None = None,
) -> dict[str, pa.Table | StagedRows]:
    """One table for each predicate that is mentioned.

    Args:
        data: pieces of data by predicate: frames, tables, rows, paths of files.
        facts: facts of programs.
        catalogue: knows the arity and the declared types of predicates.
        stage: takes frames of Spark, if the engine does.

    Raises:
        ArityClashError: rows that are too long or too short.
        FactTypeError: a value that a declaration rules out.
    """
    plain = None if facts else _plain_tables(data, catalogue)
    return _any_tables(data, facts, catalogue, stage) if plain is None else plain


@collection_paused()
def _any_tables(
    data: Mapping[str, Sequence[object]],
    facts: Sequence[Atom],
    catalogue: Catalogue,
    stage: Stage | None,
) -> dict[str, pa.Table | StagedRows]:
    """See `fact_tables`."""
    pieces: dict[str, list[pa.Table]] = {}
    frames: dict[str, list[Any]] = {}
    given = [(name, part) for name, parts in data.items() for part in parts]
    for name, part in given:
        frame = None if stage is None else _frame(part)
        if frame is not None:
            frames.setdefault(name, []).append(frame)
            continue
        table = _read(part, name, catalogue)
        if table.num_columns or table.num_rows or catalogue.arity(name) == 0:
            pieces.setdefault(name, []).append(table)
    for name, rows in _fact_rows(facts).items():
        table = table_of_rows(rows, len(rows[0]))
        pieces.setdefault(name, []).append(table)
    tables = {name: together(name, parts) for name, parts in pieces.items()}
    if stage is not None:
        tables |= _staged(frames, tables, catalogue, stage)
    for name, table in tables.items():
        catalogue.check(name, table.num_columns)
        known = catalogue.get(name)
        if known is not None and known.types:
            _check_types(table, known)
    return tables


def _plain_tables(
    data: Mapping[str, Sequence[object]], catalogue: Catalogue
) -> dict[str, pa.Table | StagedRows] | None:
    """Data that is fit as it is: one table for each predicate, no nulls, no moments.

    None if there is anything to be done, or to be said, about some of it.
    """
    tables: dict[str, pa.Table | StagedRows] = {}
    for name, parts in data.items():
        known = catalogue.get(name)
        table = parts[0] if len(parts) == 1 else None
        if known is None or known.types or not isinstance(table, pa.Table):
            return None
        if table.num_columns != known.arity:
            return None
        # Asked for one by one, columns take twice as long.
        for column in table.columns:
            if column.null_count or column.type.id in _MOMENTS:
                return None
        tables[name] = table
    return tables


def _frame(part: object) -> object | None:
    """A frame of Spark with columns, or rows on a cluster, if that is what it is."""
    if isinstance(part, Result):
        return part.distant
    has_columns = hasattr(part, "toArrow") and bool(getattr(part, "columns", ()))
    return part if has_columns else None


def _staged(
    frames: Mapping[str, list[Any]],
    tables: Mapping[str, pa.Table],
    catalogue: Catalogue,
    stage: Stage,
) -> dict[str, pa.Table | StagedRows]:
    """Frames, together with tables of the same predicates."""
    staged = {}
    for name, parts in frames.items():
        for frame in parts:
            catalogue.check(name, len(frame.columns))
        also = [tables[name]] if name in tables else []
        try:
            staged[name] = stage([*parts, *also], name)
        except ArityMismatchError as error:
            known, found = error.expected, error.found
            raise ArityClashError(name, known=known, found=found) from error
    return staged


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


def _check_types(table: pa.Table | StagedRows, predicate: Predicate) -> None:
    """Refuse values that the declaration of a predicate rules out."""
    if not isinstance(table, pa.Table):
        _check_kinds(table, predicate)
        return
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
        raise _wrong_type(wrong, f" in row {row + 1}", predicate, name, type_name)


def _check_kinds(staged: StagedRows, predicate: Predicate) -> None:
    """The same for rows that are not in this process."""
    for kinds, name, type_name in zip(
        staged.kinds, predicate.columns, predicate.types, strict=True
    ):
        for wrong in set(kinds) - COLUMN_TYPES[type_name]:
            raise _wrong_type(kinds[wrong], "", predicate, name, type_name)


def _wrong_type(
    wrong: Constant, where: str, predicate: Predicate, column: str, type_name: str
) -> FactTypeError:
    return FactTypeError(
        f"{wrong}{where} of `{predicate.name}` is not of type `{type_name}`",
        law=f"column `{column}` of `{predicate.name}` is declared `{type_name}`",
        help="correct the value, or the declaration",
    )
