"""Data in any form as one table for each predicate, checked against what is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra.abilities import StagedRows
from evermat.columns import (
    ArityMismatchError,
    answer_places,
    as_terms,
    constants,
    declared_places,
    kinds_in,
    order_of,
    rows_without_columns,
    table_of_rows,
    term_table,
)
from evermat.errors import EvermatError, Label
from evermat.io import rows_from
from evermat.io.frames import names_of
from evermat.kb.fact_files import read_fact_file
from evermat.lang.catalogue import ArityClashError
from evermat.lang.column_types import COLUMN_TYPES
from evermat.lang.syntax import TRIPLE, Term
from evermat.results.result import Result
from evermat.runtime.garbage import collection_paused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.lang.catalogue import Catalogue, GivenNames, Predicate
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
    names: GivenNames | None = None,
) -> dict[str, pa.Table | StagedRows]:
    """One table for each predicate that is mentioned.

    Columns with names go to declared columns by name, others by position.

    Args:
        data: pieces of data by predicate: frames, tables, rows, paths of files.
        facts: facts of programs.
        catalogue: knows the arity and the declared types of predicates.
        stage: takes frames of Spark, if the engine does.
        names: notes the names of columns of predicates without declared ones.

    Raises:
        ArityClashError: rows that are too long or too short.
        ColumnNamesError: columns with other names than the declared ones.
        FactTypeError: a value that a declaration rules out.

    Warns:
        SwappedColumnsWarning: undeclared columns seem to be in the wrong order.
        HeaderWarning: the first row of a file seems to hold names.
    """
    reader = _Reader(catalogue, names)
    plain = None if facts else reader.plain_tables(data)
    return _any_tables(data, facts, reader, stage) if plain is None else plain


@collection_paused()
def _any_tables(
    data: Mapping[str, Sequence[object]],
    facts: Sequence[Atom],
    reader: _Reader,
    stage: Stage | None,
) -> dict[str, pa.Table | StagedRows]:
    """See `fact_tables`."""
    catalogue = reader.catalogue
    pieces: dict[str, list[pa.Table]] = {}
    frames: dict[str, list[Any]] = {}
    given = [(name, part) for name, parts in data.items() for part in parts]
    for name, part in given:
        frame = None if stage is None else reader.frame(part, name)
        if frame is not None:
            frames.setdefault(name, []).append(frame)
            continue
        table = reader.read(part, name)
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


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads data with what is known about the columns of its predicate."""

    catalogue: Catalogue
    names: GivenNames | None

    def plain_tables(
        self, data: Mapping[str, Sequence[object]]
    ) -> dict[str, pa.Table | StagedRows] | None:
        """Data that is fit as it is: a table for each predicate, no nulls, no moments.

        None if there is anything to be done, or to be said, about some of it.
        """
        tables: dict[str, pa.Table | StagedRows] = {}
        for name, parts in data.items():
            known = self.catalogue.get(name)
            table = parts[0] if len(parts) == 1 else None
            if known is None or known.types or not isinstance(table, pa.Table):
                return None
            if table.num_columns != known.arity or not self._in_order(table, known):
                return None
            # Asked for one by one, columns take twice as long.
            for column in table.columns:
                if column.null_count or column.type.id in _MOMENTS:
                    return None
            tables[name] = table
        return tables

    def _in_order(self, table: pa.Table, known: Predicate) -> bool:
        """Whether names say that a table is in order, or nothing."""
        found = tuple(table.column_names)
        if known.has_names:
            return found == known.columns
        if known.name == TRIPLE:
            return _triple_places(found) in (None, [0, 1, 2])
        return self.names is None or self.names.is_familiar(known.name, found)

    def frame(self, part: object, name: str) -> object | None:
        """A frame of Spark with columns, or rows on a cluster, if that is what it is.

        Its columns are in the order of the predicate's.
        """
        if isinstance(part, Result):
            return self._distant(part, name)
        # Only Spark's own frames have names that mean something.
        columns = getattr(part, "columns", ()) if hasattr(part, "toArrow") else ()
        if not columns:
            return None
        if not hasattr(part, "select"):
            return part
        places = self._places(columns, name)
        return part if places is None else _selected(part, places)

    def _distant(self, part: Result, name: str) -> object | None:
        rows, places = part.distant, self._answer_places(part, name)
        if rows is None or places == list(range(len(part.columns))):
            return rows
        return _selected(rows.terms(), places)

    def _answer_places(self, part: Result, name: str) -> list[int]:
        """Where the arguments of a predicate are among the columns of answers."""
        known = self.catalogue.get(name)
        is_in_order = part.predicate == name  # whatever its columns were called
        if is_in_order or known is None or not known.has_names:
            return list(range(len(part.columns)))
        return list(answer_places(part.columns, known.columns, name=name))

    def _places(self, found: Sequence[str], name: str) -> list[int] | None:
        """Where the arguments of a predicate are among named columns.

        None: they are in order.
        """
        known = self.catalogue.get(name)
        if known is not None and known.has_names:
            return list(declared_places(found, known.columns, name=name))
        if name == TRIPLE:
            return _triple_places(found)
        if self.names is not None and (known is None or known.arity == len(found)):
            self.names.note(name, found)
        return None

    def read(self, part: object, name: str) -> pa.Table:
        """A piece of data as a table."""
        known = self.catalogue.get(name)
        columns = known.columns if known is not None and known.has_names else None
        if isinstance(part, Result):
            terms = part.to_terms()
            if part.columns:
                terms = terms.select(self._answer_places(part, name))
            return _of_arity(terms, name, known)
        if isinstance(part, Path):
            table = read_fact_file(part, known, name=name, names=self.names)
        else:
            table = _of_arity(part, name, known, columns)
        if columns is None and table.num_columns:
            moved = self._places(table.column_names, name)
            return table if moved is None else table.select(moved)
        return table


def _of_arity(
    part: object,
    name: str,
    known: Predicate | None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    try:
        # The arity matters to an empty list, which has no width of its own.
        arity = None if known is None else known.arity
        return rows_from(part, arity=arity, name=name, columns=columns)
    except ArityMismatchError as error:
        where = "here" if error.row is None else f"in row {error.row}"
        raise ArityClashError(
            name, known=error.expected, found=error.found, where=where
        ) from error


def _triple_places(found: Sequence[str]) -> list[int] | None:
    for usual in (("subject", "predicate", "object"), ("s", "p", "o")):
        places = order_of(found, usual)
        if places is not None:
            return places
    return None


def _selected(frame: Any, places: Sequence[int]) -> object:  # noqa: ANN401  of Spark
    names = [frame.columns[at].replace("`", "``") for at in places]
    return frame.select(*(f"`{name}`" for name in names))


def row_in_order(
    row: Sequence[object] | Mapping[str, object], predicate: Predicate
) -> Sequence[object]:
    """A row whose values have names, with its values in the order of the columns.

    Rows without names, or of a predicate without declared ones, are left as they are.

    Raises:
        ColumnNamesError: the names are not those that are declared.
    """
    names = names_of(row) if predicate.has_names else None
    if names is None:
        return cast("Sequence[object]", row)
    values = [*row.values()] if isinstance(row, Mapping) else row
    places = declared_places(names, predicate.columns, name=predicate.name)
    return tuple(values[at] for at in places)


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
