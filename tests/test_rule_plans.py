"""Rules as queries: splitting, folding, strata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from counted_calls import calls_of
from evermat.algebra import Apply, Column, Compute, Require, Role
from evermat.algebra.compile import compile_rules, plan_strata
from evermat.engines import UnknownEngineError, make_engine
from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_rules
from evermat.lang.strata import stratify
from evermat.values import IRI, Constant, constant

if TYPE_CHECKING:
    from evermat.algebra import Query, QuerySet
    from evermat.algebra.compile import RuleSet, StratumPlan

PREFIX = "@prefix : <http://e.org/> .\n"


def compiled(text: str) -> RuleSet:
    rules = normalise(parse_rules(PREFIX + text))
    return compile_rules(rules, lambda rule, a: a.predicate == rule.head.predicate)


def planned(text: str) -> tuple[StratumPlan, ...]:
    return plan_strata(stratify(normalise(parse_rules(PREFIX + text))))


def roles(query: Query) -> tuple[str, str]:
    """The roles of the patterns, by their first letters."""
    letters = {
        Role.ALL: "a",
        Role.UNCHANGED: "u",
        Role.CHANGED: "c",
        Role.ABSENT: "A",
        Role.ABSENT_BEFORE: "B",
        Role.CHANGED_ABSENT: "C",
    }
    positive = "".join(letters[pattern.role] for pattern in query.positive)
    negative = "".join(letters[pattern.role] for pattern in query.negative)
    return positive, negative


def only(queries: QuerySet) -> Query:
    (query,) = queries.queries
    return query


# -------------------------------------------------------------------- splitting


def test_a_rule_is_split_by_the_first_position_that_changed() -> None:
    rules = compiled("h(?x) :- p(?x), q(?x), r(?x), not s(?x), not t(?x) .")
    assert [roles(query) for query in rules.full.queries] == [("aaa", "AA")]
    assert [roles(query) for query in rules.delta.queries] == [
        ("caa", "AA"),
        ("uca", "AA"),
        ("uuc", "AA"),
        ("uuuC", "A"),
        ("uuuC", "B"),
    ]


def test_queries_are_found_by_the_relation_that_changed() -> None:
    rules = compiled("h(?x) :- p(?x), p(?y), q(?x, ?y), not p(?y) .")
    sizes = {key: len(group) for key, group in rules.delta.by_change.items()}
    assert sizes == {
        (Role.CHANGED, "p"): 2,
        (Role.CHANGED, "q"): 1,
        (Role.CHANGED_ABSENT, "p"): 1,
    }


def test_head_bound_queries_match_the_head_first() -> None:
    query = only(compiled("h(?x, 1) :- p(?x, ?y), not q(?y) .").rederive)
    assert roles(query) == ("ca", "A")
    assert query.positive[0].operands == query.head.operands
    assert query.positive[0].relation == "h"


def test_what_the_head_binds_is_checked_instead_of_computed() -> None:
    rules = compiled("h(?x, ?z) :- p(?x), ?y = ?x + 1, ?z = ?y * 2 .")
    assert [type(step) for step in only(rules.full).computations] == [Compute, Compute]
    first, second = only(rules.rederive).computations
    assert isinstance(first, Compute)
    assert isinstance(second, Require)
    assert second.expression.function == "="


def test_what_a_changed_negative_atom_binds_is_checked_instead_of_computed() -> None:
    rules = compiled("h(?x) :- p(?x), ?z = ?x + 1, not q(?z) .")
    positive, negative = rules.delta.queries
    assert isinstance(positive.computations[0], Compute)
    (check,) = negative.computations
    assert isinstance(check, Require)
    assert isinstance(check.expression, Apply)


def test_backward_queries_yield_the_local_body_atoms() -> None:
    rules = compiled("h(?x, ?z) :- h(?x, ?y), e(?y, ?z), h(?z, ?z), not s(?x) .")
    heads = [query.head for query in rules.backward.queries]
    assert [head.relation for head in heads] == ["h", "h"]
    assert heads[0].operands == (Column(0), Column(1))
    assert heads[1].operands == (Column(2), Column(2))
    assert {roles(query) for query in rules.backward.queries} == {("caaa", "A")}
    assert not any(head.local for head in heads)


# ---------------------------------------------------------------------- folding


def test_rules_that_differ_in_constants_become_one_query() -> None:
    rules = compiled("""
        [?x, a, :B] :- [?x, a, :A] .
        [?y, a, :C] :- [?y, a, :A] .
        [?x, a, :D] :- [?x, a, :C] .
    """)
    query = only(rules.full)
    assert query.inline is not None
    names = [tuple(value.text[-1] for value in row) for row in query.inline.rows]
    assert sorted(names) == [("A", "B"), ("A", "C"), ("C", "D")]
    assert query.column_count == 3
    assert query.label.endswith("(and 2 rules like it)")
    # rdf:type is the same in all of them, so it stays a constant.
    assert all(p.operands[1] == query.head.operands[1] for p in query.positive)
    assert not isinstance(query.head.operands[1], Column)


def test_places_that_agree_in_every_rule_share_a_column() -> None:
    rules = compiled("""
        [?x, :p, ?z] :- [?x, :p, ?y], [?y, :p, ?z] .
        [?x, :q, ?z] :- [?x, :q, ?y], [?y, :q, ?z] .
    """)
    query = only(rules.full)
    assert query.inline is not None
    assert len(query.inline.columns) == 1
    assert query.inline.rows == (
        (constant(IRI("http://e.org/p")),),
        (constant(IRI("http://e.org/q")),),
    )
    (column,) = query.inline.columns
    assert {p.operands[1] for p in (query.head, *query.positive)} == {column}


@pytest.mark.parametrize(
    "text",
    [
        "h(?x, 1) :- p(?x) . h(1, ?x) :- p(?x) .",
        "h(?x) :- p(?x, 1) . h(?x) :- q(?x, 2) .",
        "h(?x) :- p(?x, 1), ?x < 3 . h(?x) :- p(?x, 2), ?x < 4 .",
        "h(?x) :- p(?x, 1) . h(?x) :- p(?x, ?x) .",
        "h(?x) :- p(?x, 1), not q(?x) . h(?x) :- p(?x, 2), q(?x) .",
    ],
)
def test_rules_that_differ_in_more_than_constants_stay_apart(text: str) -> None:
    queries = compiled(text).full.queries
    assert len(queries) == 2
    assert all(query.inline is None for query in queries)


def test_rules_are_folded_only_with_rules_that_are_local_alike() -> None:
    (plan,) = planned("""
        [?x, :p, ?y] :- [?x, :q, ?y] .
        [?x, :p, ?y] :- [?y, :r, ?x] .
        [?x, :p, ?y] :- [?y, :p, ?x] .
    """)
    assert len(plan.nonrecursive.full.queries) == 2
    assert len(plan.recursive.full.queries) == 1
    assert len(plan.rules.full.queries) == 3


def test_the_same_rule_twice_counts_once() -> None:
    rules = parse_rules("h(?x) :- p(?x, 1) . h(?y) :- p(?y, 1) . h(?x) :- p(?x, 2) .")
    query = only(compile_rules(rules, lambda _rule, _atom: False).full)
    assert query.inline is not None
    assert len(query.inline.rows) == 2


def axioms(count: int) -> RuleSet:
    return compiled(
        "".join(f"[?x, a, :C{i}] :- [?x, a, :C{i // 2}] .\n" for i in range(count))
    )


def families(rules: RuleSet) -> list[QuerySet]:
    return [rules.full, rules.delta, rules.rederive, rules.backward]


def test_axioms_of_one_shape_are_one_query() -> None:
    assert [len(each.queries) for each in families(axioms(5000))] == [1, 1, 1, 1]


def test_the_work_of_compiling_is_in_proportion_to_the_axioms() -> None:
    few, many = axioms(500), axioms(2000)
    assert calls_of(lambda: families(many)) < 5 * calls_of(lambda: families(few))


# ----------------------------------------------------------------------- strata


def test_strata_know_their_regions() -> None:
    below, above = planned("""
        r(?x, ?y) :- e(?x, ?y) .
        r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
        [?x, :p, ?y] :- e(?x, ?y) .
        [?x, a, :C] :- r(?x, ?x), not [?x, :p, ?x] .
    """)
    assert (below.index, above.index) == (0, 1)
    assert below.region.relations == {"r"}
    assert below.region.contains("triple", constants("x", ":p", "y"))
    assert not below.region.contains("triple", constants("x", ":q", "y"))
    assert not below.region.touches("e")
    assert above.region.touches("triple")
    assert not above.region.contains("triple", constants("x", ":p", "y"))
    assert len(below.recursive.rules) == 1
    assert len(below.nonrecursive.rules) == 2
    (recursive,) = below.recursive.full.queries
    assert [pattern.local for pattern in recursive.positive] == [True, True]


def constants(*texts: str) -> list[Constant]:
    return [
        constant(IRI("http://e.org/" + text[1:]) if text.startswith(":") else text)
        for text in texts
    ]


def test_a_general_shape_covers_narrower_ones() -> None:
    (plan,) = planned("""
        [?y, ?p, ?x] :- [?x, ?p, ?y] .
        [?x, :q, ?y] :- [?x, :p, ?y] .
    """)
    assert plan.region.relations == {"triple"}
    assert plan.region.shapes == ()


def test_an_engine_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownEngineError, match="`embedded`, `reference`"):
        make_engine("abacus")
