"""The context of an algorithm: strata, changes, views, and shared operations.

Notation (left: the papers; right: the code of this folder)

    Π; Π_nr^s, Π_r^s   `stratum.nonrecursive`, `stratum.recursive`
    O^s                `stratum.region`
    E; E⁻; E⁺          `engine.explicit`; `run.deletions`; `run.insertions`
    I                  `run.materialised`     the facts before the update
    D; A               `run.deleted`; `run.added`
    I ∖ (D ∖ A)        `run.remaining`        old facts that have not been deleted
    I ∪ A              `run.possible`
    (I ∖ D) ∪ A        `run.updated`          the new facts, up to the current stratum
    D ∖ A; A ∖ D       `changes.lost`; `changes.gained`

All of them but `deletions`, `insertions`, `lost` and `gained` are views, so none of
them is ever copied.

A change in lower strata destroys rule instances and creates others. They are found by
the operator Π⟦Iᵖ, Iⁿ : P, N⟧ of [hu2018], Section 3.1, and its multiset form of Section
4.2. All algorithms start a stratum with the first of these and end it with the second:

    Π⟦I : D∖A, A∖D⟧             `lost`, `lost_counts`
    Π⟦(I∖D)∪A : A∖D, D∖A⟧       `gained`, `gained_counts`

A rule that the update adds had no instances before, and gains all that it has. If no
rule reads a change, the engine is not called.

`losing` and `gaining` express the same as the first rules of a saturation.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from evermat.algebra import Application, ProofWork, Saturation, Views, apply_first
from evermat.maintenance.aggregates import maintain_aggregates
from evermat.maintenance.update import StratumReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from evermat.algebra import (
        Counters,
        Counts,
        Engine,
        Facts,
        GrowingFacts,
        ProofSearch,
        QuerySet,
        Region,
        Rounds,
        SettledFacts,
    )
    from evermat.algebra.compile import CompiledAggregate, RuleSet
    from evermat.maintenance.counting import Kept
    from evermat.maintenance.limits import Watch
    from evermat.maintenance.modules import Module
    from evermat.maintenance.update import Update


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """One stratum of the new program, with kept and new rules separated.

    An instance of a kept rule can be lost or gained; a new rule had no instances, so it
    gains all of its instances. Removed rules are handled before the first stratum
    (`evermat.maintenance.rules`).

    Attributes:
        nonrecursive, recursive: kept rules.
        new_nonrecursive, new_recursive: new rules.
        all_recursive: kept and new recursive rules.
        holds: the relations of the region.
        reads: the relations in the bodies of the rules.
        modules: recursive rules with algorithms of their own; none of the rules above.
        aggregates, new_aggregates: kept and new aggregates; their results are not part
            of the region.
        monotone, new_monotone: the same for aggregates of facts that depend on them.
        new_modules: the modules that gain a rule.
        is_closed: whether all facts that local atoms can match lie in the region. It is
            false for `[?x, ?p, ?y]` if the rules derive only some values of `?p`.
    """

    index: int
    region: Region
    nonrecursive: RuleSet
    recursive: RuleSet
    new_nonrecursive: RuleSet
    new_recursive: RuleSet
    all_recursive: RuleSet
    holds: frozenset[str]
    reads: frozenset[str]
    is_closed: bool
    modules: tuple[Module, ...] = ()
    new_modules: tuple[Module, ...] = ()
    aggregates: tuple[CompiledAggregate, ...] = ()
    new_aggregates: tuple[CompiledAggregate, ...] = ()
    monotone: tuple[CompiledAggregate, ...] = ()
    new_monotone: tuple[CompiledAggregate, ...] = ()

    @property
    def is_monotone(self) -> bool:
        """Whether there is recursion through aggregates."""
        return bool(self.monotone or self.new_monotone)

    @property
    def rule_count(self) -> int:
        """The number of kept rules."""
        return len(self.nonrecursive.rules) + len(self.recursive.rules)


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The strata of a program, indexed by the relations they read and derive.

    Attributes:
        region: the facts of all strata; other facts can only be explicit.
        readers: for each relation, the positions of the strata whose rules read it.
        holders: for each relation, the positions of the strata that can derive it.
        changed: the positions of the strata that gain a rule.
    """

    strata: tuple[Stratum, ...]
    region: Region
    readers: Mapping[str, tuple[int, ...]]
    holders: Mapping[str, tuple[int, ...]]
    changed: tuple[int, ...] = ()


# ------------------------------------------------------------------------------ context


