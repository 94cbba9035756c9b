"""Frames of Spark as input: encoded by tasks, checked, and converted to facts.

A frame is read once. Its rows of ids and its constants (`encoding`) are a reliable
checkpoint, so nondeterministic sources do no harm. Only sums are collected on the
driver, and rows if there are few.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import ArityMismatchError, MissingValueError, as_terms, term_table
from evermat.engines.spark.blocks import local_block, width_of
from evermat.engines.spark.decoding import ClusterRows
from evermat.engines.spark.dictionary import Dictionary, constant_id
from evermat.engines.spark.encoding import (
    FACT,
    HOLE,
    KIND,
    TERM,
    encoded_batches,
    spark_schema,
)
from evermat.engines.spark.row_tables import distinct, key_columns
from evermat.engines.spark.rows import brought_home
from evermat.engines.spark.session import moved, written_down
from evermat.engines.spark.terms import term_structs
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from evermat.engines.spark.blocks import Block, Cluster


class EncodedFrame:
    """Rows that were encoded already, for instance while a file was read.

    Attributes:
        frame: in the layout of `encoding`.
        names: the names of the columns of the rows.
    """

    def __init__(self, frame: DataFrame, names: Sequence[str]) -> None:
        self.frame = frame
        self.names = tuple(names)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, as in frames of Spark."""
        return list(self.names)

    def union(self, other: EncodedFrame) -> EncodedFrame:
        """Return the rows of both.

        Raises:
            ArityMismatchError: they have different numbers of columns.
        """
        if len(other.names) != len(self.names):
            raise ArityMismatchError(len(self.names), len(other.names))
        return EncodedFrame(self.frame.unionAll(other.frame), self.names)

    def toArrow(self) -> pa.Table:  # noqa: N802  as frames of Spark call it
        """Return the rows on the driver, as columns of terms: for other engines."""
        table = self.frame.where(f"sort <= {TERM}").toArrow()
        dictionary = Dictionary()
        _learn(dictionary, table)
        facts = table.filter(pc.equal(table["sort"], FACT))
        ids = (facts[f"c{at}"] for at in range(len(self.names)))
        return pa.table([dictionary.decode(each) for each in ids], self.columns)


class StagedRows(ABC):
    """Rows of one relation on the cluster, as ids; they may have duplicates.

    Attributes:
        num_columns: the number of arguments.
        num_rows: the number of rows.
        kinds: for each column the kinds in it, with a constant of each.
    """

    num_columns: int
    num_rows: int
    kinds: list[dict[Kind, Constant]]

    @abstractmethod
    def mentions(self, column: int, constant: Constant) -> bool:
        """Return whether a constant occurs in a column."""

    @abstractmethod
    def table(self) -> pa.Table:
        """Return the rows on the driver, as columns of terms."""

    @abstractmethod
    def block(self, tag: int) -> Block:
        """Return the rows as facts of a relation, adding their constants.

        Raises:
            DigestCollisionError: two constants have the same id.
        """


class KnownRows(StagedRows):
    """Rows of this engine itself, with known constants."""

    def __init__(self, rows: ClusterRows) -> None:
        self._rows = rows
        self.num_columns = rows.num_columns
        self.num_rows = rows.num_rows
        self.kinds = [{} for _ in range(rows.num_columns)]

    def mentions(self, column: int, constant: Constant) -> bool:
        """Return whether a constant occurs in a column."""
        return self._rows.mentions(column, constant_id(constant))

    def table(self) -> pa.Table:
        """Return the rows on the driver, as columns of terms."""
        return self._rows.read()

    def block(self, tag: int) -> Block:
        """Return the rows as facts of a relation, possibly of another one."""
        return self._rows.block(tag)


