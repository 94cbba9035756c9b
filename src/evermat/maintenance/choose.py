"""`auto`: which algorithm for this update?

Two questions are answered from statistics. *Maintain or start again?* Work is measured
in rule instances. The last materialisation matched a known number of them, and earlier
updates tell how many an update matches for each given fact that it changes; where they
do not, nonrecursive programs allow a bound, and for recursive ones an attempt is made
that is given up when it has cost a certain part of starting again. *Which algorithm?*
Counting without recursion. With recursion DRed^c, until it is seen to delete mostly
what it then rederives; B/F^c is tried then, and the one with less work per changed fact
stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evermat.maintenance.algorithms import REMATERIALISE
from evermat.maintenance.watch import Patience

_OVERHEAD = 1.6
"""Time for an instance in an update, in units of one in a materialisation.

Measured: views with several parts cost more than plain tables, and every lost instance
is looked up again in the counters.
"""

_LARGE = 0.01
"""From this part of the given facts on, an update is large."""

_PATIENCE_LARGE = 0.1
"""What an attempt at a large update may cost, in units of a materialisation.

Such updates often end in starting again, and that must stay within 1.15 units.
"""

_PATIENCE_SMALL = 0.6
"""The same for small updates, which seldom reach far."""

_WASTE = 0.8
"""DRed^c is wasteful if it rederives more than this part of what it deletes …"""

_WASTE_FACTS = 1000
"""… and deletes more than this many facts."""

_FORGETTING = 0.5
"""How much of the old average is kept when a new observation comes."""


@dataclass(frozen=True, slots=True)
class Work:
    """What an update cost, as seen by `auto`.

    Attributes:
        changed: given facts withdrawn and given.
        instances: rule instances matched.
        overdeleted, rederived: as in the report.
    """

    changed: int
    instances: int
    overdeleted: int = 0
    rederived: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """What is known from earlier runs; a new one is made after each.

    Attributes:
        facts: given facts, when they were last counted.
        materialise_instances: rule instances that the last materialisation matched.
        materialise_seconds: its time.
        rates: for each algorithm, rule instances per changed given fact.
        is_wasteful: whether DRed^c rederived most of what it deleted.
    """

    facts: int = 0
    materialise_instances: int = 0
    materialise_seconds: float = 0.0
    rates: dict[str, float] = field(default_factory=dict)
    is_wasteful: bool = False

    def materialised(self, facts: int, instances: int, seconds: float) -> History:
        """With a materialisation that was just done."""
        return replace(
            self,
            facts=facts,
            materialise_instances=instances,
            materialise_seconds=seconds,
        )

    def maintained(self, algorithm: str, work: Work, facts: int) -> History:
        """With an update that was just maintained."""
        if not work.changed:
            return replace(self, facts=facts)
        rate = work.instances / work.changed
        old = self.rates.get(algorithm, rate)
        rates = self.rates | {algorithm: _FORGETTING * old + (1 - _FORGETTING) * rate}
        wasteful = self.is_wasteful or (
            work.overdeleted > _WASTE_FACTS
            and work.rederived > _WASTE * work.overdeleted
        )
        return replace(self, facts=facts, rates=rates, is_wasteful=wasteful)

    def gave_up(self, algorithm: str, changed: int, instances: int) -> History:
        """With an attempt that was given up: it would have cost more than this."""
        least = 2 * instances / max(changed, 1)
        rates = self.rates | {algorithm: max(self.rates.get(algorithm, 0.0), least)}
        return replace(self, rates=rates)


@dataclass(frozen=True, slots=True)
class Situation:
    """What an update looks like before it is done.

    Attributes:
        withdrawn, given: given facts that it changes.
        changes_rules: whether rules come or go.
        is_recursive: whether the new program has recursive rules.
        has_counters: whether counts are kept.
    """

    withdrawn: int
    given: int
    changes_rules: bool
    is_recursive: bool
    has_counters: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm to use, why, and how long to try."""

    algorithm: str
    reason: str
    patience: Patience | None = None


def choose(situation: Situation, history: History) -> Choice:
    """The algorithm for an update."""
    if not history.materialise_instances:
        return _without_experience(situation, history)
    algorithm, why = _incremental(situation, history)
    changed = situation.withdrawn + situation.given
    part = changed / max(history.facts, 1)
    expected = _expected_instances(situation, history, algorithm)
    unit = history.materialise_instances
    if expected is not None:
        cost = _OVERHEAD * expected / unit
        after = max(0.1, (history.facts - situation.withdrawn) / max(history.facts, 1))
        if cost > after:
            return Choice(
                REMATERIALISE,
                f"about {expected:,.0f} rule instances expected, "
                f"materialising matched {unit:,}",
            )
        return Choice(algorithm, why, _patience(max(1.0, cost), history))
    limit = _PATIENCE_LARGE if part >= _LARGE else _PATIENCE_SMALL
    return Choice(algorithm, why, _patience(limit, history))


def _without_experience(situation: Situation, history: History) -> Choice:
    """No rule instance was ever matched: there are no facts, no rules, or neither."""
    if situation.given > history.facts or situation.changes_rules:
        return Choice(REMATERIALISE, "nothing was derived so far")
    algorithm, why = _incremental(situation, history)
    return Choice(algorithm, why)


def _incremental(situation: Situation, history: History) -> tuple[str, str]:
    if not situation.is_recursive:
        if situation.has_counters:
            return "counting", "no rule is recursive"
        return "dred", "no rule is recursive, and no counters are kept"
    if not situation.has_counters:
        return "bf", "rules are recursive, and no counters are kept"
    if history.is_wasteful:
        known = history.rates.get("bf-c")
        if known is None or known < history.rates.get("dred-c", known):
            return "bf-c", "`dred-c` rederived most of what it deleted"
    return "dred-c", "rules are recursive"


def _expected_instances(
    situation: Situation, history: History, algorithm: str
) -> float | None:
    """Rule instances that the update will match, where that can be known."""
    changed = situation.withdrawn + situation.given
    if situation.changes_rules:
        return None
    rate = history.rates.get(algorithm)
    if rate is not None:
        return rate * changed
    if not situation.is_recursive:
        # An instance has two body atoms on average, and is met once for each change.
        return 2 * changed / max(history.facts, 1) * history.materialise_instances
    return None


def _patience(part: float, history: History) -> Patience:
    return Patience(
        instances=part * history.materialise_instances / _OVERHEAD,
        seconds=part * history.materialise_seconds,
    )
