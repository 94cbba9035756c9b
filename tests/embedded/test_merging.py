"""Runs of an index are merged into other memory, or in place if there is room."""

# ruff: noqa: SLF001  mutants are made in private functions

from __future__ import annotations

import random

import numpy as np
import pytest

from broken_off_updates import at_line, is_ours, send_signal
from evermat.engines.embedded import index as indexes
from evermat.engines.embedded import sorting
from evermat.engines.embedded.index import Index
from evermat.engines.embedded.sorting import SortedPairs
from evermat.runtime.interrupts import deferred
from planting import Mutant, fails, plant


def keys_of(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array([(a << 32) | b for a, b in pairs], np.uint64)


def play(seed: int) -> None:
    """Merge random keys, with or without room for them, by some number of cores."""
    chance = random.Random(seed)  # noqa: S311  not for secrets
    widest = chance.choice((3, 50, 1 << 31))
    sides = [
        np.sort(keys_of([(chance.randrange(widest), 0) for _ in range(size)]))
        for size in (chance.randrange(60), chance.randrange(60))
    ]
    left, right = (side.size for side in sides)
    size = left + right
    room = left + chance.choice((0, right, right + 7))
    keys, rows = np.zeros(room, np.uint64), np.full(room, 99, np.int32)
    keys[:left], rows[:left] = sides[0], np.arange(left)
    others = -1 - np.arange(right, dtype=np.int32)
    step = max(1, -(-left // chance.randint(1, 4)))
    shares = [slice(low, min(low + step, left)) for low in range(0, left, step)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "slices_of", lambda _: shares or [slice(0, 0)])
        merged = sorting.merge_pairs(
            SortedPairs(keys, rows, left), SortedPairs(sides[1].copy(), others)
        )
    assert merged[2] == size
    assert (merged[0] is keys) == (room >= size)
    found, carried = merged[0][:size].tolist(), merged[1][:size].tolist()
    assert found == np.sort(np.concatenate(sides)).tolist()
    assert sorted(carried) == list(range(-right, left))
    # Each row is still beside its key.
    assert found == [
        int(sides[row < 0][row if row >= 0 else -1 - row]) for row in carried
    ]


@pytest.mark.parametrize("seed", range(200))
def test_keys_are_merged_with_their_rows(seed: int) -> None:
    play(seed)


def test_large_runs_grow_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "LARGE", 16)
    monkeypatch.setattr(indexes, "TAIL", 0)
    index = Index((0, 1))
    numbers = np.random.default_rng(1).permutation(60)
    places = set()
    for part in (slice(0, 10), slice(10, 20), slice(20, 40), slice(40, 60)):
        rows = numbers[part].astype(np.int32)
        index.add(rows.astype(np.uint64) << np.uint64(32), rows)
        places.add(index.runs[0].keys.ctypes.data)
    (run,) = index.runs
    assert run.rows.tolist() == list(range(60))
    assert (run.keys >> np.uint64(32)).tolist() == list(range(60))
    assert len(places) == 2


def interrupt_at(number: int, keys: np.ndarray) -> bool:
    """Interrupt merging into a run with room before some line; whether it came."""
    index = Index((0, 1))
    first = keys_of([(n, 0) for n in range(0, 90, 2)])
    index.add_sorted(first, np.arange(45, dtype=np.int32))
    index.runs = [index.runs[0].as_tail()]
    came = False

    def work() -> None:
        nonlocal came
        try:
            with deferred():
                index.add_sorted(keys.copy(), 45 + np.arange(keys.size, dtype=np.int32))
        except KeyboardInterrupt:
            came = True

    at_line(number, send_signal, is_ours)(work)
    both = np.sort(np.concatenate([first, keys]))
    found = np.concatenate([run.keys for run in index.runs])
    rows = np.concatenate([run.rows for run in index.runs])
    assert found.tolist() in (first.tolist(), both.tolist())
    every = np.concatenate([first, keys])
    assert every[rows].tolist() == found.tolist()
    return came


def test_an_interrupt_leaves_no_run_half_merged() -> None:
    keys = keys_of([(n, 0) for n in range(1, 60, 2)])
    lines = 1
    while interrupt_at(lines, keys):
        lines += 1
    assert lines > 50


def test_nothing_is_lost_if_there_is_no_memory_to_merge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexes, "TAIL", 0)
    index = Index((0, 1))
    index.add(keys_of([(1, 2), (3, 4)]), np.array([0, 1], np.int32))

    def refuse(_: int) -> None:
        raise MemoryError

    monkeypatch.setattr(sorting, "empty_pairs", refuse)
    with pytest.raises(MemoryError):
        index.add(keys_of([(1, 5), (2, 2)]), np.array([2, 3], np.int32))
    monkeypatch.undo()
    # The index is as it was, and has what it is given again.
    index.add(keys_of([(1, 5), (2, 2)]), np.array([2, 3], np.int32))
    found = [index.rows_for(np.array([[key]], np.uint32)) for key in (1, 2, 3)]
    assert [sorted(rows) for rows in found] == [[0, 2], [3], [1]]


# ----------------------------------------------------------------- planted bugs

MUTANTS = (
    Mutant(
        "a core writes over what the next has not read",
        sorting._merge_in_place,
        lambda s: min(s.mine.start + s.theirs.start, s.mine.stop),
        lambda s: s.mine.start,
    ),
    Mutant(
        "keys that come before all on the left are lost",
        sorting._merge_in_place,
        lambda right, others, rest: right.keys[others][:rest],
        lambda keys, both, rest: keys[both.start : both.start + rest],
    ),
    Mutant(
        "rows that come before all on the left are lost",
        sorting._merge_in_place,
        lambda right, others, rest: right.rows[others][:rest],
        lambda rows, both, rest: rows[both.start : both.start + rest],
    ),
    Mutant(
        "runs grow beyond their room",
        sorting.merge_pairs,
        lambda left: left.keys_with_room.size,
        lambda left: 1 + left.keys_with_room.size,
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(play, seed) for seed in range(200))
