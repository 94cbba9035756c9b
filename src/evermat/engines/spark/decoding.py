"""Decodes rows of ids on the cluster, by joins with the dictionary there."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import (
    Shape,
    as_terms,
    joined_shapes,
    shape_of,
    term_table,
)
from evermat.engines.spark.blocks import local_block, width_of
from evermat.engines.spark.dictionary import FIRST_DIGEST
from evermat.engines.spark.encoding import FACT
from evermat.engines.spark.failures import plain_failures
from evermat.engines.spark.joins import BROADCAST, hint_for_terms
from evermat.engines.spark.row_tables import chosen, key_columns
from evermat.engines.spark.rows import (
    MOST_READ,
    block_rows,
    brought_home,
    difference,
    intersection,
    settled_block,
)
from evermat.engines.spark.session import TERMS_AT_ONCE, in_files, moved, parts_of
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from evermat.columns import TableParts
    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.rows import Rows

_SHAPES = "at int, word string, whole int, fraction int"


@dataclass(frozen=True, slots=True)
class _Column:
    """Statistics of a column of ids for choosing how to decode it."""

    has_constants: bool
    distinct: int


class ClusterRows:
    """The rows of one relation at one moment, on the cluster."""

    def __init__(self, cluster: Cluster, rows: Rows, tag: int, arity: int) -> None:
        self.cluster = cluster
        self._rows = rows
        self._tag = tag
        self.num_columns = arity

    def _query(self) -> str:
        columns = ", ".join(f"c{at}" for at in range(self.num_columns))
        source = self._rows.query(self.num_columns)
        return f"SELECT {columns} FROM ({source}) WHERE tag = {self._tag}L"  # noqa: S608

    @cached_property
    def num_rows(self) -> int:
        """The number of rows."""
        if self._rows.sizes is not None:
            return self._rows.sizes.get(self._tag, 0)
        table = self.cluster.collect(f"SELECT count(1) AS n FROM ({self._query()})")  # noqa: S608
        number: int = table["n"][0].as_py()
        return number

    @property
    def columns(self) -> list[str]:
        """The names of columns without names of their own."""
        return [str(at) for at in range(self.num_columns)]

    def mentions(self, column: int, id_: int) -> bool:
        """Return whether an id occurs in a column."""
        found = self.cluster.collect(
            f"SELECT 1 FROM ({self._query()}) WHERE c{column} = {id_}L LIMIT 1"  # noqa: S608
        )
        return bool(found.num_rows)

    def block(self, tag: int) -> Block:
        """Return the rows as facts of a relation, possibly of another one."""
        cluster, width = self.cluster, width_of(self.num_columns)
        ids = ", ".join(key_columns(width)[1:])
        sql = f"SELECT {tag}L AS tag, {ids} FROM ({self._query()})"  # noqa: S608
        if self._rows.bound <= cluster.small:
            return local_block(cluster, cluster.collect(sql))
        return brought_home(cluster.checkpoint(sql, width, {tag}))

    def encoded(self) -> DataFrame:
        """Return the rows in the layout of `encoding`; their constants are known."""
        columns = ", ".join(f"c{at}" for at in range(self.num_columns))
        return self.cluster.sql(
            f"SELECT CAST({FACT} AS TINYINT) AS sort, {columns}, "  # noqa: S608
            "CAST(NULL AS BIGINT) AS id, CAST(NULL AS INT) AS kind, "
            f"CAST(NULL AS STRING) AS text FROM ({self._query()})"
        )

    def split(self, other: ClusterRows, *, common: bool) -> ClusterRows:
        """Return the rows in common with others, or those that the others lack."""
        chosen = intersection if common else difference
        rows = chosen(self._rows, other._rows)
        return ClusterRows(self.cluster, rows, self._tag, self.num_columns)

    def read(self, limit: int | None = None) -> pa.Table:
        """Return rows on the driver, as columns of terms; all or some of them."""
        some = "" if limit is None else f" LIMIT {limit}"
        most = self._rows.bound if limit is None else limit
        table = self.cluster.collect(f"{self._query()}{some}", most)
        return decoded(self.cluster, table, self.num_columns)

    @contextmanager
    def in_parts(self, names: Sequence[str]) -> Iterator[TableParts]:
        """Yield all rows as columns of terms, in parts loaded one at a time."""
        if not len(self.cluster.terms):
            ids = self.cluster.collect(self._query(), self._rows.bound)
            yield _DecodedHere(self.cluster, ids, list(names))
            return
        with plain_failures(), in_files(self.terms(), TERMS_AT_ONCE) as written:
            yield _DecodedThere(written, list(names))

    # ------------------------------------------------------------------------ frames

    def terms(self) -> DataFrame:
        """Return a frame with a struct of kind and text for each argument."""
        known = self._columns()
        view = self.cluster.terms_view()
        usual = hint_for_terms(self.cluster)
        sql = self._query()
        for at, column in enumerate(known):
            if not column.has_constants:
                continue
            terms, hint = view, usual
            if hint != "BROADCAST" and column.distinct <= BROADCAST // 2:
                # For example, the predicates of triples: a single one would take most
                # of a task.
                hint = "BROADCAST"
                terms = (
                    f"(SELECT t.* FROM {view} t LEFT SEMI JOIN "  # noqa: S608
                    f"(SELECT DISTINCT c{at} FROM ({self._query()})) u "
                    f"ON t.id = u.c{at})"
                )
            sql = (
                f"SELECT /*+ {hint}(r) */ l.*, r.kind AS k{at}, r.text AS t{at} "  # noqa: S608
                f"FROM ({sql}) l LEFT JOIN {terms} r ON l.c{at} = r.id"
            )
        columns = ", ".join(
            f"{_term(at, column)} AS a{at}" for at, column in enumerate(known)
        )
        return self.cluster.sql(f"SELECT {columns} FROM ({sql})")  # noqa: S608

    def _columns(self) -> list[_Column]:
        parts = ", ".join(
            f"max(c{at}) AS m{at}, approx_count_distinct(c{at}) AS d{at}"
            for at in range(self.num_columns)
        )
        (row,) = self.cluster.collect(
            f"SELECT {parts} FROM ({self._query()})"  # noqa: S608
        ).to_pylist()
        return [
            _Column((row[f"m{at}"] or 0) >= FIRST_DIGEST, row[f"d{at}"] or 0)
            for at in range(self.num_columns)
        ]

    def frame(self, names: Sequence[str], session: SparkSession) -> DataFrame:
        """Return a frame with the plainest types for the values, like `natural`."""
        terms = self.terms()
        shapes = shapes_of(terms)
        return moved(natural_frame(terms, shapes, names), session)


@dataclass(frozen=True, slots=True)
class _DecodedHere:
    """Rows of ids on the driver, where the dictionary is as well."""

    cluster: Cluster
    ids: pa.Table
    column_names: list[str]

    def shapes(self) -> list[Shape]:
        """Return the shapes of whole columns."""
        decode = self.cluster.dictionary.decode
        return [shape_of(decode(pc.unique(column))) for column in self.ids.columns]

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield the parts, one after the other."""
        # Without rows, there is still a part with the columns.
        for start in range(0, max(1, self.ids.num_rows), TERMS_AT_ONCE):
            part = self.ids.slice(start, TERMS_AT_ONCE)
            terms = decoded(self.cluster, part, len(self.column_names))
            yield terms.rename_columns(self.column_names)


