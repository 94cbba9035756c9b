"""`auto`: which algorithm for this update, and the statistics that tell.

What updates and materialisations have taught so far: the statistics of `auto`.

All of it is learnt from reports. An observation counts as much as the work that it was
made on, and older ones count less and less.

`auto`: which algorithm for this update?

*Which incremental algorithm?* Counting without recursion, DRed^c with it; B/F^c where
only nonrecursive derivations are counted, and FP-update where no counters are kept: it
does not evaluate rules backwards where that is hard. With modules it is B/F^c where
DRed^c has deleted many facts for a time only, and there are few facts that B/F^c would
have to find proofs for.

*Maintain or start again?* Both are given a price in seconds, from what was observed
when facts were last materialised and when updates were maintained
(`evermat.maintenance.cost_model`):

- starting again copies the explicit facts and matches all rule instances that there
  will be;
- a deletion matches the instances that the deleted facts reach, and then those of them
  once more that hold all the same;
- an insertion matches only new instances, which is less than all; but one by one they
  cost more than in a materialisation.

*Small things are maintained.* Where all instances are matched in no time, there is
nothing to choose.

*When in doubt, try.* Before there is experience with deletions of comparable size,
it is not known how far facts reach: assumptions can be wrong by a large factor.
Starting again is then chosen only where maintaining would cost more even if facts
reached far less than assumed. Otherwise DRed^c begins with a small part of what it has
to delete, and continues with the rest unless the part reaches so far that starting
again is cheaper.

An attempt to maintain is also given up when deleting has cost about half of what
starting again would: facts that come back were deleted before, so adding them costs at
most as much again. It is undone then, everything is derived anew, and what the attempt
taught is kept for the next time. An insertion that is expected to multiply the facts is
given up when it has begun to do so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log, log2
from typing import TYPE_CHECKING, NamedTuple

from evermat.maintenance.algorithms import REMATERIALISE
from evermat.maintenance.counting import Kept
from evermat.maintenance.limits import CostLimit, Forecast

if TYPE_CHECKING:
    from evermat.maintenance.update import Report


_DEEP = 8.0
"""From this many instances per explicit fact on, derivations are taken to be long."""

_SHALLOW_REACH = 1.0
"""Instances a deleted fact reaches, in units of the instances per explicit fact."""

_DEEP_REACH = 70.0
"""The same for long derivations, at most. Measured between 10 (closure of a random
graph) and 300 (points-to analysis)."""

_REACH_GROWTH = 2.7
"""For derivations in between, in units of the instances per explicit fact. Path lengths
in a graph have 12 instances per edge, and single edges reached 100 times as many."""

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
"""Seconds for copying an explicit fact, or for comparing a fact with the new ones,
before they were observed. Measured between 2e-8 and 1e-7."""

_FORGETTING = 0.5
"""How much of the old experience is kept when a new observation comes."""

_TELLING = 20_000
"""Updates with fewer instances tell nothing about the time for one of them."""

_CHANGE = 0.01
"""How the number of instances follows that of explicit facts is seen where at least
this share of the explicit facts changed."""

_STEEPEST = 32.0
"""The highest power of the explicit facts that instances are taken to grow with."""


class Rate(NamedTuple):
    """Something for each unit of work, as observed.

    Attributes:
        total: how much of it there was.
        work: how many units of work it was observed in; 0 if nothing was observed.
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
        explicit: explicit facts that there are now.
        facts: facts that there are now.
        instances: rule instances that a materialisation would match now.
        restarting: seconds for an instance, in materialisations.
        copying: the rest of their time, for a fact: explicit facts are copied, and old
            facts are compared with new ones.
        yielding: derived facts for an instance.
        deleting, inserting: seconds for an instance, in updates that deleted facts and
            in those that did not.
        reaching: how far single deleted facts reach; see `reached`.
        growing: the power of the explicit facts that instances grow with.
    """

    explicit: int = 0
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

    def counted(self, explicit: int, facts: int) -> History:
        """With facts that were added and removed.

        Estimates must not fail an update, so no number becomes negative.
        """
        history = self._replace(
            explicit=max(self.explicit + explicit, 0), facts=max(self.facts + facts, 0)
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
        derived = max(self.facts - self.explicit, 0)
        handled = self.explicit + self.facts
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
            before: facts that there were before, explicit ones counted twice.
        """
        history = self.loaded(instances, deriving)
        handled = max(self.explicit + self.facts, before)
        copying = history.copying.observed(max(seconds - deriving, 0.0), handled)
        return history._replace(copying=copying)

    def maintained(
        self, deletions: int, instances: int, seconds: float, returned: float = 0.5
    ) -> History:
        """With an update that was just maintained.

        Args:
            deletions: explicit facts that it deleted.
            instances: rule instances that it matched.
            seconds: how long it took.
            returned: the share of the deleted facts that were put back.
        """
        is_telling = instances >= _TELLING
        if not deletions:
            inserting = self.inserting
            if is_telling:
                inserting = inserting.observed(seconds, instances)
            return self._replace(
                instances=self.instances + instances, inserting=inserting
            )
        history = self.reached(deletions, instances / (1 + returned))
        if is_telling:
            deleting = self.deleting.observed(seconds, instances)
            history = history._replace(deleting=deleting)
        return history

    def reached(self, deletions: int, instances: float) -> History:
        """With a deletion that took the support from some instances.

        Args:
            deletions: explicit facts that were deleted.
            instances: how many instances they reached; some may have come back.
        """
        if not deletions or not self.instances:
            return self
        share = min(instances / self.instances, 0.99)
        return self._replace(
            reaching=self.reaching.observed(-log(1 - share), deletions)
        )

    def grown_from(self, before: History) -> History:
        """With what the change of explicit facts did to the number of instances."""
        if not (
            before.explicit and self.explicit and before.instances and self.instances
        ):
            return self
        growth = log(self.explicit / before.explicit)
        if abs(growth) < _CHANGE:
            return self
        instances = log(self.instances / before.instances)
        power = min(max(instances / growth, 0.0), _STEEPEST)
        growing = self.growing.observed(power * abs(growth), abs(growth))
        return self._replace(growing=growing)

    # -- what to expect

    def knows(self, deletions: int) -> bool:
        """Return whether there is experience with deletions of comparable size."""
        return self.reaching.work >= _SAMPLE * deletions

    def reach(self, deletions: int, doubt: float = 1.0) -> float:
        """Instances that a deletion takes the support from, perhaps for a time.

        Each fact reaches on average a certain share of all instances, and several facts
        reach partly the same ones. What is assumed counts as one observed fact.

        Args:
            deletions: explicit facts that are deleted.
            doubt: facts may reach further than expected by this factor.
        """
        per_explicit = self.instances / max(self.explicit, 1)
        units = _SHALLOW_REACH
        if per_explicit >= _DEEP:
            units = min(_REACH_GROWTH * per_explicit, _DEEP_REACH)
        assumed = units * per_explicit / max(self.instances, 1.0)
        reach = (self.reaching.total + assumed) / (self.reaching.work + 1)
        return self.instances * (1 - exp(-doubt * reach * deletions))

    def left(self, deletions: int) -> float:
        """Instances that there will be after a deletion.

        The longer derivations are, the fewer of them survive: with f instances for each
        explicit fact, (1 - x)^(1 + log₂ f) of them if the share x of the facts is
        deleted, until the power was observed.
        """
        explicit = max(self.explicit, 1)
        usual = 1 + max(0.0, log2(max(self.instances, 1.0) / explicit))
        remaining = max(0.0, 1 - deletions / explicit)
        return float(self.instances * remaining ** self.growing.value(usual))

    def with_more(self, insertions: int) -> float:
        """Instances predicted for the time after an insertion."""
        factor = (1 + insertions / max(self.explicit, 1)) ** self.growing.value(0.0)
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
    explicit = report.inserted - report.deleted
    facts = report.added - report.removed
    if seconds is None:
        return history.counted(explicit, facts).loaded(instances, deriving)
    if report.algorithm == REMATERIALISE:
        known = history.explicit + history.facts
        new = history.counted(explicit, facts)
        new = new.restarted(instances, deriving, seconds, known)
    else:
        new = history.maintained(report.deleted, instances, seconds, returned(report))
        new = new.counted(explicit, facts)
    if report.removed_rules or report.added_rules:
        return new
    return new.grown_from(history)


