"""Few new rows are put into the last runs of indexes, where there is room."""

# ruff: noqa: N803  mutants speak of classes, and are made in private functions

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from evermat.engines.embedded import index
from evermat.engines.embedded.dedup import Numbered, give_rows
from evermat.engines.embedded.index import Run
from evermat.engines.embedded.kernels.lookups import find_row, key_of
from evermat.engines.embedded.relation import Relation
from planting import Mutant, assign, fails, plant

Fact = tuple[int, ...]


def facts_in(relation: Relation, by: index.Index) -> list[Fact]:
    """All facts, as the runs of an index have them."""
    found = []
    for run in by.runs:
        assert run.keys.size == run.rows.size
        assert (run.keys[1:] >= run.keys[:-1]).all()
        table = relation.table[:, run.rows]
        assert (index.make_keys(table[list(by.columns)]) == run.keys).all()
        found += [tuple(fact) for fact in table.T.tolist()]
    return found


def indexes_of(relation: Relation) -> list[index.Index]:
    """All that are asked for, up to date."""
    return [relation.primary, *([relation.index((1,))] if relation.arity > 1 else [])]


def compiled_code_finds(relation: Relation, fact: Fact) -> int:
    ids = np.array(fact, np.uint32)
    goal = key_of(ids, 0, len(fact))
    return int(
        find_row(relation.address, relation.primary.address, len(fact), goal, ids, 0)
    )


def play(seed: int) -> None:
    """Give rows to random facts, few or many at a time, and look them up again."""
    chance = random.Random(seed)  # noqa: S311  not for secrets
    arity = chance.choice((1, 2, 2))
    relation = Relation("p", arity)
    known: list[Fact] = []
    for _ in range(chance.randrange(1, 30)):
        if chance.random() < 0.9:
            for each in indexes_of(relation):
                relation.describe(each)
        size = chance.choice((1, 3, 20, 60))
        facts = {
            tuple(chance.randrange(400) for _ in range(arity)) for _ in range(size)
        }
        new = [fact for fact in facts if fact not in known]
        told = Counter({fact: chance.choice((1, 1, 2)) for fact in new})
        stream = [n for fact in told.elements() for n in (0, *fact)]
        found = {
            tuple(relation.table[:, row].tolist()): int(times)
            for _, rows, counts in give_rows(
                np.array(stream, np.uint32), Numbered.of([relation])
            )
            for row, times in zip(rows, counts, strict=True)
        }
        assert found == told
        known += new
        assert relation.count == len(known)
        assert not relation.status[: relation.count].any()
        relation.require_layout()
        for fact in known:
            row = compiled_code_finds(relation, fact)
            assert tuple(relation.table[:, row].tolist()) == fact
        assert compiled_code_finds(relation, (400,) * arity) == -1
        if chance.random() < 0.5:
            table = np.array(known, np.uint32).reshape(-1, arity).T
            assert sorted(relation.find(table).tolist()) == list(range(len(known)))
            for each in indexes_of(relation):
                assert sorted(facts_in(relation, each)) == sorted(known)


@pytest.mark.parametrize("seed", range(60))
def test_new_facts_are_found_by_every_index(seed: int) -> None:
    play(seed)


def test_few_new_facts_make_no_runs() -> None:
    relation = Relation("p", 2)
    # The first facts make room for more, the next one is alone in a run.
    for numbers in (range(300), range(300, 301)):
        stream = [n for at in numbers for n in (0, at, 7)]
        give_rows(np.array(stream, np.uint32), Numbered.of([relation]))
        indexes = indexes_of(relation)
        for each in indexes:
            relation.describe(each)
    before = [list(each.runs) for each in indexes]
    for number in range(301, 330):
        give_rows(np.array([0, number, 7], np.uint32), Numbered.of([relation]))
        assert [each.runs for each in indexes] == before
    assert relation.count == 330


def test_united_runs_are_told_to_all_who_read_them() -> None:
    relation = Relation("p", 2)
    for numbers in (range(900), range(900, 1000)):
        stream = [n for at in numbers for n in (0, at, 7)]
        give_rows(np.array(stream, np.uint32), Numbered.of([relation]))
    relation.require_layout()
    assert len(relation.primary.runs) == 2
    before = relation.changed_at
    relation.unite_runs(relation.primary)
    # Others know by this that addresses of the former runs are no good.
    assert relation.changed_at > before
    assert len(relation.primary.runs) == 1
    relation.require_layout()
    assert [compiled_code_finds(relation, (at, 7)) for at in range(1000)] == [
        *range(1000)
    ]


# ----------------------------------------------------------------- planted bugs

MUTANTS = (
    Mutant(
        "a directory of other keys is kept",
        Run.note_added,
        lambda NO_ROWS: NO_ROWS,
        lambda self: self._directory,
    ),
    Mutant(
        "the index by the second column is forgotten",
        Relation.note_appended,
        lambda self, size, count: self._indexes[1, 0].note_added(size, count),
        lambda self, count: assign(self._indexes[1, 0].covered, count),
    ),
    Mutant(
        "how often facts are there is told in another order",
        Relation.append_few,
        lambda counts, size: counts[:size],
        lambda counts, size: counts[:size][::-1],
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(play, seed) for seed in range(60))