@dataclass(frozen=True, slots=True)
class _DecodedThere:
    """Rows that were decoded on the cluster."""

    frame: DataFrame
    column_names: list[str]

    def shapes(self) -> list[Shape]:
        """Return the shapes of whole columns."""
        return shapes_of(self.frame)

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield the parts, one after the other."""
        for part in parts_of(self.frame):
            yield term_table(part).rename_columns(self.column_names)


def _term(at: int, column: _Column) -> str:
    number = f"named_struct('kind', {int(Kind.INTEGER)}, 'text', CAST(c{at} AS STRING))"
    if not column.has_constants:
        return number
    other = f"named_struct('kind', k{at}, 'text', t{at})"
    return f"CASE WHEN c{at} < {FIRST_DIGEST}L THEN {number} ELSE {other} END"


def shapes_of(terms: DataFrame) -> list[Shape]:
    """Return the shapes of the columns of a frame of terms."""
    found: list[list[Shape]] = [[] for _ in terms.columns]
    for row in terms.mapInArrow(_shapes, _SHAPES).distinct().collect():
        shape = Shape(row["word"], row["whole"], row["fraction"])
        found[row["at"]].append(shape)
    return [joined_shapes(shapes) for shapes in found]


def natural_frame(
    terms: DataFrame, shapes: Sequence[Shape], names: Sequence[str]
) -> DataFrame:
    """Convert a frame of terms to the types of the shapes."""
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415  optional
    from pyspark.sql.types import StructType  # noqa: PLC0415

    shapes = [_for_spark(shape) for shape in shapes]
    schema = StructType()
    for name, shape in zip(names, shapes, strict=True):
        schema = schema.add(name, from_arrow_type(shape.type))
    return terms.mapInArrow(partial(_natural, tuple(shapes)), schema)


def _for_spark(shape: Shape) -> Shape:
    """Return the shape for Spark, which has no decimals of more than 38 digits."""
    return Shape("text") if pa.types.is_decimal256(shape.type) else shape


# ------------------------------------------------------------- what runs in the tasks


def _shapes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found: dict[int, Shape] = {}
    for batch in batches:
        for at, column in enumerate(batch.columns):
            if len(column):
                shape = shape_of(as_terms(column))
                found[at] = found.get(at, Shape()) | shape
    columns: dict[str, list[Any]] = {
        "at": list(found),
        "word": [shape.word for shape in found.values()],
        "whole": [shape.whole for shape in found.values()],
        "fraction": [shape.fraction for shape in found.values()],
    }
    types = [pa.int32(), pa.string(), pa.int32(), pa.int32()]
    arrays = [pa.array(c, t) for c, t in zip(columns.values(), types, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _natural(
    shapes: tuple[Shape, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        arrays = [
            shape.natural(as_terms(column))
            for shape, column in zip(shapes, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


# ------------------------------------------------------------------------------- copies

# Copies of facts that outlive what happens to the engine.


class Copy:
    """Rows at one moment. Blocks never change, so nothing is copied."""

    def __init__(
        self, cluster: Cluster, rows: Rows, arities: Mapping[str, int]
    ) -> None:
        self._cluster = cluster
        self._rows = rows
        self._arities = dict(arities)
        self._sizes: Mapping[str, int] | None = None

    def relations(self) -> Mapping[str, int]:
        """Return the number of facts of each relation that has any."""
        if self._sizes is None:
            sizes = self._counted()
            names = self._cluster.names
            self._sizes = {names[tag]: size for tag, size in sizes.items() if size}
        return self._sizes

    def _counted(self) -> Mapping[int, int]:
        if self._rows.sizes is not None:
            return self._rows.sizes
        self._read_here()
        if self._rows.bound <= self._cluster.small:
            self._rows = block_rows(settled_block(self._rows))
        if self._rows.block is not None:
            return self._rows.block.sizes
        table = self._cluster.collect(
            f"SELECT tag, count(1) AS n FROM ({self._rows.sql}) GROUP BY tag"  # noqa: S608
        )
        return dict(zip(table["tag"].to_pylist(), table["n"].to_pylist(), strict=True))

    def read(self, relation: str) -> pa.Table:
        """Return the rows of a relation, as columns of terms."""
        tag, arity = self._cluster.tags.get(relation), self._arities.get(relation, 0)
        if tag is None:
            return decoded(self._cluster, _nothing(arity), arity)
        self._read_here()
        rows = self._rows
        if rows.table is not None:
            return decoded(self._cluster, chosen(rows.table, frozenset({tag})), arity)
        sql = f"SELECT * FROM ({rows.sql}) WHERE tag = {tag}L"  # noqa: S608
        ids = self._cluster.collect(sql, rows.bound)
        return decoded(self._cluster, ids, arity)

    def is_large(self, relation: str) -> bool:
        """Whether a relation has more rows than the driver should be given."""
        self._read_here()
        size = self.relations().get(relation, 0)
        is_small = self._rows.table is not None or size <= self._cluster.small
        return not is_small and bool(self._arities[relation])

    def _read_here(self) -> None:
        """Read facts of a state where the driver has room: a job has a fixed cost."""
        read, is_near = self._rows.read, self._rows.bound <= MOST_READ
        if self._rows.table is None and read is not None and is_near:
            self._rows = block_rows(local_block(self._cluster, read()))

    def distant(self, relation: str) -> ClusterRows:
        """The rows of a relation, where they are."""
        from evermat.engines.spark.decoding import ClusterRows  # noqa: PLC0415  it needs us

        tag, arity = self._cluster.tags[relation], self._arities[relation]
        return ClusterRows(self._cluster, self._rows, tag, arity)


def decoded(cluster: Cluster, table: pa.Table, arity: int) -> pa.Table:
    """Return rows of one relation as columns of terms."""
    if arity == 0:
        # A table without columns still has a number of rows.
        return pa.table({"": pa.nulls(table.num_rows)}).select([])
    if table.num_rows == 0:
        table = _nothing(arity)
    columns = [cluster.dictionary.decode(table[f"c{at}"]) for at in range(arity)]
    return pa.table(columns, names=[str(at) for at in range(arity)])


def _nothing(arity: int) -> pa.Table:
    names = ["tag", *(f"c{at}" for at in range(max(arity, 1)))]
    return pa.table({name: pa.array([], pa.int64()) for name in names})
