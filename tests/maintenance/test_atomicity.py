"""A failed update leaves facts, counters, rules and statistics as they were."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from engine_facts import facts_of, stored_counts
from paper_examples import Example
from tracked import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra import Engine
    from evermat.maintenance.limits import Step

RULES = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    far(?x, ?y) :- reach(?x, ?y), not edge(?x, ?y) .
    loop(?x) :- far(?x, ?x) .
"""
REMOVED = "loop(?a) :- far(?a, ?a) ."
ADDED = (
    "far(?x, ?z) :- far(?x, ?y), reach(?y, ?z) . lone(?x) :- node(?x), not loop(?x) ."
)
FACTS: dict[str, Any] = {
    "edge": [(1, 2), (2, 3), (3, 1), (3, 4), (4, 5)],
    "reach": [(5, 5)],
    "node": [(1,), (6,)],
}

# What an engine does for an algorithm; each call is a place where it may fail.
CALLS = (
    "settle",
    "derive",
    "derive_counts",
    "intern",
    "find",
    "find_all",
    "intern_all",
    "once",
    "snapshot",
    "growing",
    "fresh",
    "copy_explicit",
    "adopt",
    "commit",
)


class InjectedError(Exception):
    """Raised on purpose."""


class Fault:
    """Makes an engine fail at the n-th call from outside."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self.is_inside = False
        for name in CALLS:
            if hasattr(engine, name):
                monkeypatch.setattr(engine, name, self._failing(getattr(engine, name)))

    def _failing(self, method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            if self.is_inside:
                return method(*arguments, **named)
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise InjectedError
            self.is_inside = True
            try:
                return method(*arguments, **named)
            finally:
                self.is_inside = False

        return call


def state(example: Example) -> tuple[object, ...]:
    engine, materialisation = example.materialisation.engine, example.materialisation
    return (
        facts_of(engine, engine.materialised),
        facts_of(engine, engine.explicit),
        stored_counts(engine),
        dict(engine.relations()),
        materialisation.rules,
        materialisation.strata,
        materialisation._history,  # noqa: SLF001  statistics are state, too
        engine.monitor,
    )


def change(example: Example, algorithm: str) -> None:
    example.update(
        delete={"edge": [(2, 3), (4, 5)], "reach": [(5, 5)]},
        insert={"edge": [(5, 2)], "new": [(1, 2, 3)]},
        remove_rules=REMOVED,
        add_rules=ADDED,
        algorithm=algorithm,
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_failure_at_every_call_of_the_engine(
    engine: Engine, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = Example(engine, RULES, **FACTS)
    fault = Fault(engine, monkeypatch)
    before = state(example)
    for number in count():
        fault.left = number
        try:
            change(example, algorithm)
        except InjectedError:
            fault.left = None
            assert state(example) == before
        else:
            break
    fault.left = None
    assert number > 8  # it did fail in many places
    undisturbed = Example(engine.fresh(), RULES, **FACTS)
    change(undisturbed, algorithm)
    assert state(example)[:3] == state(undisturbed)[:3]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_failure_at_every_round(engine: Engine, algorithm: str) -> None:
    example = Example(engine, RULES, **FACTS)
    before = state(example)
    for number in count(1):
        rounds = 0

        def fail(step: Step) -> None:
            nonlocal rounds
            rounds += 1
            if rounds == number:  # noqa: B023  called within this turn only
                raise InjectedError(step.phase)

        example.materialisation.progress = fail
        try:
            change(example, algorithm)
        except InjectedError:
            assert state(example) == before
        else:
            break
    assert number > 2


def test_dry_run_changes_nothing(engine: Engine) -> None:
    example = Example(engine, RULES, **FACTS)
    before = state(example)
    for algorithm in ALGORITHMS:
        outcome = example.plan(
            delete={"edge": [(2, 3)]},
            insert={"edge": [(5, 2)]},
            add_rules=ADDED,
            algorithm=algorithm,
        )
        assert outcome.report.removed > 0
        assert state(example) == before
