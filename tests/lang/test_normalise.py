from __future__ import annotations

import pytest
from hypothesis import given

import oracle
import strategies
from evermat.errors import UnsafeRuleError
from evermat.lang import canonical, is_auxiliary, normalise, parse_rules
from evermat.lang.aggregates import is_aggregate_rule
from evermat.lang.syntax import (
    Assignment,
    Atom,
    Condition,
    Negation,
    Rule,
    Term,
    Variable,
)
from evermat.values import constant


def normal(text: str) -> list[str]:
    return [str(rule) for rule in normalise(parse_rules(text))]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("p(?x) :- q(?x) .", ["p(?x) :- q(?x) ."]),
        ("p(?x), r(?x) :- q(?x) .", ["p(?x) :- q(?x) .", "r(?x) :- q(?x) ."]),
        ("p(?x) :- q(?x, _, _) .", ["p(?x) :- q(?x, ?_1, ?_2) ."]),
        ("p(?x) :- q(?x, ?_1, _) .", ["p(?x) :- q(?x, ?_1, ?_2) ."]),
        ("p(?x + 1) :- q(?x) .", ["p(?_1) :- q(?x), ?_1 = ?x + 1 ."]),
        ("p(1 + 2) :- q .", ["p(3) :- q ."]),
        (
            "p(?x) :- q(?x), r(?x * 2) .",
            ["p(?x) :- q(?x), r(?_1), ?_1 = ?x * 2 ."],
        ),
        (
            "p(?x) :- q(?x), not r(?x * 2) .",
            ["p(?x) :- q(?x), ?_1 = ?x * 2, not r(?_1) ."],
        ),
        ("p(?z) :- q(?x), ?z = ?x .", ["p(?x) :- q(?x) ."]),
        ("p(?z) :- q(?x), r(?z), ?z = ?x .", ["p(?x) :- q(?x), r(?x) ."]),
        ("p(?x) :- q(?x), ?x = 3 .", ["p(3) :- q(3) ."]),
        ("p(?x) :- q(?x), 1 + 2 = ?x .", ["p(3) :- q(3) ."]),
        ("p(?x) :- ?x = 3 .", ["p(3) ."]),
        ("p(?x) :- q(?x), ?x = 3, ?x = 4 .", []),
        ("p(?x) :- q(?x), ?x = ?x, 1 < 2 .", ["p(?x) :- q(?x) ."]),
        ("p(?x) :- q(?x), 2 < 1 .", []),
        (
            "p(?b) :- ?b = ?a + 1, ?a = ?x + 1, ?a < 9, q(?x) .",
            ["p(?b) :- q(?x), ?a = ?x + 1, ?a < 9, ?b = ?a + 1 ."],
        ),
        ("p(?z) :- q(?x), ?x + 1 = ?z .", ["p(?z) :- q(?x), ?z = ?x + 1 ."]),
        ("p(?x) :- q(?x), q(?x), not r, not r .", ["p(?x) :- q(?x), not r ."]),
        ("p(?x) :- not r(?x), q(?x) .", ["p(?x) :- q(?x), not r(?x) ."]),
        (
            "p(?x) :- q(?x), not r(?x, _, a) .",
            [
                'p(?x) :- q(?x), not ~r(?x1, ?_2, "a")(?x) .',
                '~r(?x1, ?_2, "a")(?x1) :- r(?x1, ?_2, "a") .',
            ],
        ),
        (
            "p(?x) :- q(?x), not r(?y, ?x, ?y, ?x) .",
            [
                "p(?x) :- q(?x), not ~r(?_1, ?x2, ?_1, ?x2)(?x) .",
                "~r(?_1, ?x2, ?_1, ?x2)(?x2) :- r(?_1, ?x2, ?_1, ?x2) .",
            ],
        ),
        ("p :- not q(_) .", ["p :- not ~q(?_1) .", "~q(?_1) :- q(?_1) ."]),
        ("p(?x) :- q(?x) . p(?y) :- q(?y) .", ["p(?x) :- q(?x) ."]),
        ("p(?x) :- q(?x), 1 / 0 = ?x .", ["p(?x) :- q(?x), 1 / 0 = ?x ."]),
    ],
)
def test_normal_rules(text: str, rules: list[str]) -> None:
    assert normal(text) == rules


