"""B/F: the Backward/Forward algorithm.

Source: [motik2015], as Algorithm 3 of [hu2018] without its counters. CHECK is recursive
there; here it works on sets of facts, one level of the search at a time.

Notation (left: the paper; right: this file)

    C; P; Y      `search.checked`; `search.proved`; `search.delayed`
    N_D; Δ_D     `candidates`; `delta`
    N_P; Δ_P     `candidates`; `delta` in `saturate`
    O^{<s}       what atoms that are not local match

Unlike DRed, nothing is deleted that still holds: before a fact goes, B/F looks
backwards for facts it could follow from, and forwards from those of them that certainly
hold. A search costs more for each fact, and pays where overdeletion would run far.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from evermat.maintenance.affected import lost
from evermat.maintenance.derivations import holding
from evermat.maintenance.dred import gains
from evermat.maintenance.modules import Stage
from evermat.rule_plans import derive

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra import Facts, GrowingFacts, SettledFacts
    from evermat.maintenance.run import Run
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
        search = Search(run, stratum, holds_by_itself)
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


def holds_by_itself(run: Run, stratum: Stratum, facts: SettledFacts) -> Facts:
    """Those of the facts that are given, or derived from lower strata."""
    with run.backwards("check"):
        return holding(run, facts, stratum.nonrecursive)


class Search:
    """Looks for derivations that survive, in one stratum.

    Where no rule is recursive, nothing has to be remembered, so there are no sets.
    """

    def __init__(
        self,
        run: Run,
        stratum: Stratum,
        holds_by_itself: Callable[[Run, Stratum, SettledFacts], Facts],
    ) -> None:
        self.run = run
        self.stratum = stratum
        self.holds_by_itself = holds_by_itself
        self._stage = Stage(run.engine, run.remaining, run.possible, run.materialised)

    @cached_property
    def checked(self) -> GrowingFacts:
        """Facts whose derivations were looked into.

        Those that are not proved have only derivations through such facts, so none.
        """
        return self.run.engine.growing()

    @cached_property
    def proved(self) -> GrowingFacts:
        """Checked facts that hold after the deletion."""
        return self.run.engine.growing()

    @cached_property
    def delayed(self) -> GrowingFacts:
        """Facts that hold too, but that nobody asked about so far."""
        return self.run.engine.growing()

    def without_proof(self, batch: SettledFacts) -> SettledFacts:
        """Facts that do not hold by themselves: CHECK where no rule is recursive."""
        run, engine = self.run, self.run.engine
        sure = engine.settle(self.holds_by_itself(run, self.stratum, batch))
        run.report.proved += sure.size()
        delta = engine.settle(batch - sure)
        run.round(delta)
        return delta

    def check(self, batch: SettledFacts) -> SettledFacts:
        """Look for derivations of a batch of facts; returns those without (CHECK).

        A level of the search holds the body facts of the level before. The search ends
        when there is nothing left to look into, or nothing left to prove; in the latter
        case the facts that were not looked into thoroughly are forgotten again.
        """
        engine = self.run.engine
        visited = engine.growing()
        todo = engine.settle(batch - self.checked)
        unproved = todo
        while not todo.is_empty():
            self.checked.add(todo)
            visited.add(todo)
            self._saturate(todo)
            unproved = engine.settle(unproved - self.proved)
            if unproved.is_empty():
                self.checked.discard(visited - self.proved)
                break
            todo = engine.settle(self._bodies(todo) - self.checked)
        return engine.settle(batch - self.proved)

    def _bodies(self, facts: SettledFacts) -> SettledFacts:
        """Body facts that atoms of the stratum match in instances with these heads."""
        run = self.run
        facts = run.engine.settle(facts - self.proved)
        with run.backwards("check"):
            bodies = [
                module.bodies(self._stage, facts) for module in self.stratum.modules
            ]
            if self.stratum.recursive.rules:
                bodies.append(
                    derive(
                        run.engine,
                        self.stratum.recursive.backward,
                        positive=run.remaining,
                        negative=run.possible,
                        delta_positive=facts,
                    )
                )
        return run.union(bodies)

    def _saturate(self, facts: SettledFacts) -> None:
        """Prove those of the facts that hold by themselves, and what follows.

        Afterwards every instance with all its body facts of this stratum among the
        proved ones has its head among the proved or the delayed facts.
        """
        run, engine = self.run, self.run.engine
        sure = self.holds_by_itself(run, self.stratum, facts)
        if not self.stratum.is_closed:
            # Facts that the stratum's rules do not derive are body facts all the same
            # where an atom such as `[?x, ?p, ?y]` matches them; these stay.
            sure |= facts - facts.within(self.stratum.region)
        for module in self.stratum.modules:
            sure |= module.prove(self._stage, facts, self.proved)
        candidates = engine.settle((facts & self.delayed) | sure)
        with run.forwards("saturate"):
            while True:
                delta = engine.settle((candidates & self.checked) - self.proved)
                self.delayed.add(engine.settle(candidates - self.checked))
                if delta.is_empty():
                    return
                self.proved.add(delta)
                run.report.proved += delta.size()
                run.round(delta)
                candidates = self._following(delta)

    def _following(self, delta: SettledFacts) -> SettledFacts:
        """What newly proved facts prove in turn."""
        run, stratum = self.run, self.stratum
        proofs = []
        if stratum.modules:
            unproved = run.engine.settle(self.checked - self.proved)
            proofs = [
                module.prove(self._stage, unproved, self.proved)
                for module in stratum.modules
            ]
        if stratum.recursive.rules:
            proofs.append(
                derive(
                    run.engine,
                    stratum.recursive.delta,
                    positive=run.remaining,
                    negative=run.possible,
                    delta_positive=delta,
                    local=self.proved,
                )
            )
        return run.union(proofs)
