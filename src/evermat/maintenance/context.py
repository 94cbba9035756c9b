"""The context that an algorithm runs in: strata, changes, views, and what they share.

The strata of a program, as an update finds them: compiled, old rules and new.

The context that an algorithm runs in.

Notation (left: the papers; right: the code of this folder)

    Π; Π_nr^s, Π_r^s   `stratum.nonrecursive`, `stratum.recursive`
    O^s                `stratum.region`
    E; E⁻; E⁺          `engine.explicit`; `run.deletions`; `run.insertions`
    I                  `run.materialised`     the facts before the update
    D; A               `run.deleted`; `run.added`
    I ∖ (D ∖ A)        `run.remaining`        old facts not known to be lost
    I ∪ A              `run.possible`
    (I ∖ D) ∪ A        `run.updated`          the new facts, up to the stratum at work
    D ∖ A; A ∖ D       `changes.lost`; `changes.gained`

All of them but `deletions`, `insertions`, `lost` and `gained` are views, so none of
them is ever copied.

The rule instances that a change in lower strata destroys and creates.

Source: [hu2018], the operator Π⟦Iᵖ, Iⁿ : P, N⟧ of Section 3.1 and its multiset form of
Section 4.2. All algorithms start a stratum with the first of these and end it with the
second:

    Π⟦I : D∖A, A∖D⟧             `lost`, `lost_counts`
    Π⟦(I∖D)∪A : A∖D, D∖A⟧       `gained`, `gained_counts`

A rule that the update adds has had no instances to lose, and gains all that it has.
Where no rule reads a change, nothing is asked of the engine.

`losing` and `gaining` are the same as rules that a saturation begins with.

Which facts hold without the help of facts that are being looked into.
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
    """One stratum of the new program, with kept and new rules apart.

    An instance of a rule that stays can be lost or gained; a rule that comes has had no
    instances, so that all those it now has are gained. Rules that go are dealt with
    before the first stratum (`evermat.maintenance.rules`).

    Attributes:
        nonrecursive, recursive: rules that stay.
        new_nonrecursive, new_recursive: rules that come.
        all_recursive: the recursive rules of both sorts.
        holds: the relations of the region.
        reads: the relations in the bodies of the rules.
        modules: recursive rules with algorithms of their own; none of the rules above.
        aggregates, new_aggregates: those that stay and those that come; their results
            are not part of the region.
        monotone, new_monotone: the same for aggregates of facts that depend on them.
        new_modules: those of the modules that gain a rule.
        is_closed: whether facts that an atom of the stratum's own can match all lie in
            the region. Not so for `[?x, ?p, ?y]` where rules derive some `?p` only.
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
        """How many rules stay."""
        return len(self.nonrecursive.rules) + len(self.recursive.rules)


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The strata of a program, and which of them a relation matters to.

    Attributes:
        region: the facts of all strata; the others can only be explicit.
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
    """What lower strata lost and gained, worked out when a stratum begins.

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
        """Return whether nothing changed below."""
        return not self.lost_from and not self.gained_by


class Modular(NamedTuple):
    """An algorithm for strata with modules, and its name."""

    maintain: Callable[[Run, Stratum], None]
    title: str


class Run:
    """One attempt to bring the materialisation up to date, inside a transaction.

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
        """What brings strata without modules up to date, for the report."""
        self.modular = modular
        """What brings strata with modules up to date."""
        self.strata = strata
        self.deletions = update.deletions
        self.insertions = update.insertions
        self.undermined = undermined
        """Facts derived by rules that go: each has lost a derivation."""
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
        """Which counters are kept, by those who derive facts in no algorithm's way."""
        self._changes = Changes.of(engine.no_facts(), engine.no_facts())
        self._is_stale = False

    # -- what the stratum at work starts from

    def changes(self) -> Changes:
        """D ∖ A and A ∖ D, as they are now."""
        if self._is_stale:
            self._changes = Changes.of(
                lost=self.engine.settle(self.deleted - self.added),
                gained=self.engine.settle(self.added - self.deleted),
            )
            self._is_stale = False
        return self._changes

    def deletions_in(self, stratum: Stratum) -> SettledFacts:
        """Return facts of a stratum that the update itself takes support from."""
        return self._part(stratum, self.deletions, self.undermined)

    def insertions_in(self, stratum: Stratum) -> SettledFacts:
        """Return facts of a stratum that the update gives."""
        return self._part(stratum, self.insertions)

    def _part(self, stratum: Stratum, *sets: SettledFacts) -> SettledFacts:
        parts = [
            facts.within(stratum.region)
            for facts in sets
            if not stratum.holds.isdisjoint(facts.relations())
        ]
        return self.union(parts)

    def union(self, sets: Iterable[Facts]) -> SettledFacts:
        """Several sets as a settled one."""
        total: Facts | None = None
        for facts in sets:
            total = facts if total is None else total | facts
        return self.engine.no_facts() if total is None else self.engine.settle(total)

    # -- what the algorithm decides

    def delete(self, facts: SettledFacts) -> None:
        """Take facts away, for a time or for good."""
        if not facts.is_empty():
            self.deleted.add(facts)
            self._is_stale = True
            self.report.overdeleted += facts.size()

    def add(self, facts: SettledFacts) -> None:
        """Put facts in, or back in."""
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
        """Delete facts that may have lost their support, and what depends on them.

        Args:
            seeds: facts that the update itself takes support from.
            first: rules that find those which lower strata have left without support.
            rules: those by which facts of the stratum depend on each other, if any.
            counters: where the derivations by these rules are counted.
            zero: facts that have a count there are not deleted.
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

        Facts are part of (I ∖ D) ∪ A when rules are applied to them, so that each
        instance is matched in one round only.
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
        """Apply rules until nothing is new; how many facts were admitted."""
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
        """Search for derivations of facts; returns those that have none."""
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
        """A deletion as a whole, or a part of it first, to see how far it reaches.

        The part is in the whole once more.
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
        """Delete facts that held before, and forget those that were only added."""
        if not facts.is_empty():
            self.delete(self.engine.settle(facts & self.materialised))
            self.added.discard(facts)
            self._is_stale = True

    # -- which strata there is work in

    def touched_strata(self) -> Iterator[Stratum]:
        """The strata that the update reaches, in order, except those with modules.

        Facts that no stratum derives are dealt with first. A stratum is visited if
        the update speaks of its facts or rules, or if what happened below touches a
        relation that its rules read; the others cost nothing. Strata with modules are
        brought up to date on the way, because no algorithm but `modular` knows of them.
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

        They hold exactly if they are explicit.
        """
        self._begin_report(0)
        with self.forwards("base"):
            self.delete_base(self._base(self.deletions))
            self.delete_base(self._base(self.undermined))
            news = self._base(self.insertions)
            if not news.is_empty():
                self.add(self.engine.settle(news - self.updated))

    def delete_base(self, facts: SettledFacts) -> None:
        """Delete those of the facts that are not given after the update."""
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
        """Take note that an engine has filled both sets by itself."""
        self.reports += reports
        self._is_stale = True
        self.watch.instances += sum(
            report.forward_instances + report.backward_instances for report in reports
        )

    def return_to(self, stratum: Stratum) -> None:
        """Go on with the report on a stratum that was visited before."""
        for report in self.reports:
            if report.index == stratum.index:
                self.report = report
                return
        self._begin_report(stratum.index)

    @contextmanager
    def forwards(self, phase: str) -> Iterator[None]:
        """A phase that matches rules from body to head."""
        before = self.engine.matches
        with self._timed(phase):
            yield
        self.report.forward_instances += self.engine.matches - before

    @contextmanager
    def backwards(self, phase: str) -> Iterator[None]:
        """A phase that matches rules from head to body."""
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
        """One more round, with `delta` new facts; stops the run if a limit is hit."""
        self.report.rounds += 1
        self.watch.round(self.report.rounds, delta.size())


