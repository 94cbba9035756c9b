"""B/F and B/F^c: the Backward/Forward algorithm, without and with counters.

Source: [motik2015], as Algorithm 3 of [hu2018] without its counters. CHECK is recursive
there; here it is `Engine.prove`, which may work on one fact at a time, or on sets of
facts, one level of the search at a time.

Notation (left: the paper; right: this file)

    C; P; Y      `task.checked`; `task.proved`; `task.delayed` of a `Search`
    N_D; Δ_D     `candidates`; `delta`
    O^{<s}       the facts matched by atoms that are not local
    CHECK        `Search.check`

Unlike DRed, B/F deletes only facts that no longer hold: before a fact is deleted, B/F
searches backwards for facts from which it could be derived, and forwards from those of
them that certainly hold. A search costs more per fact, and pays off where overdeletion
would spread far.

B/F^c is the Backward/Forward algorithm with nonrecursive derivation counts.

Source: [hu2018], Algorithm 3, with its misprints corrected: the operator in lines 59
and 61 is Π⟦I : D∖A, A∖D⟧ and line 59 is a multiset sum, line 83 returns *true*, and
line 91 is about the recursive rules.

Notation (left: the paper; right: this file)

    E⁻ ∩ O^s; E⁺ ∩ O^s   `run.deletions_in(stratum)`; `run.insertions_in(stratum)`
    N_D                  `candidates`
    C_nr                 `engine.nonrecursive_counts`
    CHECK, SATURATE      `Search`

Unlike in B/F, the count of a fact shows whether lower strata derive it, so only
recursive rules are evaluated from head to body. Unlike in DRed^c, recursive derivations
are not counted: `counting` corrects that count afterwards where it is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from evermat.algebra import OwnSupport, ProofSearch
from evermat.algebra.compile import derive
from evermat.maintenance.context import gaining, holding, lost, lost_counts
from evermat.maintenance.dred import gains
from evermat.maintenance.modules import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Application, Facts, SettledFacts
    from evermat.maintenance.context import Changes, Run, Stratum
    from evermat.maintenance.modules import Module


def maintain(run: Run) -> None:
    """Bring the facts up to date, stratum by stratum (l. 52 to 55)."""
    for stratum in run.touched_strata():
        changes = run.changes()
        with run.forwards("delete"):
            candidates = run.union(
                [
                    run.deletions_in(stratum),
                    *lost(run, stratum.nonrecursive, changes),
                    *lost(run, stratum.recursive, changes),
                ]
            )
        search = Search(run, stratum, own_support(run, stratum))
        delete_unproved(run, stratum, candidates, search)
        with run.forwards("insert"):
            run.insert(
                run.insertions_in(stratum),
                gains(run, stratum, changes),
                stratum.all_recursive.delta_queries,
            )


def delete_unproved(
    run: Run, stratum: Stratum, candidates: SettledFacts, search: Search
) -> None:
    """Delete the candidates and what depends on them, unless proved (l. 62 to 69)."""
    while True:
        batch = run.engine.settle(candidates - run.deleted)
        if batch.is_empty():
            return
        if not (stratum.recursive.rules or stratum.modules):
            run.delete(search.without_proof(batch))
            return
        delta = search.check(batch)
        if delta.is_empty():
            return
        run.round(delta)
        with run.forwards("delete"):
            candidates = derive(
                run.engine,
                stratum.recursive.delta,
                positive=run.remaining,
                negative=run.possible,
                delta_positive=delta,
            )
        run.delete(delta)


def own_support(run: Run, stratum: Stratum) -> OwnSupport:
    """Return the test for facts that are explicit or derived from lower strata."""
    rules = stratum.nonrecursive
    return OwnSupport(
        lambda facts: holding(run, facts, rules),
        explicit=run.explicit,
        rules=rules.rederive if rules.rules else None,
    )


class Search:
    """Searches for surviving derivations, in one stratum.

    Without recursive rules there is no state to keep, so there are no sets.
    """

    def __init__(self, run: Run, stratum: Stratum, support: OwnSupport) -> None:
        self.run = run
        self.stratum = stratum
        self.support = support

    @cached_property
    def task(self) -> ProofSearch:
        """The search with the sets C, P and Y."""
        run, stratum, engine = self.run, self.stratum, self.run.engine
        stage = Stage(engine, run.remaining, run.possible, run.materialised)
        return ProofSearch(
            run.remaining,
            run.possible,
            stratum.recursive if stratum.recursive.rules else None,
            self.support,
            checked=engine.growing(),
            proved=engine.growing(),
            delayed=engine.growing(),
            region=None if stratum.is_closed else stratum.region,
            modules=[SearchedModule(module, stage) for module in stratum.modules],
            is_watched=run.watch.is_strict,
        )

    def without_proof(self, batch: SettledFacts) -> SettledFacts:
        """Return facts without support of their own: CHECK if no rule is recursive."""
        run, engine = self.run, self.run.engine
        with run.backwards("check"):
            sure = engine.settle(self.support.ask(batch))
        run.report.proved += sure.size()
        delta = engine.settle(batch - sure)
        run.round(delta)
        return delta

    def check(self, batch: SettledFacts) -> SettledFacts:
        """Search for derivations of a batch of facts; return those without (CHECK)."""
        return self.run.prove(self.task, batch)


@dataclass(frozen=True, slots=True)
class SearchedModule:
    """A module that takes part in the search of a stratum."""

    module: Module
    stage: Stage

    def bodies(self, facts: SettledFacts) -> Facts:
        """Return facts from which the facts may be derived."""
        return self.module.bodies(self.stage, facts)

    def prove(self, facts: SettledFacts, proved: Facts) -> Facts:
        """Return those of the facts that certainly hold, or follow from proved ones."""
        return self.module.prove(self.stage, facts, proved)


# ------------------------------------------------------------ backward forward counting


def maintain_counting(run: Run) -> None:
    """Bring facts and nonrecursive counts up to date (l. 52 to 55)."""
    for stratum in run.touched_strata():
        changes = run.changes()
        with run.forwards("delete"):
            candidates = counted_losses(run, stratum, changes)
        search = Search(run, stratum, counted_support(run))
        delete_unproved(run, stratum, candidates, search)
        with run.forwards("insert"):
            run.insert(
                run.insertions_in(stratum),
                counted_gains(run, stratum, changes),
                stratum.all_recursive.delta_queries,
            )


def counted_support(run: Run) -> OwnSupport:
    """Return the test for own support: facts have a nonrecursive count (l. 79)."""
    counter = run.engine.nonrecursive_counts
    return OwnSupport(counter.positive, counter=counter)


def counted_losses(run: Run, stratum: Stratum, changes: Changes) -> SettledFacts:
    """Return facts that lost a derivation below, decremented (l. 58 to 61)."""
    losers = [run.deletions_in(stratum), *lost(run, stratum.recursive, changes)]
    for counts in lost_counts(run, stratum.nonrecursive, changes):
        run.engine.nonrecursive_counts.subtract(counts)
        losers.append(counts.facts)
    return run.union(losers)


def counted_gains(
    run: Run, stratum: Stratum, changes: Changes
) -> Iterator[Application]:
    """Yield rules for gained facts, with nonrecursive ones counted (l. 88 to 91)."""
    yield from gaining(run, stratum.recursive, stratum.new_recursive, changes)
    yield from gaining(
        run,
        stratum.nonrecursive,
        stratum.new_nonrecursive,
        changes,
        run.engine.nonrecursive_counts,
    )
