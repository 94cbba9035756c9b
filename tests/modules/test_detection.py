"""Closures are found by the shape of rules."""

from __future__ import annotations

import pytest

from evermat.lang.closures import ClosureSort, find_closures
from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_rules
from evermat.lang.strata import stratify


def found(text: str) -> list[tuple[ClosureSort, str, str | None, frozenset[int], int]]:
    rules = normalise(parse_rules(text))
    return [
        (
            each.sort,
            str(each.form),
            None if each.edges is None else str(each.edges),
            each.loops,
            len(each.rules),
        )
        for stratum in stratify(rules).strata
        for each in find_closures(stratum.recursive_rules, stratum.is_local)
    ]


T, S = ClosureSort.TRANSITIVE, ClosureSort.SYMMETRIC
L, R = ClosureSort.LEFT_LINEAR, ClosureSort.RIGHT_LINEAR
NO: frozenset[int] = frozenset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .", (T, "r(?x, ?y)", None, NO, 1)),
        ("r(?a, ?b) :- r(?c, ?b), r(?a, ?c) .", (T, "r(?x, ?y)", None, NO, 1)),
        (
            "[?x, <p>, ?z] :- [?x, <p>, ?y], [?y, <p>, ?z] .",
            (T, "[?x, <p>, ?y]", None, NO, 1),
        ),
        (
            "r(7, ?x, 'k', ?z) :- r(7, ?x, 'k', ?y), r(7, ?y, 'k', ?z) .",
            (T, 'r(7, ?x, "k", ?y)', None, NO, 1),
        ),
        ("r(?x, ?z) :- r(?x, ?y), e(?y, ?z) .", (L, "r(?x, ?y)", "e(?x, ?y)", NO, 1)),
        ("r(?x, ?z) :- e(?z, ?y), r(?x, ?y) .", (L, "r(?x, ?y)", "e(?y, ?x)", NO, 1)),
        ("r(?x, ?z) :- e(?x, ?y), r(?y, ?z) .", (R, "r(?x, ?y)", "e(?x, ?y)", NO, 1)),
        ("r(?x, ?z) :- r(?y, ?z), e(?y, ?x) .", (R, "r(?x, ?y)", "e(?y, ?x)", NO, 1)),
        (
            "[?x, <p>, ?z] :- [?x, <p>, ?y], [?y, <q>, ?z] .",
            (L, "[?x, <p>, ?y]", "[?x, <q>, ?y]", NO, 1),
        ),
        (
            "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . r(?y, ?x) :- r(?x, ?y) .",
            (S, "r(?x, ?y)", None, NO, 2),
        ),
        (
            "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . r(?x, ?x) :- r(?x, ?y) .",
            (T, "r(?x, ?y)", None, frozenset({0}), 2),
        ),
        (
            """
            r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
            r(?x, ?x) :- r(?x, _) . r(?y, ?y) :- r(_, ?y) .
            """,
            (T, "r(?x, ?y)", None, frozenset({0, 1}), 3),
        ),
    ],
)
def test_shapes_that_are_closures(
    text: str, expected: tuple[ClosureSort, str, str | None, frozenset[int], int]
) -> None:
    assert found(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "r(?z, ?x) :- r(?x, ?y), r(?y, ?z) .",
        "r(?x, ?z) :- r(?x, ?y), r(?y, ?z), ok(?y) .",
        "r(?x, ?z) :- r(?x, ?y), r(?y, ?z), not bad(?y) .",
        "r(?x, ?z) :- r(?x, ?y), r(?y, ?z), ?x != ?z .",
        "r(?x, ?y) :- r(?x, ?y), r(?y, ?y) .",
        "r(?x, ?x) :- r(?x, ?y), r(?y, ?x) .",
        "r(?y, ?x) :- r(?x, ?y) .",
        "r(?x, 1) :- r(?x, ?y), r(?y, 1) .",
        "r(?x, ?z, ?w) :- r(?x, ?y, ?w), r(?y, ?z, ?w) .",
        "[?x, <p>, ?z] :- [?x, <p>, ?y], [?y, ?q, ?z] .",
        # Edges that depend on what the rule derives.
        "r(?x, ?z) :- r(?x, ?y), e(?y, ?z) . e(?x, ?y) :- r(?y, ?x) .",
    ],
)
def test_shapes_that_are_not(text: str) -> None:
    assert found(text) == []


def test_a_linear_rule_beside_a_transitive_one_is_left_alone() -> None:
    text = "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . r(?x, ?z) :- r(?x, ?y), e(?y, ?z) ."
    assert found(text) == [(T, "r(?x, ?y)", None, NO, 1)]


def test_closures_never_derive_the_same_facts() -> None:
    text = """
        r(?x, 1, ?z) :- r(?x, 1, ?y), r(?y, 1, ?z) .
        r(1, ?x, ?z) :- r(1, ?x, ?y), r(1, ?y, ?z) .
        r(?x, 2, ?z) :- r(?x, 2, ?y), r(?y, 2, ?z) .
    """
    assert [each[1] for each in found(text)] == ["r(?x, 1, ?y)", "r(?x, 2, ?y)"]
