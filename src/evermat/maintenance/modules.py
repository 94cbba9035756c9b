"""Modules: recursive rules that are handled by an algorithm of their own.

Source: [hu2019], Definitions 3 and 5 to 7.

A module takes some of the recursive rules of a stratum, and works out what follows from
them without matching every instance. It knows nothing of the other rules, and these
know nothing of it: `modular` passes facts back and forth until nothing is new.

Notation (left: the paper; right: this file)

    Add[Iᵖ, Iⁿ, Δ]           `module.add(stage, delta)`
    Diff[Iᵖ, Δᵖ, Δⁿ]         `module.diff(stage, changed, changed_absent)`
    Del[Iᵖ, Iⁿ, Δ, C_nr]     `module.delete(stage, delta)`
    Red[Iᵖ, Iⁿ, Δ]           `module.rederive(stage, deleted)`
    Iᵖ, Iⁿ                   `stage.positive`, `stage.negative`

Beyond the paper there are `derive`, which is Add from nothing; `prove`, with which a
module tells that facts surely hold, so that they need not be deleted in the first place
(B/F^c needs it, and DRed^c gains from it); and `bodies`, the backward step of B/F^c.

Facts that a module derives are not counted. A fact of a module's region with a count
above zero therefore has support from outside: it is given, or another rule derives it.
This is what the paper keeps in the sets X_R, and it needs no upkeep here: counts are
exact, and a transaction takes them back. In return, no two modules may derive the
same facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from reprlib import repr as short
from typing import TYPE_CHECKING, ClassVar, Protocol

from evermat.algebra import Column
from evermat.errors import EvermatError
from evermat.maintenance.closures import find_closure_modules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evermat.algebra import Engine, Facts, Region, SettledFacts
    from evermat.lang.syntax import Atom, Rule


class NotAFinderError(EvermatError, TypeError):
    """Something that cannot be asked for modules."""

    code: ClassVar[str] = "EM564"


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What a module can see while it works.

    Attributes:
        engine: does the work; see `evermat.algebra`.
        positive: the facts that rules may use.
        negative: the facts at which negated atoms fail.
        before: the facts when the update began.
        is_certain: whether no ordinary rule of the stratum is recursive: a fact with a
            count then has a nonrecursive one.
    """

    engine: Engine
    positive: Facts
    negative: Facts
    before: Facts
    is_certain: bool = False


class Module(Protocol):
    """Some recursive rules of a stratum, with an algorithm of their own.

    Sets that are returned may hold facts that are known already. Each method may be
    called any number of times, on any stage; a module keeps no state of its own between
    calls, or an update that fails would have to take it back.
    """

    @property
    def name(self) -> str:
        """What it is, for people."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules it takes care of."""

    @property
    def region(self) -> Region:
        """The facts that these rules derive."""

    def derive(self, stage: Stage) -> SettledFacts:
        """All that follows from the positive facts by the rules, in any steps."""

    def add(self, stage: Stage, delta: SettledFacts) -> SettledFacts:
        """What follows from the positive facts, in any steps, with the help of `delta`.

        `delta` is part of the positive facts, which are closed under the rules without
        it.
        """

    def diff(
        self, stage: Stage, changed: SettledFacts, changed_absent: SettledFacts
    ) -> SettledFacts:
        """Heads of the instances that touch a change of lower strata.

        `changed` are facts of `stage.positive` that positive atoms of lower strata can
        match, `changed_absent` are facts outside `stage.negative` for negated atoms.
        Further steps may be taken at once.
        """

    def delete(self, stage: Stage, delta: SettledFacts) -> SettledFacts:
        """What may no longer follow when `delta` goes, in any steps.

        At least all facts outside `delta` with a derivation through it or through other
        facts returned, except those that surely hold (`prove`); never a fact outside
        `delta` with a positive nonrecursive count. `delta` is still part of the
        positive facts.
        """

    def rederive(self, stage: Stage, deleted: SettledFacts) -> SettledFacts:
        """Those of the deleted facts that follow, in any steps, from the others.

        The positive facts are without the deleted ones.
        """

    def prove(
        self, stage: Stage, facts: SettledFacts, proved: Facts | None
    ) -> SettledFacts:
        """Those of the facts that surely hold: nothing is always a right answer.

        They follow by the rules from facts of lower strata, facts with a positive
        nonrecursive count, and `proved` ones.
        """

    def bodies(self, stage: Stage, facts: SettledFacts) -> SettledFacts:
        """Facts of the stratum from which the facts follow by the rules.

        Enough of them that, if all that hold among them were proved, `prove` would find
        each of the facts that hold.
        """


class ModuleFinder(Protocol):
    """Looks for rules that a sort of module can take care of."""

    def __call__(
        self, rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
    ) -> Iterable[Module]:
        """The modules for some of the recursive rules of a stratum.

        Args:
            rules: recursive rules in normal form.
            is_local: whether a positive atom of a rule may match facts of the rule's
                own component, which change while the stratum is worked out.
        """


def from_others(
    engine: Engine, others: SettledFacts, own: Sequence[SettledFacts]
) -> list[SettledFacts]:
    """Δ ∖ Δᵢ for each module i: what it has not derived itself.

    Args:
        engine: does the work.
        others: what ordinary rules derived.
        own: what each module derived.
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
    """Have programs that are compiled from now on use further modules.

    Finders are asked in the order in which they were registered, and before the
    closures that Evermat knows; each is asked about the rules that are still free.

    Raises:
        NotAFinderError: it cannot be asked.
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
    """Forget a finder; programs that are compiled already keep their modules."""
    if finder in _finders:
        _finders.remove(finder)


def can_close(engine: Engine) -> bool:
    """Whether an engine has the operators that closures need; not all have, so far."""
    return all(hasattr(engine, name) for name in ("close", "close_among", "capture"))


def find_modules(
    rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
) -> tuple[Module, ...]:
    """The modules for the recursive rules of a stratum."""
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
    """Whether two regions may share a fact."""
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
