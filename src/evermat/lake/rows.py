"""Conversion of facts and constants to rows of the table, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS
from evermat.columns import TERM, as_terms
from evermat.lake.layout import (
    NARROWEST,
    RELATION,
    arguments,
    row_sum,
    runs,
    width_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evermat.engines.spark.dictionary import Dictionary
    from evermat.lake.layout import DataFile
    from evermat.maintenance.driver import NewCliques


# ----------------------------------------------------------------------------- merging

# Merging of files.
#
# Every update writes a run: a file, or some files of tasks. Once there are several runs
# of about the same size they become one, so there are never many, and a row is
# rewritten only as often as the number of runs grows by a factor: the work of updates
# follows what they change.

SEVERAL = 8
"""So many runs of about the same size are merged; also the factor between sizes."""


def files_to_merge(files: Sequence[DataFile]) -> list[DataFile]:
    """The files that should become one run; none if all is well.

    Runs are on levels, each for runs up to `SEVERAL` times as large as the one below.
    If a level has several runs, they are merged, with all that is smaller.
    """
    levels: dict[int, list[list[DataFile]]] = {}
    for run in runs(files):
        levels.setdefault(_level(row_sum(run)), []).append(run)
    for level in sorted(levels):
        if len(levels[level]) >= SEVERAL:
            merged = [run for at in levels if at <= level for run in levels[at]]
            return [file for run in merged for file in run]
    return []


def _level(rows: int) -> int:
    level = 0
    while rows >= SEVERAL:
        rows //= SEVERAL
        level += 1
    return level


def stacked_facts(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables, widened to the widest."""
    width = max((width_of(table.column_names) for table in tables), default=1)
    keys = [RELATION, *arguments(width)]
    if not tables:
        return _NOTHING.empty_table()
    return pa.concat_tables([_filled(table, keys) for table in tables])


def summed_facts(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the distinct facts with the sums of their numbers, except zero sums.

    A single table is assumed to be summed already.
    """
    together = stacked_facts(tables)
    if len(tables) <= 1:
        return together
    keys = [RELATION, *arguments(width_of(together.column_names))]
    totals = together.group_by(keys).aggregate(
        [(name, "sum") for name in STORED_NUMBERS]
    )
    totals = totals.rename_columns([*keys, *STORED_NUMBERS])
    changed = pc.not_equal(totals[STORED_NUMBERS[0]], 0)
    for name in STORED_NUMBERS[1:]:
        changed = pc.or_(changed, pc.not_equal(totals[name], 0))
    return totals.filter(changed).sort_by(RELATION)


_NOTHING = pa.schema(
    [
        (RELATION, pa.string()),
        *((name, pa.int64()) for name in (*arguments(NARROWEST), *STORED_NUMBERS)),
    ]
)


def _filled(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the facts with all argument columns; unused ones are 0."""
    zeros = pa.array([0], pa.int64()).take(pa.array([0] * table.num_rows, pa.int8()))
    columns = [
        table[name].fill_null(0) if name in table.column_names else zeros
        for name in keys[1:]
    ]
    relation = table[RELATION].cast(pa.string())
    numbers = [table[name] for name in STORED_NUMBERS]
    return pa.table([relation, *columns, *numbers], names=[*keys, *STORED_NUMBERS])


# ---------------------------------------------------------------------- rows and terms


def encoded(facts: Mapping[str, pa.Table], dictionary: Dictionary) -> pa.Table:
    """Encode facts with their numbers, by relation, in the layout of the table."""
    columns = [
        table.column(at)
        for table in facts.values()
        for at in range(table.num_columns - len(STORED_NUMBERS))
    ]
    # All columns at once, so each constant is hashed once.
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
    """Decode rows of one relation to terms, with their numbers."""
    terms = [dictionary.decode(rows[name]) for name in arguments(arity)]
    numbers = [rows[name] for name in STORED_NUMBERS]
    names = [str(at) for at in range(arity)]
    return pa.table([*terms, *numbers], names=[*names, *STORED_NUMBERS])


def split_by_relation(facts: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each relation."""
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
    """Return the constants of a file of terms."""
    kinds = table["kind"].combine_chunks().cast(pa.uint8())
    texts = table["text"].combine_chunks()
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


# --------------------------------------------------------------------- equal constants


def clique_changes(cliques: NewCliques) -> pa.Table:
    """Return the removed and added pairs of a constant and its representative.

    A constant that is its own representative is in no pair.
    """
    members = as_terms(cliques.members.column(0))
    return pa.concat_tables(
        [
            _pairs(members, as_terms(cliques.before.column(0)), -1),
            _pairs(members, as_terms(cliques.after.column(0)), 1),
        ]
    )


def _pairs(members: pa.StructArray, ones: pa.StructArray, holds: int) -> pa.Table:
    """Return pairs as rows like those of facts, added or removed."""
    is_other = pc.or_(
        *(
            pc.not_equal(pc.struct_field(members, [at]), pc.struct_field(ones, [at]))
            for at in (0, 1)
        )
    )
    pairs = pa.table([members, ones], names=["0", "1"]).filter(is_other)
    nothing = pa.array(np.zeros(pairs.num_rows, np.int64))
    pairs = pairs.append_column(
        STORED_NUMBERS[0], pa.array(np.full(pairs.num_rows, holds, np.int64))
    )
    for name in STORED_NUMBERS[1:]:
        pairs = pairs.append_column(name, nothing)
    return pairs
