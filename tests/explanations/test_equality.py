"""With equality, explanations say why constants are equal, and can be checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine_facts import rows_of
from equality_scenarios import scenario_of
from evermat import KnowledgeBase
from evermat.algebra.equality import UnequalValuesError
from evermat.kb.queries import NoExplanationError
from evermat.lang.equality import OWL_SAME_AS, EqualityError
from evermat.lang.syntax import SAME_AS, TRIPLE
from evermat.maintenance.equality.proofs import plain_axioms
from proof_checker import by_predicate, carry_out, check_derivation, facts_of

if TYPE_CHECKING:
    from evermat.explain.explanation import Explanation
    from evermat.kb.equality import Equality
    from evermat.lang.syntax import Rule
    from oracle import Fact

MOST = 4

PEOPLE = """
same_as(?x, ?y) :- email(?x, ?m), email(?y, ?m) .
knows(?y, ?x) :- knows(?x, ?y) .
adult(?x) :- age(?x, ?n), ?n >= 18, not banned(?x) .
"""


def people(engine: str, equality: Equality = "rewrite") -> KnowledgeBase:
    rules = PEOPLE
    if equality == "axioms":  # which do not go with negation
        rules = rules.replace(", not banned(?x)", "")
    kb = KnowledgeBase(rules, engine=engine, equality=equality)
    kb.load(
        {
            "email": [("ann", "a@x"), ("anna", "a@x"), ("anna", "b"), ("annie", "b")],
            "knows": [("bob", "annie")],
            "age": [("anna", 20)],
            "banned": [("zed",)],
        }
    )
    return kb


@pytest.mark.parametrize("seed", range(0, 18, 6))
def test_oracle_proofs_can_be_checked(
    seed: int, engine_name: str, stories: slice
) -> None:
    for number in range(seed, seed + 6)[stories]:
        scenario = scenario_of(number)
        kb = KnowledgeBase(engine=engine_name, equality="rewrite")
        try:
            kb.update(
                insert=by_predicate(scenario.facts), add_rules=list(scenario.rules)
            )
            check_all(kb)
            for update in scenario.updates:
                carry_out(kb, update)
                check_all(kb)
        except (EqualityError, UnequalValuesError):
            continue


def check_all(kb: KnowledgeBase) -> None:
    """Proofs are right, and those of a knowledge base without a history."""
    given = facts_of(kb, "explicit")
    fresh = KnowledgeBase(engine="reference", equality="rewrite")
    fresh.update(insert=by_predicate(given), add_rules=list(kb.rules))
    every = facts_of(kb, "all")
    rules = [*kb.rules, *plain_axioms({SAME_AS: 2, TRIPLE: 3, **kb.predicates})]
    facts = sorted(every, key=repr)
    every |= equalities(kb, every)
    for name, row in facts[:: 1 + len(facts) // MOST]:
        explanation = kb.explain(name, row)
        check_proof(explanation, given, every, rules)
        # Any fact may show that `owl:sameAs` is equal to itself.
        if name in fresh.predicates and row[0] != OWL_SAME_AS:
            assert str(explanation) == str(fresh.explain(name, row))


def equalities(kb: KnowledgeBase, facts: set[Fact]) -> set[Fact]:
    """All that is equal, itself to itself included, by both of its names."""
    cliques = rows_of(kb.representatives().to_terms())
    one_of = {member: one for member, one in cliques}  # noqa: C416  pairs, as we know
    names = {value for _, row in facts for value in row}.union(one_of)
    pairs = {
        (x, y) for x in names for y in names if one_of.get(x, x) == one_of.get(y, y)
    }
    return {(SAME_AS, pair) for pair in pairs} | {
        (TRIPLE, (x, OWL_SAME_AS, y)) for x, y in pairs
    }


def check_proof(
    explanation: Explanation, given: set[Fact], every: set[Fact], rules: list[Rule]
) -> None:
    assert explanation
    waiting = [explanation]
    for each in waiting:  # grows while it is walked through
        fact = each.fact.relation, each.fact.row
        assert each.is_explicit == (fact in given)
        if each.derivation is None:
            continue
        assert each.derivation.rule in rules
        check_derivation(fact, each.derivation, every)
        assert all(premise.height < each.height for premise in each.premises)
        waiting += each.premises


@pytest.mark.parametrize("equality", ["rewrite", "axioms"])
def test_names_are_exchanged_step_by_step(engine_name: str, equality: Equality) -> None:
    kb = people(engine_name, equality)
    explanation = kb.explain("adult(ann)")
    assert str(explanation).splitlines()[0] == 'adult("ann")'
    premise, same = explanation.premises
    assert premise.row == ("anna",)
    assert premise.derivation is not None
    assert premise.derivation.rule == kb.rules[2]
    assert same.row == ("anna", "ann")
    assert same.derivation is not None
    assert same.derivation.values == {"x": "anna", "m": "a@x", "y": "ann"}
    assert explanation.derivation is not None
    assert explanation.derivation.is_axiom
    assert explanation.derivation.place == "equality"


def test_text_of_an_equality(engine_name: str) -> None:
    assert (
        str(people(engine_name).explain("same_as(ann, annie)"))
        == """\
same_as("ann", "annie")
  by same_as(?x, ?z) :- same_as(?x, ?y), same_as(?y, ?z) .   (equality)
  with ?x = "ann", ?y = "anna", ?z = "annie"
  - same_as("ann", "anna")
      by same_as(?x, ?y) :- email(?x, ?m), email(?y, ?m) .   (line 2)
      with ?x = "ann", ?m = "a@x", ?y = "anna"
      - email("ann", "a@x")   explicit
      - email("anna", "a@x")   explicit
  - same_as("anna", "annie")
      by same_as(?x, ?y) :- email(?x, ?m), email(?y, ?m) .   (line 2)
      with ?x = "anna", ?m = "b", ?y = "annie"
      - email("anna", "b")   explicit
      - email("annie", "b")   explicit"""
    )


def test_what_is_not_equal_is_not_explained(engine_name: str) -> None:
    kb = people(engine_name)
    assert not kb.explain("same_as(ann, bob)")
    assert not kb.explain("adult(bob)")
    assert kb.explain("same_as(bob, bob)").height == 1
    kb.delete("email", [("anna", "a@x")])
    assert not kb.explain("adult(ann)")
    with pytest.raises(NoExplanationError, match="axioms"):
        kb.explain("adult(anna)", derivations=3)
