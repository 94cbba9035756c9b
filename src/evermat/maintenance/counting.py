"""Counting, and the counters that are kept around other algorithms.

Counting: the number of derivations of each fact, for nonrecursive programs.

Source: [gupta1993], in the stratified form to which Algorithm 2 of [hu2018] comes down
without recursive rules.

Notation (left: the paper; right: this file)

    Π^s⟦I : D∖A, A∖D⟧              `lost_counts`, the instances that hold no longer
    Π^s⟦(I∖D)∪A : A∖D, D∖A⟧        `gained_counts`, the instances that hold from now on
    C_nr                           `engine.nonrecursive_counts`

A fact goes when its count falls to zero and comes when it rises from zero. Only the
instances that the update destroys or creates are looked at, which is optimal. Unlike
DRed^c on such programs, a fact that loses its last instance and gains another is not
deleted in between, because both are counted before anything is decided.

Counters around an algorithm: explicit facts before it, derived ones after it.

A knowledge base keeps both counters, C_nr alone, or none. DRed, B/F and FP-update count
nothing, Counting and B/F^c keep C_nr, DRed^c keeps both. What is kept and the algorithm
does not count is brought in line from the net change: the instances destroyed are
Π⟦I : D∖A, A∖D⟧ over the old facts, those created Π⟦I' : A∖D, D∖A⟧ over the new ones,
and a new rule has created all its instances. Rules that go lost theirs at the start.
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
"""What users write: both counters, none, or C_nr alone."""


class Kept(IntEnum):
    """Which counters are kept, or read by an algorithm; those of a lesser one too."""

    NONE = 0
    NONRECURSIVE = 1
    BOTH = 2

    @classmethod
    def of(cls, setting: CountersSetting) -> Kept:
        """What a setting means.

        Raises:
            CountersSettingError: it means nothing.
        """
        # Not a dictionary: 1 and 0 equal True and False, and are not what is asked for.
        if setting is True:
            return cls.BOTH
        if setting is False:
            return cls.NONE
        if setting == "nonrecursive":
            return cls.NONRECURSIVE
        raise CountersSettingError(setting)

    @property
    def setting(self) -> CountersSetting:
        """What users write for it."""
        return "nonrecursive" if self is Kept.NONRECURSIVE else self is Kept.BOTH

    def counters(self, engine: Engine) -> tuple[Counters | None, Counters | None]:
        """C_nr and C_r of an engine, as far as they are kept."""
        return (
            engine.nonrecursive_counts if self >= Kept.NONRECURSIVE else None,
            engine.recursive_counts if self is Kept.BOTH else None,
        )


class CountersSettingError(EvermatError, ValueError):
    """`counters` was set to something that has no meaning.

    Attributes:
        setting: what it was set to.
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
"""How many recursive rules an error lists."""


class RecursiveProgramError(EvermatError, ValueError):
    """Counting was asked to maintain recursive rules.

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
            gone = run.engine.nonrecursive_counts.zero(losers)
            run.delete(gone)
            came = run.engine.settle(winners - run.updated)
            run.add(came)
            run.round(came)


def count_down(run: Run, stratum: Stratum, changes: Changes) -> SettledFacts:
    """Take away the instances that no longer hold; returns their heads."""
    losers = [run.deletions_in(stratum)]
    for counts in lost_counts(run, stratum.nonrecursive, changes):
        run.engine.nonrecursive_counts.subtract(counts)
        losers.append(counts.facts)
    return run.union(losers)


def count_up(run: Run, stratum: Stratum, changes: Changes) -> SettledFacts:
    """Add the instances that hold from now on; returns their heads."""
    winners = [run.insertions_in(stratum)]
    for counts in gained_counts(
        run, stratum.nonrecursive, stratum.new_nonrecursive, changes
    ):
        run.engine.nonrecursive_counts.add(counts)
        winners.append(counts.facts)
    return run.union(winners)


# ----------------------------------------------------------------------------- counters


def count_explicit(engine: Engine, update: Update) -> None:
    """Count explicit facts, which are akin to nonrecursive derivations."""
    if not update.deletions.is_empty():
        engine.nonrecursive_counts.subtract(engine.once(update.deletions))
    if not update.insertions.is_empty():
        engine.nonrecursive_counts.add(engine.once(update.insertions))


def bring_in_line(run: Run, counted: Kept, kept: Kept) -> None:
    """Bring counts in line with the facts that the run arrived at.

    Args:
        run: an algorithm has done its work.
        counted: the counters that the algorithm has kept.
        kept: those that must be exact afterwards.
    """
    if counted < Kept.NONRECURSIVE <= kept:
        bring_nonrecursive_in_line(run)
    if counted < Kept.BOTH <= kept:
        bring_recursive_in_line(run)


def bring_nonrecursive_in_line(run: Run) -> None:
    """Bring C_nr in line with the facts that the run arrived at."""
    for stratum in _affected(run):
        _recount(
            run,
            run.engine.nonrecursive_counts,
            stratum.nonrecursive,
            stratum.new_nonrecursive,
        )


def bring_recursive_in_line(run: Run) -> None:
    """Bring C_r in line with the facts that the run arrived at."""
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
    """The strata whose rules read a relation that changed, or that have new rules.

    Those with modules are left out: `modular` keeps their counts.
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
