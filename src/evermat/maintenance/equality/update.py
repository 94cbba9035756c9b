"""One update of a program with equality, from given facts to all that follows.

Three steps, in one transaction of the engine:

1. what the update takes away: B/F^≈ in the component of equality, which may split
   cliques (`evermat.maintenance.equality.deletion`);
2. what it adds: the r-materialisation goes on, which may merge cliques
   (`evermat.maintenance.equality.insertion`);
3. everything else. It is now known which constants are equal, so given facts and rules
   are brought into their new normal form, and the difference is an ordinary update of
   the rules that equality does not depend on, for one of the ordinary algorithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING

from evermat.algebra import Pattern, Query, QuerySet, Region, Views
from evermat.algebra.abilities import can_tell_shared, can_withdraw
from evermat.columns import constants
from evermat.lang.equality import OWL_SAME_AS, SAME, another_name, name_apart
from evermat.maintenance.context import Run
from evermat.maintenance.equality.deletion import Deletion
from evermat.maintenance.equality.explicit import ToldFacts
from evermat.maintenance.equality.insertion import Insertion, Setting
from evermat.maintenance.equality.names import all_names, names_of
from evermat.maintenance.equality.state import (
    MOVED,
    GivenFacts,
    normal_explicit,
    values_among,
)
from evermat.maintenance.modular_materialise import materialise_closing
from evermat.maintenance.rule_book import RuleChange
from evermat.maintenance.rule_changes import undermine
from evermat.maintenance.seminaive import materialise
from evermat.maintenance.strata import Strata
from evermat.maintenance.updates import StratumReport, Update

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.abilities import EqualityEngine, Representatives
    from evermat.lang.syntax import Rule
    from evermat.maintenance.equality.rules import EqualityProgram
    from evermat.maintenance.limits import Watch


@dataclass(frozen=True, eq=False)
class EqualityJob:
    """What an update changes.

    Attributes:
        program: the rules before and after, together.
        old, new: the rules before; the rules after.
        component: the rules that equality is known to depend on.
        deletions, insertions: given facts, as they are given.
        modules: whether closures are materialised as such.
        tracing: whether a contradiction is to be explained.
    """

    program: EqualityProgram
    old: frozenset[Rule]
    new: frozenset[Rule]
    component: frozenset[Rule]
    deletions: SettledFacts
    insertions: SettledFacts
    modules: bool
    tracing: bool

    @property
    def removed(self) -> frozenset[Rule]:
        """The rules that go."""
        return frozenset() if self.old is self.new else self.old - self.new

    @property
    def added(self) -> frozenset[Rule]:
        """The rules that come."""
        return frozenset() if self.old is self.new else self.new - self.old


@dataclass(frozen=True, eq=False)
class Behind:
    """Given facts that facts of representatives stood for before an update.

    Attributes:
        facts: representatives of given facts that go.
        given: what is still given of all that is behind them.
        still: those of the facts behind which there is any.
    """

    facts: SettledFacts
    given: SettledFacts
    still: SettledFacts


@dataclass(eq=False)
class Marks:
    """How explicit facts change, implied ones included.

    Attributes:
        withdrawn, given: representatives of given facts that go and that come.
        cleared, set: facts that cease to be explicit in the engine, and that become so.
    """

    withdrawn: SettledFacts
    given: SettledFacts
    cleared: SettledFacts
    set: SettledFacts


class EqualityUpdate:
    """See the module's docstring.

    Attributes:
        before, after: the representatives.
    """

    def __init__(
        self,
        engine: EqualityEngine,
        job: EqualityJob,
        before: Representatives,
        watch: Watch,
    ) -> None:
        self.engine = engine
        self.job = job
        self.before = self.after = before
        nothing = engine.no_facts()
        update = Update(nothing, nothing)
        self.run = Run(engine, _NO_STRATA, update, nothing, watch)
        self.run.algorithm = "bf"
        self.given = GivenFacts(engine, job.deletions, job.insertions)
        relations = engine.relations()
        self.setting = Setting(
            engine=engine,
            run=self.run,
            program=job.program,
            component=job.component,
            values=values_among(relations),
            given=self.given,
            tracing=job.tracing,
        )
        self.marks: Marks | None = None
        self._about_moved: SettledFacts | None = None
        self.run.report = StratumReport(1, algorithm="bf")
        self.run.reports.append(self.run.report)

    # -- the component of equality

    def withdraw(self) -> bool:
        """Have the engine do step 1 and the first half of step 3; whether it has.

        Not where anything but given facts goes, or where somebody wants to be told of
        every round.
        """
        engine, job, run = self.engine, self.job, self.run
        if not can_withdraw(engine) or run.watch.is_strict:
            return False
        if job.old is not job.new or not job.insertions.is_empty():
            return False
        start = perf_counter()
        rules = self.setting.rules(self.before).component(job.new)
        sets = run.deleted, run.added
        done = engine.withdraw(
            rules, job.deletions, self.before, sets, self.setting.values
        )
        if done is None:
            return False
        self.after = done.representatives
        self._about_moved = done.about_moved
        self.marks = Marks(done.withdrawn, done.given, done.cleared, done.set)
        self._change_implied(done.not_implied, done.implied)
        report = StratumReport(
            1,
            algorithm="bf",
            compiled_rounds=done.rounds,
            rounds=done.rounds,
            forward_instances=done.forward_instances,
            backward_instances=done.backward_instances,
            overdeleted=done.deleted,
            proved=done.proved,
            inserted=done.added,
            seconds={"delete": perf_counter() - start},
        )
        run.reports.clear()
        run.finish([report])
        return True

    def delete(self) -> None:
        """Step 1."""
        engine, job = self.engine, self.job
        removed = job.removed
        rules = self.setting.rules(self.before)
        alone = engine.settle(self._lone_deletions.within(rules.region))
        candidates: Facts = self._behind.facts.within(rules.region)
        if removed & job.component:
            facts = engine.materialised
            lost = rules.checking(removed).full
            candidates |= engine.derive(lost, Views(facts, facts)) & facts
        doubtful = engine.settle(candidates)
        if doubtful.is_empty() and alone.is_empty():
            return
        stayed = job.old if job.old is job.new else job.old & job.new
        told = ToldFacts(self.setting, stayed, self.given, self.before)
        doubtful = told.withdraw(doubtful, self._behind.still, alone)
        if not doubtful.is_empty():
            self.after = Deletion(self.setting, told).delete(doubtful)

    @cached_property
    def _shared_deletions(self) -> SettledFacts:
        """Facts to delete that may have other names."""
        return self._shared(self.job.deletions, self.before)

    @cached_property
    def _lone_deletions(self) -> SettledFacts:
        """All others: they stand for themselves, and nothing stands for them."""
        return self.engine.settle(self.job.deletions - self._shared_deletions)

    @cached_property
    def _behind(self) -> Behind:
        """What was and is given behind facts that lose a given one."""
        engine, before = self.engine, self.before
        facts = engine.rewrite(self._shared_deletions, before)
        given = self.given.kept(engine.originals(facts, before))
        return Behind(facts, given, engine.rewrite(given, before))

    def insert(self) -> None:
        """Step 2."""
        engine, job = self.engine, self.job
        if not self._adds_to_component:
            return
        if self.after is self.before:
            self.after = self.before.copy()
        with self.run.forwards("insert"):
            insertion = Insertion(self.setting, job.new, self.after)
            added = job.added & job.component
            if added:
                insertion.insert(insertion.apply(added))
            while True:
                normal = engine.rewrite(job.insertions, self.after)
                region = self.setting.rules(self.after).region
                news = engine.settle(normal.within(region) - self.run.updated)
                if news.is_empty():
                    break
                insertion.insert(news)
        self.require_one_name()

    @property
    def _adds_to_component(self) -> bool:
        """Whether the update may make constants equal."""
        job = self.job
        return not (job.insertions.is_empty() and job.added.isdisjoint(job.component))

    def require_one_name(self) -> None:
        """Refuse to let something else be equal to `owl:sameAs`.

        Raises:
            EqualityError: the update would have made it so.
        """
        if self.after is self.before:
            return
        views = Views(self.run.updated, self.run.updated)
        shared = self.engine.derive(_OWL_SAME_AS_NODE, views)
        if self.after.replaced(_OWL_SAME_AS) or not shared.is_empty():
            raise another_name()

    def merge_given(self) -> Representatives:
        """Merge what is given to be equal, on a fresh engine; ends the transaction.

        All facts are rewritten at once then, and few of them again.
        """
        engine, run = self.engine, self.run
        after = self.before.copy()
        with run.forwards("rewrite"):
            bridges = frozenset(
                rule
                for rule in self.job.new
                if rule.head.predicate == SAME and len(rule.body) == 1
            )
            insertion = Insertion(self.setting, self.job.new, after)
            equalities = insertion.apply(bridges)
            insertion.merge(equalities)
            run.add(engine.rewrite(equalities, after))
            nothing = engine.no_facts()
            engine.commit(
                deleted=nothing, added=run.added, withdrawn=nothing, given=nothing
            )
            implied = engine.normalise(after)
            engine.recursive_counts.add(engine.once(implied))
        return after

    def materialise_component(self) -> None:
        """Step 2 on a fresh engine, where all given facts are loaded."""
        self.after = self.before.copy()
        with self.run.forwards("materialise"):
            insertion = Insertion(self.setting, self.job.new, self.after)
            insertion.insert(insertion.apply(self.job.new))
        self.require_one_name()

    # -- everything else

    def renormalise(self) -> Marks:
        """Step 3, its first half: the new normal form of given facts."""
        if self.marks is not None:
            return self.marks
        if self.after is self.before and self.given.insertions.is_empty():
            self.marks = self._marks_of_deletions()
        else:
            self.marks = self._marks_of_changes()
        return self.marks

    def _marks_of_deletions(self) -> Marks:
        """How explicit facts change if equality does not, and nothing is given."""
        engine = self.engine
        nothing, gone = engine.no_facts(), self._lone_deletions
        deletions = self._shared_deletions
        if deletions.is_empty():
            return Marks(withdrawn=gone, given=nothing, cleared=gone, set=nothing)
        behind = self._behind
        still = behind.still
        touched = engine.settle(behind.facts | deletions)
        self._mark_implied(touched, engine.settle(still - behind.given))
        return Marks(
            withdrawn=engine.settle(gone | (behind.facts - still)),
            given=nothing,
            cleared=engine.settle(gone | (touched - still)),
            set=nothing,
        )

    def _marks_of_changes(self) -> Marks:
        engine, given = self.engine, self.given
        found = engine.mentioning(self.moved, engine.explicit)
        deletions = self._shared_deletions
        insertions = self._shared(given.insertions, self.before)
        if self._adds_to_component:
            # Constants are equal that were not before.
            more = self._shared(given.deletions, self.after)
            deletions = engine.settle(deletions | more)
            more = self._shared(given.insertions, self.after)
            insertions = engine.settle(insertions | more)
        affected = engine.settle(given.before(found) | deletions)
        old = engine.rewrite(affected, self.before)
        kept = engine.settle((affected - deletions) | insertions)
        new = engine.rewrite(kept, self.after)
        others = engine.settle(old - new)
        behind = given.kept(engine.originals(others, self.after))
        still = engine.rewrite(behind, self.after)
        now = engine.settle(new | (still & others))
        touched = engine.settle(old | new | insertions | deletions)
        itself = given.after(touched)
        self._mark_implied(touched, engine.settle(now - itself))
        # What is alone stands for itself, and nothing else stands for it.
        gone = engine.settle(given.deletions - deletions)
        come = engine.settle(given.insertions - insertions)
        return Marks(
            withdrawn=engine.settle(gone | (others - still)),
            given=engine.settle(come | (new - normal_explicit(engine))),
            cleared=engine.settle(gone | ((deletions | old) - now - itself)),
            set=engine.settle(come | insertions | new),
        )

    @cached_property
    def moved(self) -> SettledFacts:
        """The constants whose representative is another one after the update."""
        return self.engine.moved(self.before, self.after, MOVED)

    def about_moved(self) -> SettledFacts:
        """The facts before the update about constants that something else stands for.

        New ones are among those that the update adds.
        """
        known = self._about_moved
        if known is None:
            engine = self.engine
            known = engine.about_moved(self.before, self.after, engine.materialised)
        return known

    def _shared(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """Facts with a constant that is equal to another; or all of them.

        Not every engine can tell, and the others can do without.
        """
        engine = self.engine
        if facts.is_empty() or not can_tell_shared(engine):
            return facts
        return engine.shared(facts, representatives)

    def _mark_implied(self, touched: SettledFacts, implied: SettledFacts) -> None:
        engine = self.engine
        before = engine.recursive_counts.positive(touched)
        self._change_implied(
            engine.settle(before - implied), engine.settle(implied - before)
        )

    def _change_implied(self, before: SettledFacts, after: SettledFacts) -> None:
        """Take note of explicit facts that were implied, and that are now."""
        counts = self.engine.recursive_counts
        if not before.is_empty():
            counts.subtract(self.engine.once(before))
        if not after.is_empty():
            counts.add(self.engine.once(after))

    def _change_names(self) -> None:
        """Bring the names of cliques up to date, for rules that read them."""
        engine, job, run = self.engine, self.job, self.run
        was_read = job.program.reads_names(job.old)
        is_read = job.program.reads_names(job.new)
        if not (was_read or is_read):
            return
        nothing = engine.no_facts()
        if was_read and is_read:
            if self.after is self.before:
                return
            old = names_of(engine, self.moved, self.before)
            new = names_of(engine, self.moved, self.after)
        else:
            old = all_names(engine, self.before) if was_read else nothing
            new = all_names(engine, self.after) if is_read else nothing
        run.delete(engine.settle(old - new))
        run.add(engine.settle(new - old))

    def require_apart(self, facts: Facts) -> None:
        """Refuse names that are equal to others, and that built-ins read before.

        Args:
            facts: where they are found.

        Raises:
            EqualityError: there is one.
        """
        watching = self.job.program.watching
        if not watching:
            return
        found = self.engine.snapshot(facts.within(Region(frozenset(watching))))
        for name in sorted(found.relations()):
            names = constants(found.read(name).column(0))
            if names:
                raise name_apart(watching[name], min(names, key=str))

    def maintain_others(self, maintain: Callable[[Run], None]) -> None:
        """Step 3, its second half: an ordinary update of the other rules."""
        marks = self.renormalise()
        self._change_names()
        run, engine, job = self.run, self.engine, self.job
        before, after = self.setting.rules(self.before), self.setting.rules(self.after)
        old, new = before.others(job.old), after.others(job.new)
        change = RuleChange()
        if old is not new:
            change = RuleChange(tuple(old - new), tuple(new - old))
        run.undermined = undermine(engine, change)
        run.explicit = self._explicit(marks)
        run.withdrawn = self._outside(marks.withdrawn, before.region)
        run.given = self._outside(marks.given, after.region)
        if self._nothing_changed(change):
            return
        run.strata = after.strata(job.new, frozenset(change.added))
        maintain(run)
        self.require_apart(run.changes().gained)

    def _explicit(self, marks: Marks) -> Facts:
        """The representatives of facts that are given after the update.

        Growing sets, because whether they have a fact is asked again and again.
        """
        withdrawn = self.engine.growing()
        withdrawn.add(marks.withdrawn)
        explicit = normal_explicit(self.engine) - withdrawn
        if marks.given.is_empty():
            return explicit
        given = self.engine.growing()
        given.add(marks.given)
        return explicit | given

    def _nothing_changed(self, change: RuleChange) -> bool:
        run = self.run
        lost, gained, *_ = run.changes()
        return (
            all(facts.is_empty() for facts in (run.withdrawn, run.given, lost, gained))
            and change.is_empty()
        )

    def _outside(self, facts: SettledFacts, region: Region) -> SettledFacts:
        if facts.is_empty():
            return facts
        return self.engine.settle(facts - facts.within(region))

    def commit(self) -> None:
        """End the transaction."""
        marks = self.marks
        if marks is None:
            message = "an update is committed after its last step"
            raise RuntimeError(message)
        self.engine.commit(
            deleted=self.run.deleted,
            added=self.run.added,
            withdrawn=marks.cleared,
            given=marks.set,
        )

    def materialise_others(self, watch: Watch) -> list[StratumReport]:
        """All of step 3 on a fresh engine; ends the transaction."""
        marks = self.renormalise()
        run = self.run
        after = self.setting.rules(self.after)
        run.delete(self._outside(marks.withdrawn, after.region))
        run.add(self._outside(marks.given, after.region))
        self._change_names()
        self.commit()
        if self.job.modules:
            plans = after.closing_plans(self.job.new)
            reports = materialise_closing(self.engine, plans, watch)
        else:
            reports = materialise(self.engine, after.plans(self.job.new), watch)
        self.require_apart(self.engine.materialised)
        return reports


_OWL_SAME_AS = (OWL_SAME_AS,)
_NODE = Pattern(SAME, (OWL_SAME_AS, OWL_SAME_AS))
_OWL_SAME_AS_NODE = QuerySet((Query(_NODE, (_NODE,), label="equal to owl:sameAs"),))
_NO_STRATA = Strata((), Region(), {}, {})
