"""Budgets, cost limits and progress reports of a run.

Rules with built-ins can derive facts forever, so a fixpoint has a budget. Limits are
checked after every round and, through `Engine.monitor`, while a round is being
computed. Exceeding one raises an error that names the rule; the transaction is then
rolled back.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from math import inf
from numbers import Real
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Protocol

from evermat.errors import EvermatError
from evermat.runtime.interrupts import check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.algebra import Monitor

_MEMORY_INTERVAL = 0.05
"""The seconds between two checks of memory, which cost a system call each."""


class BudgetLimitError(EvermatError, ValueError):
    """A limit of a budget is not a number, or is negative."""

    code: ClassVar[str] = "EM610"

    def __init__(self, name: str, limit: object) -> None:
        super().__init__(
            f"the budget has `{name}={limit!r}`",
            reason="a limit is a number that is not negative; None is no limit",
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """The resources that one run may use; `None` means unlimited.

    Attributes:
        rounds: the rounds within one stratum.
        facts: the facts that the run may add.
        seconds: the time.
        memory_bytes: the memory of the whole process.
        instances: the rule instances that the run may match.
    """

    rounds: int | None = None
    facts: int | None = None
    seconds: float | None = None
    memory_bytes: int | None = None
    instances: int | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            limit = getattr(self, each.name)
            if limit is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, Real) or limit < 0:
                raise BudgetLimitError(each.name, limit)


_NO_LIMITS = Budget()


class BudgetExceededError(EvermatError, RuntimeError):
    """A run exceeded one of its limits; it has changed nothing.

    Attributes:
        resource: the limit, by its name in `Budget`.
        rule: the rule with the most matches in the last round, or the closure being
            computed, if there is one.
    """

    code: ClassVar[str] = "EM602"

    def __init__(self, resource: str, limit: float, rule: str | None) -> None:
        self.resource = resource
        self.rule = rule
        culprit = f"; busiest rule: `{rule}`" if rule else ""
        super().__init__(
            f"the budget of {_amount(resource, limit)} is used up{culprit}",
            reason="a fixpoint stops when its budget is spent, and changes nothing "
            "then",
            help="raise the budget, or bound the values that the rule can derive",
        )


class CostLimitReached(Exception):  # noqa: N818  an internal signal
    """An attempt exceeded its cost limit and is abandoned for another algorithm.

    Attributes:
        expected: the rule instances that the whole deletion would have reached.
    """

    def __init__(self, expected: float) -> None:
        self.expected = expected
        super().__init__(expected)


ADDING = frozenset({"insert", "continue"})
"""Phases in which facts are only added."""


_UNFINISHED = 2
"""The assumed ratio of the reach of an abandoned deletion to its matches so far."""

_TRUST = 1.3
"""The factor by which a deletion that was worth continuing after its first part may
exceed its expected number of instances."""

_PARTS = 16
"""The most parts that a deletion is divided into to test one of them."""

_TELLING = 64
"""The least number of facts of a part."""

_MANY = 1_000
"""The least number of facts from which the number of instances per fact is measured."""

_OVERLAP = 0.6
"""The exponent of overlap: k parts together reach as much as k to this power disjoint
parts. Measured between 0.2, where a few facts matter to nearly everything, and 0.9."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Limits for the reach of a deletion, estimated from a part of the facts to delete.

    Attributes:
        instances, facts: the totals of the materialisation; derived facts only.
        limit: the instances that the whole deletion may reach.
        until: the instances after which it is too late, as too much work would be lost.
        seconds: the time after which it is too late. An update may have to build
            indexes before it matches anything, and these would be lost, too.
    """

    instances: float
    facts: int
    limit: float
    until: float
    seconds: float

    def parts(self, facts: int) -> int:
        """Return the number of parts to divide facts into; 1 if it is not worth it."""
        return max(1, min(_PARTS, facts // _TELLING))

    def is_worth_it(self, expected: float, matched: int) -> bool:
        """Return whether to continue a deletion that has matched some instances.

        A rematerialisation would have to match them again.
        """
        return expected <= self.limit + matched / 2

    def expected(self, parts: int, facts: int, per_fact: float | None = None) -> float:
        """Estimate the reach of the whole from that of one of its parts.

        Args:
            parts: the number of parts.
            facts: the number of facts that the part deletes.
            per_fact: the instances that each of them matched, if known.
        """
        share = min(facts / max(self.facts, 1), 1.0)
        reached = float(self.instances * (1 - (1 - share) ** parts**_OVERLAP))
        if per_fact is None or not self.instances:
            return reached
        return reached * min(per_fact * self.facts / self.instances, 1.0)


@dataclass(frozen=True, slots=True)
class CostLimit:
    """The cost of deletion at which an attempt is abandoned.

    It is abandoned when both limits are exceeded, but not in phases that only add
    facts: facts that are rederived were deleted before, and new facts must be derived
    in any case.

    Attributes:
        instances: the rule instances that may be matched.
        seconds: the time that may be used.
        latest: the time that may be used, regardless of the number of instances.
        is_for_adding: whether it also applies in phases that add facts.
        forecast: limits for a part of the facts, checked before these are reached.
    """

    instances: float
    seconds: float
    is_for_adding: bool = False
    forecast: Forecast | None = None
    latest: float = inf

    def is_passed(self, instances: int, seconds: float) -> bool:
        """Return whether an attempt with these costs is to be abandoned."""
        is_long = instances > self.instances and seconds > self.seconds
        return is_long or seconds > self.latest


def _amount(resource: str, limit: float) -> str:
    words = {
        "rounds": "rounds in a stratum",
        "facts": "new facts",
        "seconds": "seconds",
        "memory_bytes": "bytes of memory",
        "instances": "rule instances",
    }
    return f"{limit:,} {words[resource]}"


@dataclass(frozen=True, slots=True)
class Step:
    """A round that was just finished.

    Attributes:
        stratum: the number of the stratum, from 1.
        round: the number of the round in the stratum, from 1.
        phase: the phase of the algorithm.
        new_facts: the number of facts of this round.
        total_facts: the number of facts of all rounds so far.
    """

    stratum: int
    round: int
    phase: str
    new_facts: int
    total_facts: int


class Progress(Protocol):
    """A callback for every round."""

    def __call__(self, step: Step, /) -> None:
        """Show the step; an exception stops the run, which then changes nothing."""


class Watch:
    """Observes one run: counts rounds, facts and time, and enforces the budget.

    It is the `Monitor` of the engine during the run.

    Attributes:
        phase: the current phase.
        instances: the rule instances matched so far.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        progress: Progress | None = None,
        cost_limit: CostLimit | None = None,
    ) -> None:
        self.budget = budget or Budget()
        self.progress = progress
        self.cost_limit = cost_limit
        self._stratum = 0
        self._round = 0
        self.phase = ""
        self.facts = 0
        self.instances = 0
        self.start = perf_counter()
        self._parts = 1
        self._facts_of_part = 0
        self._last_facts = 0
        self._matched_before = 0
        self._matched: Counter[str] = Counter()
        self._next_memory_check = 0.0

    @property
    def stratum(self) -> int:
        """The current stratum; setting it restarts the count of rounds."""
        return self._stratum

    @stratum.setter
    def stratum(self, number: int) -> None:
        self._stratum = number
        self._round = 0

    @property
    def is_strict(self) -> bool:
        """Whether every round matters: there is a budget, or progress is shown."""
        return self.progress is not None or self.budget != _NO_LIMITS

    @property
    def monitor(self) -> Monitor | None:
        """The object itself if there is anything to observe: every call costs time."""
        watchful = self.cost_limit is not None or self.budget != _NO_LIMITS
        return self if watchful else None

    @contextmanager
    def judging(self, parts: int) -> Iterator[None]:
        """Judge the reach of a deletion by one of its parts, deleted in the block."""
        self._parts, self._facts_of_part, self._last_facts = parts, 0, 0
        self._matched_before = self.instances
        yield
        self._extend_limit()
        self._parts = 1

    def _extend_limit(self) -> None:
        """Extend the cost limit of a deletion to its cost expected after a part.

        The original limit is for deletions of unknown reach.
        """
        cost_limit = self.cost_limit
        if cost_limit is None or cost_limit.forecast is None:
            return
        expected = cost_limit.forecast.expected(
            self._parts, self._facts_of_part, self._per_fact(self._facts_of_part)
        )
        if cost_limit.forecast.is_worth_it(expected, self.instances):
            allowed = max(cost_limit.instances, _TRUST * expected)
            self.cost_limit = replace(cost_limit, instances=allowed)

    def working(self, label: str, matches: int) -> None:
        """Record matches, and stop if a limit is exceeded."""
        self.instances += matches
        self._matched[label] += matches
        self._check("instances", self.instances)
        self._check_clock()

    def writing(self, label: str, facts: int) -> None:
        """Stop before a closure writes facts that would exceed a limit."""
        self._matched = Counter({label: 0})
        if facts > 0:
            self._check("rounds", self._round + 1)
            self._check("facts", self.facts + facts)
        self._check_clock()

    def round(self, number: int, new_facts: int) -> None:
        """Record a round, and stop if a limit is exceeded."""
        self._round = number
        self.facts += new_facts
        if self.progress is not None:
            self.progress(Step(self.stratum, number, self.phase, new_facts, self.facts))
        self._check("rounds", number)
        self._check("facts", self.facts)
        self._check_clock()
        self._matched.clear()
        if self._parts > 1:
            self._judge(new_facts)

    def _judge(self, new_facts: int) -> None:
        """Stop if a part of the facts to delete reaches too far."""
        forecast = None if self.cost_limit is None else self.cost_limit.forecast
        if forecast is None:
            return
        # Rules have not been applied to the facts of this round yet.
        per_fact = self._per_fact(self._facts_of_part)
        self._facts_of_part += new_facts
        # As long as rounds grow, further ones are expected.
        ahead = 3 * new_facts // 4 if new_facts > self._last_facts else 0
        self._last_facts = new_facts
        reached = self._facts_of_part + ahead
        expected = forecast.expected(self._parts, reached, per_fact)
        is_late = (
            self.instances > forecast.until
            or perf_counter() - self.start > forecast.seconds
        )
        if expected > forecast.limit and not is_late:
            raise CostLimitReached(expected)

    def _per_fact(self, facts: int) -> float | None:
        """Return the instances of a part per fact, or None if it has too few facts."""
        if facts < _MANY:
            return None
        return (self.instances - self._matched_before) / facts

    def _check_clock(self) -> None:
        check()
        now = perf_counter()
        self._check("seconds", now - self.start)
        cost_limit = self.cost_limit
        if (
            cost_limit is not None
            and cost_limit.is_passed(self.instances, now - self.start)
            and (cost_limit.is_for_adding or self.phase not in ADDING)
        ):
            raise CostLimitReached(_UNFINISHED * self.instances)
        if self.budget.memory_bytes is not None and now >= self._next_memory_check:
            self._next_memory_check = now + _MEMORY_INTERVAL
            self._check("memory_bytes", resident_memory())

    def _check(self, resource: str, used: float) -> None:
        limit = getattr(self.budget, resource)
        if limit is not None and used > limit:
            busiest = self._matched.most_common(1)
            rule = busiest[0][0] if busiest else None
            raise BudgetExceededError(resource, limit, rule)


def resident_memory() -> int:
    """Return the memory of the process in bytes: on Linux now, elsewhere the peak."""
    statm = Path("/proc/self/statm")
    try:
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource  # noqa: PLC0415  not on every platform

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
