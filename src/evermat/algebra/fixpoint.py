"""The two fixpoint operators, saturation and proving, in terms of the other operators.

Saturation: rules are applied to facts, and to what follows, until nothing is new.

The one loop of all forward algorithms. Materialisation, overdeletion and insertion
differ in what they begin with, in which candidates they admit, in the set that grows,
in the views that rules read, and in whether derivations are counted:

    candidates ← seeds, and the heads of the rules that are applied once
    while some candidates are admitted:
        delta ← the admitted candidates
        candidates ← the heads of the rules applied to delta

`saturate` states it in terms of the other operators of an engine. An engine that has
something better has its own; `tests/algebra/test_saturation.py` compares the two.

Proving: which facts have a derivation that survives, found by backward chaining.

The other loop beside saturation, which B/F and B/F^c are made of. Facts are
*checked*: those that hold by themselves are *proved*, and what follows from proved
facts that were checked, too. From the others, rules lead back to facts they may follow
from, which are checked in turn.

`prove` states it in terms of the other operators of an engine, for a batch of facts,
one level of the search at a time: what a distributed engine does best. An engine may
search depth first, one fact at a time, and leave a fact as soon as it is proved, as
function CHECK of [hu2018] does; it then matches far fewer rule instances.
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

    "Is called after every round, or after several of them."


class Rounds(NamedTuple):
    """Rounds that are over.

    Attributes:
        number: how many.
        facts: how many facts they admitted.
        are_compiled: whether compiled code ran them from one to the next.
    """

    number: int
    facts: int
    are_compiled: bool = False


@dataclass(frozen=True, slots=True)
class Application:
    """Rules to be applied.

    Attributes:
        queries: the rules.
        views: what they read.
        counters: where the derivations of each head are counted, if anywhere.
    """

    queries: QuerySet
    views: Views
    counters: Counters | None = None


@dataclass(frozen=True, slots=True)
class Saturation:
    """What to saturate, and how.

    Attributes:
        seeds: the first candidates.
        into: the set that grows by the admitted facts.
        unless: candidates in this view are not admitted; it must contain `into`.
        first: rules that are applied once, at the beginning: their heads are
            candidates as well.
        step: rules that are applied to the admitted facts of each round, which they
            read as a positive change; without them there is one round.
        is_deletion: whether derivations are subtracted from counters instead of added.
        enters_first: whether admitted facts join `into` before the rules are applied to
            them, and not after. Where the rules read what is not in `into`, facts must
            join it afterwards: an instance may use two facts of the same round.
        zero: only candidates with the count zero are admitted.
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
    """Apply rules until no candidate is admitted any more."""
    candidates: SettledFacts | None = apply_first(engine, task)
    while candidates is not None:
        candidates = apply_round(engine, task, candidates, on_rounds)


def apply_first(engine: Engine, task: Saturation) -> SettledFacts:
    """The first candidates, when the rules for the beginning have been applied."""
    candidates: Facts = task.seeds
    for application in task.first:
        candidates |= apply_rules(engine, task, application)
    return engine.settle(candidates)


def apply_round(
    engine: Engine, task: Saturation, candidates: SettledFacts, on_rounds: OnRounds
) -> SettledFacts | None:
    """Admit candidates and apply rules to them; the next ones, or None at the end."""
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
    """Apply the rules to the facts of a round; returns the next candidates."""
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
    """Apply rules, and count their derivations if that is wanted; returns the heads."""
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
    """Rules, as queries for both directions; see `rule_plans.RuleSet`."""

    @property
    def delta(self) -> QuerySet:
        """The instances that touch a change, each exactly once."""

    @property
    def backward(self) -> QuerySet:
        """For the instances whose head is a changed fact: their local body facts."""

    @property
    def rederive(self) -> QuerySet:
        """The instances whose head is one of the changed facts."""


class ProvingModule(Protocol):
    """Rules with an algorithm of their own that takes part in a search."""

    def bodies(self, facts: SettledFacts) -> Facts:
        """Facts that the facts may follow from by these rules."""

    def prove(self, facts: SettledFacts, proved: Facts) -> Facts:
        """Those of the facts that surely hold, or follow from proved ones."""


@dataclass(frozen=True, slots=True)
class OwnSupport:
    """Which facts hold by themselves: without facts of the stratum.

    They have a count, if counts are kept. Otherwise they are explicit, or rules derive
    them from lower strata.

    Attributes:
        counter: the counts.
        explicit: the explicit facts.
        rules: for heads of nonrecursive rules.
        ask: works it out by operators.
    """

    ask: Callable[[SettledFacts], Facts]
    counter: Counters | None = None
    explicit: Facts | None = None
    rules: QuerySet | None = None


@dataclass(frozen=True, slots=True)
class ProofSearch:
    """What to search in, and what is known so far.

    Attributes:
        positive: the facts that rules may use.
        negative: the facts at which negated atoms fail.
        rules: the recursive rules of the stratum, if any.
        support: which facts hold by themselves.
        checked: facts whose derivations were looked into. Those that are not proved
            have only derivations through such facts, so none.
        proved: checked facts that hold.
        delayed: facts that hold too, but were not asked about so far.
        region: facts outside of it hold; None if there are no such facts in bodies.
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
    """What a search was, to be added up.

    Attributes:
        proved: facts that were proved.
        forward, backward: rule instances matched from body to head, and the other way.
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
    """Search for derivations of facts; returns those that have none.

    A level of the search holds the body facts of the level before. The search ends when
    there is nothing left to look into, or nothing left to prove; in the latter case the
    facts that were not looked into thoroughly are forgotten again.
    """
    return _Levels(engine, search, work, on_rounds).check(facts)


class _Levels:
    """A search by levels."""

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
        """Body facts that atoms of the stratum match in instances with these heads."""
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
        """Prove those of the facts that hold by themselves, and what follows.

        Afterwards every instance with all its body facts of this stratum among the
        proved ones has its head among the proved or the delayed facts.
        """
        engine, search = self.engine, self.search
        before = engine.matches
        sure: Facts = search.support.ask(facts)
        self.work.backward += engine.matches - before
        if search.region is not None:
            # Facts that the stratum's rules do not derive are body facts all the same
            # where an atom such as `[?x, ?p, ?y]` matches them; these stay.
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
        """What follows from newly proved facts by one more step."""
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
