from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.dedup import Counted, Heads, count_wide
from evermat.engines.embedded.index import Index, Run, make_keys
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.sorting import sort_pairs

SMALL = st.integers(0, 40)
WIDE = st.integers(0, 2**32 - 1)


def keys_of(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array([(a << 32) | b for a, b in pairs], np.uint64)


PAIRS = st.one_of(
    st.lists(st.tuples(SMALL, SMALL), max_size=300),
    st.lists(st.tuples(WIDE, WIDE), max_size=120),
    st.lists(st.tuples(SMALL, WIDE), max_size=120),
)


@given(PAIRS)
def test_agree_sort_keys(pairs: list[tuple[int, int]]) -> None:
    keys = keys_of(pairs)
    expected = sorted(keys.tolist())
    assert kernels.sort_keys(keys.copy(), np.empty_like(keys)).tolist() == expected


@given(PAIRS)
def test_agree_sort_pairs(pairs: list[tuple[int, int]]) -> None:
    keys = keys_of(pairs)
    rows = np.arange(keys.size, dtype=np.int32)
    ordered, carried = sort_pairs(keys.copy(), rows.copy())
    assert ordered.tolist() == sorted(keys.tolist())
    assert (keys[carried] == ordered).all()
    assert sorted(carried.tolist()) == rows.tolist()


@given(st.lists(PAIRS, min_size=1, max_size=4))
def test_agree_heads_are_counted(batches: list[list[tuple[int, int]]]) -> None:
    heads = Heads(2)
    for batch in batches:
        heads.add_keys(keys_of(batch))
    expected = Counter(key for batch in batches for key in keys_of(batch).tolist())
    counted = heads.counted()
    if counted is None:
        assert not expected
        return
    assert isinstance(counted, Counted)
    assert counted.keys.tolist() == sorted(expected)
    assert counted.counts.tolist() == [expected[key] for key in sorted(expected)]


@given(st.lists(st.lists(st.tuples(SMALL, SMALL, SMALL)), min_size=1, max_size=4))
def test_agree_wide_heads_are_counted(
    batches: list[list[tuple[int, int, int]]],
) -> None:
    heads = Heads(3)
    for batch in batches:
        columns = np.array(batch, np.uint32).reshape(-1, 3).T
        heads.add_columns(list(columns), columns.shape[1])
    expected = Counter(row for batch in batches for row in batch)
    found: Counter[tuple[int, ...]] = Counter()
    counted = heads.counted()
    if counted is not None:
        assert isinstance(counted, Counted)
        rows = [tuple(row) for row in counted.facts.tolist()]
        assert counted.keys.tolist() == sorted(counted.keys.tolist())
        found = Counter(dict(zip(rows, counted.counts.tolist(), strict=True)))
    assert found == expected


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_agree_many_wide_heads_are_divided_and_counted(cores: int) -> None:
    random = np.random.default_rng(7)
    batches = [random.integers(0, 40, (3, size), np.uint32) for size in (50_000, 9, 1)]
    parts = [Counted(make_keys(batch), NO_ROWS, batch.T) for batch in batches]
    # What was counted before goes in with its counts.
    counted = count_wide([*parts, count_wide(parts, 1)], cores)
    expected = Counter(map(tuple, np.concatenate(batches, axis=1).T.tolist()))
    rows = [tuple(row) for row in counted.facts.tolist()]
    assert len(rows) == len(set(rows))
    found = dict(zip(rows, counted.counts.tolist(), strict=True))
    assert found == {row: 2 * times for row, times in expected.items()}
    assert counted.keys.tolist() == sorted(make_keys(counted.facts.T).tolist())


@given(PAIRS, st.lists(st.one_of(SMALL, WIDE), max_size=50))
def test_agree_runs_find_by_half_and_by_key(
    pairs: list[tuple[int, int]], goals: list[int]
) -> None:
    keys, rows = sort_pairs(keys_of(pairs), np.arange(len(pairs), dtype=np.int32))
    if not keys.size:
        return
    run = Run(keys, rows)
    wanted = [a for a, _ in pairs[:20]] + goals
    first, last, total = run.find_halves(np.array(wanted, np.uint32))
    by_half = [sum(a == goal for a, _ in pairs) for goal in wanted]
    assert (last - first).tolist() == by_half
    assert total == sum(by_half)
    for goal, low, high in zip(wanted, first, last, strict=True):
        assert all(pairs[row][0] == goal for row in rows[low:high])
    pairs_wanted = pairs[:20] + [(goal, goal) for goal in goals]
    first, last, _ = run.find_keys(keys_of(pairs_wanted))
    assert (last - first).tolist() == [pairs.count(pair) for pair in pairs_wanted]


@given(PAIRS, PAIRS)
def test_agree_sorted_goals_are_found(
    pairs: list[tuple[int, int]], goals: list[tuple[int, int]]
) -> None:
    known = sorted(set(keys_of(pairs).tolist()))
    wanted = sorted(set(keys_of(goals + pairs[:10]).tolist()))
    found = np.full(len(wanted), -1, np.int32)
    rows = np.arange(len(known), dtype=np.int32)
    kernels.find_sorted(
        np.array(wanted, np.uint64), np.array(known, np.uint64), rows, found
    )
    assert found.tolist() == [
        known.index(key) if key in known else -1 for key in wanted
    ]


def test_agree_long_runs_are_sorted_and_merged_by_several_cores() -> None:
    random = np.random.default_rng(7)
    keys = random.permutation(np.arange(600_000, dtype=np.uint64) << np.uint64(20))
    rows = np.arange(keys.size, dtype=np.int32)
    index = Index((0, 1))
    for part in (slice(0, 400_000), slice(400_000, 600_000)):
        index.add(keys[part].copy(), rows[part].copy())
    (run,) = index.runs
    assert (run.keys == np.sort(keys)).all()
    assert (keys[run.rows] == run.keys).all()
