"""Mistakes are planted where they belong, or the tests that want them say that not."""

from __future__ import annotations

import re
from functools import cached_property

import pytest

from planting import Mutant, MutantError, assign, mutated, plant


def settle(*facts: int, sign: int = 1) -> int:
    return sign * sum(facts)


def derive(facts: int, more: int) -> int:
    first = settle(facts, more)
    return settle(
        first,
        facts + 1,
        sign=-1,
    )


class Run:
    step = 10

    @cached_property
    def cached(self) -> int:
        return self.step + 1

    @property
    def plain(self) -> int:
        return self.step + 2

    def filled(self) -> dict[str, int]:
        found = {"a": 1}
        found["a"] = self.step
        found.update(b=2)
        return found

    def growing(self) -> list[int]:
        found: list[int] = []
        found.append(self.step)
        return [each + self.step for each in found]


@pytest.mark.parametrize(
    ("mutant", "result"),
    [
        (
            Mutant("names", derive, lambda facts: facts + 1, lambda facts: facts - 1),
            -(3 + 0),
        ),
        (
            Mutant("other names", derive, lambda a: a + 1, lambda a: a * 5),
            -(3 + 5),
        ),
        (
            Mutant(
                "some arguments",
                derive,
                lambda settle, a: settle(a, ..., sign=-1),
                lambda settle: settle(..., sign=2),
            ),
            2 * 2,
        ),
        (
            Mutant(
                "all arguments in order",
                derive,
                lambda settle, facts, more: settle(facts, more),
                lambda settle, more: settle(more, more),
            ),
            -(4 + 2),
        ),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_an_expression_is_replaced(
    mutant: Mutant, result: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert derive(1, 2) == -(3 + 2)
    plant(mutant, monkeypatch)
    assert derive(1, 2) == result
    monkeypatch.undo()
    assert derive(1, 2) == -(3 + 2)


def test_methods_and_properties_have_mistakes_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = lambda self: self.step, lambda self: -self.step
    plant(Mutant("one", Run.cached, old, new), monkeypatch)
    plant(Mutant("two", Run.plain, old, new), monkeypatch)
    assert (Run().cached, Run().plain) == (-9, -8)


def test_a_statement_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Run().growing() == [20]
    plant(Mutant("", Run.growing, lambda found, x: found.append(x)), monkeypatch)
    assert Run().growing() == []


@pytest.mark.parametrize(
    ("mutant", "result"),
    [
        (
            Mutant("gone", Run.filled, lambda x, self: assign(x["a"], self.step)),
            {"a": 1, "b": 2},
        ),
        (
            Mutant(
                "another",
                Run.filled,
                lambda found, step: assign(found["a"], step),
                lambda found: assign(found["b"], 7),
            ),
            {"a": 1, "b": 2},
        ),
        (
            Mutant(
                "instead of a call",
                Run.filled,
                lambda found: found.update(b=2),
                lambda found: assign(found["c"], 3),
            ),
            {"a": 10, "c": 3},
        ),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_an_assignment_is_replaced(
    mutant: Mutant, result: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(mutant, monkeypatch)
    assert Run().filled() == result


@pytest.mark.parametrize(
    ("mutant", "why"),
    [
        (Mutant("gone", derive, lambda facts: facts - 7), "has 0 times `facts - 7`"),
        (
            Mutant("renamed", derive, lambda settled, a, b: settled(a, b)),
            "has 0 times `settled(a, b)`",
        ),
        (
            Mutant("twice", Run.growing, lambda self: self.step),
            "has 2 times `self.step`",
        ),
        (
            Mutant("ambiguous", Run.growing, lambda x: x.step),
            "has 2 times `x.step`",
        ),
        (
            Mutant("unknown", derive, lambda facts: facts + 1, lambda fact: fact),
            "knows no fact",
        ),
        (Mutant("compiled", len, lambda facts: facts), "is not a function written in"),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_a_mutant_that_does_not_apply_is_an_error(
    mutant: Mutant, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MutantError, match=re.escape(why)):
        plant(mutant, monkeypatch)


def test_what_is_not_changed_stays_the_same() -> None:
    code = mutated(derive, lambda facts: facts + 1, lambda facts: facts + 1)
    assert code.co_code == derive.__code__.co_code
    assert code.co_consts == derive.__code__.co_consts
