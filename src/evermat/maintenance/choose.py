"""`auto`: which algorithm for this update?

*Which incremental algorithm?* Counting without recursion, DRed^c with it, and FP-update
where no counters are kept: it never evaluates a rule backwards for many facts. With
modules it is B/F^c where DRed^c has deleted many facts for a time only, and there are
few facts that B/F^c would have to find proofs for.

*Maintain or start again?* Both are given a price in seconds, from what was observed
when facts were last materialised and when updates were maintained:

- starting again copies the given facts and matches all rule instances there are: as
  many as the last time, those that insertions added, and fewer in proportion to facts
  that were deleted since. The longer derivations are, the fewer of them survive a
  deletion: with f instances per given fact, (1 − x)^(1 + log₂ f) of them if the share
  x of the facts is deleted;
- an insertion matches only new instances, so it is always maintained, unless most of
  the facts are new;
- a deletion reaches on average a certain share of all instances with each fact, and
  several facts reach partly the same ones: n facts reach 1 − e^(−reach · n) of them.
  The reach is learnt from every update that deletes something, large ones counting
  more. Before that it is assumed from the number of instances per given fact: where
  there are few, derivations are short; where there are many, they are long.

*When in doubt, maintain.* Assumptions can be wrong by a large factor. Without any
experience of comparable size, starting again is chosen only where maintaining would
cost more even if facts reached far less than assumed: who never tries never learns.

An attempt to maintain is given up when deleting has cost about half of what starting
again would: facts that come back were deleted before, so adding them costs at most as
much again. It is undone then, everything is derived anew, and what the attempt taught
is kept for the next time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log, log2
from typing import TYPE_CHECKING

from evermat.maintenance.algorithms import REMATERIALISE
from evermat.maintenance.watch import Patience

if TYPE_CHECKING:
    from evermat.maintenance.state import Report

_DEEP = 8.0
"""From this many instances per given fact on, derivations are taken to be long."""

_SHALLOW_REACH = 1.5
"""Instances a deleted fact reaches, in units of the instances per given fact."""

_DEEP_REACH = 100.0
"""The same for long derivations, at most. Measured between 16 (closure of a random
graph) and 400 (points-to analysis)."""

_REACH_GROWTH = 4.0
"""For derivations in between, in units of the instances per given fact. Path lengths in
a graph have 12 instances per edge, and single edges reached 150 times as many."""

_MOST = 1.5
"""An update matches at most so many times all instances: most of them are lost first,
and then some are found again."""

_DOUBT = 8.0
"""Assumptions may be wrong by this factor, either way."""

_SAMPLE = 0.1
"""Experience with this share of as many facts as are deleted is comparable."""

_SLOWEST = 4.0
"""Matching an instance in a deletion takes at most so many times as long as when
starting again, and at least a fraction of it: what was measured otherwise was other
work on the machine."""

_MARGIN = 1.1
"""Prices are not known better than this. Maintaining is preferred where they are about
the same, because it teaches more."""

_PATIENCE = 0.45
"""What deleting may cost, in units of starting again, unless experience says that it
will cost more and still be worth it."""

_DELETING = 0.75
"""The part of maintaining that is spent on deleting, at most, if nothing unexpected
happens. Measured between 0.4 and 0.6."""

_UNFINISHED = 4
"""A deletion that was given up would have cost so many times as much: the rest of it as
long again, and then as much to bring facts back."""

_COPYING = 8e-8
"""Seconds for copying a given fact, or for comparing a fact with the new ones, before
they were observed. Measured between 5e-8 and 1e-7."""

_SEARCH = 10.0
"""Facts of modules that are deleted and come back in the time that finding a proof for
one takes. Measured between 5 and 15."""

_FORGETTING = 0.5
"""How much of the old experience is kept when a new observation comes."""

_TELLING = 20_000
"""Updates with fewer instances tell nothing about the time for one of them."""


@dataclass(frozen=True, slots=True)
class History:
    """What is known from earlier runs; a new one is made after each.

    Attributes:
        given: given facts that there are now.
        facts: facts that there are now.
        instances: rule instances that a materialisation would match now.
        restart_seconds: time for an instance, when last materialised.
        copy_seconds: the rest of the time, for a fact, when last materialised: given
            facts are copied, and old facts are compared with new ones.
        deletion_seconds: time for an instance in updates that deleted facts.
        reach: sum of observed reaches, each times the number of deleted facts.
        reach_weight: sum of these numbers.
    """

    given: int = 0
    facts: int = 0
    instances: float = 0.0
    restart_seconds: float = 0.0
    copy_seconds: float = 0.0
    deletion_seconds: float = 0.0
    reach: float = 0.0
    reach_weight: float = 0.0

    def counted(self, given: int, facts: int) -> History:
        """With facts that came and went."""
        history = replace(self, given=self.given + given, facts=self.facts + facts)
        if facts < 0 and self.facts:
            left = history.instances * history.facts / self.facts
            history = replace(history, instances=left)
        return history

    def loaded(self, instances: int, deriving: float) -> History:
        """With a first materialisation, whose derivations took some seconds."""
        copying = _COPYING * (self.given + self.facts)
        return self.restarted(instances, deriving, deriving + copying)

    def restarted(
        self, instances: int, deriving: float, seconds: float, before: int = 0
    ) -> History:
        """With a materialisation that was just done.

        Args:
            instances: rule instances that it matched.
            deriving: the seconds that this took.
            seconds: all in all.
            before: facts that there were before, given ones counted twice.
        """
        if not instances:
            return replace(self, instances=0.0)
        return replace(
            self,
            instances=float(instances),
            restart_seconds=deriving / instances,
            copy_seconds=max(seconds - deriving, 0.0)
            / max(self.given + self.facts, before, 1),
        )

    def maintained(self, withdrawn: int, instances: int, seconds: float) -> History:
        """With an update that was just maintained."""
        if not withdrawn:
            return replace(self, instances=self.instances + instances)
        history = _with_reach(self, withdrawn, instances)
        if instances >= _TELLING:
            speed = seconds / instances
            old = self.deletion_seconds or speed
            history = replace(
                history, deletion_seconds=_FORGETTING * old + (1 - _FORGETTING) * speed
            )
        return history

    def gave_up(self, withdrawn: int, instances: int) -> History:
        """With an attempt that was given up."""
        return _with_reach(self, withdrawn, _UNFINISHED * instances)

    def knows(self, withdrawn: int) -> bool:
        """Whether there is experience with deletions of comparable size."""
        return self.reach_weight >= _SAMPLE * withdrawn

    @property
    def expected_reach(self) -> float:
        """The reach of a fact, from experience; assumptions count as one fact."""
        per_given = self.instances / max(self.given, 1)
        units = _SHALLOW_REACH
        if per_given >= _DEEP:
            units = min(_REACH_GROWTH * per_given, _DEEP_REACH)
        assumed = units * per_given / (_MOST * self.instances)
        return (self.reach + assumed) / (self.reach_weight + 1)

    @property
    def speed(self) -> float:
        """Seconds for an instance in a deletion."""
        usual = self.restart_seconds
        seconds = self.deletion_seconds or usual
        return min(max(seconds, usual / _SLOWEST), usual * _SLOWEST)


def _with_reach(history: History, withdrawn: int, instances: float) -> History:
    """With a deletion of some facts that reached some instances."""
    if not withdrawn or not history.instances:
        return history
    share = min(instances / (_MOST * history.instances), 0.99)
    return replace(
        history,
        reach=_FORGETTING * history.reach - log(1 - share),
        reach_weight=_FORGETTING * history.reach_weight + withdrawn,
    )


def learnt(history: History, report: Report, seconds: float | None) -> History:
    """What is known after an update.

    Args:
        history: what was known before.
        report: what the update did.
        seconds: how long its work took; None if it loaded the first facts, where
            reading them takes most of the time.
    """
    instances = report.forward_instances + report.backward_instances
    deriving = sum(sum(each.seconds.values()) for each in report.strata)
    before = history.given + history.facts
    history = history.counted(
        given=report.inserted - report.deleted, facts=report.added - report.removed
    )
    if seconds is None:
        return history.loaded(instances, deriving)
    if report.algorithm == REMATERIALISE:
        return history.restarted(instances, deriving, seconds, before)
    return history.maintained(report.deleted, instances, seconds)


@dataclass(frozen=True, slots=True)
class Situation:
    """What an update looks like before it is done.

    Attributes:
        withdrawn, given: given facts that it changes.
        changes_rules: whether rules come or go.
        is_recursive: whether the new program has recursive rules.
        has_counters: whether counts are kept.
        holds_closures: whether there are closures that are not written out.
        returning: facts of modules that the last DRed^c deleted, and that came back.
        doubtful: facts that modules start from, and that only recursive rules derive.
    """

    withdrawn: int
    given: int
    changes_rules: bool
    is_recursive: bool
    has_counters: bool
    holds_closures: bool = False
    returning: int = 0
    doubtful: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm to use, why, and how long to try."""

    algorithm: str
    reason: str
    patience: Patience | None = None


