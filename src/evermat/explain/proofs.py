"""Proofs of facts that hold, and reasons why others do not.

Proofs are found in the facts of an engine; no part of them is stored. Heights are
determined by a search (`search`) that reads as few facts as possible, and then the
steps are extracted from the top down.

The reason why a fact does not hold is how far each rule that could derive it matches.
The body of a rule is matched with the head bound to the fact, one part after the other:
atoms in order, then computations, then negated atoms. The first part without matches is
where the rule fails.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from evermat.algebra import Column, Compute, Pattern, Views
from evermat.algebra.compile import compile_rules, variables_of
from evermat.columns import table_of_rows
from evermat.errors import EvermatError
from evermat.explain.members import ResultLook
from evermat.explain.search import Finder, PremiseFacts, Search
from evermat.lang.strata import rules_needed_for
from evermat.lang.syntax import (
    Assignment,
    Atom,
    Condition,
    Negation,
    Rule,
    Term,
    Variable,
)
from evermat.maintenance.limits import Budget, BudgetExceededError, Watch
from evermat.maintenance.proof import Exchange, Proof, constant_order, rows_in
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evermat.algebra import Engine, Facts, Query, SettledFacts
    from evermat.algebra.compile import RuleSet
    from evermat.lang.syntax import BodyElement
    from evermat.maintenance.lazy_closures import LazyClosureReader
    from evermat.maintenance.limits import Progress
    from evermat.maintenance.proof import Fact, Instance, Result
    from evermat.values import Constant


LIMIT = 100_000_000
"""The default limit of rule instances that a search may match."""

_FEW_MATCHES = 2_000_000
"""The most matches of bodies to explain why a fact does not hold."""
_GOAL = "~goal"
_WRITING_OUT = 5_000_000
"""The cost of writing out a lazy closure, in rule instances; a guess."""
_CLOSING = 100_000
"""The same for those facts of a closure that have a constant at one place."""
_MOST_RESULTS = 50
"""The most aggregates in a proof that are shown with their members."""

_NEAR = 100
"""The most facts for which a closure is not written out."""


class NoProofError(EvermatError, RuntimeError):
    """A fact is stored that does not follow from the explicit facts."""

    code: ClassVar[str] = "EM608"


class SearchLimitError(BudgetExceededError):
    """The search for a proof matched more rule instances than allowed."""

    code: ClassVar[str] = "EM609"

    def __init__(self, limit: int, rule: str | None) -> None:
        self.resource = "instances"
        self.rule = rule
        culprit = f"; busiest rule: `{rule}`" if rule else ""
        EvermatError.__init__(
            self,
            f"no proof was found among {limit:,} rule instances{culprit}",
            reason="a proof is of least height, so lower ones have to be ruled out",
            help="raise the limit, or ask for one of the facts that it follows from",
        )


@dataclass(frozen=True, slots=True)
class Ordered:
    """The order of rules and instances, which defines canonical steps.

    Attributes:
        rank: returns the position of a rule in the program.
    """

    rank: Callable[[Rule], tuple[int, str]]

    def key(self, instance: Instance) -> tuple[object, ...]:
        """Return the sort key of an instance."""
        return self.rank(instance.rule), *map(constant_order, instance.values)


class RuleLook:
    """The rules of a program, indexed by their heads.

    Args:
        rules: normal rules.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rule for rule in rules if not rule.has_aggregates)
        self.all = compile_rules(self.rules, _always_local)
        self.finder = Finder(self.all)
        self.results = ResultLook(rule for rule in rules if rule.has_aggregates)

    def relevant(self, fact: Fact) -> RuleSet:
        """Return the rules on which a fact can depend."""
        atom = Atom(fact.relation, tuple(map(Term, fact.row)))
        goal = Rule((Atom(_GOAL, ()),), (atom,))
        premise_facts, _ = rules_needed_for((*self.rules, goal), _GOAL)
        return compile_rules(premise_facts[:-1], _always_local)


def _always_local(rule: Rule, atom: Atom) -> bool:
    """Return true: all premises are searched for."""
    del rule, atom
    return True


