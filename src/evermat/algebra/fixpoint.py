"""The two fixpoint operators, saturation and proving, in terms of the other operators.

Saturation applies rules to facts, and to the facts derived from them, until no new
facts are derived: the one loop of all forward algorithms. Materialisation, overdeletion
and insertion differ in the first candidates, in the candidates they admit, in the set
that grows, in the views that rules read, and in whether derivations are counted:

    candidates ← seeds, and the heads of the rules that are applied once
    while some candidates are admitted:
        delta ← the admitted candidates
        candidates ← the heads of the rules applied to delta

`saturate` states it in terms of the other operators of an engine. An engine may have
a faster implementation; `tests/algebra/test_saturation.py` compares the two.

Proving searches by backward chaining for facts that have a derivation that survives. It
is the loop of B/F and B/F^c. Facts are *checked*: those with support of their own are
*proved*, and so are facts that follow from proved facts and were checked. For the
others, rules lead backwards to the facts of their bodies, which are checked in turn.

`prove` states it in terms of the other operators of an engine, for a batch of facts,
one level of the search at a time, which suits a distributed engine. An engine may
search depth first, one fact at a time, and stop at a fact as soon as it is proved, like
function CHECK of [hu2018]; it then matches far fewer rule instances.
`tests/algebra/test_proving.py` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from evermat.algebra.queries import Views

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evermat.algebra.engine import Engine
    from evermat.algebra.facts import Counters, Facts, GrowingFacts, SettledFacts
    from evermat.algebra.queries import QuerySet, Region

    OnRounds = Callable[["Rounds"], None]

    "Callback for one or more completed rounds."


class Rounds(NamedTuple):
    """Completed rounds.

    Attributes:
        number: the number of rounds.
        facts: the number of facts they admitted.
        are_compiled: whether compiled code ran them without returning in between.
    """

    number: int
    facts: int
    are_compiled: bool = False


@dataclass(frozen=True, slots=True)
class Application:
    """Rules to be applied.

    Attributes:
        queries: the rules.
        views: the views they read.
        counters: where the derivations of each head are counted, if at all.
    """

    queries: QuerySet
    views: Views
    counters: Counters | None = None


@dataclass(frozen=True, slots=True)
class Saturation:
    """The arguments of `saturate`.

    Attributes:
        seeds: the first candidates.
        into: the set to which admitted facts are added.
        unless: candidates in this view are not admitted; it must contain `into`.
        first: rules that are applied once, at the beginning; their heads are further
            candidates.
        step: rules that are applied to the admitted facts of each round, which they
            read as a positive change; without them there is one round.
        is_deletion: whether derivations are subtracted from counters instead of added.
        enters_first: whether admitted facts join `into` before, not after, the rules
            are applied to them. Where the rules read the complement of `into`, facts
            must join it afterwards: an instance may use two facts of the same round.
        zero: only candidates whose count in these counters is zero are admitted.
        is_watched: whether `on_rounds` must be called after every single round.
    """

    seeds: SettledFacts
    into: GrowingFacts
    unless: Facts
    first: tuple[Application, ...] = ()
    step: Application | None = None
    is_deletion: bool = False
    enters_first: bool = True
    zero: Counters | None = None
    is_watched: bool = True


def saturate(engine: Engine, task: Saturation, on_rounds: OnRounds) -> None:
    """Apply rules until no more candidates are admitted."""
    candidates: SettledFacts | None = apply_first(engine, task)
    while candidates is not None:
        candidates = apply_round(engine, task, candidates, on_rounds)


def apply_first(engine: Engine, task: Saturation) -> SettledFacts:
    """Apply the rules of the beginning; return the first candidates."""
    candidates: Facts = task.seeds
    for application in task.first:
        candidates |= apply_rules(engine, task, application)
    return engine.settle(candidates)


def apply_round(
    engine: Engine, task: Saturation, candidates: SettledFacts, on_rounds: OnRounds
) -> SettledFacts | None:
    """Admit candidates, apply rules to them; return the next ones, None at the end."""
    delta = engine.settle(candidates - task.unless)
    if task.zero is not None:
        delta = task.zero.zero(delta)
    if delta.is_empty():
        return None
    if task.enters_first:
        task.into.add(delta)
    on_rounds(Rounds(1, delta.size()))
    return apply_step(engine, task, delta)


def apply_step(engine: Engine, task: Saturation, delta: SettledFacts) -> SettledFacts:
    """Apply the rules to the facts of a round; return the next candidates."""
    candidates = engine.no_facts()
    if task.step is not None:
        views = replace(task.step.views, delta_positive=delta)
        candidates = apply_rules(engine, task, replace(task.step, views=views))
    if not task.enters_first:
        task.into.add(delta)
    return candidates


def apply_rules(
    engine: Engine, task: Saturation, application: Application
) -> SettledFacts:
    """Apply rules, counting their derivations if required; return the heads."""
    queries, views, counters = (
        application.queries,
        application.views,
        application.counters,
    )
    if counters is None:
        return engine.derive(queries, views)
    counts = engine.derive_counts(queries, views)
    if task.is_deletion:
        counters.subtract(counts)
    else:
        counters.add(counts)
    return counts.facts


# ------------------------------------------------------------------------------ proving


class Chaining(Protocol):
    """Rules, as queries for both directions; see `compile.RuleSet`."""

    @property
    def delta(self) -> QuerySet:
        """The queries for instances that touch a change, each found exactly once."""

    @property
    def backward(self) -> QuerySet:
        """The queries for the local body facts of instances with a changed head."""

    @property
    def rederive(self) -> QuerySet:
        """The queries for instances whose head is one of the changed facts."""


class ProvingModule(Protocol):
    """Rules with an algorithm of their own that takes part in a search."""

    def bodies(self, facts: SettledFacts) -> Facts:
        """Return facts from which these rules may derive the facts."""

    def prove(self, facts: SettledFacts, proved: Facts) -> Facts:
        """Return those of the facts that certainly hold, or follow from proved ones."""


@dataclass(frozen=True, slots=True)
class OwnSupport:
    """Support of facts that does not involve the facts of the stratum.

    With counters, a fact has such support if its nonrecursive count is above zero.
    Otherwise, if it is explicit or rules derive it from lower strata.

    Attributes:
        counter: the counters, if they are kept.
        explicit: the explicit facts.
        rules: the head-bound nonrecursive rules.
        ask: the implementation by operators.
    """

    ask: Callable[[SettledFacts], Facts]
    counter: Counters | None = None
    explicit: Facts | None = None
    rules: QuerySet | None = None


@dataclass(frozen=True, slots=True)
class ProofSearch:
    """The input and the state of a search.

    Attributes:
        positive: the facts that rules may use.
        negative: the facts at which negated atoms fail.
        rules: the recursive rules of the stratum, if any.
        support: the facts with support of their own.
        checked: facts whose derivations were explored. Those that are not proved have
            only derivations through such facts, and thus none that survives.
        proved: checked facts that hold.
        delayed: facts that hold too, but have not been checked so far.
        region: facts outside of it hold; None if no such facts occur in bodies.
        modules: rules that have algorithms of their own.
        is_watched: whether every round must be reported, and can be stopped.
    """

    positive: Facts
    negative: Facts
    rules: Chaining | None
    support: OwnSupport
    checked: GrowingFacts
    proved: GrowingFacts
    delayed: GrowingFacts
    region: Region | None = None
    modules: Sequence[ProvingModule] = ()
    is_watched: bool = True


@dataclass(slots=True)
class ProofWork:
    """Totals of the work of searches.

    Attributes:
        proved: the number of facts that were proved.
        forward, backward: rule instances matched from body to head and from head to
            body.
        are_compiled: whether compiled code did all of it.
    """

    proved: int = 0
    forward: int = 0
    backward: int = 0
    are_compiled: bool = field(default=True)


def prove(
    engine: Engine,
    search: ProofSearch,
    facts: SettledFacts,
    work: ProofWork,
    on_rounds: OnRounds,
) -> SettledFacts:
    """Search for derivations of facts; return the facts without any.

    A level of the search consists of the body facts of the level before. The search
    ends when there is nothing left to explore or nothing left to prove; in the latter
    case, facts that were only partly explored are removed from `checked` again.
    """
    return _Levels(engine, search, work, on_rounds).check(facts)


class _Levels:
    """A breadth-first search, level by level."""

    def __init__(
        self, engine: Engine, search: ProofSearch, work: ProofWork, on_rounds: OnRounds
    ) -> None:
        self.engine = engine
        self.search = search
        self.work = work
        self.on_rounds = on_rounds
        work.are_compiled = False

    def check(self, batch: SettledFacts) -> SettledFacts:
        engine, search = self.engine, self.search
        visited = engine.growing()
        todo = engine.settle(batch - search.checked)
        unproved = todo
        while not todo.is_empty():
            search.checked.add(todo)
            visited.add(todo)
            self._saturate(todo)
            unproved = engine.settle(unproved - search.proved)
            if unproved.is_empty():
                search.checked.discard(visited - search.proved)
                break
            todo = engine.settle(self._bodies(todo) - search.checked)
        return engine.settle(batch - search.proved)

    def _bodies(self, facts: SettledFacts) -> SettledFacts:
        """Return the body facts in this stratum of instances with these heads."""
        search = self.search
        facts = self.engine.settle(facts - search.proved)
        before = self.engine.matches
        bodies = [module.bodies(facts) for module in search.modules]
        if search.rules is not None:
            views = Views(search.positive, search.negative, facts)
            bodies.append(self.engine.derive(search.rules.backward, views))
        self.work.backward += self.engine.matches - before
        return self._union(bodies)

    def _saturate(self, facts: SettledFacts) -> None:
        """Prove those of the facts that have support of their own, and what follows.

        Afterwards every instance whose body facts of this stratum are all proved has
        its head among the proved or the delayed facts.
        """
        engine, search = self.engine, self.search
        before = engine.matches
        sure: Facts = search.support.ask(facts)
        self.work.backward += engine.matches - before
        if search.region is not None:
            # An atom such as `[?x, ?p, ?y]` also matches facts that the rules of the
            # stratum do not derive; these hold regardless.
            sure |= facts - facts.within(search.region)
        before = engine.matches
        for module in search.modules:
            sure |= module.prove(facts, search.proved)
        candidates = engine.settle((facts & search.delayed) | sure)
        while True:
            delta = engine.settle((candidates & search.checked) - search.proved)
            search.delayed.add(engine.settle(candidates - search.checked))
            if delta.is_empty():
                break
            search.proved.add(delta)
            self.work.proved += delta.size()
            self.on_rounds(Rounds(1, delta.size()))
            candidates = self._following(delta)
        self.work.forward += engine.matches - before

    def _following(self, delta: SettledFacts) -> SettledFacts:
        """Return the facts that follow from newly proved ones in one step."""
        engine, search = self.engine, self.search
        proofs: list[Facts] = []
        if search.modules:
            unproved = engine.settle(search.checked - search.proved)
            proofs += [m.prove(unproved, search.proved) for m in search.modules]
        if search.rules is not None:
            views = Views(search.positive, search.negative, delta, local=search.proved)
            proofs.append(engine.derive(search.rules.delta, views))
        return self._union(proofs)

    def _union(self, sets: Iterable[Facts]) -> SettledFacts:
        total: Facts = self.engine.no_facts()
        for facts in sets:
            total = total | facts
        return self.engine.settle(total)
