"""`auto`: the choice of an algorithm for each update, and its statistics.

The statistics are learnt from reports. An observation is weighted by the work that it
was made on, and older observations are discounted.

*Which incremental algorithm?* Counting without recursion, and DRed^c with it; B/F^c if
only nonrecursive derivations are counted, and FP-update without counters: it avoids
evaluating rules backwards where that is hard. With modules it is B/F^c if DRed^c has
temporarily deleted many facts, and there are few facts for which B/F^c would have to
find proofs.

*Maintain or rematerialise?* Both are given a price in seconds, based on observed
materialisations and updates:

- a rematerialisation copies the explicit facts and matches all rule instances of the
  new materialisation;
- a deletion matches the instances that the deleted facts reach, and then those that
  survive once more;
- an insertion matches only new instances, which are fewer than all instances, but each
  costs more than in a materialisation.

*Small programs are always maintained.* If all instances are matched in no time, there
is nothing to choose.

*When in doubt, try.* Before a deletion of comparable size has been observed, the reach
of facts is unknown: assumptions can be wrong by a large factor. Rematerialisation is
then chosen only if maintenance would cost more even if facts reached far less than
assumed. Otherwise DRed^c first deletes a small part of the facts, and continues with
the rest unless the part reaches so far that rematerialisation is cheaper.

*Search before rematerialising for few facts.* DRed^c may delete most facts and add them
again although nearly nothing changes, as in points-to analysis, where each fact has
many derivations. So before few deleted facts cause a rematerialisation, B/F^c searches
for other proofs, at a fraction of the price. After each search that was abandoned,
twice as many deletions pass before the next one.

An attempt to maintain is also abandoned when deleting has cost about half as much as
rematerialisation would: facts that are rederived were deleted before, so adding them
costs at most as much again. The attempt is then undone, everything is materialised
again, and the statistics of the attempt are kept. An insertion that is expected to
multiply the facts is abandoned when it has begun to do so.
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
"""The ratio of instances to explicit facts from which derivations count as long."""

_SHALLOW_REACH = 1.0
"""The instances that a deleted fact reaches, per instance per explicit fact."""

_DEEP_REACH = 70.0
"""The same for long derivations, at most. Measured between 10 (closure of a random
graph) and 300 (points-to analysis)."""

_REACH_GROWTH = 2.7
"""The same for derivations of medium length. Path lengths in a graph have 12 instances
per edge, and single edges reached 100 times as many."""

_SAMPLE = 0.1
"""A deletion is comparable to observed ones of at least this share of its size."""

_STEPWISE = 1.15
"""The cost of matching an instance in an update, relative to rematerialisation: rules
are applied round by round, to sets that have grown and shrunk."""

_SLOWEST = 4.0
"""The most by which an observed time may exceed the expected one, or fall below it:
larger deviations are due to other load on the machine."""

_MATCHING = 3e-8
"""The assumed seconds per instance. Measured: 1e-8 to 7e-8."""

_COPYING = 8e-8
"""The assumed seconds for copying an explicit fact, or for comparing an old fact with
the new ones. Measured between 2e-8 and 1e-7."""

_PART = 6e-5
"""The seconds of a materialisation per stratum and relation, and those for copying and
comparing a relation, with almost no facts. Measured: 5e-5 to 1e-4."""

_MOST_STANDING = 0.8
"""The largest share of the time of a materialisation that is assumed not to depend on
the facts."""

_FORGETTING = 0.5
"""The weight of earlier observations when a new one is added."""

_TELLING = 20_000
"""The least number of instances of an update that is used to measure their time."""

_CHANGE = 0.01
"""The least share of changed explicit facts from which the growth of instances with
explicit facts is measured."""

_STEEPEST = 32.0
"""The highest power of the explicit facts by which instances are assumed to grow."""


class Rate(NamedTuple):
    """An observed rate: an amount per unit of work.

    Attributes:
        total: the amount.
        work: the units of work it was observed in; 0 without observations.
    """

    total: float = 0.0
    work: float = 0.0

    def observed(self, total: float, work: float) -> Rate:
        """Return the rate with one more observation."""
        return Rate(_FORGETTING * self.total + total, _FORGETTING * self.work + work)

    def value(self, otherwise: float) -> float:
        """Return the rate, or the given default without observations."""
        return self.total / self.work if self.work else otherwise


class History(NamedTuple):
    """The statistics of earlier runs; each run creates a new object.

    Attributes:
        explicit: the current number of explicit facts.
        facts: the current number of facts.
        instances: the rule instances that a materialisation would match now.
        restarting: seconds per instance, in materialisations.
        copying: the rest of their time, per fact: explicit facts are copied, and old
            facts are compared with new ones.
        yielding: derived facts per instance.
        deleting, inserting: seconds per instance, in updates that deleted facts and
            in those that did not.
        reaching: the reach of single deleted facts; see `reached`.
        growing: the power of the explicit facts by which instances grow.
        standing: the seconds of a materialisation that do not depend on the facts.
        relations: the number of relations.
        failed_searches: the searches in a row that were abandoned.
        pause: the deletions to come before which no search is tried.
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
    standing: float = 0.0
    relations: int = 0
    failed_searches: int = 0
    pause: int = 0

    # -- adding observations

    def counted(self, explicit: int, facts: int) -> History:
        """Return the statistics after adding (or, if negative, removing) facts.

        Estimates must not make an update fail, so no number becomes negative.
        """
        history = self._replace(
            explicit=max(self.explicit + explicit, 0), facts=max(self.facts + facts, 0)
        )
        if facts < 0 and self.facts:
            left = history.instances * history.facts / self.facts
            history = history._replace(instances=left)
        return history

    def loaded(
        self, instances: int, deriving: float, strata: int = 1, relations: int = 0
    ) -> History:
        """Return the statistics after a materialisation that took some seconds.

        The cost of copying is assumed until it is observed for the first time.
        """
        if not instances:
            return self._replace(instances=0.0)
        derived = max(self.facts - self.explicit, 0)
        handled = self.explicit + self.facts
        standing = min(_PART * (strata + relations), _MOST_STANDING * deriving)
        return self._replace(
            instances=float(instances),
            standing=standing,
            relations=relations,
            copying=self.copying
            if self.copying.work
            else Rate(_COPYING * handled, handled),
            restarting=self.restarting.observed(deriving - standing, instances),
            yielding=self.yielding.observed(derived, instances),
        )

    def restarted(
        self,
        instances: int,
        deriving: float,
        seconds: float,
        before: int = 0,
        strata: int = 1,
        relations: int = 0,
    ) -> History:
        """Return the statistics after a rematerialisation.

        Args:
            instances: the rule instances that it matched.
            deriving: the seconds for matching them.
            seconds: the seconds in all.
            before: the number of facts before, with explicit ones counted twice.
            strata: the number of its strata.
            relations: the number of relations.
        """
        history = self.loaded(instances, deriving, strata, relations)
        handled = max(self.explicit + self.facts, before)
        rest = max(seconds - deriving - _PART * relations, 0.0)
        copying = history.copying.observed(rest, handled)
        return history._replace(copying=copying)

    def maintained(
        self, deletions: int, instances: int, seconds: float, returned: float = 0.5
    ) -> History:
        """Return the statistics after an update by maintenance.

        Args:
            deletions: the number of explicit facts that it deleted.
            instances: the rule instances that it matched.
            seconds: the seconds that it took.
            returned: the share of the deleted facts that were added again.
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
        """Return the statistics after a deletion that reached some instances.

        Args:
            deletions: the number of explicit facts that were deleted.
            instances: the instances that lost support, perhaps temporarily.
        """
        if not deletions or not self.instances:
            return self
        share = min(instances / self.instances, 0.99)
        return self._replace(
            reaching=self.reaching.observed(-log(1 - share), deletions)
        )

    def without_search(self) -> History:
        """Return the statistics after a search for proofs that was abandoned."""
        failed = min(self.failed_searches + 1, _MOST_FAILED)
        return self._replace(failed_searches=failed, pause=1 << failed)

    def grown_from(self, before: History) -> History:
        """Return the statistics with the observed growth of instances."""
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

    # -- predictions

    def knows(self, deletions: int) -> bool:
        """Return whether a deletion of comparable size has been observed."""
        return self.reaching.work >= _SAMPLE * deletions

    def reach(self, deletions: int, doubt: float = 1.0) -> float:
        """Return the instances that lose support by a deletion, perhaps temporarily.

        Each fact reaches on average a certain share of all instances, and the instances
        that several facts reach overlap. The assumption counts as one observed fact.

        Args:
            deletions: the number of explicit facts to delete.
            doubt: the factor by which facts may reach further than expected.
        """
        per_explicit = self.instances / max(self.explicit, 1)
        units = _SHALLOW_REACH
        if per_explicit >= _DEEP:
            units = min(_REACH_GROWTH * per_explicit, _DEEP_REACH)
        assumed = units * per_explicit / max(self.instances, 1.0)
        reach = (self.reaching.total + assumed) / (self.reaching.work + 1)
        return self.instances * (1 - exp(-doubt * reach * deletions))

    def left(self, deletions: int) -> float:
        """Return the instances that are left after a deletion.

        The longer derivations are, the fewer of them survive: with f instances per
        explicit fact, a share of (1 - x)^(1 + log₂ f) if the share x of the facts is
        deleted, until the power has been observed.
        """
        explicit = max(self.explicit, 1)
        usual = 1 + max(0.0, log2(max(self.instances, 1.0) / explicit))
        remaining = max(0.0, 1 - deletions / explicit)
        return float(self.instances * remaining ** self.growing.value(usual))

    def with_more(self, insertions: int) -> float:
        """Return the predicted number of instances after an insertion."""
        factor = (1 + insertions / max(self.explicit, 1)) ** self.growing.value(0.0)
        return float(self.instances * factor)

    @property
    def restart_speed(self) -> float:
        """Return the seconds per instance in a materialisation."""
        return self.restarting.value(_MATCHING)

    @property
    def copy_speed(self) -> float:
        """Return the seconds for copying a fact, or comparing it with others."""
        return self.copying.value(_COPYING)

    @property
    def deletion_speed(self) -> float:
        """Return the seconds per instance in a deletion."""
        return self._speed(self.deleting)

    @property
    def insertion_speed(self) -> float:
        """Return the seconds per instance in an insertion."""
        return self._speed(self.inserting)

    def _speed(self, observed: Rate) -> float:
        """Return the seconds per instance, for matching it and storing its facts."""
        storing = self.copy_speed * self.yielding.value(0.0)
        usual = _STEPWISE * self.restart_speed + storing
        seconds = observed.value(usual)
        return min(max(seconds, usual / _SLOWEST), usual * _SLOWEST)


def learnt(
    history: History,
    report: Report,
    seconds: float | None,
    relations: int = 0,
    *,
    is_search: bool = False,
) -> History:
    """Return the statistics after an update.

    Args:
        history: the statistics before it.
        report: the report of the update.
        seconds: the seconds of its work; None for the first facts, where reading takes
            most of the time.
        relations: the number of relations.
        is_search: whether B/F^c was tried in place of a rematerialisation. It says
            nothing about the reach of deleted facts, which DRed^c would delete.
    """
    instances = report.forward_instances + report.backward_instances
    deriving = sum(sum(each.seconds.values()) for each in report.strata)
    explicit = report.inserted - report.deleted
    facts = report.added - report.removed
    strata = len(report.strata)
    if seconds is None:
        return history.counted(explicit, facts).loaded(
            instances, deriving, strata, relations
        )
    if report.algorithm == REMATERIALISE:
        known = history.explicit + history.facts
        new = history.counted(explicit, facts)
        new = new.restarted(instances, deriving, seconds, known, strata, relations)
        if report.deleted:
            new = new._replace(pause=max(new.pause - 1, 0))
    elif is_search:
        new = history.counted(explicit, facts)._replace(failed_searches=0)
    else:
        new = history.maintained(report.deleted, instances, seconds, returned(report))
        new = new.counted(explicit, facts)
    if report.removed_rules or report.added_rules:
        return new
    return new.grown_from(history)


def returned(report: Report) -> float:
    """Return the share of the deleted facts that were deleted only temporarily."""
    deleted = sum(each.overdeleted for each in report.strata)
    return max(deleted - report.removed, 0) / deleted if deleted else 0.0


# --------------------------------------------------------------------------- cost model


_DOUBT = 8.0
"""The factor by which assumptions may be wrong, either way."""

_MARGIN = 1.1
"""The uncertainty of prices. If they are about equal, maintenance is preferred, because
it yields more observations."""

_MARGIN_FOR_INSERTIONS = 1.12
"""The same for insertions, where there is less to gain, and an attempt to lose."""

_COST_SHARE = 0.45
"""The most a deletion may cost, relative to rematerialisation, unless it is expected to
cost more and still be worth it."""

_EARLY = 0.1
"""The most a part of a deletion may cost, relative to rematerialisation, before it is
too late to abandon it because of its reach."""

_EARLY_SECONDS = 0.2
"""The same in seconds, which include building plans and some indexes."""

_SEARCHING = 0.25
"""The cost of a search for proofs, relative to rematerialisation, from which it is
abandoned if it has matched more instances than there are."""

_LATEST = 1.5
"""The most that such a search may cost with few instances, relative to the greater of
both prices, which may be wrong by as much."""

_FEW = 1_000
"""One in this many explicit facts, or a single one, may be deleted by a search for
proofs instead of a rematerialisation."""

_SEARCH_SHARE = 0.2
"""The most that such a search may cost, relative to the rematerialisation. In points-to
analysis half of the deleted edges cost a thousandth of it, and others three times as
much."""

_MOST_FAILED = 6
"""Searches in a row from which on no more deletions pass before the next one."""

_BEGINNING = 0.03
"""The most an insertion may cost, relative to rematerialisation, before the expectation
that it multiplies the facts is acted upon."""

_LITTLE = 10_000.0
"""A number of instances that is matched in no time. Programs with fewer instances are
always maintained, and no attempt is abandoned before."""

_MANY_RETURNING = 10_000
"""The least number of temporarily deleted facts for which a search can be faster."""

_SEARCH = 10.0
"""The number of facts of modules that can be deleted and added again in the time of
finding a proof for one. Measured between 5 and 15."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The properties of an update that are known before it is carried out.

    Attributes:
        deletions, insertions: the numbers of explicit facts that it changes.
        changes_rules: whether rules are added or removed.
        is_recursive: whether the new program has recursive rules.
        kept: the counters that are kept.
        has_lazy_closures: whether there are lazy closures.
        returning: facts of modules that the last DRed^c deleted and added again.
        doubtful: external facts of modules that only recursive rules derive.
        is_search: whether facts are only deleted after a search for proofs, as in
            B/F^≈; few instances are matched twice.
    """

    deletions: int
    insertions: int
    changes_rules: bool
    is_recursive: bool
    kept: Kept
    has_lazy_closures: bool = False
    returning: int = 0
    doubtful: int = 0
    is_search: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm to use, the reason, and its cost limit.

    Attributes:
        is_search: whether B/F^c is tried in place of a rematerialisation.
    """

    algorithm: str
    reason: str
    cost_limit: CostLimit | None = None
    is_search: bool = False


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
        allowed = _COST_SHARE * restart_price(history.instances, history)
        return replace(maintain, cost_limit=_cost_limit(allowed, history))
    if history.instances < _LITTLE:
        return maintain
    if not situation.deletions:
        return _for_insertion(situation, history, maintain)
    return _for_deletion(situation, history, maintain)