def returned(report: Report) -> float:
    """Return the share of the facts that an update deleted for a time only."""
    deleted = sum(each.overdeleted for each in report.strata)
    return max(deleted - report.removed, 0) / deleted if deleted else 0.0


# --------------------------------------------------------------------------- cost model


_DOUBT = 8.0
"""Assumptions may be wrong by this factor, either way."""

_MARGIN = 1.1
"""Prices are not known better than this. Maintaining is preferred where they are about
the same, because it teaches more."""

_MARGIN_FOR_INSERTIONS = 1.12
"""The same for insertions, where there is less to win, and an attempt to lose."""

_PATIENCE = 0.45
"""What deleting may cost, in units of starting again, unless experience says that it
will cost more and still be worth it."""

_EARLY = 0.1
"""What a part of a deletion may cost, in units of starting again, before it is too late
to give up because the part reaches far."""

_EARLY_SECONDS = 0.2
"""The same in seconds, which include the making of plans and of some indexes."""

_BEGINNING = 0.03
"""What an insertion may cost, in units of starting again, before it is believed to
multiply the facts."""

_LITTLE = 10_000.0
"""So many instances are matched in no time. Where there are fewer, facts are always
maintained, and no attempt is abandoned before."""

_MANY_RETURNING = 10_000
"""Fewer facts are deleted and come back in less time than a search takes to begin."""

