"""Proofs of facts that hold, found in the facts that an engine has.

Nothing of them is stored: heights are found by a search (`proof_heights`) that looks at
no more facts than it must, and then the steps are read from the top downwards.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evermat.columns import table_of_rows
from evermat.errors import EvermatError
from evermat.lang.strata import rules_behind
from evermat.lang.syntax import Atom, Rule, Term
from evermat.maintenance.proof import Exchange, Proof, constant_order
from evermat.maintenance.proof_heights import Behind, Search
from evermat.maintenance.proof_instances import Finder
from evermat.maintenance.watch import Budget, BudgetExceededError, Watch
from evermat.rule_plans import compile_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evermat.algebra import Engine, Facts, Pattern, SettledFacts
    from evermat.maintenance.holding import HeldFacts
    from evermat.maintenance.proof import Fact, Instance
    from evermat.maintenance.watch import Progress
    from evermat.rule_plans import RuleSet

LIMIT = 100_000_000
"""How many rule instances a search looks at, unless it is told otherwise."""

_GOAL = "~goal"
_WRITING_OUT = 5_000_000
"""What it costs to write out a closure that is held, in rule instances; a guess."""
_CLOSING = 100_000
"""The same for those facts of a closure that have a constant at one place."""
_NEAR = 100
"""For so many facts a closure is not written out."""


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
        self._rules = tuple(rules)
        self.all = compile_rules(self._rules, _always_local)
        self.finder = Finder(self.all)

    def relevant(self, fact: Fact) -> RuleSet:
        """The rules that a fact can depend on."""
        atom = Atom(fact.relation, tuple(map(Term, fact.row)))
        goal = Rule((Atom(_GOAL, ()),), (atom,))
        behind, _ = rules_behind((*self._rules, goal), _GOAL)
        return compile_rules(behind[:-1], _always_local)


def _always_local(rule: Rule, atom: Atom) -> bool:
    """All premises are looked for."""
    del rule, atom
    return True


class Explainer:
    """Proves facts.

    Args:
        engine: where the facts are.
        look: the rules.
        reading: reads facts, those of closures that are held among them.
        order: which proof is the canonical one.
        limit: how many rule instances a search may look at.
        progress: is told about every step of a search.
    """

    def __init__(
        self,
        engine: Engine,
        look: RuleLook,
        reading: HeldFacts,
        order: Ordered,
        *,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._engine = engine
        self._look = look
        self._reading = reading
        self._order = order
        self._limit = LIMIT if limit is None else limit
        self._progress = progress

    def holds(self, fact: Fact) -> bool:
        """Whether a fact holds."""
        row = table_of_rows([fact.row], len(fact.row))
        return self._reading.contains(fact.relation, row)

    def prove(self, fact: Fact) -> Proof:
        """The canonical proof of a fact that holds.

        Raises:
            SearchLimitError: it would take too long to find.
        """
        engine = self._engine
        with self._at_work() as watch:
            exchange = Exchange(engine)
            target = exchange.settled([fact])
            if not engine.settle(target & engine.explicit).is_empty():
                return Proof(fact, {fact: None}, {fact: 0})
            search = Search(
                engine,
                target,
                self._look.all,
                relevant=lambda: self._look.relevant(fact),
                behind=_Behind(self._reading, self._look.finder, exchange, fact),
                watch=watch,
            )
            return self._extract(fact, exchange, search.run())

    def derivations(self, fact: Fact) -> list[Instance]:
        """All rule instances that derive a fact, whatever their premises follow from.

        Raises:
            SearchLimitError: there are too many.
        """
        engine, finder = self._engine, self._look.finder
        with self._at_work():
            found = finder.find(
                engine,
                [fact],
                Exchange(engine).settled([fact]),
                positive=self._reading.seen_by([*finder.body_patterns(fact)]),
                negative=engine.materialised,
            )
            return sorted((each for _, each in found), key=self._order.key)

    @contextmanager
    def _at_work(self) -> Iterator[Watch]:
        """A transaction, which is always undone."""
        engine = self._engine
        watch = Watch(Budget(instances=self._limit), self._progress)
        watch.phase = "explain"
        engine.begin()
        engine.monitor = watch.monitor
        try:
            yield watch
        except BudgetExceededError as error:
            raise SearchLimitError(self._limit, error.rule) from error
        finally:
            engine.monitor = None
            engine.rollback()

    def _extract(
        self, fact: Fact, exchange: Exchange, heights: Sequence[SettledFacts]
    ) -> Proof:
        """Read the steps, from the highest fact downwards."""
        engine = self._engine
        lower = engine.growing()
        for facts in heights:
            lower.add(facts)
        steps: dict[Fact, Instance | None] = {}
        found_heights: dict[Fact, int] = {}
        waiting = {fact}
        for height in range(len(heights), 0, -1):
            lower.discard(heights[height - 1])
            asked = exchange.settled(waiting)
            here = engine.settle(asked & heights[height - 1])
            if here.is_empty():
                continue
            chosen = self._least(exchange.listed(here), here, engine.explicit | lower)
            steps.update(chosen)
            found_heights.update(dict.fromkeys(chosen, height))
            premises = {each for step in chosen.values() for each in step.premises}
            new = exchange.settled(premises - steps.keys())
            given = exchange.listed(engine.settle(new & engine.explicit))
            steps.update(dict.fromkeys(given))
            found_heights.update(dict.fromkeys(given, 0))
            waiting = (waiting | premises) - steps.keys()
        return Proof(fact, steps, found_heights)

    def _least(
        self, heads: Iterable[Fact], changed: SettledFacts, positive: Facts
    ) -> dict[Fact, Instance]:
        """For each of the facts the first instance that derives it."""
        engine = self._engine
        least: dict[Fact, tuple[tuple[object, ...], Instance]] = {}
        found = self._look.finder.find(
            engine,
            list(heads),
            changed,
            positive=positive,
            negative=engine.materialised,
        )
        for head, instance in found:
            key = self._order.key(instance)
            if head not in least or key < least[head][0]:
                least[head] = key, instance
        return {head: instance for head, (_, instance) in least.items()}


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
