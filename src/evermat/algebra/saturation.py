"""Saturation: rules are applied to facts, and to what follows, until nothing is new.

The one loop of all forward algorithms. Materialisation, overdeletion and insertion
differ in what they begin with, in which candidates they admit, in the set that grows,
in the views that rules read, and in whether derivations are counted:

    candidates ← seeds, and the heads of the rules that are applied once
    while some candidates are admitted:
        delta ← the admitted candidates
        candidates ← the heads of the rules applied to delta

`saturate` states it in terms of the other operators of an engine. An engine that has
something better has its own; `tests/algebra/test_saturation.py` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra.engine import Engine
    from evermat.algebra.facts import Counters, Facts, GrowingFacts, SettledFacts
    from evermat.algebra.queries import QuerySet, Views

    OnRounds = Callable[["Rounds"], None]
    """Is called after every round, or after several of them."""


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


class SaturatesInRounds:
    """An engine that saturates as `saturate` says."""

    def saturate(self: Engine, task: Saturation, on_rounds: OnRounds) -> None:
        """Apply rules until no candidate is admitted any more."""
        saturate(self, task, on_rounds)
