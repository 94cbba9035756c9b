"""The three corrections of DRed^c-MOD: an example for each that goes wrong without.

The paper's algorithm is run beside ours, with and without the correction.
"""

from __future__ import annotations

import pytest

import evermat
from paper_modular import PaperAlgorithm

Rows = dict[str, list[tuple[str, str]]]

RULES = """
    R(?x, ?z) :- R(?x, ?y), R(?y, ?z) .
    R(?x, ?z) :- R(?x, b), Q(?x, ?z) .
    R(?x, ?y) :- e(?x, ?y) .
    R(?x, ?y) :- f(?x, ?y) .
    seen(?y) :- R(a, ?y) .
"""
ALL = {1, 2, 3}

EXAMPLES: dict[int, list[tuple[Rows, Rows]]] = {
    1: [
        ({}, {"e": [("a", "d")], "f": [("a", "d")]}),
        ({"e": [("a", "d")]}, {}),
    ],
    2: [
        ({}, {"R": [("a", "d"), ("d", "c"), ("a", "c")]}),
        ({"R": [("a", "d")]}, {}),
    ],
    3: [
        ({}, {"R": [("a", "b")], "Q": [("a", "c")]}),
        ({}, {"R": [("b", "c")]}),
        ({"R": [("a", "b")]}, {}),
    ],
}
"""Updates, as facts to delete and to insert; the last one is where it goes wrong."""

EXPECTED = {
    1: {("a", "d")},
    2: {("d", "c"), ("a", "c")},
    3: {("b", "c")},
}


def flat(facts: Rows) -> set[tuple[str, str, str]]:
    return {(name, row[0], row[1]) for name, rows in facts.items() for row in rows}


def by_the_paper(number: int, corrections: set[int]) -> set[tuple[str, str]]:
    algorithm = PaperAlgorithm(corrections)
    for delete, insert in EXAMPLES[number]:
        algorithm.update(delete=flat(delete), insert=flat(insert))
    return {(x, y) for name, x, y in algorithm.facts if name == "R"}


@pytest.mark.parametrize("number", EXAMPLES)
def test_paper_goes_wrong_without_the_correction(number: int) -> None:
    assert by_the_paper(number, ALL) == EXPECTED[number]
    assert by_the_paper(number, ALL - {number}) != EXPECTED[number]


@pytest.mark.parametrize("algorithm", ["dred-c", "bf-c", "dred", "bf", "fp"])
@pytest.mark.parametrize("number", EXAMPLES)
def test_updates_end_right(number: int, algorithm: str, engine_name: str) -> None:
    kb = evermat.KnowledgeBase(RULES, engine=engine_name)
    for delete, insert in EXAMPLES[number]:
        kb.update(delete=delete, insert=insert, algorithm=algorithm)
    assert set(kb.facts("R")) == EXPECTED[number]
    assert set(kb.facts("seen")) == {(y,) for x, y in EXPECTED[number] if x == "a"}
