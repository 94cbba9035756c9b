"""The rows of a query, convertible to any form.

A `Result` contains a table of term columns, which is converted only on request. It
never changes, whatever happens later to the knowledge base. On a cluster the rows stay
distributed until they are collected.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property
from html import escape
from importlib import import_module
from itertools import islice, product, repeat
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Protocol,
    SupportsIndex,
    TypeGuard,
    TypeVar,
    overload,
)

import pyarrow as pa
import pyarrow.compute as pc

from evermat import columns as term_columns
from evermat.algebra import Snapshot
from evermat.errors import EvermatError
from evermat.errors.wording import counted
from evermat.io.databases import is_database, write_database
from evermat.lang.printer import Printer
from evermat.values import ValueConversionError, constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

    from evermat.algebra.engine import DistantRows
    from evermat.algebra.equality import Representatives
    from evermat.columns import TableParts
    from evermat.values import Constant, Value


class DistantSnapshot(Snapshot, Protocol):
    """A snapshot whose rows may be distributed."""

    def is_large(self, relation: str) -> bool:
        """Return whether a relation has too many rows for this process."""

    def distant(self, relation: str) -> DistantRows:
        """Return the distributed rows of a relation."""


def is_distant(snapshot: Snapshot) -> TypeGuard[DistantSnapshot]:
    """Return whether the rows of a snapshot may be distributed."""
    return hasattr(snapshot, "distant")


# -------------------------------------------------------------------------- html tables


def html_table(
    title: str, names: Sequence[str], rows: Iterable[Sequence[object]], rest: str = ""
) -> str:
    """Return a table under a title; `rest` describes what it does not show."""
    lines = [f"<p>{escape(title)}</p>", "<table>"]
    lines += [_row("th", names)] * bool(names)
    lines += [_row("td", row) for row in rows]
    lines += ["</table>", *[f"<p>{escape(rest)}</p>"] * bool(rest)]
    return "\n".join(lines)


def _row(tag: str, cells: Sequence[object]) -> str:
    inner = "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"


# ------------------------------------------------------------------------------- result


_SHOWN = 10
"""Number of rows that `repr` and notebooks show."""

_BATCH = 50_000
"""Number of rows that iteration converts to Python values at a time."""

_BATCH_LIMIT = 4 * _BATCH
"""Largest size of a batch, which may exceed the expected one."""

Item = TypeVar("Item")


class UnknownColumnError(EvermatError, KeyError):
    """A column that a result does not have."""

    code: ClassVar[str] = "EM565"

    def __init__(self, name: str, columns: Sequence[str]) -> None:
        known = ", ".join(f"`{each}`" for each in columns) or "none"
        super().__init__(
            f"the result has no column `{name}`", help=f"its columns: {known}"
        )


class NegativeLimitError(EvermatError, ValueError):
    """A negative number of rows."""

    code: ClassVar[str] = "EM567"

    def __init__(self, count: int) -> None:
        super().__init__(
            f"there are no {count} rows", help="give a number from 0 on, or None"
        )


class MissingPackageError(EvermatError, ImportError):
    """A data frame of a library that is not installed."""

    code: ClassVar[str] = "EM559"


def require_package(package: str, extra: str = "") -> Any:  # noqa: ANN401  a module
    """Import an optional library.

    Args:
        package: its name.
        extra: the name of the extra, if it is a different one.

    Raises:
        MissingPackageError: it is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"`{package}` is not installed",
            help=f'install it with pip install "evermat[{extra or package}]"',
        ) from error


