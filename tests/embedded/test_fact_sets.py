# ruff: noqa: SLF001  mutants are made in private functions

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.columns import table_of_rows
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.engines.embedded.views import Sets
from planting import Mutant, plant

if TYPE_CHECKING:
    from evermat.engines.embedded.fact_sets import Settled

Numbers = dict[str, set[int]]

NUMBERS = st.dictionaries(
    st.sampled_from(["p", "q", "r", "s", "t"]), st.sets(st.integers(0, 9), min_size=1)
)


def facts_of(engine: EmbeddedEngine, numbers: Numbers) -> Settled:
    return engine.intern_all(
        {
            name: table_of_rows([(each,) for each in some], 1)
            for name, some in numbers.items()
        }
    )


def check_union(one: Numbers, other: Numbers) -> None:
    engine = EmbeddedEngine()
    left, right = facts_of(engine, one), facts_of(engine, other)
    before = {
        name: relation.status[: relation.count].tolist()
        for name, relation in engine.store.relations.items()
    }
    both = engine.settle(left | right)
    expected = {
        name: one.get(name, set()) | other.get(name, set()) for name in {**one, **other}
    }
    copy = engine.snapshot(both)
    assert copy.relations() == {name: len(some) for name, some in expected.items()}
    for name, some in expected.items():
        texts = copy.read(name).column(0).combine_chunks().field("text").to_pylist()
        assert sorted(texts) == sorted(map(str, some))
        relation = engine.store.relations[name]
        assert relation.status[: relation.count].tolist() == before[name]


@given(NUMBERS, NUMBERS)
@settings(max_examples=60, deadline=None)
def test_law_rows_of_many_relations_are_united_as_sets_are(
    one: Numbers, other: Numbers
) -> None:
    check_union(one, other)


MUTANTS = [
    Mutant(
        "rows of the other side are forgotten",
        Sets._united,
        lambda places, name, at: (places[name][0], at),
        lambda places, name: (places[name][0], -1),
    ),
    Mutant(
        "facts of both sides are there twice",
        Sets._united,
        lambda self: self.spare_bit,
        lambda: 1 << 16,
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    with pytest.raises((AssertionError, KeyError)):
        check_union({"p": {1, 2}, "q": {3}}, {"p": {2, 4}, "r": {5}})
