"""Facts and constants as rows of the table, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS
from evermat.columns import TERM
from evermat.lake.layout import RELATION, arguments
from evermat.lake.merging import stacked_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evermat.engines.spark.dictionary import Dictionary


def encoded(facts: Mapping[str, pa.Table], dictionary: Dictionary) -> pa.Table:
    """Facts with their numbers in the layout of the table, by relation."""
    columns = [
        table.column(at)
        for table in facts.values()
        for at in range(table.num_columns - len(STORED_NUMBERS))
    ]
    # All columns at once, so that a constant is digested once.
    chunks = [chunk for column in columns for chunk in column.chunks]
    ids = dictionary.encode(pa.chunked_array(chunks, TERM))
    parts, start = [], 0
    for relation, table in facts.items():
        arity, size = table.num_columns - len(STORED_NUMBERS), table.num_rows
        arrays = [ids.slice(start + at * size, size) for at in range(arity)]
        start += arity * size
        zeros = pa.array(np.zeros(size, np.int64))
        names = pa.array([relation]).take(pa.array(np.zeros(size, np.int8)))
        parts.append(
            pa.table(
                [names, *(arrays or [zeros]), *table.columns[arity:]],
                names=[RELATION, *arguments(max(arity, 1)), *STORED_NUMBERS],
            )
        )
    return stacked_facts(parts)


def decoded(rows: pa.Table, dictionary: Dictionary, arity: int) -> pa.Table:
    """Rows of one relation as terms, with their numbers."""
    terms = [dictionary.decode(rows[name]) for name in arguments(arity)]
    numbers = [rows[name] for name in STORED_NUMBERS]
    names = [str(at) for at in range(arity)]
    return pa.table([*terms, *numbers], names=[*names, *STORED_NUMBERS])


def split_by_relation(facts: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each relation."""
    if not facts.num_rows:
        return
    facts = facts.sort_by(RELATION)
    runs = pc.run_end_encode(facts[RELATION].combine_chunks())
    start = 0
    for name, end in zip(
        runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True
    ):
        yield name, facts.slice(start, end - start)
        start = end


def stored_terms(table: pa.Table) -> pa.StructArray:
    """The constants of a file of terms."""
    kinds = table["kind"].combine_chunks().cast(pa.uint8())
    texts = table["text"].combine_chunks()
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))