class Result:
    """Rows of constants under named columns.

    Iteration yields tuples of Python values, `result[0]` and `result[:10]` some of
    them; `to_arrow`, `to_pandas`, `to_polars` and `to_spark` return data frames, and
    every library that reads Arrow's C interface accepts a result; `write` writes files.
    Rows are distinct, and unordered except after `sort`.

    >>> import evermat
    >>> kb = evermat.KnowledgeBase("likes(ann, bob) . likes(bob, 7) .")
    >>> kb.query("likes(ann, ?whom)").to_list()
    [('bob',)]
    >>> kb.query("likes(ann, ?whom)").columns
    ('whom',)
    """

    def __init__(
        self,
        rows: pa.Table | DistantRows,
        columns: Sequence[str],
        representatives: Representatives | None = None,
        *,
        names: frozenset[int] = frozenset(),
        predicate: str | None = None,
    ) -> None:
        """Wrap a table of term columns.

        Args:
            rows: the rows; distributed ones are collected when they are read.
            columns: the names of the columns.
            representatives: if not None, each row represents all rows that differ from
                it in equal constants; they are generated when they are read.
            names: the columns whose constants represent only themselves.
            predicate: the predicate of the rows, if they are facts.
        """
        self.columns = tuple(columns)
        self.distant = None if isinstance(rows, pa.Table) else rows
        """The distributed rows, if they are not in this process."""
        self._given = rows
        self._representatives = representatives
        self._names = names
        self.predicate = predicate
        """The predicate of the rows, if they are facts."""
        self._prefixes: Mapping[str, str] = {}
        self._whole: pa.Table | None = None

    @cached_property
    def _rows(self) -> int:
        if self._representatives is None:
            return int(self._given.num_rows)
        others = [n for n in range(len(self.columns)) if n not in self._names]
        return self._representatives.expanded_size(self._short.select(others))

    @cached_property
    def _short(self) -> pa.Table:
        """The rows before expansion."""
        table = self._given
        if not isinstance(table, pa.Table):
            table = table.read()
        return table.rename_columns(list(self.columns)) if self.columns else table

    @property
    def _table(self) -> pa.Table:
        """All rows."""
        if self._whole is None:
            self._whole = self._expanded(self._short)
        return self._whole

    def _expanded(self, table: pa.Table) -> pa.Table:
        if self._representatives is None or not self.columns:
            return table
        whole = self._representatives.expanded(table, self._names)
        return whole.rename_columns(list(self.columns))

    def _tuples(
        self, convert: Callable[[pa.ChunkedArray], list[Item]]
    ) -> Iterator[tuple[Item, ...]]:
        """Yield the rows, converting columns in pieces that are not cached."""
        if not self.columns:
            yield from repeat((), self._rows)
        elif self._whole is not None or self._representatives is None:
            for piece in _pieces(self._table, _BATCH):
                yield from zip(*map(convert, piece.columns), strict=True)
        else:
            share = self._short.num_rows / max(self._rows, 1)
            for piece in _pieces(self._short, max(1, int(_BATCH * min(share, 1.0)))):
                yield from self._multiplied(piece, self._representatives, convert)

    def _multiplied(
        self,
        piece: pa.Table,
        representatives: Representatives,
        convert: Callable[[pa.ChunkedArray], list[Item]],
    ) -> Iterator[tuple[Item, ...]]:
        """Yield all rows that the rows of a piece represent; these can be very many."""
        if representatives.expanded_size(piece) <= _BATCH_LIMIT:
            columns = representatives.expanded(piece, self._names).columns
            yield from zip(*map(convert, columns), strict=True)
        elif piece.num_rows > 1:
            for row in _pieces(piece, 1):
                yield from self._multiplied(row, representatives, convert)
        else:
            cells = (piece.select([at]) for at in range(piece.num_columns))
            yield from product(
                *(
                    convert(
                        (
                            cell
                            if at in self._names
                            else representatives.expanded(cell)
                        ).column(0)
                    )
                    for at, cell in enumerate(cells)
                )
            )

    def first(self, count: int | None) -> Result:
        """Return the first rows, or all; the others are not generated."""
        if count is not None and count < 0:
            raise NegativeLimitError(count)
        if count is None or count >= self._rows:
            return self
        if self._representatives is not None and count and self.columns:
            found = list(islice(self.constants(), count))
            rows = term_columns.term_table(
                term_columns.table_of_rows(found, len(self.columns))
            )
        elif self.distant is not None:
            rows = self.distant.read(count)
        else:
            rows = self._short.slice(0, count)
        return self._with(rows)

    def sort(self, *columns: str, descending: bool = False) -> Result:
        """Return the rows sorted by some columns, or by all columns in order.

        Numbers are ordered by value, strings by their characters, and columns of mixed
        kinds by the written form of their values.

        Args:
            columns: names of columns, the most important first.
            descending: whether the greatest value comes first.

        Raises:
            UnknownColumnError: there is no such column.
        """
        for name in columns:
            if name not in self.columns:
                raise UnknownColumnError(name, self.columns)
        if not self.columns:
            return self
        order = "descending" if descending else "ascending"
        keys = [self.columns.index(name) for name in columns or self.columns]
        plain = [term_columns.natural(self._table.column(at)) for at in keys]
        numbered = pa.table(plain, names=[str(at) for at in range(len(keys))])
        places = pc.sort_indices(
            numbered, [(name, order) for name in numbered.column_names]
        )
        rows = self._table.take(places)
        return self._with(rows)

    def _with(self, rows: pa.Table) -> Result:
        """Other rows of the same sort."""
        found = Result(rows, self.columns, predicate=self.predicate)
        return found.shown_with(self._prefixes)

    def shown_with(self, prefixes: Mapping[str, str]) -> Result:
        """Return the same rows, with IRIs displayed with these prefixes."""
        self._prefixes = prefixes
        return self

    @property
    def printer(self) -> Printer:
        """Writes constants for people, with the prefixes of the program."""
        return Printer(self._prefixes)

    def facts_of(self, predicate: str, columns: Sequence[str]) -> Result:
        """Return the same rows as facts of a predicate with columns of these names."""
        return Result(
            self._given,
            columns,
            self._representatives,
            names=self._names,
            predicate=predicate,
        )

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return self._tuples(term_columns.values)

    @overload
    def __getitem__(self, place: SupportsIndex) -> tuple[Value, ...]: ...

    @overload
    def __getitem__(self, place: slice) -> Result: ...

    def __getitem__(self, place: SupportsIndex | slice) -> tuple[Value, ...] | Result:
        """Return a row as a tuple, or some rows: `result[0]`, `result[:10]`."""
        if not isinstance(place, slice):
            at = range(self._rows)[place]
            (row,) = self[at : at + 1]
            return row
        chosen = range(self._rows)[place]
        if chosen.start == 0 and chosen.step == 1:
            return self.first(len(chosen))
        if chosen.step == 1:
            rows = self._table.slice(chosen.start, len(chosen))
        else:
            rows = self._table.take(pa.array(chosen, pa.int64()))
        return self._with(rows)

    def __contains__(self, row: object) -> bool:
        """Return whether a row of Python values is in the result; `1` is not `1.0`."""
        if not isinstance(row, tuple):
            return False
        try:
            wanted = tuple(constant(value) for value in row)
        except ValueConversionError:
            return False
        return any(wanted == found for found in self.constants())

    def constants(self) -> Iterator[tuple[Constant, ...]]:
        """Yield the rows as constants, which distinguish `1`, `1.0` and `true`."""
        return self._tuples(term_columns.constants)

    def to_list(self) -> list[tuple[Value, ...]]:
        """Return the rows as a list of tuples of Python values."""
        return list(self)

    def to_terms(self) -> pa.Table:
        """Return an Arrow table of term columns: structs of a kind and a text."""
        return self._table

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with the plainest types that fit the values.

        Columns of mixed kinds become strings in the syntax of the language.
        """
        if not self.columns:
            return self._table
        plain = [term_columns.natural(column) for column in self._table.columns]
        return pa.table(plain, names=list(self.columns))

    def __arrow_c_schema__(self) -> object:
        """Return the schema of `to_arrow`, for Arrow's C interface."""
        return self.to_arrow().schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows of `to_arrow` through Arrow's C interface.

        `pyarrow.table(result)` and `polars.DataFrame(result)` read it, for example.

        Args:
            requested_schema: the types that the reader prefers.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame; requires `pip install "evermat[pandas]"`."""
        require_package("pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """Return the rows as a Spark data frame, in the active or the given session.

        Distributed rows stay on the cluster.
        """
        spark = session or require_package("pyspark.sql", "spark").SparkSession.active()
        if self.distant is not None and self._representatives is None:
            frame: DataFrame = self.distant.frame(self.columns, spark)
        else:
            frame = spark.createDataFrame(term_columns.for_spark(self.to_arrow()))
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return a Polars frame; requires `pip install "evermat[polars]"`."""
        polars = require_package("polars")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow())
        return frame

    def write(self, path: str | Path, *, terms: bool = False) -> None:
        """Write the rows to a file, in the format of its suffix, or to a database.

        `.csv`, `.tsv`, `.facts`, `.parquet`, `.arrow`, or one of RDF: `.nt`, `.ttl` and
        others, for triples. `.gz` or `.zst` may follow.

        Args:
            path: the file; or the address of a database (`postgresql://…`,
                `sqlite:///file.db`, `duckdb:///file.duckdb`), where the rows become
                all that the table of the predicate holds, or that of `?table=…`.
            terms: write every value of a table as a term, which reads back exactly.
        """
        if isinstance(path, str) and is_database(path):
            write_database(path, self.predicate or "answers", self.to_arrow())
            return
        from evermat.rdf import write_facts  # noqa: PLC0415  seldom needed

        with self._in_parts() as rows:
            write_facts(rows, path, predicate=self.predicate, terms=terms)

    def _in_parts(self) -> AbstractContextManager[pa.Table | TableParts]:
        """Return all rows; distributed ones come in parts."""
        if self.distant is None or self._representatives is not None:
            return nullcontext(self._table)
        return self.distant.in_parts(self.columns)

    def __repr__(self) -> str:
        if not self.columns:
            return f"<Result {self._truth()}: {counted(self._rows, 'row')}>"
        lines = [f"<Result {', '.join(self.columns)}: {counted(self._rows, 'row')}>"]
        lines += ["  " + ", ".join(row) for row in self._shown()]
        return "\n".join([*lines, *[f"  {self._rest()}"] * bool(self._rest())])

    def _repr_html_(self) -> str:
        """Return the first rows as a table for notebooks."""
        if not self.columns:
            return f"<p>{self._truth()}</p>"
        title = counted(self._rows, "row")
        return html_table(title, self.columns, self._shown(), self._rest())

    def _truth(self) -> str:
        """Return the text for a result without columns."""
        return "yes" if self._rows else "no"

    def _shown(self) -> Iterator[tuple[str, ...]]:
        text = self.printer.constant
        for row in self.first(_SHOWN).constants():
            # Nulls, which only results of SPARQL have, are shown as nothing.
            yield tuple("" if each is None else text(each) for each in row)  # type: ignore[redundant-expr]

    def _rest(self) -> str:
        more = self._rows - _SHOWN
        return f"… and {more:,} more" if more > 0 else ""


def _pieces(table: pa.Table, size: int) -> Iterator[pa.Table]:
    return (table.slice(start, size) for start in range(0, table.num_rows, size))