class Prover:
    """Finds proofs in the facts of an engine.

    Args:
        engine: the engine.
        look: the rules.
        order: defines the canonical proof.
        limit: the most rule instances to match.
        progress: called after every step of a search.
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
        """Open a transaction, which is always undone.

        Raises:
            SearchLimitError: the limit was exceeded.
        """
        with undone(self.engine, self._watch):
            yield

    def prove(
        self, fact: Fact, *, negative: Facts, premise_facts: PremiseFacts | None = None
    ) -> Proof | None:
        """Return the canonical proof of a fact; None if there is none.

        Args:
            fact: the fact.
            negative: facts that must be absent.
            premise_facts: provides the facts that hold; without it, they are derived.
        """
        engine, exchange = self.engine, self.exchange
        target = exchange.settled([fact])
        leaves = self.look.results.leaves(engine)
        if not engine.settle(target & leaves).is_empty():
            return Proof(fact, {fact: None}, {fact: 0})
        search = Search(
            engine,
            target,
            self.look.all,
            relevant=lambda: self.look.relevant(fact),
            premise_facts=premise_facts,
            negative=negative,
            watch=self._watch,
            leaves=leaves,
        )
        heights = search.run()
        if heights is None:
            return None
        return self._extract(fact, heights, negative, leaves)

    def derivations(
        self, fact: Fact, *, positive: Facts, negative: Facts
    ) -> list[Instance]:
        """Return all rule instances that derive a fact, including circular ones.

        Args:
            fact: the fact.
            positive: the facts that premises may be.
            negative: facts that must be absent.
        """
        changed = self.exchange.settled([fact])
        views = Views(positive, negative, changed)
        found = self.look.finder.find(self.engine, [fact], views)
        return sorted((each for _, each in found), key=self._order.key)

    def _extract(
        self,
        fact: Fact,
        heights: Sequence[SettledFacts],
        negative: Facts,
        leaves: Facts,
    ) -> Proof:
        """Extract the steps, from the highest fact down.

        Facts without a step after all heights have been visited are explicit.
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
            views = Views(leaves | lower, negative, here)
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
        """Return for each of the facts the first instance that derives it."""
        least: dict[Fact, tuple[tuple[object, ...], Instance]] = {}
        found = self.look.finder.find(self.engine, list(heads), views)
        for head, instance in found:
            key = self._order.key(instance)
            if head not in least or key < least[head][0]:
                least[head] = key, instance
        return {head: instance for head, (_, instance) in least.items()}


def search_watch(limit: int | None, progress: Progress | None) -> Watch:
    """Return a watch for a search."""
    watch = Watch(Budget(instances=LIMIT if limit is None else limit), progress)
    watch.phase = "explain"
    return watch


@contextmanager
def undone(engine: Engine, watch: Watch) -> Iterator[None]:
    """Open a transaction for a search, which is always undone."""
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
    """Explains facts that are stored as they are, or in lazy closures.

    Args:
        prover: finds proofs.
        reading: reads facts, including those of lazy closures.
    """

    def __init__(self, prover: Prover, reading: LazyClosureReader) -> None:
        self._prover = prover
        self._reading = reading

    def prove(self, fact: Fact) -> Proof | None:
        """Return the canonical proof of a fact; None if it does not hold.

        Raises:
            SearchLimitError: the search would take too long.
        """
        row = table_of_rows([fact.row], len(fact.row))
        if not self._reading.contains(fact.relation, row):
            return None
        prover = self._prover
        premise_facts = _PremiseFacts(
            self._reading, prover.look.finder, prover.exchange, fact
        )
        with prover.at_work():
            everything = prover.engine.materialised
            proof = prover.prove(fact, negative=everything, premise_facts=premise_facts)
            if proof is not None:
                proof = self._with_members(proof)
        if proof is None:
            raise NoProofError(
                "a fact holds that does not follow from explicit facts",
                help="materialise anew, and please report this",
            )
        return proof

    def _with_members(self, proof: Proof) -> Proof:
        """Add proofs of some members of each aggregate to a proof."""
        prover, look = self._prover, self._prover.look.results
        steps, heights = dict(proof.steps), dict(proof.heights)
        found: dict[Fact, Result] = {}
        waiting = [each for each in steps if look.has(each)]
        while waiting and len(found) < _MOST_RESULTS:
            fact = waiting.pop()
            result = found[fact] = look.result(prover.engine, fact)
            for member in result.members:
                if member in steps:
                    continue
                patterns, exchange = prover.look.finder, prover.exchange
                premise_facts = _PremiseFacts(self._reading, patterns, exchange, member)
                everything = prover.engine.materialised
                part = prover.prove(
                    member, negative=everything, premise_facts=premise_facts
                )
                if part is not None:
                    waiting += [each for each in part.steps if each not in steps]
                    steps |= {e: s for e, s in part.steps.items() if e not in steps}
                    heights |= part.heights
            waiting = [each for each in waiting if look.has(each) and each not in found]
        return Proof(proof.fact, steps, heights, found)

    def actual(self, atom: Atom) -> Fact | None:
        """Return the actual result of the group of an atom, if there is one."""
        with undone(self._prover.engine, search_watch(_FEW_MATCHES, None)):
            return self._prover.look.results.actual(self._prover.engine, atom)

    def failures(self, fact: Fact, most: int) -> list[Failure]:
        """Return how far the rules match that could derive a missing fact.

        Rules with too many matches are omitted: bodies can have any number of matches
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
        """Return all rule instances that derive a fact, including circular ones.

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