def _for_deletion(situation: Situation, history: History, maintain: Choice) -> Choice:
    """Choose for a deletion: maintain if that is cheaper than rematerialisation."""
    is_known = history.knows(situation.deletions)
    prices = deletion_prices(
        situation.deletions,
        history,
        doubt=None if is_known else 1 / _DOUBT,
        is_search=situation.is_search,
    )
    if prices.maintaining > _MARGIN * prices.restarting:
        reason = prices.compared(maintain.algorithm)
        if maintain.algorithm == "dred-c" and _is_searched(situation, history):
            return _search(prices, history, reason)
        return Choice(REMATERIALISE, reason)
    if situation.is_search:
        return replace(maintain, cost_limit=_search_cost_limit(prices, history))
    # What relations cost as such is not repeated when facts are added again.
    allowed = _COST_SHARE * prices.restarting + _PART * history.relations
    if is_known:
        # Deleting is about half of the work, and may turn out to be twice as much.
        allowed = max(allowed, prices.maintaining)
        return replace(maintain, cost_limit=_cost_limit(allowed, history))
    forecast = _forecast(situation.deletions, history)
    cost_limit = replace(_cost_limit(allowed, history), forecast=forecast)
    return replace(maintain, cost_limit=cost_limit)


def _is_searched(situation: Situation, history: History) -> bool:
    """Return whether to search for proofs before a rematerialisation."""
    few = max(history.explicit // _FEW, 1)
    return situation.deletions <= few and not history.pause


def _search(prices: Prices, history: History, reason: str) -> Choice:
    allowed = _SEARCH_SHARE * prices.restarting
    limit = replace(_cost_limit(allowed, history), latest=2 * allowed)
    return Choice("bf-c", f"few facts are deleted; {reason}", limit, is_search=True)


def _for_insertion(situation: Situation, history: History, maintain: Choice) -> Choice:
    """Choose for an insertion: maintain, unless nearly all instances will be new."""
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
    """Return the algorithm for maintenance."""
    if situation.is_search:
        return Choice("bf", "few facts change")
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
    """The predicted cost of an update, in seconds."""

    maintaining: float
    restarting: float

    def compared(self, algorithm: str) -> str:
        """Format a comparison of the prices."""
        return (
            f"{self.maintaining:.3g} s or more expected for `{algorithm}`, "
            f"{self.restarting:.3g} s for starting again"
        )


def deletion_prices(
    deletions: int,
    history: History,
    doubt: float | None = None,
    *,
    is_search: bool = False,
) -> Prices:
    """Return the prices of a deletion.

    Args:
        deletions: the number of explicit facts to delete.
        history: the statistics.
        doubt: the factor by which facts may reach further than assumed; None if their
            reach has been observed.
        is_search: whether instances that still hold are not matched twice.
    """
    lost = history.instances - history.left(deletions)
    if doubt is None:
        reached = history.reach(deletions)
        lost = min(lost, reached)
    else:
        reached = max(history.reach(deletions, doubt), lost)
    matched = reached if is_search else 2 * reached - lost
    return Prices(
        maintaining=matched * history.deletion_speed,
        restarting=restart_price(history.instances - lost, history),
    )


def restart_price(instances: float, history: History) -> float:
    """Predict the seconds of a rematerialisation with this many instances."""
    derived = instances * history.yielding.value(0.0)
    facts = max(history.facts, history.explicit + derived)
    copying = (history.explicit + facts) * history.copy_speed
    standing = history.standing + _PART * history.relations
    return standing + instances * history.restart_speed + copying


def _forecast(deletions: int, history: History) -> Forecast | None:
    """Return when to abandon a deletion early; None if that is very unlikely."""
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
    """Return the reason for abandoning an attempt to maintain, for reports.

    Args:
        history: the statistics before the update.
        deletions: the number of explicit facts that the update deletes.
        insertions: the number of explicit facts that it inserts.
        expected: the instances that the deletion would have reached.
    """
    if deletions:
        reached = min(expected, history.instances)
        return f"about {reached:,.0f} of {history.instances:,.0f} would be reached"
    total = history.with_more(insertions)
    return f"there were {history.instances:,.0f}, and will be about {total:,.0f}"


def _search_cost_limit(prices: Prices, history: History) -> CostLimit:
    """Return the cost limit of a search for proofs.

    Its work is not repeated when facts are added, so it may cost as much as
    rematerialisation. If it matches more instances than there are, it checks the same
    facts again and again, and is abandoned earlier.
    """
    return CostLimit(
        instances=max(history.instances, _LITTLE),
        seconds=_SEARCHING * prices.restarting,
        latest=_LATEST * max(prices.restarting, prices.maintaining),
    )


def _cost_limit(seconds: float, history: History) -> CostLimit:
    instances = max(seconds / history.deletion_speed, _LITTLE)
    return CostLimit(instances=instances, seconds=seconds)
