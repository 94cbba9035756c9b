"""Modules: recursive rules with algorithms of their own; the closure modules.

Source: [hu2019], Definitions 3 and 5 to 7.

A module takes some of the recursive rules of a stratum, and derives facts by them
without matching every instance. Modules and other rules are independent of each other:
`modular` passes facts between them until no new facts are derived.

Notation (left: the paper; right: this file)

    Add[Iᵖ, Iⁿ, Δ]           `module.add(stage, delta)`
    Diff[Iᵖ, Δᵖ, Δⁿ]         `module.diff(stage, changed, changed_absent)`
    Del[Iᵖ, Iⁿ, Δ, C_nr]     `module.delete(stage, delta)`
    Red[Iᵖ, Iⁿ, Δ]           `module.rederive(stage, deleted)`
    Iᵖ, Iⁿ                   `stage.positive`, `stage.negative`

Beyond the paper there are `derive`, which is Add from nothing; `prove`, by which a
module states that facts certainly hold, so that they need not be deleted in the first
place (B/F^c needs it, and DRed^c benefits from it); and `bodies`, the backward step of
B/F^c.

Facts that a module derives are not counted. A fact of a module's region with a count
above zero therefore has support from outside: it is explicit, or another rule derives
it. The paper stores these facts in the sets X_R, which are not needed here: counts are
exact, and restored when a transaction is rolled back. In return, no two modules may
derive the same facts.

The closure modules are transitive, symmetric–transitive, and linear along edges.

Source: [hu2019], Sections 5 and 6, with corrections: no deletion returns a fact with a
positive nonrecursive count, and every overdeleted fact is removed from the external
ones.

Notation (left: the paper; right: this file)

    X_R      `external`   facts with a count: explicit, or derived by other rules
    Y_R      `certain`    external facts with a positive nonrecursive count
    C_R      the components that `engine.close` finds

All facts are paths of external ones (for the linear rules: an external fact, then edges
of a lower stratum), so every method is a comparison of two closures. An engine does
this without matching rules, and without enumerating the facts in both closures.

Unlike in the paper, a fact that follows from certain facts alone is never overdeleted.
If no other rule of the component is recursive, all external facts are certain, and
exactly the facts that no longer hold are deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from reprlib import repr as short
from typing import TYPE_CHECKING, ClassVar, Protocol

from evermat.algebra import Closure, ClosureKind, Column, Pattern, Region
from evermat.errors import EvermatError
from evermat.lang.closures import ClosureSort, find_closures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evermat.algebra import Engine, Facts, Operand, SettledFacts
    from evermat.lang.closures import ClosureRules, Form
    from evermat.lang.syntax import Atom, Rule


class NotAFinderError(EvermatError, TypeError):
    """A registered object is not a module finder."""

    code: ClassVar[str] = "EM564"


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The facts that a module reads.

    Attributes:
        engine: the engine; see `evermat.algebra`.
        positive: the facts that rules may use.
        negative: the facts at which negated atoms fail.
        before: the facts when the update began.
        is_certain: whether no ordinary rule of the stratum is recursive: every fact
            with a count then has a nonrecursive one.
    """

    engine: Engine
    positive: Facts
    negative: Facts
    before: Facts
    is_certain: bool = False


class Module(Protocol):
    """Some recursive rules of a stratum, with an algorithm of their own.

    Returned sets may contain known facts. Each method may be called any number of
    times, on any stage. A module keeps no state between calls, which would have to be
    restored when an update fails.
    """

    @property
    def name(self) -> str:
        """The name, for reports."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that the module evaluates."""

    @property
    def region(self) -> Region:
        """The facts that these rules derive."""

    def derive(self, stage: Stage) -> SettledFacts:
        """Return facts that follow from the positive facts by any number of steps."""

    def add(self, stage: Stage, delta: SettledFacts) -> SettledFacts:
        """Return facts that follow by any number of steps with the help of `delta`.

        `delta` is part of the positive facts, which are closed under the rules without
        it.
        """

    def diff(
        self, stage: Stage, changed: SettledFacts, changed_absent: SettledFacts
    ) -> SettledFacts:
        """Return the heads of instances that touch a change of lower strata.

        `changed` are facts of `stage.positive` that positive atoms of lower strata can
        match, `changed_absent` are facts outside `stage.negative` for negated atoms.
        The result may include facts derived by further steps.
        """

    def delete(self, stage: Stage, delta: SettledFacts) -> SettledFacts:
        """Return facts that may not follow without `delta`, by any number of steps.

        The result contains at least all facts outside `delta` with a derivation through
        it or through other returned facts, except those that certainly hold (`prove`);
        never a fact outside `delta` with a positive nonrecursive count. `delta` is
        still part of the positive facts.
        """

    def rederive(self, stage: Stage, deleted: SettledFacts) -> SettledFacts:
        """Return the deleted facts that follow from the others, by any number of steps.

        The positive facts do not contain the deleted ones.
        """

    def prove(
        self, stage: Stage, facts: SettledFacts, proved: Facts | None
    ) -> SettledFacts:
        """Return facts that certainly hold; the empty set is always correct.

        They follow by the rules from facts of lower strata, facts with a positive
        nonrecursive count, and `proved` ones.
        """

    def bodies(self, stage: Stage, facts: SettledFacts) -> SettledFacts:
        """Return facts of the stratum from which the facts follow by the rules.

        They must suffice: if all of them that hold were proved, `prove` would find each
        of the facts that hold.
        """