class Changes(NamedTuple):
    """Facts lost and gained in lower strata, evaluated at the beginning of a stratum.

    Attributes:
        lost, gained: the facts.
        lost_from, gained_by: their relations.
    """

    lost: SettledFacts
    gained: SettledFacts
    lost_from: frozenset[str]
    gained_by: frozenset[str]

    @classmethod
    def of(cls, lost: SettledFacts, gained: SettledFacts) -> Changes:
        """Return the changes of these facts."""
        return cls(lost, gained, lost.relations(), gained.relations())

    def are_empty(self) -> bool:
        """Return whether nothing has changed in lower strata."""
        return not self.lost_from and not self.gained_by


class Modular(NamedTuple):
    """An algorithm for strata with modules, and its name."""

    maintain: Callable[[Run, Stratum], None]
    title: str


class Run:
    """One attempt to maintain the materialisation, inside a transaction.

    An algorithm fills `deleted` and `added`; nothing is final before the engine
    commits. Views are built once, here, and follow the growing sets.
    """

    def __init__(
        self,
        engine: Engine,
        strata: Strata,
        update: Update,
        undermined: SettledFacts,
        watch: Watch,
        modular: Modular | None = None,
    ) -> None:
        self.engine = engine
        self.algorithm = ""
        """The algorithm for strata without modules, for the report."""
        self.modular = modular
        """The algorithm for strata with modules."""
        self.strata = strata
        self.deletions = update.deletions
        self.insertions = update.insertions
        self.undermined = undermined
        """Facts derived by removed rules: each has lost a derivation."""
        self.watch = watch
        self.materialised: Facts = engine.materialised
        self.deleted: GrowingFacts = engine.growing()
        self.added: GrowingFacts = engine.growing()
        self.remaining = self.materialised - (self.deleted - self.added)
        self.possible = self.materialised | self.added
        self.updated = (self.materialised - self.deleted) | self.added
        self.explicit = (engine.explicit - self.deletions) | self.insertions
        """The facts that are explicit after the update."""
        self.reports: list[StratumReport] = []
        self.report = StratumReport(0)
        self.kept: Kept | None = None
        """The counters that derivations outside of the algorithm must maintain."""
        self._changes = Changes.of(engine.no_facts(), engine.no_facts())
        self._is_stale = False

    # -- the input of the current stratum

    def changes(self) -> Changes:
        """Evaluate D ∖ A and A ∖ D as of now."""
        if self._is_stale:
            self._changes = Changes.of(
                lost=self.engine.settle(self.deleted - self.added),
                gained=self.engine.settle(self.added - self.deleted),
            )
            self._is_stale = False
        return self._changes

    def deletions_in(self, stratum: Stratum) -> SettledFacts:
        """Return facts of a stratum that lose support by the update itself."""
        return self._part(stratum, self.deletions, self.undermined)

    def insertions_in(self, stratum: Stratum) -> SettledFacts:
        """Return facts of a stratum that the update inserts."""
        return self._part(stratum, self.insertions)

    def _part(self, stratum: Stratum, *sets: SettledFacts) -> SettledFacts:
        parts = [
            facts.within(stratum.region)
            for facts in sets
            if not stratum.holds.isdisjoint(facts.relations())
        ]
        return self.union(parts)

    def union(self, sets: Iterable[Facts]) -> SettledFacts:
        """Return the settled union of several sets."""
        total: Facts | None = None
        for facts in sets:
            total = facts if total is None else total | facts
        return self.engine.no_facts() if total is None else self.engine.settle(total)

    # -- decisions of the algorithm

    def delete(self, facts: SettledFacts) -> None:
        """Delete facts, temporarily or permanently."""
        if not facts.is_empty():
            self.deleted.add(facts)
            self._is_stale = True
            self.report.overdeleted += facts.size()

    def add(self, facts: SettledFacts) -> None:
        """Add facts, or add them again."""
        if not facts.is_empty():
            self.added.add(facts)
            self._is_stale = True
            self.report.inserted += facts.size()

    def overdelete(
        self,
        seeds: SettledFacts,
        first: Iterable[Application],
        rules: QuerySet | None,
        *,
        counters: Counters | None = None,
        zero: Counters | None = None,
    ) -> None:
        """Delete facts that may have lost their support, and facts that depend on them.

        Args:
            seeds: facts that lose support by the update itself.
            first: rules that find facts which lost support in lower strata.
            rules: the rules by which facts of the stratum depend on each other, if any.
            counters: where the derivations by these rules are counted.
            zero: facts with a positive count in these counters are not deleted.
        """
        first = tuple(first)
        if seeds.is_empty() and not first:
            return
        views = Views(self.remaining, self.possible)
        task = Saturation(
            seeds,
            into=self.deleted,
            unless=self.deleted,
            first=first,
            step=None if rules is None else Application(rules, views, counters),
            is_deletion=True,
            enters_first=False,
            zero=zero,
            is_watched=self.watch.is_strict,
        )
        for part in self._portions(task):
            self.report.overdeleted += self.saturate(part)

    def insert(
        self,
        seeds: SettledFacts,
        first: Iterable[Application],
        rules: QuerySet | None,
        *,
        counters: Counters | None = None,
    ) -> None:
        """Add facts and all that follows from them; arguments as in `overdelete`.

        Facts are part of (I ∖ D) ∪ A when rules are applied to them, so each instance
        is matched in one round only.
        """
        first = tuple(first)
        if seeds.is_empty() and not first:
            return
        views = Views(self.updated, self.updated)
        task = Saturation(
            seeds,
            into=self.added,
            unless=self.updated,
            first=first,
            step=None if rules is None else Application(rules, views, counters),
            is_watched=self.watch.is_strict,
        )
        self.report.inserted += self.saturate(task)

    def saturate(self, task: Saturation) -> int:
        """Apply rules up to the fixpoint; return the number of admitted facts."""
        admitted = 0

        def note(rounds: Rounds) -> None:
            nonlocal admitted
            admitted += rounds.facts
            self.report.rounds += rounds.number
            self.report.compiled_rounds += rounds.number * rounds.are_compiled
            self.watch.round(self.report.rounds, rounds.facts)

        self._is_stale = True
        self.engine.saturate(task, note)
        return admitted

    def prove(self, search: ProofSearch, facts: SettledFacts) -> SettledFacts:
        """Search for derivations of facts; return those that have none."""
        report, work = self.report, ProofWork()

        def note(rounds: Rounds) -> None:
            report.rounds += rounds.number
            report.compiled_rounds += rounds.number * rounds.are_compiled
            self.watch.round(report.rounds, rounds.facts)

        with self._timed("check"):
            unproved = self.engine.prove(search, facts, work, note)
        report.compiled_searches += work.are_compiled
        report.proved += work.proved
        report.forward_instances += work.forward
        report.backward_instances += work.backward
        return unproved

    def _portions(self, task: Saturation) -> Iterator[Saturation]:
        """Yield a deletion as a whole, or first a part of it as a test of its reach.

        The part is included in the whole again.
        """
        cost_limit = self.watch.cost_limit
        forecast = None if cost_limit is None else cost_limit.forecast
        if forecast is None or task.step is None:
            yield task
            return
        seeds = apply_first(self.engine, task)
        parts = forecast.parts(seeds.size())
        part = self.engine.part(seeds, parts) if parts > 1 else None
        if part is not None:
            with self.watch.judging(parts):
                yield replace(task, seeds=part, first=())
        yield replace(task, seeds=seeds, first=())

    def retract(self, facts: SettledFacts) -> None:
        """Delete facts that held before, and drop those that were only added."""
        if not facts.is_empty():
            self.delete(self.engine.settle(facts & self.materialised))
            self.added.discard(facts)
            self._is_stale = True

    # -- strata to visit

    def touched_strata(self) -> Iterator[Stratum]:
        """Yield the strata without modules that the update reaches, in order.

        Facts that no stratum derives are handled first. A stratum is visited if the
        update changes its facts or rules, or if a change below affects a relation that
        its rules read; other strata cost nothing. Strata with modules are maintained
        here, because only `modular` supports them.
        """
        self._change_base()
        waiting = set(self.strata.changed)
        for facts in (self.deletions, self.insertions, self.undermined):
            for relation in facts.relations():
                waiting.update(self.strata.holders.get(relation, ()))
        known: set[str] = set()
        position = -1
        while True:
            for relation in self._changed_relations() - known:
                known.add(relation)
                readers = self.strata.readers.get(relation, ())
                waiting.update(reader for reader in readers if reader > position)
            if not waiting:
                return
            position = min(waiting)
            waiting.remove(position)
            stratum = self.strata.strata[position]
            self._begin_report(stratum.index)
            if stratum.aggregates or stratum.new_aggregates:
                with self.forwards("aggregate"):
                    maintain_aggregates(self, stratum)
            is_special = stratum.modules or stratum.is_monotone
            if is_special and self.modular is not None:
                self.report.algorithm = self.modular.title
                self.modular.maintain(self, stratum)
            else:
                self.report.algorithm = self.algorithm
                yield stratum

    def _changed_relations(self) -> frozenset[str]:
        changes = self.changes()
        return changes.lost_from | changes.gained_by

    def _change_base(self) -> None:
        """Delete and add the facts that no rule of the new program derives.

        They hold if and only if they are explicit.
        """
        self._begin_report(0)
        with self.forwards("base"):
            self.delete_base(self._base(self.deletions))
            self.delete_base(self._base(self.undermined))
            news = self._base(self.insertions)
            if not news.is_empty():
                self.add(self.engine.settle(news - self.updated))

    def delete_base(self, facts: SettledFacts) -> None:
        """Delete those of the facts that are not explicit after the update."""
        if not facts.is_empty():
            self.delete(self.engine.settle(facts - self.explicit - self.deleted))

    def _base(self, facts: SettledFacts) -> SettledFacts:
        if not any(name in self.strata.holders for name in facts.relations()):
            return facts
        return self.engine.settle(facts - facts.within(self.strata.region))

    # -- bookkeeping

    def _begin_report(self, index: int) -> None:
        self.report = StratumReport(index)
        self.reports.append(self.report)
        self.watch.stratum = index

    def finish(self, reports: list[StratumReport]) -> None:
        """Record that an engine has filled both sets by itself."""
        self.reports += reports
        self._is_stale = True
        self.watch.instances += sum(
            report.forward_instances + report.backward_instances for report in reports
        )

    def return_to(self, stratum: Stratum) -> None:
        """Continue the report of a stratum that was visited before."""
        for report in self.reports:
            if report.index == stratum.index:
                self.report = report
                return
        self._begin_report(stratum.index)

    @contextmanager
    def forwards(self, phase: str) -> Iterator[None]:
        """Time a phase that matches rules from body to head."""
        before = self.engine.matches
        with self._timed(phase):
            yield
        self.report.forward_instances += self.engine.matches - before

    @contextmanager
    def backwards(self, phase: str) -> Iterator[None]:
        """Time a phase that matches rules from head to body."""
        before = self.engine.matches
        with self._timed(phase):
            yield
        self.report.backward_instances += self.engine.matches - before

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        start = perf_counter()
        self.watch.phase = phase
        yield
        seconds = self.report.seconds
        seconds[phase] = seconds.get(phase, 0.0) + perf_counter() - start

    def round(self, delta: SettledFacts) -> None:
        """Record a round with `delta` new facts; stop the run if it exceeds a limit."""
        self.report.rounds += 1
        self.watch.round(self.report.rounds, delta.size())