class _PremiseFacts(PremiseFacts):
    """The possible premises of facts, where closures may be lazy.

    A lazy closure is read by its own rules only. For few facts, only the facts of the
    closure that share a constant with them are computed; for many, the whole closure.
    """

    def __init__(
        self,
        reading: LazyClosureReader,
        finder: Finder,
        exchange: Exchange,
        target: Fact,
    ) -> None:
        self._reading = reading
        self._finder = finder
        self._exchange = exchange
        self._near: list[Pattern] | None = list(finder.body_patterns(target))
        self._written: Facts | None = None

    def facts(self) -> Facts:
        """Return all facts that premises of the announced facts can be."""
        if self._written is not None:
            return self._written
        if self._near is not None:
            return self._reading.seen_by(self._near)
        self._written = self._reading.everything()
        return self._written

    def announce(self, heads: SettledFacts) -> int:
        """Announce facts whose premises are needed; return the cost in instances."""
        if self._written is not None or not self._reads_lazy(heads):
            self._near = []
            return 0
        if heads.size() <= _NEAR:
            facts = self._exchange.listed(heads)
            patterns = (p for fact in facts for p in self._finder.body_patterns(fact))
            self._near = list(dict.fromkeys(patterns))
            return min(_CLOSING * len(self._near), _WRITING_OUT)
        self._near = None
        return _WRITING_OUT

    def _reads_lazy(self, heads: SettledFacts) -> bool:
        return not self._reading.lazy.isdisjoint(heads.relations())


# ------------------------------------------------------------------------------ why not


_MATCH = "~match"


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A rule that does not derive a fact.

    Attributes:
        rule: a normal rule.
        values: the values of the variables bound by the head and the parts before, in
            the order of `variables_of`; from the first match, if there are several.
        matches: the number of matches of the parts before.
        failed: the part without matches, by its position in `parts_of`.
    """

    rule: Rule
    values: tuple[Constant | None, ...]
    matches: int
    failed: int


def failures(
    prover: Prover, reading: LazyClosureReader, fact: Fact, rules: Sequence[Rule]
) -> list[Failure]:
    """Return how far each of some rules matches; inside of a transaction.

    Args:
        prover: has the engine.
        reading: reads facts, including those of lazy closures.
        fact: the fact, which does not hold.
        rules: normal rules whose heads can be the fact.
    """
    engine = prover.engine
    patterns = list(prover.look.finder.body_patterns(fact))
    views = Views(
        positive=reading.seen_by(patterns),
        negative=engine.materialised,
        delta_positive=prover.exchange.settled([fact]),
    )
    return [_failure(engine, rule, fact, views) for rule in rules]


def _failure(engine: Engine, rule: Rule, fact: Fact, views: Views) -> Failure:
    known, number = [_head_values(rule, fact)], 0
    while found := _matches(engine, rule, number + 1, views):
        known, number = found, number + 1
    first = min(known, key=lambda row: [v and constant_order(v) for v in row])
    return Failure(rule, first, len(known), number)


def _matches(
    engine: Engine, rule: Rule, count: int, views: Views
) -> list[tuple[Constant | None, ...]]:
    """Return the matches of the first parts of a body."""
    query, bound = _first_parts(rule, count)
    if not bound:
        yes = boolean_constant(value=True)
        query = replace(query, head=Pattern(_MATCH, (yes,)))
    table = engine.answer(query, views)
    places = range(len(variables_of(rule)))
    values = (dict(zip(bound, row, strict=False)) for row in rows_in(table, 1))
    return [tuple(map(each.get, places)) for each in values]


def can_derive(rule: Rule, fact: Fact) -> bool:
    """Return whether the head of a rule can be a fact."""
    head = rule.head
    values: dict[str, Constant] = {}
    if head.predicate != fact.relation:
        return False
    return all(
        values.setdefault(argument.name, value) == value
        if isinstance(argument, Variable)
        else argument == Term(value)
        for argument, value in zip(head.arguments, fact.row, strict=True)
    )


def parts_of(rule: Rule) -> list[BodyElement]:
    """Return the body of a normal rule: atoms, computations, then negated atoms."""
    sorts = (Atom, (Condition, Assignment), Negation)
    return [each for sort in sorts for each in rule.body if isinstance(each, sort)]


def _first_parts(rule: Rule, count: int) -> tuple[Query, list[int]]:
    """Return a query for the head and some parts of the body, and its bound columns."""
    elements = parts_of(rule)[:count]
    (query,) = compile_rules((rule,), lambda _rule, _atom: False).rederive.queries
    atoms = sum(isinstance(each, Atom) for each in elements)
    negated = sum(isinstance(each, Negation) for each in elements)
    positive = query.positive[: 1 + atoms]
    computations = query.computations[: count - atoms - negated]
    bound = sorted(set(_columns(positive, computations)))
    head = Pattern(_MATCH, tuple(Column(at) for at in bound))
    return replace(
        query,
        head=head,
        positive=positive,
        computations=computations,
        negative=query.negative[:negated],
    ), bound


def _columns(
    positive: Sequence[Pattern], computations: Sequence[object]
) -> Iterator[int]:
    for pattern in positive:
        yield from (each.index for each in pattern.operands if isinstance(each, Column))
    yield from (each.target.index for each in computations if isinstance(each, Compute))


def _head_values(rule: Rule, fact: Fact) -> tuple[Constant | None, ...]:
    values = {
        argument.name: value
        for argument, value in zip(rule.head.arguments, fact.row, strict=True)
        if isinstance(argument, Variable)
    }
    return tuple(map(values.get, variables_of(rule)))
