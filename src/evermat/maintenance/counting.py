"""Counting: the number of derivations of each fact, for nonrecursive programs.

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
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.maintenance.affected import gained_counts, lost_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evermat.algebra import SettledFacts
    from evermat.algebra.compile import StratumPlan
    from evermat.lang.syntax import Rule
    from evermat.maintenance.context import Changes, Run
    from evermat.maintenance.strata import Stratum

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
            law="a count of derivations says nothing where derivations form cycles",
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
