"""Why two values would be equal: the facts from which that follows in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Column, Pattern, Query, QuerySet, Role, Views
from evermat.engine_abilities import UnequalValuesError
from evermat.lang.equality import SAME
from evermat.rule_plans import derive
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Facts, SettledFacts, Snapshot
    from evermat.engine_abilities import EqualityEngine
    from evermat.rule_plans import RuleSet

_SHOWN = 6
"""How many facts an error shows."""


def explained(
    error: UnequalValuesError,
    engine: EqualityEngine,
    rules: RuleSet,
    equalities: SettledFacts,
    facts: Facts,
) -> UnequalValuesError:
    """The error with the facts that lead to it.

    Args:
        error: names the two values.
        engine: has the facts.
        rules: derive equality.
        equalities: were derived last, the wrong one among them.
        facts: those that hold.
    """
    both = _mentioning(error.left, error.right)
    wrong = engine.derive(both, Views(facts, facts, equalities))
    if wrong.is_empty():
        wrong = equalities
    bodies = derive(
        engine, rules.backward, positive=facts, negative=facts, delta_positive=wrong
    )
    shown = sorted(_texts(engine.snapshot(bodies)))[:_SHOWN]
    return UnequalValuesError(error.left, error.right, shown)


def _mentioning(left: Constant, right: Constant) -> QuerySet:
    return QuerySet(
        tuple(
            Query(
                head=Pattern(SAME, operands),
                positive=(Pattern(SAME, operands, Role.CHANGED),),
                column_count=1,
                label="equalities of values",
            )
            for value in (left, right)
            for operands in ((value, Column(0)), (Column(0), value))
        )
    )


def _texts(snapshot: Snapshot) -> Iterator[str]:
    for name in snapshot.relations():
        for row in snapshot.read(name).to_pylist():
            terms = [
                Constant(Kind(each["kind"]), each["text"]) for each in row.values()
            ]
            yield f"{name}({', '.join(map(str, terms))})"
