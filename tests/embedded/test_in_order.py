"""Heads that come in order are counted early, and come to the same as all at once."""

# ruff: noqa: SLF001, N803  mutants are made in private functions, and speak of classes

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from evermat.engines.embedded import cores, dedup
from evermat.engines.embedded.dedup import (
    CountedPieces,
    Heads,
    HeadsInOrder,
    _Chunks,
    find_or_append,
)
from evermat.engines.embedded.relation import Relation
from planting import Mutant, assign, fails, plant


def keys_of(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array([(a << 32) | b for a, b in pairs], np.uint64)


@pytest.fixture(autouse=True)
def _little_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is counted early and divided, however little it is."""
    monkeypatch.setattr(dedup, "EARLY", 6)
    monkeypatch.setattr(dedup, "CHUNK", 16)
    monkeypatch.setattr(cores, "ALONE", 1)
    monkeypatch.setattr(cores, "core_count", lambda: 3)


def play(seed: int) -> None:
    """Count heads that are mostly, but not always, in order, and give them rows."""
    luck = random.Random(seed)  # noqa: S311  a seeded game, no secret
    greatest = luck.choice([1, 4, 30, 2**32 - 1])
    pairs = [
        (luck.randint(0, greatest), luck.randint(0, luck.choice([3, 2**32 - 1])))
        for _ in range(luck.randrange(90))
    ]
    if luck.random() < 0.8:
        pairs.sort(key=lambda pair: pair[0])
    expected = Counter(keys_of(pairs).tolist())
    counted = gather(luck, pairs).counted()
    if counted is None:
        assert not expected
        return
    pieces = counted.keys if isinstance(counted, CountedPieces) else [counted.keys]
    assert np.concatenate(pieces).tolist() == sorted(expected)
    assert counted.counts.tolist() == [expected[key] for key in sorted(expected)]
    _give_rows(luck, pairs)


def gather(luck: random.Random, pairs: list[tuple[int, int]]) -> Heads:
    """Cores derive blocks of a scan in turn."""
    parts = [Heads(2, in_order=True) for _ in range(luck.randint(1, 3))]
    place = 0
    while place < len(pairs):
        mine = luck.choice(parts)
        for _ in range(luck.randint(1, 3)):
            batch = keys_of(pairs[place : place + luck.randint(1, 20)])
            place += batch.size
            if luck.random() < 0.5:
                mine.add_keys(batch)
            else:
                room = mine.room(batch.size + 2)
                room[: batch.size] = batch
                mine.take(room[: batch.size])
        mine.end_block()
    for part in parts:
        part.count_pending()
    heads = Heads(2)
    heads.add_all(parts)
    return heads


def _give_rows(luck: random.Random, pairs: list[tuple[int, int]]) -> None:
    """Heads that have rows keep them, others get the next ones in order."""
    relation = Relation("p", 2)
    rows: dict[tuple[int, int], int] = {}
    for _ in range(3):
        some = luck.sample(pairs, luck.randint(1, len(pairs)))
        if luck.random() < 0.8:
            some.sort(key=lambda pair: pair[0])
        heads = gather(luck, some)
        if luck.random() < 0.2:
            # Another query has derived the same.
            heads.add_all([_in_order(some)])
        counted = heads.counted()
        assert counted is not None
        for pair in sorted(set(some)):
            rows.setdefault(pair, len(rows))
        found = find_or_append(relation, counted)
        assert found.tolist() == [rows[pair] for pair in sorted(set(some))]
        assert list(map(tuple, relation.whole_table().T.tolist())) == list(rows)
        assert not relation.status[: relation.count].any()


def _in_order(pairs: list[tuple[int, int]]) -> Heads:
    heads = Heads(2, in_order=True)
    heads.add_keys(keys_of(sorted(pairs)))
    heads.end_block()
    return heads


@pytest.mark.parametrize("seed", range(150))
def test_agree_heads_in_order(seed: int) -> None:
    play(seed)


def test_heads_in_order_hold_no_more_memory_than_they_need() -> None:
    heads = dedup.HeadsInOrder()
    for first in range(1000):
        heads.room(8)[:] = keys_of([(first, 1)] * 8)
        assert heads.take(8)
    assert sum(part.keys.size for part in heads.counted) >= 998
    chunks = [part.keys.base for part in heads.counted]
    sizes = {id(chunk): chunk.nbytes for chunk in chunks if chunk is not None}
    assert 12 * 998 <= sum(sizes.values()) < 2 * 12 * 1000


# ----------------------------------------------------------------- planted bugs

MUTANTS = (
    Mutant(
        "a block goes on with the part of the block before",
        _Chunks.end_part,
        lambda self: self._end,
        lambda self: self._start,
    ),
    Mutant(
        "a chunk that is full is written to from its beginning",
        _Chunks.room,
        lambda _empty, size, CHUNK: _empty(max(size, CHUNK)),
        lambda self, _empty, CHUNK, size: (
            self._chunk if self._end else _empty(CHUNK + size)
        ),
    ),
    Mutant(
        "pieces are read from the beginning of each of them",
        cores.within,
        lambda piece, low, high: piece[low:high],
        lambda piece, high, low: piece[: high - low],
    ),
    Mutant(
        "new keys of a piece are numbered like those of the piece before",
        Relation.append_new,
        lambda first, start, done: first + start + done,
        lambda first, start: first + start,
    ),
    Mutant(
        "heads that another query has counted are lost",
        Heads.counted,
        lambda self: len(self._pieces) == 1 and (not self._counted),
        lambda self: self._pieces,
    ),
    Mutant(
        "what is not counted yet is lost",
        HeadsInOrder._count,
        lambda keys, complete: keys[complete:],
        lambda keys, self: keys[: self._pending],
    ),
    Mutant(
        "where parts overlap, only one of them counts",
        dedup._add,
        lambda merged_pair, tail, _slice, part, end: merged_pair(
            tail, _slice(part, 0, end)
        ),
        lambda tail: tail,
    ),
    Mutant(
        "a part behind the last key of another is merged with it",
        dedup._add,
        lambda: "right",
        lambda: "left",
    ),
    Mutant(
        "more room does not have what was written before",
        HeadsInOrder.room,
        lambda self: self._room[: self._pending],
        lambda longer, self: longer[: self._pending],
    ),
    Mutant(
        "what was counted early is forgotten when order is lost",
        Heads._give_up_order,
        lambda self, as_one, joined, heads: self._counted.append(
            as_one(joined(heads.counted))
        ),
    ),
    Mutant(
        "all slices number their new keys from the first row on",
        Relation.append_new,
        lambda low, sizes, start: (low, low + sizes[start]),
        lambda low: (low, low),
    ),
    Mutant(
        "new rows have the status of rows before them",
        Relation.append_new,
        lambda status, mine: assign(status[mine], 0),
        lambda status, mine: assign(status[mine], 1),
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(play, seed) for seed in range(150))
