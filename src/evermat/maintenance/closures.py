"""The closure modules: transitive, symmetric–transitive, and along edges.

Source: [hu2019], Sections 5 and 6, with the corrections of this project: no deletion
returns a fact with a positive nonrecursive count, and every overdeleted fact leaves the
external ones.

Notation (left: the paper; right: this file)

    X_R      `external`   facts with a count: given, or derived by other rules
    Y_R      `certain`    external facts with a positive nonrecursive count
    C_R      the components that `engine.close` finds

All facts are paths of external ones (for the linear rules: an external fact, then edges
of a lower stratum), so every method comes down to comparing two closures. An engine
does this without matching rules, and without enumerating what both have in common.

Unlike in the paper, a fact that follows from certain facts alone is never overdeleted.
If no other rule of the component is recursive, all external facts are certain, and what
is deleted is exactly what has to go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Closure, ClosureKind, Column, Pattern, Region
from evermat.lang.closure_rules import ClosureSort, find_closures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evermat.algebra import Facts, Operand, SettledFacts
    from evermat.lang.closure_rules import ClosureRules, Form
    from evermat.lang.syntax import Atom, Rule
    from evermat.maintenance.modules import Stage

_KINDS = {
    ClosureSort.TRANSITIVE: ClosureKind.TRANSITIVE,
    ClosureSort.SYMMETRIC: ClosureKind.SYMMETRIC,
    ClosureSort.LEFT_LINEAR: ClosureKind.LEFT_LINEAR,
    ClosureSort.RIGHT_LINEAR: ClosureKind.RIGHT_LINEAR,
}


def find_closure_modules(
    rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
) -> Iterator[ClosureModule]:
    """The closures among the recursive rules of a stratum."""
    return map(ClosureModule, find_closures(rules, is_local))


def closure_of(found: ClosureRules) -> Closure:
    """The closure that some rules describe, in terms of the algebra."""
    edges = None if found.edges is None else _pattern(found.edges)
    return Closure(_KINDS[found.sort], _pattern(found.form), edges, found.loops)


def _pattern(form: Form) -> Pattern:
    operands: dict[int, Operand] = dict(form.constants)
    operands[form.source], operands[form.target] = Column(0), Column(1)
    return Pattern(form.predicate, tuple(operands[at] for at in range(form.arity)))


class ClosureModule:
    """The rules of one closure."""

    def __init__(self, found: ClosureRules) -> None:
        self.name = found.sort.value
        self.rules = found.rules
        self.found = found
        self.closure = closure_of(found)
        self.region = Region.of(self.closure.pattern)
        edges = self.closure.edges
        self._edge_region = Region() if edges is None else Region.of(edges)

    # -- the paper's four functions

    def derive(self, stage: Stage) -> SettledFacts:
        """All paths of external facts."""
        engine = stage.engine
        counted = engine.counted(self.closure.pattern)
        external = engine.settle(counted & stage.positive)
        return engine.close(self.closure, external | self._edges(stage.positive))

    def add(self, stage: Stage, delta: SettledFacts) -> SettledFacts:
        """New paths: those of all external facts that the others do not have."""
        engine = stage.engine
        if not self._touches(delta):
            return engine.no_facts()
        edges = self._edges(stage.positive)
        return engine.close(
            self.closure,
            self._external(stage) | edges,
            without=self._external(stage, without=delta) | edges,
            through=engine.settle(delta.within(self.region)),
        )

    def diff(
        self, stage: Stage, changed: SettledFacts, changed_absent: SettledFacts
    ) -> SettledFacts:
        """Paths along changed edges; the other kinds read nothing of lower strata."""
        del changed_absent
        engine = stage.engine
        pattern = self.closure.edges
        if pattern is None or pattern.relation not in changed.relations():
            return engine.no_facts()
        through = engine.settle(changed.within(self._edge_region))
        return engine.close(
            self.closure,
            self._external(stage) | self._edges(stage.positive),
            without=self._certain(stage) | self._edges(stage.positive - through),
            through=through,
        )

    def delete(self, stage: Stage, delta: SettledFacts) -> SettledFacts:
        """Paths through deleted facts, unless certain facts lead there too.

        Edges that are lost below are still walked along: a path may lose a deleted
        fact here and an edge there, and must not be missed on both occasions.

        An external fact may be among what is returned. Paths along it then lead through
        the deleted facts as well, but its loops do not: they are looked for in turn.
        """
        engine = stage.engine
        if not self._touches(delta):
            return engine.no_facts()
        gone = engine.settle(delta.within(self.region))
        found = through = gone
        while not through.is_empty():
            closed = engine.close(
                self.closure,
                self._external(stage) | gone | self._edges(stage.before),
                without=self._certain(stage) | self._edges(stage.positive),
                through=through,
            )
            new = engine.settle(closed - found)
            found = engine.settle(found | new)
            if not self.closure.loops:
                break
            through = engine.settle(engine.recursive_counts.positive(new))
        return engine.settle(found - gone)

    def rederive(self, stage: Stage, deleted: SettledFacts) -> SettledFacts:
        """Deleted facts to which the external facts that are left lead.

        What follows from certain facts alone was never deleted.
        """
        engine = stage.engine
        if stage.is_certain or not self._touches(deleted):
            return engine.no_facts()
        return engine.close_among(
            self.closure,
            self._external(stage) | self._edges(stage.positive),
            deleted.within(self.region),
        )

    # -- beyond the paper

    def prove(
        self, stage: Stage, facts: SettledFacts, proved: Facts | None
    ) -> SettledFacts:
        """Facts to which certain and proved facts lead."""
        engine = stage.engine
        if not self._touches(facts):
            return engine.no_facts()
        sure = self._certain(stage)
        if proved is not None:
            sure |= engine.settle(proved.within(self.region))
        return engine.close_among(
            self.closure,
            sure | self._edges(stage.positive),
            facts.within(self.region),
        )

    def bodies(self, stage: Stage, facts: SettledFacts) -> SettledFacts:
        """External facts that are not certain: all others need no proof."""
        engine = stage.engine
        if stage.is_certain or not self._touches(facts):
            return engine.no_facts()
        external = engine.counted(self.closure.pattern) & stage.positive
        return engine.nonrecursive_counts.zero(external)

    # -- what it reads

    def _touches(self, facts: SettledFacts) -> bool:
        return self.closure.pattern.relation in facts.relations()

    def _external(self, stage: Stage, without: SettledFacts | None = None) -> Facts:
        """The facts with a count, apart from some."""
        facts = stage.positive if without is None else stage.positive - without
        return stage.engine.external(self.closure.pattern, facts)

    def _certain(self, stage: Stage) -> Facts:
        """The facts with a nonrecursive count."""
        facts = stage.positive
        return stage.engine.external(self.closure.pattern, facts, certain=True)

    def _edges(self, facts: Facts) -> Facts:
        """The edges, apart from facts of the closure itself; nothing if none."""
        return facts.within(self._edge_region)
