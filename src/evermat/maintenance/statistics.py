"""What updates and materialisations have taught so far: the statistics of `auto`.

All of it is learnt from reports. An observation counts as much as the work that it was
made on, and older ones count less and less.
"""

from __future__ import annotations

from math import exp, log, log2
from typing import TYPE_CHECKING, NamedTuple

from evermat.maintenance.algorithms import REMATERIALISE

if TYPE_CHECKING:
    from evermat.maintenance.updates import Report

_DEEP = 8.0
"""From this many instances per given fact on, derivations are taken to be long."""

_SHALLOW_REACH = 1.0
"""Instances a deleted fact reaches, in units of the instances per given fact."""

_DEEP_REACH = 70.0
"""The same for long derivations, at most. Measured between 10 (closure of a random
graph) and 300 (points-to analysis)."""

_REACH_GROWTH = 2.7
"""For derivations in between, in units of the instances per given fact. Path lengths in
a graph have 12 instances per edge, and single edges reached 100 times as many."""

_SAMPLE = 0.1
"""Experience with this share of as many facts as are deleted is comparable."""

_STEPWISE = 1.15
"""Matching an instance in an update, in units of matching it when starting again: rules
are applied round by round, to sets that have grown and shrunk."""

_SLOWEST = 4.0
"""It takes at most so many times as long as thought before, and at least a fraction of
it: what was measured otherwise was other work on the machine."""

_MATCHING = 3e-8
"""Seconds for an instance, before they were observed. Measured: 1e-8 to 7e-8."""

_COPYING = 8e-8
"""Seconds for copying a given fact, or for comparing a fact with the new ones, before
they were observed. Measured between 2e-8 and 1e-7."""

_FORGETTING = 0.5
"""How much of the old experience is kept when a new observation comes."""

_TELLING = 20_000
"""Updates with fewer instances tell nothing about the time for one of them."""

_CHANGE = 0.01
"""How the number of instances follows that of given facts is seen where at least this
share of the given facts came or went."""

_STEEPEST = 32.0
"""The highest power of the given facts that instances are taken to grow with."""


class Rate(NamedTuple):
    """Something for each unit of work, as observed.

    Attributes:
        total: how much of it there was.
        work: how many units of work that came from; 0 if nothing was observed.
    """

    total: float = 0.0
    work: float = 0.0

    def observed(self, total: float, work: float) -> Rate:
        """With one more observation."""
        return Rate(_FORGETTING * self.total + total, _FORGETTING * self.work + work)

    def value(self, otherwise: float) -> float:
        """How much there is for a unit, or what else it is taken to be."""
        return self.total / self.work if self.work else otherwise


