"""One update of a program with equality: insertion, other rules, and the attempt.

An update runs in one transaction of the engine, in three steps:

1. deletions: B/F^≈ in the component of equality, which may split cliques
   (`evermat.maintenance.equality.deletion`);
2. insertions: the r-materialisation is continued, which may merge cliques
   (`Insertion`);
3. the other rules. It is now known which constants are equal, so explicit facts and
   rules are rewritten to their new normal form, and the difference is an ordinary
   update of the rules that equality does not depend on, for one of the ordinary
   algorithms.

The source of insertion is [motik2015rewriting], the algorithm behind the
r-materialisation, in batches. A round processes the facts that the last one derived. If
there are equalities among them, the constants are merged first: facts and rules that
mention a constant which is no longer a representative are rewritten, and only new facts
are processed after that. Otherwise rules are applied to the new facts, as in any
seminaïve evaluation. A new instance over representatives has a new body fact, or
belongs to a rule that changed: so merging misses nothing, and no rule is applied again
to unchanged facts.

Attempts are the counterpart of those of `evermat.maintenance.driver`: besides the facts
that were removed and added, an attempt knows the facts that stored facts represent
before and after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from evermat.algebra import Pattern, Query, QuerySet, Region, Views
from evermat.algebra.compile import derive
from evermat.algebra.equality import UnequalValuesError
from evermat.columns import constants
from evermat.lang.equality import OWL_SAME_AS, SAME, another_name, name_apart
from evermat.maintenance.context import Run, Strata
from evermat.maintenance.counting import Kept
from evermat.maintenance.equality.deletion import BaseFacts, Deletion
from evermat.maintenance.equality.program import (
    EQUALITIES,
    LOST,
    MOVED,
    ExplicitFacts,
    Setting,
    all_names,
    names_of,
    normal_explicit,
    values_among,
)
from evermat.maintenance.equality.proofs import explained
from evermat.maintenance.modular import materialise_closing
from evermat.maintenance.rules import RuleChange, undermine
from evermat.maintenance.seminaive import materialise
from evermat.maintenance.update import CliqueChange, StratumReport, Update

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra import Facts, SettledFacts, Snapshot
    from evermat.algebra.engine import Engine
    from evermat.algebra.equality import Representatives
    from evermat.lang.syntax import Rule
    from evermat.maintenance.equality.program import EqualityProgram
    from evermat.maintenance.limits import Watch


class Insertion:
    """Adds facts and all that follows in the component of equality.

    Attributes:
        chosen: the rules that are applied.
        representatives: π, changed as constants are merged.
        pending: facts to be added after constants have been merged.
    """

    def __init__(
        self, setting: Setting, rules: frozenset[Rule], representatives: Representatives
    ) -> None:
        self.setting = setting
        self.chosen = rules
        self.representatives = representatives
        self.pending = setting.engine.no_facts()
        self.rules = setting.rules(representatives).proving(rules)

    @property
    def facts(self) -> Facts:
        """The facts so far."""
        return self.setting.run.updated

    def apply(self, rules: frozenset[Rule]) -> SettledFacts:
        """Return all facts that some rules derive."""
        chosen = self.setting.rules(self.representatives).proving(rules)
        return derive(
            self.setting.engine, chosen.full, positive=self.facts, negative=self.facts
        )

    def insert(self, candidates: SettledFacts) -> None:
        """Add facts, which need not be normal, and their consequences."""
        engine, run = self.setting.engine, self.setting.run
        while True:
            candidates = engine.rewrite(candidates, self.representatives)
            delta = engine.settle(candidates - self.facts)
            if delta.is_empty():
                return
            equalities = engine.settle(delta.within(EQUALITIES))
            if not equalities.is_empty():
                self.pending = engine.settle(delta - equalities)
                candidates = engine.settle(self.pending | self._merge(equalities))
                continue
            self.pending = engine.no_facts()
            run.add(delta)
            run.round(delta)
            candidates = derive(
                engine,
                self.rules.delta,
                positive=self.facts,
                negative=self.facts,
                delta_positive=delta,
            )

    def merge(self, equalities: SettledFacts) -> SettledFacts:
        """Merge constants without further consequences; return former representatives.

        Raises:
            UnequalValuesError: two values would be equal, with the reason if it is
                traced.
        """
        setting, engine = self.setting, self.setting.engine
        before = self.representatives.copy() if setting.tracing else None
        try:
            return engine.merge(self.representatives, equalities, LOST, setting.values)
        except UnequalValuesError as error:
            if before is None:
                raise
            raise explained(error, self, before, equalities) from None

    def _merge(self, equalities: SettledFacts) -> SettledFacts:
        """Merge constants; return rewritten facts and new ones.

        Afterwards all constants in facts are their own representatives.
        """
        setting, engine = self.setting, self.setting.engine
        before = setting.rules(self.representatives)
        lost = self.merge(equalities)
        if lost.is_empty():
            return engine.no_facts()
        after = setting.rules(self.representatives)
        outdated = engine.mentioning(lost, self.facts)
        setting.run.retract(engine.settle(outdated.within(before.region)))
        # An explicit fact may become relevant to equality only now, because its
        # predicate turned out to be equal to that of a rule.
        images = engine.rewrite(outdated, self.representatives)
        news = images.within(after.region)
        if after is not before:
            self.rules = after.proving(self.chosen)
            changed = after.changed_since(before) & self.chosen
            if changed:
                again = after.proving(changed).full
                news |= derive(engine, again, positive=self.facts, negative=self.facts)
        # The nodes of cliques are facts from which rules derive nothing.
        nodes = engine.rewrite(equalities, self.representatives)
        setting.run.add(engine.settle(nodes - self.facts))
        return engine.settle(news - nodes)


# ------------------------------------------------------------------------------- update


@dataclass(frozen=True, eq=False)
class EqualityJob:
    """The changes of an update.

    Attributes:
        program: the rules before and after, together.
        old, new: the rules before; the rules after.
        component: the rules that equality is known to depend on.
        deletions, insertions: explicit facts, with the names that users inserted.
        modules: whether closures are evaluated by modules.
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
        """The rules to be removed."""
        return frozenset() if self.old is self.new else self.old - self.new

    @property
    def added(self) -> frozenset[Rule]:
        """The rules to be added."""
        return frozenset() if self.old is self.new else self.new - self.old


