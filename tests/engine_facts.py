"""Facts of the oracle into an engine and out again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evermat.columns import constants, table_of_rows
from evermat.values import constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from evermat.algebra import Counts, Engine, Facts, SettledFacts, Snapshot
    from oracle import Fact, Row


def tables(facts: Iterable[Fact]) -> Iterator[tuple[str, pa.Table]]:
    """A table for each predicate."""
    rows: dict[str, list[Row]] = {}
    for predicate, row in facts:
        rows.setdefault(predicate, []).append(row)
    for predicate, group in rows.items():
        yield predicate, table_of_rows(group, len(group[0]))


def interned(engine: Engine, facts: Iterable[Fact]) -> SettledFacts:
    """The facts as a settled set."""
    growing = engine.growing()
    for predicate, table in tables(facts):
        growing.add(engine.intern(predicate, table))
    return engine.settle(growing)


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of a table of terms."""
    if not table.num_columns:
        return [()] * table.num_rows
    columns = [constants(column) for column in table.columns]
    return list(zip(*columns, strict=True))


def facts_in(snapshot: Snapshot) -> set[Fact]:
    """The facts of a snapshot; each must be there only once."""
    found: set[Fact] = set()
    for relation, size in snapshot.relations().items():
        rows = rows_of(snapshot.read(relation))
        assert len(rows) == len(set(rows)) == size
        found |= {(relation, row) for row in rows}
    return found


def facts_of(engine: Engine, facts: Facts) -> set[Fact]:
    """The facts of a view."""
    return facts_in(engine.snapshot(facts))


def stored_counts(
    engine: Engine, read: Callable[[str], pa.Table] | None = None
) -> dict[Fact, tuple[int, int]]:
    """C_nr and C_r of every materialised fact."""
    found: dict[Fact, tuple[int, int]] = {}
    for relation, arity in engine.relations().items():
        table = (read or engine.read_counts)(relation)
        rows = rows_of(table.select(range(arity)))
        nonrecursive = table.column("c_nr").to_pylist()
        recursive = table.column("c_r").to_pylist()
        for row, *both in zip(rows, nonrecursive, recursive, strict=True):
            found[relation, row] = (both[0], both[1])
    return found


def numbers_of(engine: Engine, counts: Counts) -> Counter[Fact]:
    """The numbers of a multiset. Ends the transaction under way: they are counters."""
    nothing = engine.no_facts()
    engine.recursive_counts.add(counts)
    facts = counts.facts
    engine.commit(
        deleted=nothing, added=facts, explicit_removed=nothing, explicit_added=nothing
    )
    stored = stored_counts(engine)
    return Counter({fact: number for fact, (_, number) in stored.items() if number})


def make_facts(**relations: Iterable[tuple[object, ...]]) -> set[Fact]:
    """Facts by predicate: `make_facts(edge=[(1, 2)])`."""
    return {
        (name, tuple(constant(value) for value in row))
        for name, rows in relations.items()
        for row in rows
    }
