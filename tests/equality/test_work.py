"""How far B/F^≈ looks: the work follows what changes, not what there is."""

from __future__ import annotations

import evermat

MANY = 300
DEGREES = """
    ?x ≈ ?y :- degree(?person, ?x), degree(?person, ?y) .
"""


def _degrees() -> evermat.KnowledgeBase:
    """A school with two names that many attended; three people know both names."""
    base = evermat.KnowledgeBase(DEGREES, equality="rewrite")
    people = [f"p{number}" for number in range(MANY)]
    base.load(
        {
            "degree": [
                *((person, "school") for person in people),
                *((person, "the school") for person in people[:3]),
                ("q", "the school"),
            ]
        }
    )
    return base


def test_law_one_of_many_reasons_to_be_equal_is_enough() -> None:
    base = _degrees()
    change = base.update(delete={"degree": [("p0", "the school")]}, algorithm="bf")
    work = change.report.strata[0]
    assert base.contains("degree", ("q", "school"))
    assert work.overdeleted == 0
    assert work.backward_instances + work.proved < 20


def test_law_facts_that_nothing_supports_lead_nowhere() -> None:
    base = _degrees()
    change = base.update(delete={"degree": [("q", "the school")]}, algorithm="bf")
    work = change.report.strata[0]
    assert not base.contains("degree", ("q", "school"))
    assert work.overdeleted == 1
    assert work.backward_instances + work.proved < 20


def _merging() -> tuple[evermat.KnowledgeBase, int]:
    """Rules that all lead to equality, only one of which mentions a constant."""
    base = evermat.KnowledgeBase(
        """
        marked(?x) :- linked(?x, ?y) .
        marked(?x) :- special(?x, b) .
        ?x ≈ ?y :- marked(?x), twin(?x, ?y) .
        """,
        equality="rewrite",
    )
    base.load(
        {
            "linked": [(f"n{number}", f"n{number + 1}") for number in range(MANY)],
            "special": [("s", "a"), ("t", "z")],
            "twin": [("s", "n7")],
        }
    )
    return base, MANY


def test_law_merging_applies_only_the_rules_that_changed() -> None:
    base, many = _merging()
    change = base.insert("same_as", [("b", "a")])
    work = change.report.strata[0]
    assert base.contains("linked", ("s", "n8"))
    assert work.forward_instances < many / 10
