"""Many look-ups at once find what single ones find."""

from __future__ import annotations

import numpy as np
import pytest

import evermat
from evermat.engines.embedded.index import SPREAD
from evermat.engines.embedded.kernels.instructions import BLOCK
from evermat.engines.embedded.kernels.layout import address
from evermat.engines.embedded.kernels.lookups import find_rows
from evermat.engines.embedded.relation import Relation


def filled(arity: int, sizes: list[int], most: int, seed: int) -> Relation:
    """A relation whose rows have come in so many batches."""
    numbers = np.random.default_rng(seed)
    relation = Relation("r", arity)
    for size in sizes:
        table = numbers.integers(0, most, (arity, size)).astype(np.uint32)
        table = np.unique(table, axis=1)
        new = table[:, relation.find(table) < 0]
        keys = relation.keys_of(new)
        order = np.argsort(keys, kind="stable")
        relation.append(keys[order], new[:, order])
    return relation


@pytest.mark.parametrize("has_directories", [False, True])
@pytest.mark.parametrize(
    ("arity", "most"), [(1, 900), (2, 4), (2, 40), (2, 5000), (3, 12), (4, 1 << 20)]
)
@pytest.mark.parametrize("sizes", [[], [5], [700], [700, 90, 9]])
def test_agree_find_rows(
    arity: int, most: int, sizes: list[int], *, has_directories: bool
) -> None:
    relation = filled(arity, sizes, most, seed=1)
    index = relation.primary
    if has_directories:
        index.spread = SPREAD
        index.make_directories()
    relation.require_layout()
    numbers = np.random.default_rng(2)
    for size in (0, 1, 7, BLOCK):
        asked = numbers.integers(0, most, (arity, size)).astype(np.uint32)
        if relation.count:
            chosen = numbers.integers(0, relation.count, (size + 1) // 2)
            asked[:, ::2] = relation.table[:, chosen]
        room = np.empty((4, BLOCK), np.int64)
        find_rows(
            relation.address,
            address(index.layout),
            arity,
            np.ascontiguousarray(asked.T).ravel(),
            size,
            np.empty(BLOCK, np.uint64),
            np.empty(BLOCK, np.uint32),
            room,
        )
        assert room[0, :size].tolist() == relation.find(asked).tolist()


RULES = """
    linked(?x, ?y) :- edge(?x, ?y, ?w), ?w != 3 .
    linked(?y, ?x) :- edge(?x, ?y, 3) .
    twice(?x, ?z) :- linked(?x, ?y), linked(?y, ?z), not barred(?x, ?z) .
    near(?x, ?y) :- linked(?x, ?y), linked(?y, ?x) .
    near(?x, ?x) :- linked(?x, ?x) .
    back(?x, ?y, ?w) :- edge(?x, ?y, ?w), edge(?y, ?x, ?w) .
    kept(?x, ?y) :- twice(?x, ?y), not back(?x, ?y, 3) .
    end(?x) :- kept(?x, ?y) .
    end(?y) :- near(?x, ?y) .
    end(?x) :- nobody(?x) .
    plain(?x) :- end(?x), not nobody(?x) .
"""
"""Facts with many proofs and with one, tests of all kinds, and an empty relation."""

DERIVED = ("linked", "twice", "near", "back", "kept", "end", "plain")


@pytest.mark.parametrize("algorithm", ["bf", "dred"])
@pytest.mark.parametrize("seed", range(3))
def test_agree_blocks_with_a_computation_from_scratch(
    seed: int, algorithm: str
) -> None:
    """Batches of several blocks; relations of several runs, which come on the way."""
    numbers = np.random.default_rng(seed)

    def some(count: int, *most: int) -> set[tuple[int, ...]]:
        columns = [numbers.integers(0, each, count).tolist() for each in most]
        return set(zip(*columns, strict=True))

    edges, barred = some(500, 60, 60, 5), some(150, 60, 60)
    kb = evermat.KnowledgeBase(RULES, counters=False)
    kb.load({"edge": sorted(edges), "barred": sorted(barred)})
    for _ in range(24):
        gone = set(list(edges)[:120:3])
        come = some(40, 60, 60, 5)
        freed, shut = set(list(barred)[:9]), some(9, 60, 60)
        kb.update(
            delete={"edge": sorted(gone), "barred": sorted(freed)},
            insert={"edge": sorted(come), "barred": sorted(shut)},
            algorithm=algorithm,
        )
        edges = (edges - gone) | come
        barred = (barred - freed) | shut
    fresh = evermat.KnowledgeBase(RULES, counters=False)
    fresh.load({"edge": sorted(edges), "barred": sorted(barred)})
    for name in DERIVED:
        assert set(kb.facts(name).to_list()) == set(fresh.facts(name).to_list())
