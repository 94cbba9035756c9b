"""Rules over few rows on the cluster: one task reads all rows and runs the rules.

For a few thousand rows, Spark takes far longer to plan the joins of a round than any
engine takes to execute them. So the plan is only a union of the inputs, and the
embedded engine joins inside the task. Ids are numbered densely, as in `inside_tasks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.algebra import QuerySet, Role, Views
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.fact_sets import Settled
from evermat.engines.spark.blocks import united, width_of
from evermat.engines.spark.decomposition import constants_of
from evermat.engines.spark.inside_tasks import Numbering
from evermat.engines.spark.on_driver import patterns_read
from evermat.engines.spark.row_tables import key_columns
from evermat.engines.spark.sets import rows_of
from evermat.engines.spark.tasks import map_in_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from evermat.algebra import Facts, Query
    from evermat.engines.embedded.arrays import Rows
    from evermat.engines.spark.blocks import Cluster

MOST_ROWS = 5_000
"""Input rows of a round up to which one task reads them all."""

Part = tuple[Role, bool]
"""A set that is read: its role, and whether only local patterns read it."""


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """The parameters of the task.

    Attributes:
        queries: the rules.
        parts: the sets that rows belong to, in the order of their numbers.
        changes: those that are changes, even if they have no rows.
        names: the relations of rows, by their tag.
        arities: the number of columns of each relation.
        width: the number of columns of derived rows.
    """

    queries: tuple[Query, ...]
    parts: tuple[Part, ...]
    changes: frozenset[Role]
    names: Mapping[int, str]
    arities: Mapping[str, int]
    width: int


def round_in_one_task(
    cluster: Cluster, queries: list[Query], views: Views
) -> DataFrame | None:
    """Return derived facts, their counts, and whether positive patterns see them.

    None if the rules read many rows, or facts without arguments.
    """
    read: dict[Part, dict[str, int]] = {}
    for pattern in patterns_read(tuple(queries), views):
        relations = read.setdefault((pattern.role, pattern.local), {})
        relations[pattern.relation] = len(pattern.operands)
    arities = {query.head.relation: len(query.head.operands) for query in queries}
    width = max(map(width_of, arities.values()))
    # Derived facts are compared with known ones.
    read[Role.ALL, False] = read.get((Role.ALL, False), {}) | arities
    for relations in read.values():
        arities |= relations
    if not all(arities.values()):
        return None
    sources = {}
    for part, relations in read.items():
        facts = views.local if part[1] else _view(views, part[0])
        tags = frozenset(map(cluster.tag, relations))
        if facts is not None:
            sources[part] = rows_of(facts, cluster, tags)
    bound = sum(rows.bound for rows in sources.values())
    if not 0 < bound <= MOST_ROWS:
        return None
    widest = max(rows.width for rows in sources.values())
    # A task derives facts with constants that may occur only in rules.
    cluster.dictionary.encode_constants(list(dict.fromkeys(constants_of(queries))))
    work = Round(
        queries=tuple(queries),
        parts=tuple(sources),
        changes=frozenset(role for role in _CHANGES if _view(views, role) is not None),
        names={cluster.tag(name): name for name in arities},
        arities=arities,
        width=width,
    )
    plans = (
        f"SELECT {number} AS part, * FROM ({rows.query(widest)})"  # noqa: S608
        for number, rows in enumerate(sources.values())
        if rows.bound
    )
    columns = ", ".join(f"{name} bigint" for name in [*key_columns(width), "n"])
    columns += ", old boolean"
    frame = cluster.sql(united(plans, bound))
    return map_in_tasks(frame, partial(run_round, work), columns)


_CHANGES = (Role.CHANGED, Role.CHANGED_ABSENT)


def _view(views: Views, role: Role) -> Facts | None:
    return {
        Role.ALL: views.positive,
        Role.ABSENT: views.negative,
        Role.CHANGED: views.delta_positive,
        Role.CHANGED_ABSENT: views.delta_negative,
    }[role]


def run_round(
    work: Round, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Convert rows to the facts derived from them; called by Spark in a worker."""
    received = list(batches)
    if received:
        yield from derive(work, pa.Table.from_batches(received))


def derive(work: Round, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield derived facts: `tag`, `c0`, …, counts, and whether they are known."""
    tables = _tables(work, rows)
    numbering = Numbering(work.queries, tables.values())
    engine = EmbeddedEngine()
    for name, arity in work.arities.items():
        engine.declare(name, arity)
    read: dict[Part, dict[str, Rows]] = {part: {} for part in work.parts}
    for (part, name), table in tables.items():
        read[part][name] = numbering.add(engine, name, table).every
    sets = {part: Settled(found) for part, found in read.items()}
    nothing = Settled({})
    gained, lost = (
        sets.get((role, False), nothing) if role in work.changes else None
        for role in _CHANGES
    )
    views = Views(
        positive=sets[Role.ALL, False],
        negative=sets.get((Role.ABSENT, False), nothing),
        delta_positive=gained,
        delta_negative=lost,
        local=sets.get((Role.ALL, True)),
    )
    counts = engine.derive_counts(QuerySet(numbering.queries), views)
    tags = {name: tag for tag, name in work.names.items()}
    known = sets[Role.ALL, False].rows
    for name, found, derived in counts.parts():
        columns = numbering.ids_of(engine.store.relations[name].table[:, found])
        zeros = np.zeros(found.size, np.int64)
        columns += [zeros] * (work.width - len(columns))
        numbers = derived.astype(np.int64)
        old = np.isin(found, known.get(name, NO_ROWS))
        yield pa.record_batch(
            [pa.array(each) for each in (zeros + tags[name], *columns, numbers, old)],
            names=[*key_columns(work.width), "n", "old"],
        )


def _tables(work: Round, rows: pa.Table) -> dict[tuple[Part, str], np.ndarray]:
    """Return the rows of each relation in each set, by column."""
    columns = {name: rows[name].to_numpy() for name in rows.column_names}
    tables = {}
    for number, part in enumerate(work.parts):
        for tag, name in work.names.items():
            chosen = (columns["part"] == number) & (columns["tag"] == tag)
            if chosen.any():
                places = range(work.arities[name])
                tables[part, name] = np.stack(
                    [columns[f"c{at}"][chosen] for at in places]
                )
    return tables
