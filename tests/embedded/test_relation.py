from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.engines.embedded import index
from evermat.engines.embedded.dedup import find_known, intern_rows
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.fact_sets import Settled
from evermat.engines.embedded.relation import NONRECURSIVE, RECURSIVE, Relation

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL = st.integers(0, 6)
BATCHES = st.integers(0, 4).flatmap(
    lambda arity: st.tuples(
        st.just(arity), st.lists(st.lists(st.tuples(*[SMALL] * arity)), max_size=5)
    )
)


def table_of(rows: Sequence[tuple[int, ...]], arity: int) -> np.ndarray:
    return np.array(rows, np.uint32).reshape(len(rows), arity).T


def rows_of(relation: Relation) -> set[tuple[int, ...]]:
    rows = [tuple(row) for row in relation.table[:, : relation.count].T.tolist()]
    assert len(rows) == len(set(rows)), "a fact has two rows"
    return set(rows)


@given(BATCHES)
def test_law_a_fact_has_one_row_for_ever(
    case: tuple[int, list[list[tuple[int, ...]]]],
) -> None:
    arity, batches = case
    relation = Relation("p", arity)
    row_of: dict[tuple[int, ...], int] = {}
    for batch in batches:
        intern_rows(relation, table_of(batch, arity))
        for fact in batch:
            (row,) = find_known(relation, table_of([fact], arity)).tolist()
            assert row_of.setdefault(fact, row) == row
    assert rows_of(relation) == set(row_of)


@given(BATCHES, st.data())
def test_agree_every_index_finds_what_a_scan_finds(
    case: tuple[int, list[list[tuple[int, ...]]]], data: st.DataObject
) -> None:
    arity, batches = case
    if arity == 0:
        return
    relation = Relation("p", arity)
    columns = tuple(sorted(data.draw(st.sets(st.integers(0, arity - 1), min_size=1))))
    for batch in batches:
        intern_rows(relation, table_of(batch, arity))
        goal = data.draw(st.tuples(*[SMALL] * arity))
        found = relation.index(columns)
        width = len(columns)
        goals = np.array([[goal[at]] for at in found.columns[:width]], np.uint32)
        rows: set[int] = set()
        for run in found.runs:
            if width == 1:
                first, last, _ = run.find_halves(goals[0])
            else:
                first, last, _ = run.find_keys(index.make_keys(goals))
            rows |= set(run.rows[first[0] : last[0]].tolist())
        expected = {
            row
            for row, fact in enumerate(relation.table[:, : relation.count].T.tolist())
            if all(fact[at] == goal[at] for at in columns)
        }
        assert rows == expected


def test_equal_hashes_of_different_facts_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def same_hash(_columns: np.ndarray, hashes: np.ndarray) -> None:
        hashes[:] = 42

    monkeypatch.setattr("evermat.engines.embedded.kernels.keys.hash_columns", same_hash)
    relation = Relation("p", 3)
    facts = [(1, 2, 3), (3, 2, 1), (1, 2, 3), (2, 2, 2)]
    intern_rows(relation, table_of(facts, 3))
    intern_rows(relation, table_of([(9, 9, 9), (3, 2, 1)], 3))
    assert rows_of(relation) == {*facts, (9, 9, 9)}


@pytest.mark.parametrize("arity", [1, 2, 3])
def test_compacting_keeps_facts_counts_and_status(arity: int) -> None:
    engine = EmbeddedEngine()
    engine.declare("p", arity)
    store = engine.store
    relation = store.relations["p"]
    facts = [(number,) * arity for number in range(50)]
    intern_rows(relation, table_of(facts, arity))
    rows = relation.find(table_of(facts, arity))
    store.add(Settled({"p": rows}))
    store.add_explicit(Settled({"p": rows[::2]}))
    relation.counter(NONRECURSIVE)[rows] = np.arange(50) + 1
    relation.counter(RECURSIVE)[rows] = 100 - np.arange(50)
    store.remove(Settled({"p": rows[10:40]}))
    store.remove_explicit(Settled({"p": rows[10:40]}))
    expected = {facts[n]: (n + 1, 100 - n) for n in (*range(10), *range(40, 50))}
    relation.compact()
    assert (relation.count, relation.alive, relation.explicit_count) == (20, 20, 10)
    for fact, counts in expected.items():
        (row,) = find_known(relation, table_of([fact], arity)).tolist()
        assert (
            int(relation.counter(NONRECURSIVE)[row]),
            int(relation.counter(RECURSIVE)[row]),
        ) == counts


def test_runs_are_merged_so_that_few_remain() -> None:
    relation = Relation("p", 2)
    for number in range(500):
        intern_rows(relation, table_of([(number * 7919 % 1000, number)], 2))
    assert len(relation.primary.runs) <= 8
    assert rows_of(relation) == {(n * 7919 % 1000, n) for n in range(500)}