@dataclass(frozen=True, eq=False)
class Preimages:
    """The preimages of rewritten facts before an update.

    Attributes:
        facts: representatives of explicit facts that are deleted.
        explicit: those of their preimages that are still explicit.
        still: those of the facts that have one.
    """

    facts: SettledFacts
    explicit: SettledFacts
    still: SettledFacts


@dataclass(eq=False)
class Marks:
    """The changes of explicit facts, implied ones included.

    Attributes:
        deletions, insertions: rewritten facts of explicit facts that are deleted and
            inserted.
        cleared, set: facts that cease to be explicit in the engine, and that become so.
    """

    deletions: SettledFacts
    insertions: SettledFacts
    cleared: SettledFacts
    set: SettledFacts


class EqualityUpdate:
    """The three steps of an update; see the module's docstring.

    Attributes:
        before, after: the representatives.
    """

    def __init__(
        self,
        engine: Engine,
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
        self.explicit = ExplicitFacts(engine, job.deletions, job.insertions)
        relations = engine.relations()
        self.setting = Setting(
            engine=engine,
            run=self.run,
            program=job.program,
            component=job.component,
            values=values_among(relations),
            explicit=self.explicit,
            tracing=job.tracing,
        )
        self.marks: Marks | None = None
        self.run.report = StratumReport(1, algorithm="bf")
        self.run.reports.append(self.run.report)

    # -- the component of equality

    def delete(self) -> None:
        """Run step 1."""
        engine, job = self.engine, self.job
        removed = job.removed
        rules = self.setting.rules(self.before)
        alone = engine.settle(self._lone_deletions.within(rules.region))
        candidates: Facts = self._preimages.facts.within(rules.region)
        if removed & job.component:
            facts = engine.materialised
            lost = rules.checking(removed).full
            candidates |= engine.derive(lost, Views(facts, facts)) & facts
        doubtful = engine.settle(candidates)
        if doubtful.is_empty() and alone.is_empty():
            return
        stayed = job.old if job.old is job.new else job.old & job.new
        base = BaseFacts(self.setting, stayed, self.explicit, self.before)
        doubtful = base.delete(doubtful, self._preimages.still, alone)
        if not doubtful.is_empty():
            self.after = Deletion(self.setting, base).delete(doubtful)

    @cached_property
    def _shared_deletions(self) -> SettledFacts:
        """Facts to delete that mention constants with several names."""
        return self._shared(self.job.deletions, self.before)

    @cached_property
    def _lone_deletions(self) -> SettledFacts:
        """Other facts to delete: none of their constants is equal to another."""
        return self.engine.settle(self.job.deletions - self._shared_deletions)

    @cached_property
    def _preimages(self) -> Preimages:
        """Return the preimages, before and now, of rewritten facts that lose one."""
        engine, before = self.engine, self.before
        facts = engine.rewrite(self._shared_deletions, before)
        still = self.explicit.kept(engine.preimages(facts, before))
        return Preimages(facts, still, engine.rewrite(still, before))

    def insert(self) -> None:
        """Run step 2."""
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
        """Refuse equalities of `owl:sameAs` with another constant.

        Raises:
            EqualityError: the update would make them equal.
        """
        if self.after is self.before:
            return
        views = Views(self.run.updated, self.run.updated)
        shared = self.engine.derive(_OWL_SAME_AS_NODE, views)
        if self.after.replaced(_OWL_SAME_AS) or not shared.is_empty():
            raise another_name()

    def merge_explicit(self) -> Representatives:
        """Merge constants that are explicitly equal; ends the transaction.

        Facts are then rewritten together, and few of them more than once.
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
                deleted=nothing,
                added=run.added,
                explicit_removed=nothing,
                explicit_added=nothing,
            )
            implied = engine.normalise(after)
            engine.recursive_counts.add(engine.once(implied))
        return after

    def materialise_component(self) -> None:
        """Run step 2 on a fresh engine, with all explicit facts loaded."""
        self.after = self.before.copy()
        with self.run.forwards("materialise"):
            insertion = Insertion(self.setting, self.job.new, self.after)
            insertion.insert(insertion.apply(self.job.new))
        self.require_one_name()

    # -- the other rules

    def renormalise(self) -> Marks:
        """Run the first half of step 3: the new normal form of explicit facts."""
        if self.marks is not None:
            return self.marks
        if self.after is self.before and self.explicit.insertions.is_empty():
            self.marks = self._marks_of_deletions()
        else:
            self.marks = self._marks_of_changes()
        return self.marks

    def _marks_of_deletions(self) -> Marks:
        """Return the changes when equality is unchanged and nothing is inserted."""
        engine = self.engine
        nothing, gone = engine.no_facts(), self._lone_deletions
        deletions = self._shared_deletions
        if deletions.is_empty():
            return Marks(deletions=gone, insertions=nothing, cleared=gone, set=nothing)
        preimages = self._preimages
        still = preimages.still
        touched = engine.settle(preimages.facts | deletions)
        self._mark_implied(touched, engine.settle(still - preimages.explicit))
        return Marks(
            deletions=engine.settle(gone | (preimages.facts - still)),
            insertions=nothing,
            cleared=engine.settle(gone | (touched - still)),
            set=nothing,
        )

    def _marks_of_changes(self) -> Marks:
        engine, explicit = self.engine, self.explicit
        found = engine.mentioning(self.moved, engine.explicit)
        deletions = self._shared_deletions
        insertions = self._shared(explicit.insertions, self.before)
        if self._adds_to_component:
            # Some constants have become equal.
            more = self._shared(explicit.deletions, self.after)
            deletions = engine.settle(deletions | more)
            more = self._shared(explicit.insertions, self.after)
            insertions = engine.settle(insertions | more)
        affected = engine.settle(explicit.before(found) | deletions)
        old = engine.rewrite(affected, self.before)
        kept = engine.settle((affected - deletions) | insertions)
        new = engine.rewrite(kept, self.after)
        others = engine.settle(old - new)
        preimages = explicit.kept(engine.preimages(others, self.after))
        still = engine.rewrite(preimages, self.after)
        now = engine.settle(new | (still & others))
        touched = engine.settle(old | new | insertions | deletions)
        itself = explicit.after(touched)
        self._mark_implied(touched, engine.settle(now - itself))
        # The constants of these facts are equal to no others.
        gone = engine.settle(explicit.deletions - deletions)
        come = engine.settle(explicit.insertions - insertions)
        return Marks(
            deletions=engine.settle(gone | (others - still)),
            insertions=engine.settle(come | (new - normal_explicit(engine))),
            cleared=engine.settle(gone | ((deletions | old) - now - itself)),
            set=engine.settle(come | insertions | new),
        )

    @cached_property
    def moved(self) -> SettledFacts:
        """The constants whose representative changes in the update."""
        return self.engine.moved(self.before, self.after, MOVED)

    def about_moved(self) -> SettledFacts:
        """The facts before the update about constants that are not representatives.

        New ones are among those that the update adds.
        """
        engine = self.engine
        return engine.about_moved(self.before, self.after, engine.materialised)

    def _shared(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """Return a superset of the facts with a constant that is equal to another."""
        if facts.is_empty():
            return facts
        return self.engine.shared(facts, representatives)

    def _mark_implied(self, touched: SettledFacts, implied: SettledFacts) -> None:
        """Record explicit facts that are implied only."""
        engine = self.engine
        before = engine.recursive_counts.positive(touched)
        no_longer = engine.settle(before - implied)
        if not no_longer.is_empty():
            engine.recursive_counts.subtract(engine.once(no_longer))
        new = engine.settle(implied - before)
        if not new.is_empty():
            engine.recursive_counts.add(engine.once(new))

    def _change_names(self) -> None:
        """Update the names of cliques, for rules that read them."""
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
        """Refuse names that have become equal to others after built-ins read them.

        Args:
            facts: the facts to search.

        Raises:
            EqualityError: there is such a name.
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
        """Run the second half of step 3: an ordinary update of the other rules."""
        marks = self.renormalise()
        self._change_names()
        run, engine, job = self.run, self.engine, self.job
        before, after = self.setting.rules(self.before), self.setting.rules(self.after)
        old, new = before.others(job.old), after.others(job.new)
        change = RuleChange()
        if old is not new:
            change = RuleChange(tuple(old - new), tuple(new - old))
        run.undermined = undermine(engine, change.removed)
        run.explicit = self._explicit(marks)
        run.deletions = self._outside(marks.deletions, before.region)
        run.insertions = self._outside(marks.insertions, after.region)
        if self._nothing_changed(change):
            return
        run.strata = after.strata(job.new, frozenset(change.added))
        maintain(run)
        self.require_apart(run.changes().gained)

    def _explicit(self, marks: Marks) -> Facts:
        """Return the rewritten facts of those that are explicit after the update.

        The parts are growing sets, because membership is tested repeatedly.
        """
        deleted = self.engine.growing()
        deleted.add(marks.deletions)
        explicit = normal_explicit(self.engine) - deleted
        if marks.insertions.is_empty():
            return explicit
        inserted = self.engine.growing()
        inserted.add(marks.insertions)
        return explicit | inserted

    def _nothing_changed(self, change: RuleChange) -> bool:
        run = self.run
        lost, gained, *_ = run.changes()
        return (
            all(
                facts.is_empty()
                for facts in (run.deletions, run.insertions, lost, gained)
            )
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
            explicit_removed=marks.cleared,
            explicit_added=marks.set,
        )

    def materialise_others(self, watch: Watch) -> list[StratumReport]:
        """Run step 3 on a fresh engine; ends the transaction."""
        marks = self.renormalise()
        run = self.run
        after = self.setting.rules(self.after)
        run.delete(self._outside(marks.deletions, after.region))
        run.add(self._outside(marks.insertions, after.region))
        self._change_names()
        self.commit()
        if self.job.modules:
            plans = after.closing_plans(self.job.new)
            reports = materialise_closing(self.engine, plans, watch)
        else:
            reports = materialise(
                self.engine, after.plans(self.job.new), watch, Kept.NONE
            )
        self.require_apart(self.engine.materialised)
        return reports


_OWL_SAME_AS = (OWL_SAME_AS,)
_NODE = Pattern(SAME, (OWL_SAME_AS, OWL_SAME_AS))
_OWL_SAME_AS_NODE = QuerySet((Query(_NODE, (_NODE,), label="equal to owl:sameAs"),))
_NO_STRATA = Strata((), Region(), {}, {})


# ------------------------------------------------------------------------------ attempt


NetFacts = tuple["Snapshot", "Snapshot"]
"""Facts that were removed, and facts that were added."""


class Attempt(Protocol):
    """A prepared update, in a transaction that is still open.

    Attributes:
        deleted, inserted: the numbers of explicit facts that it changes.
        representatives: the representatives after it.
    """

    deleted: Snapshot
    inserted: Snapshot
    strata: tuple[StratumReport, ...]
    representatives: Representatives

    def commit(self) -> NetFacts:
        """Apply the update."""

    def discard(self) -> NetFacts:
        """Undo the update."""

    def cliques(self, facts: NetFacts) -> CliqueChange:
        """Return the facts represented before and after, where cliques changed."""


class Maintained:
    """The old facts with some deleted and some added."""

    def __init__(self, update: EqualityUpdate) -> None:
        engine, job = update.engine, update.job
        self._update = update
        self.deleted = engine.snapshot(job.deletions)
        self.inserted = engine.snapshot(job.insertions)
        self.strata = tuple(update.run.reports)
        self.representatives = update.after
        lost, gained, *_ = update.run.changes()
        self._facts = (engine.snapshot(lost), engine.snapshot(gained))
        self._change = self._compared()

    def commit(self) -> NetFacts:
        """Apply the update."""
        self._update.commit()
        return self._facts

    def discard(self) -> NetFacts:
        """Undo the update."""
        self._update.engine.rollback()
        return self._facts

    def cliques(self, facts: NetFacts) -> CliqueChange:
        """Return the facts represented before and after, where cliques changed."""
        del facts
        return self._change

    def _compared(self) -> CliqueChange:
        engine, run = self._update.engine, self._update.run
        before, after = self._update.before, self._update.after
        about = self._update.about_moved()
        if about.is_empty():
            return CliqueChange(before, after, *self._facts)
        stayed = engine.snapshot(engine.settle(about & run.updated))
        return CliqueChange(before, after, *self._facts, stayed)


@dataclass(frozen=True, slots=True, eq=False)
class Old:
    """The materialisation that a new one replaces.

    Attributes:
        inserted: the number of explicit facts that the update inserts.
        is_empty: whether there were no facts.
    """

    engine: Engine
    representatives: Representatives
    job: EqualityJob
    inserted: Snapshot
    is_empty: bool


class Rebuilt:
    """New facts on a fresh engine, which replace the old ones."""

    def __init__(
        self,
        fresh: Engine,
        old: Old,
        representatives: Representatives,
        strata: tuple[StratumReport, ...],
    ) -> None:
        engine = old.engine
        self._fresh = fresh
        self._old = old
        self.deleted = engine.snapshot(old.job.deletions)
        self.inserted = old.inserted
        self.strata = strata
        self.representatives = representatives
        moved = engine.moved(old.representatives, representatives, MOVED)
        is_renamed = not (old.is_empty or moved.is_empty())
        self._everything = self._compared() if is_renamed else None

    def commit(self) -> NetFacts:
        """Apply the update."""
        # The transaction only served to read the request.
        self._old.engine.rollback()
        return self._old.engine.adopt(self._fresh)

    def discard(self) -> NetFacts:
        """Undo the update; all facts are compared when they are read."""
        engine = self._old.engine
        self._everything = self._everything or self._compared()
        nothing = engine.snapshot(engine.no_facts())
        engine.rollback()
        return nothing, nothing

    def cliques(self, facts: NetFacts) -> CliqueChange:
        """Return the facts represented before and after; all, if cliques changed."""
        if self._everything is not None:
            return self._everything
        return CliqueChange(self._old.representatives, self.representatives, *facts)

    def _compared(self) -> CliqueChange:
        engine, fresh = self._old.engine, self._fresh
        return CliqueChange(
            self._old.representatives,
            self.representatives,
            engine.snapshot(engine.materialised),
            fresh.snapshot(fresh.materialised),
        )


def rebuild(fresh: Engine, old: Old, watch: Watch) -> Rebuilt:
    """Materialise the new program on a fresh engine with the new explicit facts."""
    nothing = fresh.no_facts()
    job = replace(old.job, old=frozenset(), deletions=nothing, insertions=nothing)
    fresh.begin()
    merging = EqualityUpdate(fresh, job, fresh.representatives(), watch)
    known = merging.merge_explicit()
    fresh.begin()
    update = EqualityUpdate(fresh, job, known, watch)
    update.materialise_component()
    others = update.materialise_others(watch)
    strata = (*merging.run.reports, *update.run.reports, *others)
    return Rebuilt(fresh, old, update.after, strata)
