"""Encodes rows of constants as rows of ids, inside tasks.

Ids are computed from the constants alone, so tasks need nothing from the driver or from
each other. The output of a task has one layout, with rows distinguished by `sort`:

| sort  | columns                                                                    |
| ----- | -------------------------------------------------------------------------- |
| FACT  | `c0`, `c1`, …: the ids of a row                                            |
| TERM  | `id`, `kind`, `text`: a constant, at least once for each task with it       |
| KIND  | `id`: a column; `kind`: a kind in it; `text`: one such constant             |
| HOLE  | `id`: a column that has no value in some row                               |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.engines.spark.dictionary import FIRST_DIGEST, encoded_column
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evermat.engines.spark.dictionary import Ids

FACT, TERM, KIND, HOLE = range(4)
REMEMBERED = 1 << 20
"""Number of constants that a task remembers, to avoid repeating them."""


def spark_schema(width: int) -> str:
    """Return the layout as a Spark schema."""
    ids = "".join(f"c{at} bigint, " for at in range(width))
    return f"sort tinyint, {ids}id bigint, kind int, text string"


def arrow_schema(width: int) -> pa.Schema:
    """Return the layout as an Arrow schema."""
    ids = [(f"c{at}", pa.int64()) for at in range(width)]
    term = [("id", pa.int64()), ("kind", pa.int32()), ("text", pa.string())]
    return pa.schema([("sort", pa.int8()), *ids, *term])


def encoded_batches(
    width: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Encode the rows of a task as ids and constants."""
    encoder = Encoder(width)
    for batch in batches:
        yield from encoder.encode(batch.columns)
    yield from encoder.finish()


class Encoder:
    """Encodes the rows of one task.

    Args:
        width: the number of columns of ids.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._schema = arrow_schema(width)
        self._seen = np.empty(0, np.int64)
        self._kinds: dict[tuple[int, int], str] = {}
        self._holes: set[int] = set()

    def encode(self, columns: Sequence[pa.Array]) -> Iterator[pa.RecordBatch]:
        """Yield encoded rows by column, preceded by new constants."""
        has_holes = [at for at, column in enumerate(columns) if not _is_full(column)]
        if has_holes:
            self._holes.update(has_holes)
            return
        facts = {}
        for at, column in enumerate(columns):
            encoded = encoded_column(column)
            facts[f"c{at}"] = encoded.column
            yield from self._terms(at, encoded.ids, encoded.terms)
            if not encoded.ids.size and len(column):
                self._kinds.setdefault((at, int(Kind.INTEGER)), str(column[0].as_py()))
        if columns and len(columns[0]):
            yield self._batch(FACT, len(columns[0]), facts)

    def _terms(
        self, at: int, ids: Ids, terms: pa.StructArray
    ) -> Iterator[pa.RecordBatch]:
        for kind in pc.unique(terms.field("kind")).to_pylist():
            if (at, kind) not in self._kinds:
                place = pc.index(terms.field("kind"), kind).as_py()
                self._kinds[at, kind] = terms.field("text")[place].as_py()
        new = (ids >= FIRST_DIGEST) & ~np.isin(ids, self._seen)
        if not new.any():
            return
        if self._seen.size > REMEMBERED:
            self._seen = self._seen[:0]
        self._seen = np.union1d(self._seen, ids[new])
        chosen = terms.filter(pa.array(new))
        known = {
            "id": pa.array(ids[new]),
            "kind": chosen.field("kind").cast(pa.int32()),
            "text": chosen.field("text"),
        }
        yield self._batch(TERM, len(chosen), known)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the facts about all rows: holes and kinds."""
        if self._holes:
            holes = pa.array(sorted(self._holes), pa.int64())
            yield self._batch(HOLE, len(holes), {"id": holes})
        if self._kinds:
            columns, kinds = zip(*self._kinds, strict=True)
            known = {
                "id": pa.array(columns, pa.int64()),
                "kind": pa.array(kinds, pa.int32()),
                "text": pa.array(self._kinds.values(), pa.string()),
            }
            yield self._batch(KIND, len(columns), known)

    def _batch(
        self, sort: int, length: int, known: dict[str, pa.Array]
    ) -> pa.RecordBatch:
        arrays = [
            known.get(field.name, pa.nulls(length, field.type))
            for field in self._schema
        ]
        arrays[0] = pa.array(np.full(length, sort, np.int8))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _is_full(column: pa.Array) -> bool:
    """Return whether no value is missing, nor a part of one."""
    if column.null_count:
        return False
    if not pa.types.is_struct(column.type):
        return True
    return all(not field.null_count for field in column.flatten())
