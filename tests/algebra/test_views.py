"""Sets and views: union, difference, intersection, regions, settling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from engine_facts import facts_of, interned, make_facts, tables
from evermat.algebra import Column, EngineUseError, Pattern, Region
from evermat.engines import make_engine
from evermat.lang.syntax import TRIPLE
from evermat.values import IRI, constant

if TYPE_CHECKING:
    from evermat.algebra import Engine, Facts
    from oracle import Fact

PROPERTY = constant(IRI("http://e.org/p"))
REGIONS = [
    Region(frozenset({"e", "go"})),
    Region(shapes=(Pattern(TRIPLE, (Column(0), PROPERTY, Column(2))),)),
    Region(frozenset({"a"})) | Region(frozenset({"r", "w"})),
    Region(),
]
LEAVES = ["stored", "given", "grown", "settled"]

fact_sets = st.frozensets(strategies.facts(), max_size=12)


@dataclass(frozen=True)
class Tree:
    """An expression: a leaf, an operator over two trees, or a tree in a region."""

    word: str
    parts: tuple[Tree, ...] = ()
    region: Region = REGIONS[-1]

    def over(self, leaves: dict[str, Any]) -> Any:
        parts = [part.over(leaves) for part in self.parts]
        match self.word:
            case "|":
                return parts[0] | parts[1]
            case "-":
                return parts[0] - parts[1]
            case "&":
                return parts[0] & parts[1]
            case "within" if isinstance(parts[0], frozenset):
                region = self.region
                return frozenset(f for f in parts[0] if region.contains(*f))
            case "within":
                return parts[0].within(self.region)
            case leaf:
                return leaves[leaf]


def _larger(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    both = st.builds(Tree, st.sampled_from(["|", "-", "&"]), st.tuples(trees, trees))
    within = st.builds(
        Tree, st.just("within"), st.tuples(trees), st.sampled_from(REGIONS)
    )
    return st.one_of(both, both, within)


trees = st.recursive(st.sampled_from(LEAVES).map(Tree), _larger, max_leaves=6)


def _engine_leaves(
    engine: Engine, leaves: dict[str, frozenset[Fact]]
) -> dict[str, Any]:
    engine.load(tables(leaves["given"]))
    engine.extend(interned(engine, leaves["stored"]))
    grown = engine.growing()
    grown.add(interned(engine, leaves["grown"]))
    return {
        "stored": engine.materialised,
        "given": engine.explicit,
        "grown": grown,
        "settled": interned(engine, leaves["settled"]),
    }


@given(trees, fact_sets, fact_sets, fact_sets, fact_sets)
def test_law_views_mean_what_set_operators_mean(
    engine_name: str,
    tree: Tree,
    stored: frozenset[Fact],
    given_facts: frozenset[Fact],
    grown: frozenset[Fact],
    settled: frozenset[Fact],
) -> None:
    engine = make_engine(engine_name)
    leaves = dict(zip(LEAVES, (stored, given_facts, grown, settled), strict=True))
    leaves["stored"] |= given_facts
    view: Facts = tree.over(_engine_leaves(engine, leaves))
    expected: frozenset[Fact] = tree.over(leaves)
    assert facts_of(engine, view) == expected
    for relation in strategies.ARITIES:
        size = sum(name == relation for name, _ in expected)
        assert engine.size(view, relation) == size
    kept = engine.settle(interned(engine, settled) & view)
    assert facts_of(engine, kept) == expected & settled
    assert kept.size() == len(expected & settled)
    assert kept.is_empty() == (not expected & settled)
    assert kept.relations() == {name for name, _ in expected & settled}


def test_law_views_see_what_growing_sets_become(engine: Engine) -> None:
    old, new = make_facts(e=[(1, 2)], a=[(1,)]), make_facts(e=[(2, 3)], a=[(2,)])
    engine.load(tables(old | new))
    grown = engine.growing()
    view = engine.materialised - grown
    assert facts_of(engine, view) == old | new
    grown.add(interned(engine, new))
    assert facts_of(engine, view) == old
    grown.discard(interned(engine, new))
    grown.add(interned(engine, old))
    assert facts_of(engine, view) == new


def test_law_settled_sets_never_change(engine: Engine) -> None:
    facts = make_facts(e=[(1, 2), (2, 3)])
    grown = engine.growing()
    grown.add(interned(engine, facts))
    settled = engine.settle(grown | engine.no_facts())
    grown.discard(interned(engine, make_facts(e=[(1, 2)])))
    grown.add(interned(engine, make_facts(e=[(5, 5)])))
    assert facts_of(engine, settled) == facts


def test_growing_sets_can_be_changed_by_views_of_themselves(engine: Engine) -> None:
    grown = engine.growing()
    grown.add(interned(engine, make_facts(e=[(1, 1), (1, 2)], a=[(1,)])))
    grown.discard(grown.within(Region(frozenset({"a"}))))
    grown.discard(grown - interned(engine, make_facts(e=[(1, 2)])))
    grown.add(grown | interned(engine, make_facts(b=[(7,)])))
    assert facts_of(engine, grown) == make_facts(e=[(1, 2)], b=[(7,)])


def test_adding_twice_and_discarding_what_is_not_there_is_no_error(
    engine: Engine,
) -> None:
    fact = interned(engine, make_facts(e=[(1, 2)]))
    grown = engine.growing()
    grown.discard(fact)
    grown.add(fact)
    grown.add(fact)
    assert engine.size(grown, "e") == 1
    assert engine.size(grown, "unheard of") == 0


def test_regions_may_have_shapes_with_many_constants(engine: Engine) -> None:
    rows = [
        (a, b, c, d) for a in range(3) for b in "xy" for c in "xy" for d in range(3)
    ]
    facts = make_facts(wide=rows, e=[(1, 2)])
    one, two = (
        tuple(constant(value) for value in row)
        for row in ((1, "x", "y"), (2, "y", "y"))
    )
    shapes = tuple(Pattern("wide", (*fixed, Column(0))) for fixed in (one, two))
    region = Region(frozenset({"e"}), shapes)
    view = interned(engine, facts).within(region)
    assert facts_of(engine, engine.settle(view)) == {
        fact for fact in facts if region.contains(*fact)
    }


def test_the_empty_set_is_empty(engine: Engine) -> None:
    nothing = engine.no_facts()
    assert nothing.is_empty()
    assert nothing.size() == 0
    assert nothing.relations() == frozenset()
    assert engine.settle(nothing | nothing).is_empty()


def test_settling_a_stored_set_is_refused(engine: Engine) -> None:
    engine.load(tables(make_facts(e=[(1, 2)])))
    few = interned(engine, make_facts(e=[(1, 2)]))
    with pytest.raises(EngineUseError):
        engine.settle(engine.materialised)
    with pytest.raises(EngineUseError):
        engine.settle(engine.materialised - few)
    with pytest.raises(EngineUseError):
        engine.settle(few | engine.explicit)
    assert engine.settle(few & engine.materialised).size() == 1


def test_sets_have_no_truth_value(engine: Engine) -> None:
    with pytest.raises(TypeError, match="is_empty"):
        bool(engine.no_facts())
