"""What goes into an update, what comes out of it, and what it did on the way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evermat.algebra import SettledFacts, Snapshot
    from evermat.algebra.abilities import Representatives
    from evermat.lang.syntax import Rule


@dataclass(frozen=True, slots=True)
class Ignored:
    """How many requests were no-ops.

    Attributes:
        deletions: rows to delete that were not given, or are inserted at once.
        insertions: rows to insert that were given already.
        rules: rules to add that the program had already.
    """

    deletions: int = 0
    insertions: int = 0
    rules: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """One request, brought down to what it really changes.

    Attributes:
        deletions: E⁻, given facts that are given no longer.
        insertions: E⁺, facts that are given from now on and were not before.
        removed_rules: normal rules that the program loses.
        added_rules: normal rules that the program gains.
        ignored: requests that change nothing, by kind.
    """

    deletions: SettledFacts
    insertions: SettledFacts
    removed_rules: tuple[Rule, ...] = ()
    added_rules: tuple[Rule, ...] = ()
    ignored: Ignored = field(default_factory=Ignored)

    def is_empty(self) -> bool:
        """Whether the update changes neither a given fact nor a rule."""
        return (
            self.deletions.is_empty()
            and self.insertions.is_empty()
            and not self.removed_rules
            and not self.added_rules
        )


@dataclass(slots=True)
class StratumReport:
    """What an update did in one stratum.

    Attributes:
        index: the number of the stratum, from 1; 0 stands for facts of no stratum.
        algorithm: what brought it up to date, by name; `dred-c + modules` and the like
            where modules took part, whatever was asked for. Facts of no stratum need
            none.
        rounds: how many times rules were applied to new facts.
        forward_instances: rule instances matched from body to head.
        backward_instances: rule instances matched from head to body. Where facts are
            only asked whether rules derive them, small batches stop at the first
            instance for each, and large ones match all instances of a rule at once.
        overdeleted: facts that were deleted, some of them perhaps for a time only.
        rederived: overdeleted facts that one step brings back.
        proved: facts for which a surviving derivation was found before deleting.
        inserted: facts that were added, rederived ones included.
        compiled_rounds: how many of the rounds compiled code ran from one to the next.
        compiled_searches: how many searches for proofs compiled code made.
        seconds: time by phase.
    """

    index: int
    rounds: int = 0
    forward_instances: int = 0
    backward_instances: int = 0
    overdeleted: int = 0
    rederived: int = 0
    proved: int = 0
    inserted: int = 0
    compiled_rounds: int = 0
    compiled_searches: int = 0
    algorithm: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """How it was done: `compiled`, or `batched`, operator by operator; or `mixed`.

        Empty if there was nothing to do.
        """
        is_compiled = self.compiled_rounds > 0 or self.compiled_searches > 0
        is_batched = self.rounds > self.compiled_rounds
        if is_compiled:
            return "mixed" if is_batched else "compiled"
        return "batched" if is_batched else ""


@dataclass(frozen=True, slots=True)
class Report:
    """What an update did, and what it cost.

    Attributes:
        algorithm: the algorithm that brought the result.
        reason: why this one was taken.
        strata: one report for each stratum that the update touched.
        deleted, inserted: given facts that were withdrawn and given.
        removed, added: facts that left and that came as they are stored: of auxiliary
            predicates too, and one for all that differ in equal constants.
        ignored: requests that changed nothing.
        removed_rules, added_rules: how many rules the program lost and gained.
        seconds: time for the whole update.
    """

    algorithm: str
    reason: str = ""
    strata: tuple[StratumReport, ...] = ()
    deleted: int = 0
    inserted: int = 0
    removed: int = 0
    added: int = 0
    ignored: Ignored = field(default_factory=Ignored)
    removed_rules: int = 0
    added_rules: int = 0
    seconds: float = 0.0

    @property
    def forward_instances(self) -> int:
        """Rule instances matched forwards, in all strata."""
        return sum(stratum.forward_instances for stratum in self.strata)

    @property
    def backward_instances(self) -> int:
        """Rule instances matched backwards, in all strata."""
        return sum(stratum.backward_instances for stratum in self.strata)

    @property
    def rounds(self) -> int:
        """Rounds, in all strata."""
        return sum(stratum.rounds for stratum in self.strata)


@dataclass(frozen=True, slots=True, eq=False)
class CliqueChange:
    """What an update changed where facts hold representatives of equal constants.

    Attributes:
        before, after: which constants were equal, and which are.
        lost: facts that left.
        gained: facts that came.
        stayed: other facts that stood for other facts than they do now, if there are
            any.
    """

    before: Representatives
    after: Representatives
    lost: Snapshot
    gained: Snapshot
    stayed: Snapshot | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The exact net change of an update, and the report on it.

    Attributes:
        removed: facts that held before and do not hold now.
        added: facts that hold now and did not before.
        explicit_removed: facts that were given before and are not now.
        explicit_added: facts that are given now and were not before.
        summary: the report, with the numbers of facts that are stored.
        cliques: where equality is kept by rewriting, what the facts stand for.
    """

    removed: Snapshot
    added: Snapshot
    explicit_removed: Snapshot
    explicit_added: Snapshot
    summary: Report
    cliques: CliqueChange | None = None

    @property
    def report(self) -> Report:
        """The report; facts that are not stored are counted when it is asked for."""
        return replace(
            self.summary,
            removed=sum(self.removed.relations().values()),
            added=sum(self.added.relations().values()),
        )
