"""Work on slices, as on several cores, comes to the same as work on the whole."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.engines.embedded import cores, views
from evermat.engines.embedded.dedup import Numbered, give_rows, intern_rows
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.fact_sets import RowCounts, Settled
from evermat.engines.embedded.kernels import rows as kernels_rows
from evermat.engines.embedded.relation import MATERIALISED, NONRECURSIVE, Relation
from evermat.engines.embedded.store import missing_rows

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Rows

    Facts = set[tuple[int, ...]]

SMALL = st.integers(0, 5)


@pytest.fixture(autouse=True, scope="module")
def _slices() -> object:
    """Everything is divided, however little it is."""
    patch = pytest.MonkeyPatch()
    patch.setattr(cores, "ALONE", 1)
    patch.setattr(cores, "core_count", lambda: 3)
    yield
    patch.undo()


def test_jobs_done_together_return_in_their_order() -> None:
    jobs = [partial(pow, number, 2) for number in range(20)]
    assert cores.together(jobs) == [number**2 for number in range(20)]


def test_jobs_done_together_can_do_so_with_theirs() -> None:
    """However many wait for others, none waits for a core."""

    def work(depth: int) -> int:
        return sum(cores.together([partial(work, depth - 1)] * 3)) if depth else 1

    assert work(4) == 81


@pytest.mark.parametrize("failing", range(3))
def test_jobs_done_together_fail_together(failing: int) -> None:
    def work(number: int) -> None:
        if number == failing:
            raise MemoryError

    with pytest.raises(MemoryError):
        cores.together([partial(work, number) for number in range(3)])


@given(st.lists(st.booleans(), max_size=40))
def test_agree_chosen_rows(wanted: list[bool]) -> None:
    status = np.array(wanted, np.uint16)
    rows = np.arange(len(wanted), dtype=np.int32)

    def choose(part: slice, found: Rows) -> int:
        twins = np.full(part.stop - part.start, -1, np.int32)
        return kernels_rows.lost(status, rows[part], status, twins, 1, found)

    expected = [row for row, has_bit in enumerate(wanted) if has_bit]
    assert cores.chosen_rows(rows.size, choose).tolist() == expected


@given(st.lists(st.tuples(SMALL, SMALL, st.integers(0, 3)), max_size=30))
def test_agree_counts(changes: list[tuple[int, int, int]]) -> None:
    engine = EmbeddedEngine()
    counts: dict[tuple[str, int], int] = {}
    for relation, number, count in changes:
        counts[f"p{relation}", number] = count
    facts = {
        f"p{relation}": [n for name, n in counts if name == f"p{relation}"]
        for relation in range(6)
    }
    tables = {
        name: pa.table({"": numbers}) for name, numbers in facts.items() if numbers
    }
    numbers = [counts[name, n] for name in tables for n in sorted(facts[name])]
    settled = Settled(
        {name: engine.intern(name, tables[name]).every for name in tables}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views, "ALONE", 0)
        patch.setattr(views, "core_count", lambda: 3)
        counter = engine.nonrecursive_counts
        counter.add(RowCounts(settled, np.array(numbers, np.int32)))
        positive = counter.positive(settled).sizes()
        zero = counter.zero(settled).sizes()
    for name in tables:
        mine = [counts[name, n] for n in sorted(facts[name])]
        rows = settled.rows[name]
        known = engine.store.relations[name]
        assert known.counted(NONRECURSIVE, rows).tolist() == mine
        assert positive.get(name, 0) == sum(each > 0 for each in mine)
        assert zero.get(name, 0) == mine.count(0)


@settings(deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda arity: st.tuples(
            st.just(arity),
            *[st.sets(st.tuples(*[SMALL] * arity), max_size=30)] * 4,
        )
    )
)
def test_agree_missing_rows(
    case: tuple[int, Facts, Facts, Facts, Facts],
) -> None:
    arity, here, there, dead_here, dead_there = case
    sides = []
    for alive, dead in ((here, dead_here), (there, dead_there)):
        relation = Relation("p", arity)
        for facts in (dead, alive):
            table = np.array(sorted(facts), np.uint32).reshape(len(facts), arity).T
            rows = intern_rows(relation, table)
        relation.status[rows] |= MATERIALISED
        relation.alive = rows.size
        sides.append(relation)
    missing = missing_rows(*sides)
    if missing is None:
        held = sides[0].status[: sides[0].count] & MATERIALISED
        missing = np.flatnonzero(held).astype(np.int32)
    found = [tuple(fact) for fact in sides[0].table[:, missing].T.tolist()]
    assert sorted(found) == sorted(here - there)


Record = tuple[int, tuple[int, ...]]
"""A relation, whose number is its arity, and ids, of which it has as many."""
RECORDS = st.lists(st.tuples(st.integers(0, 3), st.tuples(*[SMALL] * 3)), max_size=20)


@given(RECORDS, RECORDS)
def test_agree_fresh_facts_are_given_rows(
    first: list[Record], second: list[Record]
) -> None:
    relations = [Relation(f"p{arity}", arity) for arity in range(4)]
    numbered = Numbered.of(relations)
    for records, may_be_known in ((first, False), (second, True)):
        stream = [n for number, ids in records for n in (number, *ids[:number])]
        found = {}
        for number, rows, counts in give_rows(
            np.array(stream, np.uint32), numbered, may_be_known=may_be_known
        ):
            table = relations[number].table[:, rows].T.tolist()
            found[number] = dict(zip(map(tuple, table), counts.tolist(), strict=True))
        assert found == {
            number: Counter(ids[:number] for other, ids in records if other == number)
            for number in {number for number, _ in records}
        }
    for number, relation in enumerate(relations):
        every = {ids[:number] for other, ids in first + second if other == number}
        assert relation.count == len(every)