class EncodedRows(StagedRows):
    """Rows of other sources, encoded by tasks."""

    def __init__(
        self, cluster: Cluster, frame: DataFrame, names: Sequence[str]
    ) -> None:
        self._cluster = cluster
        self.num_columns = len(names)
        # It is read two or three times.
        kept = written_down(moved(frame, cluster.session))
        self._encoded = EncodedFrame(kept, names)
        self._view = cluster.register(kept)
        weakref.finalize(self, cluster.waste.append, (self._view, None))
        cluster.jobs += 2
        sums = cluster.sql(
            "SELECT sort, CASE WHEN sort >= 2 THEN id END AS `column`, "  # noqa: S608
            "CASE WHEN sort >= 2 THEN kind END AS kind, count(1) AS n, "
            "max(CASE WHEN sort >= 2 THEN text END) AS text "
            f"FROM {self._view} GROUP BY ALL"
        ).collect()
        counts = {row["sort"]: row["n"] for row in sums}
        self.num_rows = counts.get(FACT, 0)
        self._term_rows: int = counts.get(TERM, 0)
        for row in sums:
            if row["sort"] == HOLE:
                raise MissingValueError(None, names[row["column"]])
        self.kinds = [{} for _ in names]
        for row in sums:
            if row["sort"] == KIND:
                kind = Kind(row["kind"])
                self.kinds[row["column"]][kind] = Constant(kind, row["text"])

    def mentions(self, column: int, constant: Constant) -> bool:
        """Return whether a constant occurs in a column."""
        found = self._cluster.collect(
            f"SELECT 1 FROM {self._view} WHERE sort = {FACT} AND "  # noqa: S608
            f"c{column} = {constant_id(constant)}L LIMIT 1"
        )
        return bool(found.num_rows)

    def table(self) -> pa.Table:
        """Return the rows on the driver, as columns of terms."""
        return self._encoded.toArrow()

    def block(self, tag: int) -> Block:
        """Return the rows as facts of a relation, adding their constants."""
        cluster, width = self._cluster, width_of(self.num_columns)
        if max(self.num_rows, self._term_rows) <= cluster.small:
            table = cluster.collect(f"SELECT * FROM {self._view} WHERE sort <= {TERM}")  # noqa: S608
            _learn(cluster.dictionary, table)
            facts = table.filter(pc.equal(table["sort"], FACT))
            tags = pa.array(np.full(facts.num_rows, tag, np.int64))
            columns = [facts[f"c{at}"] for at in range(width)]
            rows = pa.table([tags, *columns], names=key_columns(width))
            return local_block(cluster, distinct(rows))
        self._make_constants_known()
        ids = ", ".join(key_columns(width)[1:])
        sql = (
            f"SELECT {tag}L AS tag, {ids} FROM {self._view} "  # noqa: S608
            f"WHERE sort = {FACT} GROUP BY {ids}"
        )
        keys = ", ".join(key_columns(width))
        sql = f"SELECT * FROM ({sql}) DISTRIBUTE BY {keys}"  # noqa: S608
        block = cluster.checkpoint(sql, width, {tag})
        return brought_home(block)

    def _make_constants_known(self) -> None:
        cluster, dictionary = self._cluster, self._cluster.dictionary
        terms = f"SELECT id, kind, text FROM {self._view} WHERE sort = {TERM}"  # noqa: S608
        if not self._term_rows:
            return
        if self._term_rows + dictionary.size_here <= dictionary.limit:
            _learn_terms(dictionary, cluster.collect(terms))
        else:
            cluster.terms.add(terms)


def stage(cluster: Cluster, parts: Sequence[Any], name: str) -> StagedRows:
    """Encode frames and tables of one predicate on the cluster.

    Args:
        cluster: the cluster.
        parts: frames of Spark, encoded frames and Arrow tables; or rows of an engine on
            the same cluster.
        name: the name of the predicate.

    Raises:
        ArityMismatchError: the parts have different numbers of columns.
        ValueConversionError: a column has a type without constants.
        MissingValueError: a value is missing.
    """
    if len(parts) == 1 and _is_ours(parts[0], cluster):
        return KnownRows(parts[0])
    frames = [_encoded(cluster, part) for part in parts]
    try:
        together = reduce(EncodedFrame.union, frames)
    except ArityMismatchError as error:
        raise ArityMismatchError(error.expected, error.found, name=name) from error
    return EncodedRows(cluster, together.frame, together.names)


def _encoded(cluster: Cluster, part: Any) -> EncodedFrame:  # noqa: ANN401  see `stage`
    if isinstance(part, EncodedFrame):
        return part
    if _is_ours(part, cluster):
        return EncodedFrame(part.encoded(), part.columns)
    if isinstance(part, ClusterRows):
        part = part.terms()
    if isinstance(part, pa.Table):
        part = cluster.session.createDataFrame(spark_terms(part))
    _require_constants(part)
    names = part.columns
    read = partial(encoded_batches, len(names))
    return EncodedFrame(part.mapInArrow(read, spark_schema(len(names))), names)


def _is_ours(part: object, cluster: Cluster) -> TypeGuard[ClusterRows]:
    """Return whether rows are those of an engine with the same dictionary."""
    return isinstance(part, ClusterRows) and part.cluster is cluster


def _require_constants(frame: DataFrame) -> None:
    """Reject columns of types that have no constants, before anything is read."""
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415  optional

    for field in frame.schema:
        as_terms(pa.array([], to_arrow_type(field.dataType)), name=field.name)


def spark_terms(table: pa.Table) -> pa.Table:
    """Return a table as columns of terms, in types that Spark supports."""
    plain = pa.struct([("kind", pa.int32()), ("text", pa.string())])
    terms = term_table(table)
    names = [str(at) for at in range(terms.num_columns)]
    columns = [column.combine_chunks().cast(plain) for column in terms.columns]
    return pa.table(columns, names=names)


def _learn(dictionary: Dictionary, table: pa.Table) -> None:
    _learn_terms(dictionary, table.filter(pc.equal(table["sort"], TERM)))


def _learn_terms(dictionary: Dictionary, terms: pa.Table) -> None:
    if terms.num_rows:
        ids = np.asarray(terms["id"].to_numpy(), np.int64)
        dictionary.add(ids, term_structs(terms))