def choose(situation: Situation, history: History) -> Choice:
    """The algorithm for an update."""
    maintain = incremental(situation)
    changes_much = situation.changes_rules or situation.given > 2 * history.given
    if changes_much and not history.instances:
        return Choice(REMATERIALISE, "nothing was derived so far")
    if situation.given > 2 * history.given:
        return Choice(REMATERIALISE, "most of the facts are new")
    if situation.changes_rules:
        allowed = _PATIENCE * restart_price(0, history)
        return replace(maintain, patience=_patience(allowed, history))
    if not situation.withdrawn or not history.instances:
        return maintain
    is_known = history.knows(situation.withdrawn)
    doubt = 1.0 if is_known else 1 / _DOUBT
    price = maintenance_price(situation.withdrawn, history, doubt)
    restart = restart_price(situation.withdrawn, history)
    if price > _MARGIN * restart:
        return Choice(
            REMATERIALISE,
            f"{price:.3g} s or more expected for `{maintain.algorithm}`, "
            f"{restart:.3g} s for starting again",
        )
    allowed = _PATIENCE * restart
    if is_known:
        allowed = max(allowed, _DELETING * price)
    return replace(maintain, patience=_patience(allowed, history))


def incremental(situation: Situation) -> Choice:
    """The algorithm to maintain with."""
    if not situation.has_counters:
        return Choice("fp", "no counters are kept")
    if situation.returning > _SEARCH * situation.doubtful:
        return Choice(
            "bf-c",
            f"`dred-c` deleted {situation.returning:,} facts of modules for a time "
            f"only, and {situation.doubtful:,} facts need a proof",
        )
    if situation.is_recursive:
        return Choice("dred-c", "some rules are recursive")
    if situation.holds_closures:
        return Choice("counting", "no rule is recursive but for closures that are held")
    return Choice("counting", "no rule is recursive")


def maintenance_price(withdrawn: int, history: History, doubt: float = 1.0) -> float:
    """Seconds that maintaining a deletion will take, as far as one can tell.

    Facts may reach further than expected, by a factor that `doubt` says.
    """
    reach = doubt * history.expected_reach
    instances = _MOST * history.instances * (1 - exp(-reach * withdrawn))
    return instances * history.speed


def restart_price(withdrawn: int, history: History) -> float:
    """Seconds that starting again after a deletion will take."""
    given = max(history.given, 1)
    length = 1 + max(0.0, log2(max(history.instances, 1.0) / given))
    left = max(0.0, 1 - withdrawn / given)
    deriving = history.instances * history.restart_seconds * left**length
    return float(deriving + (given + history.facts) * history.copy_seconds)


def _patience(seconds: float, history: History) -> Patience:
    instances = seconds / history.speed if history.speed else 0.0
    return Patience(instances=instances, seconds=seconds)
