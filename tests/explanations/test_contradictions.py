"""Two values that would be equal: the error has a proof, and nothing has changed."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, cast

import pytest

from evermat import KnowledgeBase
from evermat.algebra.equality import UnequalValuesError
from evermat.kb import explanations
from evermat.lang.equality import EqualityError
from evermat.lang.parser import parse_rules
from evermat.lang.syntax import SAME_AS
from evermat.maintenance.equality import proofs
from evermat.maintenance.equality.proofs import plain_axioms
from evermat.values import constant
from proof_checker import carry_out, check_derivation, facts_of
from strategies import Update

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evermat.explain.explanation import Explanation
    from oracle import Fact

FAMILY = """
?n ≈ ?m :- age(?x, ?n), age(?x, ?m) .
?x ≈ ?y :- mail(?x, ?m), mail(?y, ?m) .
age(?x, ?n) :- twin(?x, ?y), age(?y, ?n) .
"""


def family(engine: str) -> KnowledgeBase:
    kb = KnowledgeBase(FAMILY, engine=engine)
    kb.load(
        {
            "age": [("ann", 30), ("joe", 31)],
            "mail": [("ann", "a"), ("anna", "a")],
            "twin": [("jo", "joe")],
        }
    )
    return kb


def explanation_of(error: UnequalValuesError) -> Explanation:
    assert error.explanation is not None
    return cast("Explanation", error.explanation)


def test_text(engine_name: str) -> None:
    kb = family(engine_name)
    with pytest.raises(UnequalValuesError) as caught:
        kb.insert("twin", [("jo", "anna")])
    assert (
        str(caught.value)
        == """\
UnequalValuesError [EM606]: the facts are contradictory: 30 and 31 would be equal
  same_as(30, 31)
    by same_as(?n, ?m) :- age(?x, ?n), age(?x, ?m) .   (line 2)
    with ?x = "jo", ?n = 30, ?m = 31
    - age("jo", 30)
        by age(?x, ?n) :- twin(?x, ?y), age(?y, ?n) .   (line 4)
        with ?x = "jo", ?y = "ann", ?n = 30
        - twin("jo", "ann")
            by twin(?x1, ?y) :- twin(?x1, ?x2), same_as(?x2, ?y) .   (equality)
            with ?x1 = "jo", ?x2 = "anna", ?y = "ann"
            - twin("jo", "anna")   explicit
            - same_as("anna", "ann")
                by same_as(?x, ?y) :- mail(?x, ?m), mail(?y, ?m) .   (line 3)
                with ?x = "anna", ?m = "a", ?y = "ann"
                - mail("anna", "a")   explicit
                - mail("ann", "a")   explicit
        - age("ann", 30)   explicit
    - age("jo", 31)
        by age(?x, ?n) :- twin(?x, ?y), age(?y, ?n) .   (line 4)
        with ?x = "jo", ?y = "joe", ?n = 31
        - twin("jo", "joe")   explicit
        - age("joe", 31)   explicit
 = reason: names can be equal, two different values never are
 = help: correct the facts or the rules that make them equal; numbers that identify \