class History(NamedTuple):
    """What is known from earlier runs; a new one is made after each.

    Attributes:
        given: given facts that there are now.
        facts: facts that there are now.
        instances: rule instances that a materialisation would match now.
        restarting: seconds for an instance, in materialisations.
        copying: the rest of their time, for a fact: given facts are copied, and old
            facts are compared with new ones.
        yielding: derived facts for an instance.
        deleting, inserting: seconds for an instance, in updates that deleted facts and
            in those that did not.
        reaching: how far single deleted facts reach; see `reached`.
        growing: the power of the given facts that instances grow with.
    """

    given: int = 0
    facts: int = 0
    instances: float = 0.0
    restarting: Rate = Rate()
    copying: Rate = Rate()
    yielding: Rate = Rate()
    deleting: Rate = Rate()
    inserting: Rate = Rate()
    reaching: Rate = Rate()
    growing: Rate = Rate()

    # -- with one more observation

    def counted(self, given: int, facts: int) -> History:
        """With facts that were added and removed.

        Estimates must not fail an update, so no number becomes negative.
        """
        history = self._replace(
            given=max(self.given + given, 0), facts=max(self.facts + facts, 0)
        )
        if facts < 0 and self.facts:
            left = history.instances * history.facts / self.facts
            history = history._replace(instances=left)
        return history

    def loaded(self, instances: int, deriving: float) -> History:
        """With a materialisation, whose derivations took some seconds.

        What copying costs is assumed before it is observed for the first time.
        """
        if not instances:
            return self._replace(instances=0.0)
        derived = max(self.facts - self.given, 0)
        handled = self.given + self.facts
        return self._replace(
            instances=float(instances),
            copying=self.copying
            if self.copying.work
            else Rate(_COPYING * handled, handled),
            restarting=self.restarting.observed(deriving, instances),
            yielding=self.yielding.observed(derived, instances),
        )

    def restarted(
        self, instances: int, deriving: float, seconds: float, before: int = 0
    ) -> History:
        """With a materialisation that took the place of another.

        Args:
            instances: rule instances that it matched.
            deriving: the seconds that this took.
            seconds: all in all.
            before: facts that there were before, given ones counted twice.
        """
        history = self.loaded(instances, deriving)
        handled = max(self.given + self.facts, before)
        copying = history.copying.observed(max(seconds - deriving, 0.0), handled)
        return history._replace(copying=copying)

    def maintained(
        self, withdrawn: int, instances: int, seconds: float, returned: float = 0.5
    ) -> History:
        """With an update that was just maintained.

        Args:
            withdrawn: given facts that it deleted.
            instances: rule instances that it matched.
            seconds: how long it took.
            returned: the share of the deleted facts that came back.
        """
        is_telling = instances >= _TELLING
        if not withdrawn:
            inserting = self.inserting
            if is_telling:
                inserting = inserting.observed(seconds, instances)
            return self._replace(
                instances=self.instances + instances, inserting=inserting
            )
        history = self.reached(withdrawn, instances / (1 + returned))
        if is_telling:
            deleting = self.deleting.observed(seconds, instances)
            history = history._replace(deleting=deleting)
        return history

    def reached(self, withdrawn: int, instances: float) -> History:
        """With a deletion that took the support from some instances.

        Args:
            withdrawn: given facts that were deleted.
            instances: how many instances they reached; some may have come back.
        """
        if not withdrawn or not self.instances:
            return self
        share = min(instances / self.instances, 0.99)
        return self._replace(
            reaching=self.reaching.observed(-log(1 - share), withdrawn)
        )

    def grown_from(self, before: History) -> History:
        """With what the change of given facts did to the number of instances."""
        if not (before.given and self.given and before.instances and self.instances):
            return self
        given = log(self.given / before.given)
        if abs(given) < _CHANGE:
            return self
        instances = log(self.instances / before.instances)
        power = min(max(instances / given, 0.0), _STEEPEST)
        growing = self.growing.observed(power * abs(given), abs(given))
        return self._replace(growing=growing)

    # -- what to expect

    def knows(self, withdrawn: int) -> bool:
        """Whether there is experience with deletions of comparable size."""
        return self.reaching.work >= _SAMPLE * withdrawn

    def reach(self, withdrawn: int, doubt: float = 1.0) -> float:
        """Instances that a deletion takes the support from, perhaps for a time.

        Each fact reaches on average a certain share of all instances, and several facts
        reach partly the same ones. What is assumed counts as one observed fact.

        Args:
            withdrawn: given facts that are deleted.
            doubt: facts may reach further than expected by this factor.
        """
        per_given = self.instances / max(self.given, 1)
        units = _SHALLOW_REACH
        if per_given >= _DEEP:
            units = min(_REACH_GROWTH * per_given, _DEEP_REACH)
        assumed = units * per_given / max(self.instances, 1.0)
        reach = (self.reaching.total + assumed) / (self.reaching.work + 1)
        return self.instances * (1 - exp(-doubt * reach * withdrawn))

    def left(self, withdrawn: int) -> float:
        """Instances that there will be after a deletion.

        The longer derivations are, the fewer of them survive: with f instances for each
        given fact, (1 - x)^(1 + log₂ f) of them if the share x of the facts is deleted,
        until the power was observed.
        """
        given = max(self.given, 1)
        usual = 1 + max(0.0, log2(max(self.instances, 1.0) / given))
        remaining = max(0.0, 1 - withdrawn / given)
        return float(self.instances * remaining ** self.growing.value(usual))

    def with_more(self, given: int) -> float:
        """Instances that there will be after an insertion, if that can be told."""
        factor = (1 + given / max(self.given, 1)) ** self.growing.value(0.0)
        return float(self.instances * factor)

    @property
    def restart_speed(self) -> float:
        """Seconds for an instance in a materialisation."""
        return self.restarting.value(_MATCHING)

    @property
    def copy_speed(self) -> float:
        """Seconds for copying a fact, or comparing it with others."""
        return self.copying.value(_COPYING)

    @property
    def deletion_speed(self) -> float:
        """Seconds for an instance in a deletion."""
        return self._speed(self.deleting)

    @property
    def insertion_speed(self) -> float:
        """Seconds for an instance in an insertion."""
        return self._speed(self.inserting)

    def _speed(self, observed: Rate) -> float:
        """Instances have to be matched, and some yield facts to be put somewhere."""
        storing = self.copy_speed * self.yielding.value(0.0)
        usual = _STEPWISE * self.restart_speed + storing
        seconds = observed.value(usual)
        return min(max(seconds, usual / _SLOWEST), usual * _SLOWEST)


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
    given = report.inserted - report.deleted
    facts = report.added - report.removed
    if seconds is None:
        return history.counted(given, facts).loaded(instances, deriving)
    if report.algorithm == REMATERIALISE:
        known = history.given + history.facts
        new = history.counted(given, facts)
        new = new.restarted(instances, deriving, seconds, known)
    else:
        new = history.maintained(report.deleted, instances, seconds, returned(report))
        new = new.counted(given, facts)
    if report.removed_rules or report.added_rules:
        return new
    return new.grown_from(history)


def returned(report: Report) -> float:
    """The share of the facts that an update deleted for a time only."""
    deleted = sum(each.overdeleted for each in report.strata)
    return max(deleted - report.removed, 0) / deleted if deleted else 0.0