def test_the_same_negation_shares_its_auxiliary_predicate() -> None:
    rules = normalise(
        parse_rules("p(?x) :- q(?x), not r(?x, _). s(?y) :- t(?y), not r(?y, ?z).")
    )
    auxiliary = [rule for rule in rules if is_auxiliary(rule.head.predicate)]
    assert len(auxiliary) == 1
    assert len(rules) == 3


@pytest.mark.parametrize(
    "text",
    [
        "p(?x) :- q .",
        "p :- q, ?x < 1 .",
        "p :- q, not r(?x), not s(?x) .",
        "p(?x) :- q(?x + 1) .",
        "p(?x) :- ?x = ?y + 1, ?y = ?x + 1 .",
    ],
)
def test_unsafe_rules_are_refused(text: str) -> None:
    with pytest.raises(UnsafeRuleError):
        normalise(parse_rules(text))


def test_canonical_rules_differ_in_more_than_names() -> None:
    one, same, other = parse_rules(
        "p(?x, ?y) :- q(?y, ?z, _) . p(?b, ?a) :- q(?a, ?c, _) ."
        "p(?x, ?x) :- q(?x, ?x, _) ."
    )
    assert canonical(one) == canonical(same)
    assert canonical(one) != canonical(other)


@given(strategies.programs())
def test_normal_rules_are_normal(program: tuple[Rule, ...]) -> None:
    for rule in normalise(program):
        assert len(rule.heads) == 1
        if any(rule.aggregations()):
            assert is_aggregate_rule(rule)
            continue
        bound: set[str] = set()
        rank = 0
        for element in rule.body:
            match element:
                case Atom():
                    assert rank == 0
                    bound |= plain_names(element)
                case Condition() | Assignment():
                    assert rank <= 1
                    rank = 1
                case Negation(atom=atom):
                    rank = 2
                    assert plain_names(atom) <= bound | assigned(rule.body)
        assert plain_names(rule.head) <= bound | assigned(rule.body)
        assert normalise([rule]) == (rule,)


def plain_names(atom: Atom) -> set[str]:
    names: set[str] = set()
    for argument in atom.arguments:
        assert isinstance(argument, Variable | Term)
        if isinstance(argument, Variable):
            assert argument.name != "_"
            names.add(argument.name)
    return names


def assigned(body: tuple[object, ...]) -> set[str]:
    return {each.variable.name for each in body if isinstance(each, Assignment)}


@given(strategies.scenarios())
def test_oracle_normal_rules_mean_the_same(scenario: strategies.Scenario) -> None:
    facts = scenario.facts
    expected = oracle.materialise(scenario.rules, facts)
    rules = map(with_plain_state, normalise(scenario.rules))
    model = oracle.materialise(rules, facts)
    assert {fact for fact in model.facts if is_visible(fact)} == expected.facts
    for found, wanted in (
        (model.recursive, expected.recursive),
        (model.nonrecursive, expected.nonrecursive),
    ):
        counts = {fact: count for fact, count in found.items() if is_visible(fact)}
        assert counts == dict(wanted)


def with_plain_state(rule: Rule) -> Rule:
    """A rule whose state, of which the oracle knows nothing, is always the same."""
    if not is_aggregate_rule(rule):
        return rule
    state = Assignment(Variable("state"), Term(constant(0)))
    return Rule(rule.heads, (*rule.body, state))


def is_visible(fact: oracle.Fact) -> bool:
    return not is_auxiliary(fact[0])
