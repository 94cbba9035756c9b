"""Proofs of facts that hold, found in the facts that an engine has.

Nothing of them is stored: heights are found by a search (`heights`) that looks at
no more facts than it must, and then the steps are read from the top downwards.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evermat.algebra import Views
from evermat.algebra.compile import compile_rules
from evermat.columns import table_of_rows
from evermat.errors import EvermatError
from evermat.explain.heights import Behind, Search
from evermat.explain.instances import Finder
from evermat.explain.why_not import can_derive, failures
from evermat.lang.strata import rules_behind
from evermat.lang.syntax import Atom, Rule, Term
from evermat.maintenance.limits import Budget, BudgetExceededError, Watch
from evermat.maintenance.proof import Exchange, Proof, constant_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evermat.algebra import Engine, Facts, Pattern, SettledFacts
    from evermat.algebra.compile import RuleSet
    from evermat.explain.why_not import Failure
    from evermat.maintenance.lazy_closures import HeldFacts
    from evermat.maintenance.limits import Progress
    from evermat.maintenance.proof import Fact, Instance

LIMIT = 100_000_000
"""How many rule instances a search looks at, unless it is told otherwise."""

_FEW_MATCHES = 2_000_000
"""How many matches of bodies are looked at to say why a fact does not hold."""
_GOAL = "~goal"
_WRITING_OUT = 5_000_000
"""What it costs to write out a closure that is held, in rule instances; a guess."""
_CLOSING = 100_000
"""The same for those facts of a closure that have a constant at one place."""
_NEAR = 100
"""For so many facts a closure is not written out."""


class NoProofError(EvermatError, RuntimeError):
    """A fact is stored that does not follow from the given facts."""

    code: ClassVar[str] = "EM608"


class SearchLimitError(BudgetExceededError):
    """The search for a proof looked at more rule instances than it may."""

    code: ClassVar[str] = "EM609"

    def __init__(self, limit: int, rule: str | None) -> None:
        self.resource = "instances"
        self.rule = rule
        culprit = f"; busiest rule: `{rule}`" if rule else ""
        EvermatError.__init__(
            self,
            f"no proof was found among {limit:,} rule instances{culprit}",
            law="a proof is of least height, so lower ones have to be ruled out",
            help="raise the limit, or ask for one of the facts that it follows from",
        )


@dataclass(frozen=True, slots=True)
class Ordered:
    """How rules and instances are ordered: which of two steps is the canonical one.

    Attributes:
        rank: the place of a rule in the program.
    """

    rank: Callable[[Rule], tuple[int, str]]

    def key(self, instance: Instance) -> tuple[object, ...]:
        """What instances are compared by."""
        return self.rank(instance.rule), *map(constant_order, instance.values)


class RuleLook:
    """The rules of a program, ready to be looked at from their heads.

    Args:
        rules: normal rules.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self.all = compile_rules(self.rules, _always_local)
        self.finder = Finder(self.all)

    def relevant(self, fact: Fact) -> RuleSet:
        """The rules that a fact can depend on."""
        atom = Atom(fact.relation, tuple(map(Term, fact.row)))
        goal = Rule((Atom(_GOAL, ()),), (atom,))
        behind, _ = rules_behind((*self.rules, goal), _GOAL)
        return compile_rules(behind[:-1], _always_local)


def _always_local(rule: Rule, atom: Atom) -> bool:
    """All premises are looked for."""
    del rule, atom
    return True


