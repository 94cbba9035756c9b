"""Recursion through aggregates, where it is monotone: exact deletion in two phases.

`evermat.lang.monotone` defines which cycles are monotone;
`docs/algorithms/aggregates.md` explains why the phases end at the best fixpoint. All
facts of the stratum are counted, as by DRed^c, and so are the results of aggregates,
each as derived once.

*Overdeletion.* Facts with a derivation through a deleted fact are deleted, unless they
have a nonrecursive derivation left. The result of an aggregate is deleted if a member
that it depends on is: for `min` and `max` one with its value, otherwise any. All
remaining facts are derived from remaining facts, so no value is better than it should
be: a stale minimum does not support itself.

*Insertion.* Facts with a count left are added again, groups without a result get one
from the remaining members, and new facts are derived in rounds. A better result
replaces a worse one: this deletes the facts derived from the latter, and their counts,
in the same round in which the consequences of the former are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Region, Views
from evermat.algebra.aggregates import (
    aggregate_error,
    negative_members,
    rows_of_table,
    supported_results,
)
from evermat.algebra.compile import compile_rules, derive_counts
from evermat.maintenance.context import Stratum, gained_counts, lost_counts

if TYPE_CHECKING:
    from evermat.algebra import Aggregate, SettledFacts
    from evermat.algebra.compile import StratumPlan
    from evermat.maintenance.context import Run


def maintain_monotone(run: Run, stratum: Stratum) -> None:
    """Maintain a stratum with recursion through aggregates."""
    run.report.algorithm = "monotone aggregates"
    work = _Work(run, stratum)
    with run.forwards("overdelete"):
        work.overdelete()
    with run.forwards("insert"):
        work.insert()


class _Work:
    """One update of one stratum."""

    def __init__(self, run: Run, stratum: Stratum) -> None:
        self._run = run
        self._stratum = stratum
        self._changes = run.changes()
        self._once = run.engine.nonrecursive_counts
        self._again = run.engine.recursive_counts
        self._aggregates = [each.aggregate for each in stratum.monotone]
        self._new = [each.aggregate for each in stratum.new_monotone]
        self._deleted_results = run.engine.no_facts()
        """Deleted results."""

    # -- overdeletion

    def overdelete(self) -> None:
        """Delete facts that may have lost their support."""
        run, engine = self._run, self._run.engine
        candidates = self._losers()
        results = engine.no_facts()
        while True:
            delta = self._once.zero(candidates & run.remaining)
            delta = engine.settle(delta | engine.settle(results & run.remaining))
            if delta.is_empty():
                return
            run.round(delta)
            counts = derive_counts(
                engine,
                self._stratum.recursive.delta,
                positive=run.remaining,
                negative=run.possible,
                delta_positive=delta,
            )
            self._again.subtract(counts)
            candidates = counts.facts
            views = Views(run.remaining, run.possible, delta)
            found = run.union(
                engine.derive(supported_results(each), views)
                for each in self._aggregates
                if each.members in delta.relations()
            )
            run.delete(delta)
            results = engine.settle(found & run.remaining)
            self._once.subtract(engine.once(results))
            self._deleted_results = engine.settle(self._deleted_results | results)

    def _losers(self) -> SettledFacts:
        """Return facts that lose support from lower strata, or by the update itself."""
        run, changes = self._run, self._changes
        losers = [run.deletions_in(self._stratum)]
        for rules, counters in (
            (self._stratum.nonrecursive, self._once),
            (self._stratum.recursive, self._again),
        ):
            for counts in lost_counts(run, rules, changes):
                counters.subtract(counts)
                losers.append(counts.facts)
        return run.union(losers)

    # -- insertion

    def insert(self) -> None:
        """Add consequences until no group has a better result."""
        run, engine = self._run, self._run.engine
        minus = engine.no_facts()
        plus = run.union([self._winners(), *self._results_anew()])
        while not (minus.is_empty() and plus.is_empty()):
            run.round(plus)
            minus, plus = self._round(minus, plus)

    def _winners(self) -> SettledFacts:
        """Return facts that are added again, inserted, or gained from lower strata."""
        run, stratum = self._run, self._stratum
        deleted = run.engine.settle(run.deleted.within(stratum.region))
        back = self._again.positive(deleted)
        run.report.rederived = back.size()
        winners = [back, run.insertions_in(stratum)]
        for stayed, new, counters in (
            (stratum.nonrecursive, stratum.new_nonrecursive, self._once),
            (stratum.recursive, stratum.new_recursive, self._again),
        ):
            for counts in gained_counts(run, stayed, new, self._changes):
                counters.add(counts)
                winners.append(counts.facts)
        return run.engine.settle(run.union(winners) - run.updated)

    def _results_anew(self) -> list[SettledFacts]:
        """Return results for groups that lost theirs, and of new aggregates."""
        run, engine = self._run, self._run.engine
        lost = self._deleted_results.relations()
        again = [each for each in self._aggregates if each.values in lost]
        found = [
            engine.aggregate_again(again, self._deleted_results, run.updated),
            engine.aggregate(self._new, run.updated),
        ]
        for results in found:
            self._once.add(engine.once(results))
        return found

    def _round(
        self, minus: SettledFacts, plus: SettledFacts
    ) -> tuple[SettledFacts, SettledFacts]:
        """Delete facts and add others; return the next ones to delete and to add."""
        run, engine = self._run, self._run.engine
        losers = winners = engine.no_facts()
        rules = self._stratum.all_recursive.delta
        if not minus.is_empty():
            views = Views(run.updated, run.updated, minus)
            lost = engine.derive_counts(rules, views)
            self._again.subtract(lost)
            losers = lost.facts
            run.retract(minus)
        if not plus.is_empty():
            run.add(plus)
            views = Views(run.updated, run.updated, plus)
            gained = engine.derive_counts(rules, views)
            self._again.add(gained)
            winners = gained.facts
        removed, added = self._regrouped(minus, plus)
        dead = self._once.zero(self._again.zero(losers & run.updated))
        return (
            engine.settle(dead | removed),
            engine.settle((winners - run.updated) | added),
        )

    def _regrouped(
        self, minus: SettledFacts, plus: SettledFacts
    ) -> tuple[SettledFacts, SettledFacts]:
        """Return the results that a change of members removes and adds."""
        run, engine = self._run, self._run.engine
        changed = minus.relations() | plus.relations()
        aggregates = [*self._aggregates, *self._new]
        touched = [each for each in aggregates if each.members in changed]
        if not touched:
            return engine.no_facts(), engine.no_facts()
        region = Region(frozenset(each.members for each in touched))
        old = engine.settle(minus.within(region))
        new = engine.settle(plus.within(region))
        for each in touched:
            self._require_no_negative(each, new)
        removed, added = engine.aggregate_changes(
            touched, (old, new), (run.updated | old) - new, run.updated
        )
        self._once.subtract(engine.once(removed))
        self._once.add(engine.once(added))
        return removed, added

    def _require_no_negative(self, aggregate: Aggregate, new: SettledFacts) -> None:
        """Refuse negative members of a sum, which would make it smaller."""
        if aggregate.function != "sum" or aggregate.members not in new.relations():
            return
        views = Views(self._run.updated, self._run.updated, new)
        rows = rows_of_table(
            self._run.engine.answer(negative_members(aggregate), views)
        )
        if rows:
            group = tuple(rows[0][at] for at in aggregate.group)
            value = rows[0][aggregate.value]
            reason = f"{value} is negative, and the sum depends on itself"
            raise aggregate_error(aggregate, group, reason)


def as_new(plan: StratumPlan) -> Stratum:
    """Return a stratum all of whose rules are new."""
    nothing = compile_rules((), plan.recursive.is_local)
    return Stratum(
        index=plan.index + 1,
        region=plan.region,
        nonrecursive=nothing,
        recursive=nothing,
        new_nonrecursive=plan.nonrecursive,
        new_recursive=plan.recursive,
        all_recursive=plan.recursive,
        holds=plan.region.names,
        reads=frozenset(),
        is_closed=True,
        new_monotone=plan.monotone,
    )
