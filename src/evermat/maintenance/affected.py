"""The rule instances that a change in lower strata destroys and creates.

Source: [hu2018], the operator Π⟦Iᵖ, Iⁿ : P, N⟧ of Section 3.1 and its multiset form of
Section 4.2. All algorithms start a stratum with the first of these and end it with the
second:

    Π⟦I : D∖A, A∖D⟧             `lost`, `lost_counts`
    Π⟦(I∖D)∪A : A∖D, D∖A⟧       `gained`, `gained_counts`

A rule that the update adds has had no instances to lose, and gains all that it has.
Where no rule reads a change, nothing is asked of the engine.

`losing` and `gaining` are the same as rules that a saturation begins with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Application, Views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Counters, Counts, QuerySet, SettledFacts
    from evermat.algebra.compile import RuleSet
    from evermat.maintenance.context import Changes, Run


def lost(run: Run, rules: RuleSet, changes: Changes) -> Iterator[SettledFacts]:
    """Heads of the instances over the old facts that the change destroys."""
    for queries, views in _lost(run, rules, changes):
        yield run.engine.derive(queries, views)


def lost_counts(run: Run, rules: RuleSet, changes: Changes) -> Iterator[Counts]:
    """The multiset form of `lost`."""
    for queries, views in _lost(run, rules, changes):
        yield run.engine.derive_counts(queries, views)


def gained(
    run: Run, stayed: RuleSet, new: RuleSet, changes: Changes
) -> Iterator[SettledFacts]:
    """Heads of the instances over the new facts that the change creates."""
    for queries, views in _gained(run, stayed, new, changes):
        yield run.engine.derive(queries, views)


def gained_counts(
    run: Run, stayed: RuleSet, new: RuleSet, changes: Changes
) -> Iterator[Counts]:
    """The multiset form of `gained`."""
    for queries, views in _gained(run, stayed, new, changes):
        yield run.engine.derive_counts(queries, views)


def losing(
    run: Run, rules: RuleSet, changes: Changes, counters: Counters | None = None
) -> Iterator[Application]:
    """Rules whose heads are `lost`, or which count them."""
    for queries, views in _lost(run, rules, changes):
        yield Application(queries, views, counters)


def gaining(
    run: Run,
    stayed: RuleSet,
    new: RuleSet,
    changes: Changes,
    counters: Counters | None = None,
) -> Iterator[Application]:
    """Rules whose heads are `gained`, or which count them."""
    for queries, views in _gained(run, stayed, new, changes):
        yield Application(queries, views, counters)


def _lost(
    run: Run, rules: RuleSet, changes: Changes
) -> Iterator[tuple[QuerySet, Views]]:
    if rules.rules and rules.delta.reads(changes.lost_from, changes.gained_by):
        yield (
            rules.delta,
            Views(run.materialised, run.materialised, changes.lost, changes.gained),
        )


def _gained(
    run: Run, stayed: RuleSet, new: RuleSet, changes: Changes
) -> Iterator[tuple[QuerySet, Views]]:
    if stayed.rules and stayed.delta.reads(changes.gained_by, changes.lost_from):
        yield (
            stayed.delta,
            Views(run.updated, run.updated, changes.gained, changes.lost),
        )
    if new.rules:
        yield new.full, Views(run.updated, run.updated)