things must be names: strings (`frame['id'].astype(str)`, or `@declare p(id: string) \
.` for a file), or IRIs where there are triples"""
    )
    assert set(kb.facts("age")) == {
        (name, age) for name, age in [("ann", 30), ("anna", 30), ("joe", 31)]
    } | {("jo", 31)}
    assert kb.count("twin") == 1


@pytest.mark.parametrize("way", ["insert", "plan", "add_rules", "load"])
def test_wherever_it_happens(engine_name: str, way: str) -> None:
    rule = "?n ≈ ?m :- age(?x, ?n), age(?x, ?m) ."
    rows = {"age": [("ann", 1), ("ann", 2)]}
    kb = KnowledgeBase("" if way == "add_rules" else rule, engine=engine_name)
    if way != "load":
        kb.load({"p": [("a",)], **(rows if way == "add_rules" else {})})
    carry_out = kb.plan if way == "plan" else kb.update
    request = {"add_rules": rule} if way == "add_rules" else {"insert": rows}
    with pytest.raises(UnequalValuesError, match="1 and 2") as caught:
        carry_out(**request)
    explanation = explanation_of(caught.value)
    assert [premise.row for premise in explanation.premises] == rows["age"]
    assert all(premise.is_explicit for premise in explanation.premises)


def test_a_long_proof_is_cut(engine_name: str) -> None:
    kb = KnowledgeBase("?x ≈ ?y :- r(?x, ?y) .", engine=engine_name)
    chain = [1, *(f"n{number}" for number in range(20)), 2]
    with pytest.raises(UnequalValuesError) as caught:
        kb.insert("r", list(pairwise(chain)))
    lines = str(caught.value).splitlines()
    assert len(lines) == 3 + explanations.MOST_LINES + 1
    assert "more lines" in lines[-3]
    given = [
        fact for fact in explanation_of(caught.value).facts if fact.relation == "r"
    ]
    assert len(given) == 21


@pytest.mark.parametrize("part", ["search", "proof"])
def test_facts_of_one_step_are_told_where_there_is_no_proof(
    engine_name: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if part == "search":
        monkeypatch.setattr(proofs, "MOST_LEVELS", 1)
    else:
        monkeypatch.setattr(explanations, "MOST_INSTANCES", 1)
    kb = family(engine_name)
    with pytest.raises(UnequalValuesError, match="because age") as caught:
        kb.insert("twin", [("jo", "anna")])
    assert caught.value.explanation is None
    assert 'age("jo", 30)' in caught.value.derivation


# -------------------------------------------------------------- random programs

POOL = parse_rules("""
    ?n ≈ ?m :- age(?x, ?n), age(?x, ?m) .
    ?x ≈ ?y :- mail(?x, ?m), mail(?y, ?m) .
    age(?x, ?n) :- twin(?x, ?y), age(?y, ?n) .
    twin(?x, ?y) :- twin(?y, ?x) .
    mail(?x, ?n) :- twin(?x, ?y), mail(?y, ?n), twin(?y, ?x) .
    ?x ≈ bo :- mail(?x, 1) .
    age(?x, 2) :- older(?x, ?y), age(?y, 1) .
    free(?x) :- age(?x, ?n), not twin(?x, ?x) .
""")
ARITIES = {"age": 2, "mail": 2, "twin": 2, "older": 2, "same_as": 2}
NAMES = ("ann", "bo", "cy", "di", "ed")


def random_facts(random_: Random, count: int) -> frozenset[Fact]:
    facts = set()
    for name in random_.choices([*ARITIES], k=count):
        second: Sequence[object] = (1, 2) if name in {"age", "mail"} else NAMES
        row = random_.choice(NAMES), random_.choice(second)
        facts.add((name, tuple(map(constant, row))))
    return frozenset(facts)


def random_updates(random_: Random) -> Iterator[Update]:
    rules = tuple(random_.sample(POOL, random_.randrange(2, len(POOL))))
    facts = random_facts(random_, 4)
    yield Update(insert=facts, add_rules=rules)
    for _ in range(4):
        gone = frozenset(random_.sample(sorted(facts, key=repr), 1))
        new = random_facts(random_, 2)
        added = tuple(random_.sample(POOL, 1)) if random_.random() < 0.3 else ()
        yield Update(gone, new, (), tuple(r for r in added if r not in rules))


@pytest.mark.parametrize("seed", range(0, 40, 20))
def test_proofs_can_be_checked(seed: int, engine_name: str, stories: slice) -> None:
    found = [
        has_contradiction(engine_name, number)
        for number in range(seed, seed + 20)[stories]
    ]
    assert any(found) or len(found) < 20


def has_contradiction(engine: str, number: int) -> bool:
    """Whether updates lead to a contradiction; if so, the proof is right."""
    kb = KnowledgeBase(engine=engine, equality="rewrite")
    for update in random_updates(Random(number)):  # noqa: S311  no secret
        before = facts_of(kb, "all"), kb.rules
        try:
            carry_out(kb, update)
        except UnequalValuesError as error:
            assert (facts_of(kb, "all"), kb.rules) == before
            check(error, kb, update)
            return True
        except EqualityError:
            return False
    return False


def check(error: UnequalValuesError, kb: KnowledgeBase, update: Update) -> None:
    given = (facts_of(kb, "explicit") - update.delete) | update.insert
    arities = {SAME_AS: 2, **ARITIES, "free": 1}
    rules = [*kb.rules, *update.add_rules, *plain_axioms(arities)]
    explanation = explanation_of(error)
    assert explanation.fact.row == (error.left, error.right)
    facts = {(fact.relation, fact.row) for fact in explanation.facts}
    waiting = [explanation]
    for each in waiting:  # grows while it is walked through
        fact = each.fact.relation, each.fact.row
        assert each.is_explicit == (fact in given)
        if each.derivation is not None:
            assert each.derivation.rule in rules
            check_derivation(fact, each.derivation, facts)
            assert all(premise.height < each.height for premise in each.premises)
            waiting += each.premises