_SEARCH = 10.0
"""Facts of modules that are deleted and come back in the time that finding a proof for
one takes. Measured between 5 and 15."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What an update looks like before it is done.

    Attributes:
        deletions, insertions: explicit facts that it changes.
        changes_rules: whether rules come or go.
        is_recursive: whether the new program has recursive rules.
        kept: which counters are kept.
        has_lazy_closures: whether there are closures that are not written out.
        returning: facts of modules that the last DRed^c deleted and put back.
        doubtful: facts that modules start from, and that only recursive rules derive.
    """

    deletions: int
    insertions: int
    changes_rules: bool
    is_recursive: bool
    kept: Kept
    has_lazy_closures: bool = False
    returning: int = 0
    doubtful: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm to use, why, and how long to try."""

    algorithm: str
    reason: str
    cost_limit: CostLimit | None = None


def choose(situation: Situation, history: History) -> Choice:
    """Return the algorithm for an update."""
    maintain = incremental(situation)
    changes_much = (
        situation.changes_rules or situation.insertions > 2 * history.explicit
    )
    if changes_much and not history.instances:
        return Choice(REMATERIALISE, "nothing was derived so far")
    if situation.insertions > 2 * history.explicit:
        return Choice(REMATERIALISE, "most of the facts are new")
    if situation.changes_rules:
        allowed = _PATIENCE * restart_price(history.instances, history)
        return replace(maintain, cost_limit=_patience(allowed, history))
    if history.instances < _LITTLE:
        return maintain
    if not situation.deletions:
        return _for_insertion(situation, history, maintain)
    is_known = history.knows(situation.deletions)
    prices = deletion_prices(
        situation.deletions, history, doubt=None if is_known else 1 / _DOUBT
    )
    if prices.maintaining > _MARGIN * prices.restarting:
        return Choice(REMATERIALISE, prices.compared(maintain.algorithm))
    allowed = _PATIENCE * prices.restarting
    if is_known:
        # Deleting is about half of it, and may turn out to be twice as much.
        allowed = max(allowed, prices.maintaining)
        return replace(maintain, cost_limit=_patience(allowed, history))
    forecast = _forecast(situation.deletions, history)
    cost_limit = replace(_patience(allowed, history), forecast=forecast)
    return replace(maintain, cost_limit=cost_limit)


def _for_insertion(situation: Situation, history: History, maintain: Choice) -> Choice:
    """Insertions are maintained, unless nearly all instances will be new."""
    total = history.with_more(situation.insertions)
    new = total - history.instances
    restart = restart_price(total, history)
    if new * history.insertion_speed <= _MARGIN_FOR_INSERTIONS * restart:
        return maintain
    allowed = _BEGINNING * restart
    instances = max(allowed / history.insertion_speed, _LITTLE)
    cost_limit = CostLimit(instances, allowed, is_for_adding=True)
    return replace(maintain, cost_limit=cost_limit)


def incremental(situation: Situation) -> Choice:
    """Return the algorithm to maintain with."""
    if situation.kept is Kept.NONE:
        return Choice("fp", "no counters are kept")
    if situation.returning > max(_SEARCH * situation.doubtful, _MANY_RETURNING):
        return Choice(
            "bf-c",
            f"`dred-c` deleted {situation.returning:,} facts of modules for a time "
            f"only, and {situation.doubtful:,} facts need a proof",
        )
    if situation.is_recursive and situation.kept is Kept.NONRECURSIVE:
        return Choice("bf-c", "some rules are recursive, and one counter is kept")
    if situation.is_recursive:
        return Choice("dred-c", "some rules are recursive")
    if situation.has_lazy_closures:
        return Choice("counting", "no rule is recursive but for lazy closures")
    return Choice("counting", "no rule is recursive")


@dataclass(frozen=True, slots=True)
class Prices:
    """What an update will cost, in seconds, as far as one can tell."""

    maintaining: float
    restarting: float

    def compared(self, algorithm: str) -> str:
        """Both, as text."""
        return (
            f"{self.maintaining:.3g} s or more expected for `{algorithm}`, "
            f"{self.restarting:.3g} s for starting again"
        )


def deletion_prices(
    deletions: int, history: History, doubt: float | None = None
) -> Prices:
    """Return the prices of a deletion.

    Args:
        deletions: explicit facts that are deleted.
        history: what is known.
        doubt: facts may reach further than assumed, by this factor; None if how far
            they reach is known from experience.
    """
    lost = history.instances - history.left(deletions)
    if doubt is None:
        reached = history.reach(deletions)
        lost = min(lost, reached)
    else:
        reached = max(history.reach(deletions, doubt), lost)
    return Prices(
        maintaining=(2 * reached - lost) * history.deletion_speed,
        restarting=restart_price(history.instances - lost, history),
    )


def restart_price(instances: float, history: History) -> float:
    """Seconds that starting again will take, if it matches this many instances."""
    derived = instances * history.yielding.value(0.0)
    facts = max(history.facts, history.explicit + derived)
    copying = (history.explicit + facts) * history.copy_speed
    return instances * history.restart_speed + copying


def _forecast(deletions: int, history: History) -> Forecast | None:
    """When to give a deletion up early; None where it would hardly ever be."""
    worst = deletion_prices(deletions, history, doubt=_DOUBT)
    limit = _MARGIN * worst.restarting
    if worst.maintaining <= limit:
        return None
    lost = history.instances - history.left(deletions)
    return Forecast(
        instances=history.instances,
        facts=history.facts - history.explicit,
        limit=(limit / history.deletion_speed + lost) / 2,
        until=_EARLY * worst.restarting / history.deletion_speed,
        seconds=_EARLY_SECONDS * worst.restarting,
    )


def reason_to_give_up(
    history: History, deletions: int, insertions: int, expected: float
) -> str:
    """Return the reason for abandoning an attempt to maintain, as reports say it.

    Args:
        history: what was known before.
        deletions: explicit facts that the update deletes.
        insertions: explicit facts that it inserts.
        expected: instances that the deletion would have reached.
    """
    if deletions:
        reached = min(expected, history.instances)
        return f"about {reached:,.0f} of {history.instances:,.0f} would be reached"
    total = history.with_more(insertions)
    return f"there were {history.instances:,.0f}, and will be about {total:,.0f}"


def _patience(seconds: float, history: History) -> CostLimit:
    instances = max(seconds / history.deletion_speed, _LITTLE)
    return CostLimit(instances=instances, seconds=seconds)
