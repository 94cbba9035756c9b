"""B/F: the Backward/Forward algorithm.

Source: [motik2015], as Algorithm 3 of [hu2018] without its counters. CHECK is recursive
there; here it is `Engine.prove`, which may work on one fact after the other, or on sets
of facts, one level of the search at a time.

Notation (left: the paper; right: this file)

    C; P; Y      `task.checked`; `task.proved`; `task.delayed` of a `Search`
    N_D; Δ_D     `candidates`; `delta`
    O^{<s}       what atoms that are not local match
    CHECK        `Search.check`

Unlike DRed, nothing is deleted that still holds: before a fact goes, B/F looks
backwards for facts it could follow from, and forwards from those of them that certainly
hold. A search costs more for each fact, and pays where overdeletion would run far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from evermat.algebra import OwnSupport, ProofSearch
from evermat.algebra.compile import derive
from evermat.maintenance.affected import lost
from evermat.maintenance.derivations import holding
from evermat.maintenance.dred import gains
from evermat.maintenance.modules import Stage

if TYPE_CHECKING:
    from evermat.algebra import Facts, SettledFacts
    from evermat.maintenance.context import Run
    from evermat.maintenance.modules import Module
    from evermat.maintenance.strata import Stratum


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
    """Facts are given, or derived from lower strata."""
    rules = stratum.nonrecursive
    return OwnSupport(
        lambda facts: holding(run, facts, rules),
        explicit=run.explicit,
        rules=rules.rederive if rules.rules else None,
    )


class Search:
    """Looks for derivations that survive, in one stratum.

    Where no rule is recursive, nothing has to be remembered, so there are no sets.
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
        """Facts that do not hold by themselves: CHECK where no rule is recursive."""
        run, engine = self.run, self.run.engine
        with run.backwards("check"):
            sure = engine.settle(self.support.ask(batch))
        run.report.proved += sure.size()
        delta = engine.settle(batch - sure)
        run.round(delta)
        return delta

    def check(self, batch: SettledFacts) -> SettledFacts:
        """Look for derivations of a batch of facts; returns those without (CHECK)."""
        return self.run.prove(self.task, batch)


@dataclass(frozen=True, slots=True)
class SearchedModule:
    """A module as it takes part in the search of a stratum."""

    module: Module
    stage: Stage

    def bodies(self, facts: SettledFacts) -> Facts:
        """Facts that the facts may follow from."""
        return self.module.bodies(self.stage, facts)

    def prove(self, facts: SettledFacts, proved: Facts) -> Facts:
        """Those of the facts that surely hold, or follow from proved ones."""
        return self.module.prove(self.stage, facts, proved)
