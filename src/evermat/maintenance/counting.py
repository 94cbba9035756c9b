"""Counting, and the counters that are maintained next to other algorithms.

Counting maintains the number of derivations of each fact, for nonrecursive programs.

Source: [gupta1993], in the stratified form that Algorithm 2 of [hu2018] has without
recursive rules.

Notation (left: the paper; right: this file)

    Π^s⟦I : D∖A, A∖D⟧              `lost_counts`, the instances that no longer hold
    Π^s⟦(I∖D)∪A : A∖D, D∖A⟧        `gained_counts`, the instances that now hold
    C_nr                           `engine.nonrecursive_counts`

A fact is deleted when its count falls to zero and added when it rises from zero. Only
the instances that the update destroys or creates are matched, which is optimal. Unlike
in DRed^c on such programs, a fact that loses its last instance and gains another is not
deleted in between, because both are counted before the decision.

A knowledge base keeps both counters, C_nr alone, or none. DRed, B/F and FP-update count
nothing, Counting and B/F^c maintain C_nr, and DRed^c both. Explicit facts are counted
before an algorithm runs. Counters that it does not maintain are corrected afterwards
from the net change: the instances destroyed are Π⟦I : D∖A, A∖D⟧ over the old facts,
those created Π⟦I' : A∖D, D∖A⟧ over the new ones, and a new rule has created all its
instances. The instances of removed rules are subtracted at the start.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Literal

from evermat.errors import EvermatError
from evermat.maintenance.context import gained_counts, lost_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evermat.algebra import Counters, Engine, SettledFacts
    from evermat.algebra.compile import RuleSet, StratumPlan
    from evermat.lang.syntax import Rule
    from evermat.maintenance.context import Changes, Run, Stratum
    from evermat.maintenance.update import Update


CountersSetting = bool | Literal["nonrecursive"]
"""The setting of users: both counters, none, or C_nr alone."""


class Kept(IntEnum):
    """The counters that are kept, or that an algorithm reads, in order of inclusion."""

    NONE = 0
    NONRECURSIVE = 1
    BOTH = 2

    @classmethod
    def of(cls, setting: CountersSetting) -> Kept:
        """Return the meaning of a setting.

        Raises:
            CountersSettingError: the setting does not exist.
        """
        # Not a dictionary: 1 and 0 equal True and False, but are not valid settings.
        if setting is True:
            return cls.BOTH
        if setting is False:
            return cls.NONE
        if setting == "nonrecursive":
            return cls.NONRECURSIVE
        raise CountersSettingError(setting)

    @property
    def setting(self) -> CountersSetting:
        """The setting that users write for it."""
        return "nonrecursive" if self is Kept.NONRECURSIVE else self is Kept.BOTH

    def counters(self, engine: Engine) -> tuple[Counters | None, Counters | None]:
        """Return C_nr and C_r of an engine, where they are kept."""
        return (
            engine.nonrecursive_counts if self >= Kept.NONRECURSIVE else None,
            engine.recursive_counts if self is Kept.BOTH else None,
        )


class CountersSettingError(EvermatError, ValueError):
    """An invalid value of `counters`.

    Attributes:
        setting: the value.
    """

    code: ClassVar[str] = "EM517"

    def __init__(self, setting: object) -> None:
        self.setting = setting
        super().__init__(
            f"`counters={setting!r}` is not known",
            help='use `True` for both counters, `"nonrecursive"` for that of '
            "nonrecursive derivations alone, or `False` for none",
        )


_SHOWN = 5
"""The most recursive rules listed by an error."""


class RecursiveProgramError(EvermatError, ValueError):
    """Counting was requested for recursive rules.

    Attributes:
        rules: the recursive rules.
    """

    code: ClassVar[str] = "EM512"

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        shown = [f"`{rule.written}`" for rule in rules[:_SHOWN]]
        if len(rules) > _SHOWN:
            shown.append(f"and {len(rules) - _SHOWN} more")
        super().__init__(
            f"`counting` cannot maintain recursive rules: {', '.join(shown)}",
            reason="a count of derivations says nothing where derivations form cycles",
            help="use `auto`, `dred-c`, `bf-c`, `dred`, `bf`, `fp` or `remat`",
        )


def require_nonrecursive(strata: Iterable[StratumPlan]) -> None:
    """Refuse a program with recursive rules, naming them."""
    recursive = [rule for stratum in strata for rule in stratum.recursive.rules]
    if recursive:
        raise RecursiveProgramError(recursive)


def maintain(run: Run) -> None:
    """Bring facts and counts up to date, stratum by stratum."""
    for stratum in run.touched_strata():
        changes = run.changes()
        with run.forwards("count down"):
            losers = count_down(run, stratum, changes)
        with run.forwards("count up"):
            winners = count_up(run, stratum, changes)
        with run.forwards("apply"):
            lost = run.engine.nonrecursive_counts.zero(losers)
            run.delete(lost)
            gained = run.engine.settle(winners - run.updated)
            run.add(gained)
            run.round(gained)


def count_down(run: Run, stratum: Stratum, changes: Changes) -> SettledFacts:
    """Subtract the instances that no longer hold; return their heads."""
    losers = [run.deletions_in(stratum)]
    for counts in lost_counts(run, stratum.nonrecursive, changes):
        run.engine.nonrecursive_counts.subtract(counts)
        losers.append(counts.facts)
    return run.union(losers)


def count_up(run: Run, stratum: Stratum, changes: Changes) -> SettledFacts:
    """Add the instances that now hold; return their heads."""
    winners = [run.insertions_in(stratum)]
    for counts in gained_counts(
        run, stratum.nonrecursive, stratum.new_nonrecursive, changes
    ):
        run.engine.nonrecursive_counts.add(counts)
        winners.append(counts.facts)
    return run.union(winners)


# ----------------------------------------------------------------------------- counters


def count_explicit(engine: Engine, update: Update) -> None:
    """Count explicit facts, which are treated like nonrecursive derivations."""
    if not update.deletions.is_empty():
        engine.nonrecursive_counts.subtract(engine.once(update.deletions))
    if not update.insertions.is_empty():
        engine.nonrecursive_counts.add(engine.once(update.insertions))


def bring_in_line(run: Run, counted: Kept, kept: Kept) -> None:
    """Update counts according to the facts after the run.

    Args:
        run: the run of an algorithm that is complete.
        counted: the counters that the algorithm has maintained.
        kept: the counters that must be exact afterwards.
    """
    if counted < Kept.NONRECURSIVE <= kept:
        bring_nonrecursive_in_line(run)
    if counted < Kept.BOTH <= kept:
        bring_recursive_in_line(run)


def bring_nonrecursive_in_line(run: Run) -> None:
    """Update C_nr according to the facts after the run."""
    for stratum in _affected(run):
        _recount(
            run,
            run.engine.nonrecursive_counts,
            stratum.nonrecursive,
            stratum.new_nonrecursive,
        )


def bring_recursive_in_line(run: Run) -> None:
    """Update C_r according to the facts after the run."""
    for stratum in _affected(run):
        _recount(
            run, run.engine.recursive_counts, stratum.recursive, stratum.new_recursive
        )


def _recount(run: Run, counters: Counters, stayed: RuleSet, new: RuleSet) -> None:
    if not (stayed.rules or new.rules):
        return
    with run.forwards("count"):
        for counts in lost_counts(run, stayed, run.changes()):
            counters.subtract(counts)
        for counts in gained_counts(run, stayed, new, run.changes()):
            counters.add(counts)


def _affected(run: Run) -> Iterator[Stratum]:
    """Yield the strata whose rules read a changed relation, or that have new rules.

    Those with modules are omitted: `modular` maintains their counts.
    """
    strata = run.strata
    positions = set(strata.changed)
    changes = run.changes()
    for relation in changes.lost_from | changes.gained_by:
        positions.update(strata.readers.get(relation, ()))
    for position in sorted(positions):
        stratum = strata.strata[position]
        if not stratum.modules and not stratum.is_monotone:
            run.return_to(stratum)
            yield stratum