class Algorithm(Protocol):
    """Brings `run.deleted` and `run.added` to what the update asks for."""

    def __call__(self, run: Run) -> None:
        """Visit the touched strata, and fill the two sets."""


# ----------------------------------------------------------------------------- affected


def lost(run: Run, rules: RuleSet, changes: Changes) -> Iterator[SettledFacts]:
    """Heads of the instances over the old facts that the change destroys."""
    for queries, views in _lost(run, rules, changes):
        yield run.engine.derive(queries, views)


def lost_counts(run: Run, rules: RuleSet, changes: Changes) -> Iterator[Counts]:
    """Yield the multiset form of `lost`."""
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
    """Yield the multiset form of `gained`."""
    for queries, views in _gained(run, stayed, new, changes):
        yield run.engine.derive_counts(queries, views)


def losing(
    run: Run, rules: RuleSet, changes: Changes, counters: Counters | None = None
) -> Iterator[Application]:
    """Yield rules whose heads are `lost`, or which count them."""
    for queries, views in _lost(run, rules, changes):
        yield Application(queries, views, counters)


def gaining(
    run: Run,
    stayed: RuleSet,
    new: RuleSet,
    changes: Changes,
    counters: Counters | None = None,
) -> Iterator[Application]:
    """Yield rules whose heads are `gained`, or which count them."""
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
    """Those of the facts that are explicit, or that rules derive from what remains."""
    rules = [each.rederive for each in rule_sets if each.rules]
    views = Views(run.remaining, run.possible, facts)
    return run.engine.derivable(rules, views, run.explicit)
