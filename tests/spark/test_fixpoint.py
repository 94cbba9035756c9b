"""Rules that carry a key along: their whole fixpoint is run inside tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import evermat
from evermat.algebra.compile import plan_strata
from evermat.engines import make_engine
from evermat.engines.spark.decomposition import decompose
from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_program
from evermat.lang.strata import stratify

if TYPE_CHECKING:
    from evermat.engines.spark.decomposition import Decomposition
    from evermat.engines.spark.engine import SparkEngine

LEFT = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""
RIGHT = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- edge(?x, ?y), reach(?y, ?z) .
"""
MUTUAL = """
    odd(?x, ?y) :- edge(?x, ?y) .
    odd(?x, ?z) :- even(?x, ?y), edge(?y, ?z) .
    even(?x, ?z) :- odd(?x, ?y), edge(?y, ?z), ?z != 3 .
"""
TURNED = """
    to(?y, ?x) :- edge(?x, ?y) .
    from(?x, ?y) :- to(?y, ?x), not shut(?x, ?y) .
    to(?z, ?x) :- from(?x, ?y), edge(?y, ?z), open(?x, ?z) .
"""
CLASSES = """
    @prefix : <http://e.org/> .
    [?x, a, :B] :- [?x, a, :A] .
    [?x, a, :C] :- [?x, a, :B] .
    [?x, a, :A] :- [?x, a, :C], [?x, :ok, ?y] .
    [?x, a, :D] :- [?x, a, :C], not [?x, :ok, :no] .
"""
NONLINEAR = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .
"""
WANDERING = """
    walk(?x, ?y) :- edge(?x, ?y) .
    walk(?y, ?z) :- walk(?x, ?y), edge(?y, ?z) .
"""
SUMS = """
    far(?x, 0) :- edge(?x, ?y) .
    far(?x, ?m) :- far(?x, ?n), ?n < 3, ?m = ?n + 1 .
"""
EDGES = [*((n, n + 1) for n in range(9)), (4, 1), (2, 7), (9, 0)]


def decomposition(rules: str) -> Decomposition | None:
    strata = plan_strata(stratify(normalise(parse_program(rules).rules)))
    recursive = [each.recursive for each in strata if each.recursive.rules]
    (rule_set,) = recursive
    return decompose(rule_set.full.queries)


@pytest.mark.parametrize(
    ("rules", "keys"),
    [
        (LEFT, {"reach": 0}),
        (RIGHT, {"reach": 1}),
        (MUTUAL, {"odd": 0, "even": 0}),
        (TURNED, {"to": 1, "from": 0}),
        (CLASSES, {"triple": 0}),
    ],
)
def test_the_key_is_the_column_that_rules_carry_along(
    rules: str, keys: dict[str, int]
) -> None:
    found = decomposition(rules)
    assert found is not None
    assert found.keys == keys


@pytest.mark.parametrize("rules", [NONLINEAR, WANDERING, SUMS])
def test_other_rules_are_not_decomposable(rules: str) -> None:
    assert decomposition(rules) is None


def test_a_side_has_a_key_if_every_rule_has_it_there() -> None:
    found = decomposition(TURNED)
    assert found is not None
    keys = {side.pattern.relation: side.key for side in found.sides.values()}
    assert keys == {"edge": None, "open": 0, "shut": 0}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("rules", "small"),
    [(CLASSES, 0), (TURNED, 0), (LEFT, 50_000), (TURNED, 50_000), (CLASSES, 50_000)],
)
def test_facts_and_counters_are_those_of_other_engines(
    rules: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small == 0:
        # Even these few facts are too many to be sent to every task.
        monkeypatch.setattr("evermat.engines.spark.fixpoint.BROADCAST", 3)
    engine: SparkEngine = make_engine("spark")  # type: ignore[assignment]
    engine.cluster.small = small
    everywhere = {}
    for name, chosen in (("spark", engine), ("embedded", "embedded")):
        kb = evermat.KnowledgeBase(rules, engine=chosen, modules=False)
        with kb.transaction() as change:
            change.insert("edge", EDGES)
            change.insert("open", [(x, z) for x in range(9) for z in range(x, 9)])
            change.insert("shut", [(0, 4), (3, 4)])
            if rules == CLASSES:
                change.insert("triple", _members())
        everywhere[name] = {
            predicate: sorted(kb.counters(predicate), key=str)
            for predicate in kb.predicates
        }
    assert everywhere["spark"] == everywhere["embedded"]


def _members() -> list[tuple[object, ...]]:
    a = evermat.IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    names = [evermat.IRI(f"http://e.org/{n}") for n in range(6)]
    return [
        *((name, a, evermat.IRI("http://e.org/A")) for name in names[:4]),
        *((name, evermat.IRI("http://e.org/ok"), name) for name in names[2:]),
        (names[3], evermat.IRI("http://e.org/ok"), evermat.IRI("http://e.org/no")),
    ]


@pytest.mark.spark
def test_few_facts_need_no_job_for_their_fixpoint() -> None:
    engine: SparkEngine = make_engine("spark", small=1_000)  # type: ignore[assignment]
    kb = evermat.KnowledgeBase(LEFT, engine=engine, modules=False)
    kb.load({"edge": EDGES})
    assert engine.cluster.jobs <= 1