class Algorithm(Protocol):
    """Brings `run.deleted` and `run.added` to the result of the update."""

    def __call__(self, run: Run) -> None:
        """Visit the touched strata, and fill the two sets."""


# ----------------------------------------------------------------------------- affected


def lost(run: Run, rules: RuleSet, changes: Changes) -> Iterator[SettledFacts]:
    """Yield heads of the instances over the old facts that the change destroys."""
    for queries, views in _lost(run, rules, changes):
        yield run.engine.derive(queries, views)


def lost_counts(run: Run, rules: RuleSet, changes: Changes) -> Iterator[Counts]:
    """Yield the multiset form of `lost`."""
    for queries, views in _lost(run, rules, changes):
        yield run.engine.derive_counts(queries, views)


def gained(
    run: Run, stayed: RuleSet, new: RuleSet, changes: Changes
) -> Iterator[SettledFacts]:
    """Yield heads of the instances over the new facts that the change creates."""
    for queries, views in _gained(run, stayed, new, changes):
        yield run.engine.derive(queries, views)


def gained_counts(
    run: Run, stayed: RuleSet, new: RuleSet, changes: Changes
) -> Iterator[Counts]:
    """Yield the multiset form of `gained`."""
    for queries, views in _gained(run, stayed, new, changes):
        yield run.engine.derive_counts(queries, views)


def losing(
    run: Run, rules: RuleSet, changes: Changes, counters: Counters | None = None
) -> Iterator[Application]:
    """Yield rules that find the facts of `lost`, or count them."""
    for queries, views in _lost(run, rules, changes):
        yield Application(queries, views, counters)


def gaining(
    run: Run,
    stayed: RuleSet,
    new: RuleSet,
    changes: Changes,
    counters: Counters | None = None,
) -> Iterator[Application]:
    """Yield rules that find the facts of `gained`, or count them."""
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


# -------------------------------------------------------------------------- derivations


def holding(run: Run, facts: SettledFacts, *rule_sets: RuleSet) -> SettledFacts:
    """Return the facts that are explicit, or that rules derive from remaining ones."""
    rules = [each.rederive for each in rule_sets if each.rules]
    views = Views(run.remaining, run.possible, facts)
    return run.engine.derivable(rules, views, run.explicit)