class Prover:
    """Finds proofs in the facts of an engine.

    Args:
        engine: where the facts are.
        look: the rules.
        order: which proof is the canonical one.
        limit: how many rule instances may be looked at.
        progress: is told about every step of a search.
    """

    def __init__(
        self,
        engine: Engine,
        look: RuleLook,
        order: Ordered,
        *,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.engine = engine
        self.look = look
        self.exchange = Exchange(engine)
        self.rank = order.rank
        self._order = order
        self._watch = search_watch(limit, progress)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """A transaction, which is always undone.

        Raises:
            SearchLimitError: the limit was passed.
        """
        with undone(self.engine, self._watch):
            yield

    def prove(
        self, fact: Fact, *, negative: Facts, behind: Behind | None = None
    ) -> Proof | None:
        """The canonical proof of a fact; None if there is none.

        Args:
            fact: the fact.
            negative: facts that must be absent.
            behind: shows the facts that hold; without it, they are derived.
        """
        engine, exchange = self.engine, self.exchange
        target = exchange.settled([fact])
        if not engine.settle(target & engine.explicit).is_empty():
            return Proof(fact, {fact: None}, {fact: 0})
        search = Search(
            engine,
            target,
            self.look.all,
            relevant=lambda: self.look.relevant(fact),
            behind=behind,
            negative=negative,
            watch=self._watch,
        )
        heights = search.run()
        return None if heights is None else self._extract(fact, heights, negative)

    def derivations(
        self, fact: Fact, *, positive: Facts, negative: Facts
    ) -> list[Instance]:
        """All rule instances that derive a fact, whatever their premises follow from.

        Args:
            fact: the fact.
            positive: facts that premises may be.
            negative: facts that must be absent.
        """
        changed = self.exchange.settled([fact])
        views = Views(positive, negative, changed)
        found = self.look.finder.find(self.engine, [fact], views)
        return sorted((each for _, each in found), key=self._order.key)

    def _extract(
        self, fact: Fact, heights: Sequence[SettledFacts], negative: Facts
    ) -> Proof:
        """Read the steps, from the highest fact downwards.

        What is still open when all heights have been visited was given.
        """
        engine, exchange = self.engine, self.exchange
        lower = engine.growing()
        for facts in heights:
            lower.add(facts)
        steps: dict[Fact, Instance] = {}
        found_heights = {fact: 0}
        wanted = exchange.settled([fact])
        for height in range(len(heights), 0, -1):
            lower.discard(heights[height - 1])
            here = engine.settle(wanted & heights[height - 1])
            if here.is_empty():
                continue
            views = Views(engine.explicit | lower, negative, here)
            chosen = self._least(exchange.listed(here), views)
            steps.update(chosen)
            found_heights.update(dict.fromkeys(chosen, height))
            premises = {each for step in chosen.values() for each in step.premises}
            new = {each for each in premises if each not in found_heights}
            found_heights.update(dict.fromkeys(new, 0))
            wanted = engine.settle(wanted | exchange.settled(new))
        return Proof(
            fact, {each: steps.get(each) for each in found_heights}, found_heights
        )

    def _least(self, heads: Iterable[Fact], views: Views) -> dict[Fact, Instance]:
        """For each of the facts the first instance that derives it."""
        least: dict[Fact, tuple[tuple[object, ...], Instance]] = {}
        found = self.look.finder.find(self.engine, list(heads), views)
        for head, instance in found:
            key = self._order.key(instance)
            if head not in least or key < least[head][0]:
                least[head] = key, instance
        return {head: instance for head, (_, instance) in least.items()}


def search_watch(limit: int | None, progress: Progress | None) -> Watch:
    """Watches a search."""
    watch = Watch(Budget(instances=LIMIT if limit is None else limit), progress)
    watch.phase = "explain"
    return watch


@contextmanager
def undone(engine: Engine, watch: Watch) -> Iterator[None]:
    """A transaction for a search, which is always undone."""
    engine.begin()
    engine.monitor = watch.monitor
    try:
        yield
    except BudgetExceededError as error:
        limit = watch.budget.instances or 0
        raise SearchLimitError(limit, error.rule) from error
    finally:
        engine.monitor = None
        engine.rollback()


class Explainer:
    """Explains what holds where all facts are held as they are, or by closures.

    Args:
        prover: finds proofs.
        reading: reads facts, those of closures that are held among them.
    """

    def __init__(self, prover: Prover, reading: HeldFacts) -> None:
        self._prover = prover
        self._reading = reading

    def prove(self, fact: Fact) -> Proof | None:
        """The canonical proof of a fact; None if it does not hold.

        Raises:
            SearchLimitError: it would take too long to find.
        """
        row = table_of_rows([fact.row], len(fact.row))
        if not self._reading.contains(fact.relation, row):
            return None
        prover = self._prover
        behind = _Behind(self._reading, prover.look.finder, prover.exchange, fact)
        with prover.at_work():
            everything = prover.engine.materialised
            proof = prover.prove(fact, negative=everything, behind=behind)
        if proof is None:
            raise NoProofError(
                "a fact holds that does not follow from what was given",
                help="materialise anew, and please report this",
            )
        return proof

    def failures(self, fact: Fact, most: int) -> list[Failure]:
        """How far rules get that could derive a fact which does not hold.

        Nothing is said where they get too far: bodies can have any number of matches
        that fail in the end.
        """
        prover = self._prover
        rules = (rule for rule in prover.look.rules if can_derive(rule, fact))
        chosen = sorted(rules, key=prover.rank)[:most]
        try:
            with undone(prover.engine, search_watch(_FEW_MATCHES, None)):
                return failures(prover, self._reading, fact, chosen)
        except SearchLimitError:
            return []

    def derivations(self, fact: Fact) -> list[Instance]:
        """All rule instances that derive a fact, whatever their premises follow from.

        Raises:
            SearchLimitError: there are too many.
        """
        prover = self._prover
        patterns = list(prover.look.finder.body_patterns(fact))
        with prover.at_work():
            return prover.derivations(
                fact,
                positive=self._reading.seen_by(patterns),
                negative=prover.engine.materialised,
            )


class _Behind(Behind):
    """What premises can be, where closures may be held.

    A held closure is read by its own rules only. For few facts, just what shares a
    constant with them is worked out of it; for many, the whole closure.
    """

    def __init__(
        self, reading: HeldFacts, finder: Finder, exchange: Exchange, target: Fact
    ) -> None:
        self._reading = reading
        self._finder = finder
        self._exchange = exchange
        self._near: list[Pattern] | None = list(finder.body_patterns(target))
        self._written: Facts | None = None

    def facts(self) -> Facts:
        """All facts that premises of the facts that were announced last can be."""
        if self._written is not None:
            return self._written
        if self._near is not None:
            return self._reading.seen_by(self._near)
        self._written = self._reading.everything()
        return self._written

    def announce(self, heads: SettledFacts) -> int:
        """Say whose premises are wanted next; what they cost, in rule instances."""
        if self._written is not None or not self._reads_held(heads):
            self._near = []
            return 0
        if heads.size() <= _NEAR:
            facts = self._exchange.listed(heads)
            patterns = (p for fact in facts for p in self._finder.body_patterns(fact))
            self._near = list(dict.fromkeys(patterns))
            return min(_CLOSING * len(self._near), _WRITING_OUT)
        self._near = None
        return _WRITING_OUT

    def _reads_held(self, heads: SettledFacts) -> bool:
        return not self._reading.held.isdisjoint(heads.relations())
