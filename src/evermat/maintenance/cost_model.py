"""`auto`: which algorithm for this update?

*Which incremental algorithm?* Counting without recursion, DRed^c with it, and FP-update
where no counters are kept: it never evaluates a rule backwards for many facts. With
modules it is B/F^c where DRed^c has deleted many facts for a time only, and there are
few facts that B/F^c would have to find proofs for.

*Maintain or start again?* Both are given a price in seconds, from what was observed
when facts were last materialised and when updates were maintained
(`evermat.maintenance.statistics`):

- starting again copies the given facts and matches all rule instances that there will
  be;
- a deletion matches the instances that the deleted facts reach, and then those of them
  once more that hold all the same;
- an insertion matches only new instances, which is less than all; but one by one they
  cost more than in a materialisation.

*Small things are maintained.* Where all instances are matched in no time, there is
nothing to choose.

*When in doubt, try.* Before there is experience with deletions of comparable size,
nobody knows how far facts reach: assumptions can be wrong by a large factor. Starting
again is then chosen only where maintaining would cost more even if facts reached far
less than assumed. Otherwise DRed^c begins with a small part of what it has to delete,
and goes on with the rest unless the part reaches so far that starting again is cheaper.

An attempt to maintain is also given up when deleting has cost about half of what
starting again would: facts that come back were deleted before, so adding them costs at
most as much again. It is undone then, everything is derived anew, and what the attempt
taught is kept for the next time. An insertion that is expected to multiply the facts is
given up when it has begun to do so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evermat.maintenance.algorithms import REMATERIALISE
from evermat.maintenance.limits import Forecast, Patience

if TYPE_CHECKING:
    from evermat.maintenance.statistics import History

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
maintained, and no attempt is given up before."""

_SEARCH = 10.0
"""Facts of modules that are deleted and come back in the time that finding a proof for
one takes. Measured between 5 and 15."""


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
        allowed = _PATIENCE * restart_price(history.instances, history)
        return replace(maintain, patience=_patience(allowed, history))
    if history.instances < _LITTLE:
        return maintain
    if not situation.withdrawn:
        return _for_insertion(situation, history, maintain)
    is_known = history.knows(situation.withdrawn)
    prices = deletion_prices(
        situation.withdrawn, history, doubt=None if is_known else 1 / _DOUBT
    )
    if prices.maintaining > _MARGIN * prices.restarting:
        return Choice(REMATERIALISE, prices.compared(maintain.algorithm))
    allowed = _PATIENCE * prices.restarting
    if is_known:
        # Deleting is about half of it, and may turn out to be twice as much.
        allowed = max(allowed, prices.maintaining)
        return replace(maintain, patience=_patience(allowed, history))
    forecast = _forecast(situation.withdrawn, history)
    patience = replace(_patience(allowed, history), forecast=forecast)
    return replace(maintain, patience=patience)


def _for_insertion(situation: Situation, history: History, maintain: Choice) -> Choice:
    """Insertions are maintained, unless nearly all instances will be new."""
    total = history.with_more(situation.given)
    new = total - history.instances
    restart = restart_price(total, history)
    if new * history.insertion_speed <= _MARGIN_FOR_INSERTIONS * restart:
        return maintain
    allowed = _BEGINNING * restart
    instances = max(allowed / history.insertion_speed, _LITTLE)
    patience = Patience(instances, allowed, is_for_adding=True)
    return replace(maintain, patience=patience)


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


@dataclass(frozen=True, slots=True)
class Prices:
    """What an update will cost, in seconds, as far as one can tell."""

    maintaining: float
    restarting: float

    def compared(self, algorithm: str) -> str:
        """Both, in words."""
        return (
            f"{self.maintaining:.3g} s or more expected for `{algorithm}`, "
            f"{self.restarting:.3g} s for starting again"
        )


def deletion_prices(
    withdrawn: int, history: History, doubt: float | None = None
) -> Prices:
    """The prices of a deletion.

    Args:
        withdrawn: given facts that are deleted.
        history: what is known.
        doubt: facts may reach further than assumed, by this factor; None if how far
            they reach is known from experience.
    """
    lost = history.instances - history.left(withdrawn)
    if doubt is None:
        reached = history.reach(withdrawn)
        lost = min(lost, reached)
    else:
        reached = max(history.reach(withdrawn, doubt), lost)
    return Prices(
        maintaining=(2 * reached - lost) * history.deletion_speed,
        restarting=restart_price(history.instances - lost, history),
    )


def restart_price(instances: float, history: History) -> float:
    """Seconds that starting again will take, with so many instances then."""
    derived = instances * history.yielding.value(0.0)
    facts = max(history.facts, history.given + derived)
    copying = (history.given + facts) * history.copy_speed
    return instances * history.restart_speed + copying


def _forecast(withdrawn: int, history: History) -> Forecast | None:
    """When to give a deletion up early; None where it would hardly ever be."""
    worst = deletion_prices(withdrawn, history, doubt=_DOUBT)
    limit = _MARGIN * worst.restarting
    if worst.maintaining <= limit:
        return None
    lost = history.instances - history.left(withdrawn)
    return Forecast(
        instances=history.instances,
        facts=history.facts - history.given,
        limit=(limit / history.deletion_speed + lost) / 2,
        until=_EARLY * worst.restarting / history.deletion_speed,
        seconds=_EARLY_SECONDS * worst.restarting,
    )


def reason_to_give_up(
    history: History, withdrawn: int, given: int, expected: float
) -> str:
    """Why an attempt to maintain was given up, in words.

    Args:
        history: what was known before.
        withdrawn: given facts that the update takes away.
        given: given facts that it brings.
        expected: instances that the deletion would have reached.
    """
    if withdrawn:
        reached = min(expected, history.instances)
        return f"about {reached:,.0f} of {history.instances:,.0f} would be reached"
    total = history.with_more(given)
    return f"there were {history.instances:,.0f}, and will be about {total:,.0f}"


def _patience(seconds: float, history: History) -> Patience:
    instances = max(seconds / history.deletion_speed, _LITTLE)
    return Patience(instances=instances, seconds=seconds)