class ModuleFinder(Protocol):
    """Finds the rules that a kind of module can evaluate."""

    def __call__(
        self, rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
    ) -> Iterable[Module]:
        """Return the modules for some of the recursive rules of a stratum.

        Args:
            rules: recursive rules in normal form.
            is_local: whether a positive atom of a rule may match facts of the rule's
                own component, which change while the stratum is evaluated.
        """


def from_others(
    engine: Engine, others: SettledFacts, own: Sequence[SettledFacts]
) -> list[SettledFacts]:
    """Return Δ ∖ Δᵢ for each module i: the facts that it has not derived itself.

    Args:
        engine: the engine.
        others: the facts that ordinary rules derived.
        own: the facts that each module derived.
    """
    inputs = []
    for at, mine in enumerate(own):
        parts = [others, *own[:at], *own[at + 1 :]]
        some: Facts | None = None
        for part in parts:
            if not part.is_empty():
                some = part if some is None else some | part
        inputs.append(engine.no_facts() if some is None else engine.settle(some - mine))
    return inputs


_finders: list[ModuleFinder] = []


def register_module(finder: ModuleFinder) -> None:
    """Register a finder of modules for programs that are compiled from now on.

    Finders are called in the order of registration, before those for closures; each
    receives the rules that are still unassigned.

    Raises:
        NotAFinderError: the object cannot be called.
    """
    if not callable(finder):
        raise NotAFinderError(
            f"a value of type `{type(finder).__name__}` finds no modules: "
            f"{short(finder)}",
            help="give a function that takes rules, and a test which of their body "
            "atoms are local, and returns modules",
        )
    if finder not in _finders:
        _finders.append(finder)


def unregister_module(finder: ModuleFinder) -> None:
    """Unregister a finder; programs that are compiled already keep their modules."""
    if finder in _finders:
        _finders.remove(finder)


def find_modules(
    rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
) -> tuple[Module, ...]:
    """Return the modules for the recursive rules of a stratum."""
    found: list[Module] = []
    free = tuple(rules)
    for finder in (*_finders, find_closure_modules):
        for module in finder(free, is_local):
            if not any(_overlap(module.region, other.region) for other in found):
                found.append(module)
                taken = set(module.rules)
                free = tuple(rule for rule in free if rule not in taken)
    return tuple(found)


def _overlap(one: Region, other: Region) -> bool:
    """Return whether two regions may share a fact."""
    if any(other.touches(name) for name in one.relations):
        return True
    if any(one.touches(name) for name in other.relations):
        return True
    return any(
        shape.relation == twin.relation
        and all(
            mine == theirs or Column in {type(mine), type(theirs)}
            for mine, theirs in zip(shape.operands, twin.operands, strict=True)
        )
        for shape in one.shapes
        for twin in other.shapes
    )


# ----------------------------------------------------------------------------- closures


_KINDS = {
    ClosureSort.TRANSITIVE: ClosureKind.TRANSITIVE,
    ClosureSort.SYMMETRIC: ClosureKind.SYMMETRIC,
    ClosureSort.LEFT_LINEAR: ClosureKind.LEFT_LINEAR,
    ClosureSort.RIGHT_LINEAR: ClosureKind.RIGHT_LINEAR,
}


def find_closure_modules(
    rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
) -> Iterator[ClosureModule]:
    """Yield the closures among the recursive rules of a stratum."""
    return map(ClosureModule, find_closures(rules, is_local))


def closure_of(found: ClosureRules) -> Closure:
    """Convert the rules of a closure to a closure of the algebra."""
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
        """Return all paths of external facts."""
        engine = stage.engine
        counted = engine.counted(self.closure.pattern)
        external = engine.settle(counted & stage.positive)
        return engine.close(self.closure, external | self._edges(stage.positive))

    def add(self, stage: Stage, delta: SettledFacts) -> SettledFacts:
        """Return the paths of all external facts that do not exist without `delta`."""
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
        """Return paths along changed edges; other kinds do not read lower strata."""
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
        """Return paths through deleted facts that are not paths of certain facts.

        Edges that are lost below are included: a path may lose a deleted fact here and
        an edge there, and must not be missed in both places.

        The result may contain external facts. Paths along these also lead through the
        deleted facts, but their loops do not, and are searched for in turn.
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
        """Return deleted facts that are paths of the remaining external facts.

        Facts that follow from certain facts alone were never deleted.
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
        """Return facts that are paths of certain and proved facts."""
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
        """Return external facts that are not certain: others need no proof."""
        engine = stage.engine
        if stage.is_certain or not self._touches(facts):
            return engine.no_facts()
        external = engine.counted(self.closure.pattern) & stage.positive
        return engine.nonrecursive_counts.zero(external)

    # -- reading

    def _touches(self, facts: SettledFacts) -> bool:
        return self.closure.pattern.relation in facts.relations()

    def _external(self, stage: Stage, without: SettledFacts | None = None) -> Facts:
        """Return the facts with a count, except some."""
        facts = stage.positive if without is None else stage.positive - without
        return stage.engine.external(self.closure.pattern, facts)

    def _certain(self, stage: Stage) -> Facts:
        """Return the facts with a nonrecursive count."""
        facts = stage.positive
        return stage.engine.external(self.closure.pattern, facts, certain=True)

    def _edges(self, facts: Facts) -> Facts:
        """Return the edges that are not facts of the closure itself; empty if none."""
        return facts.within(self._edge_region)
