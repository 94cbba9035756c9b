"""The algorithms by name: description, best use, and requirements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.maintenance import (
    backward_forward,
    counting,
    dred,
    dred_counting,
    fixpoint_update,
    modular,
)
from evermat.maintenance.context import Modular
from evermat.maintenance.counting import Kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evermat.algebra.compile import StratumPlan
    from evermat.maintenance.context import Algorithm

AUTO = "auto"
REMATERIALISE = "remat"


@dataclass(frozen=True, slots=True)
class Description:
    """One line of the table of algorithms.

    Attributes:
        name: the name that users write.
        title: the full name.
        best: the situation in which it is the best choice.
        memory: the data it stores besides the facts.
        paper: the key of its source in the bibliography.
    """

    name: str
    title: str
    best: str
    memory: str
    paper: str


_OVERDELETING = Modular(modular.maintain, "dred-c + modules")
_SEARCHING = Modular(modular.maintain_searching, "bf-c + modules")


@dataclass(frozen=True, slots=True)
class Incremental:
    """An algorithm that works on a `Run`.

    Attributes:
        name: the name that users write.
        maintain: the algorithm.
        needs: the counters that it reads.
        keeps: the counters that it keeps exact; both, for programs without recursion.
        modular: the algorithm for strata with modules.
    """

    name: str

    maintain: Algorithm
    needs: Kept = Kept.NONE
    keeps: Kept = Kept.NONE
    modular: Modular = _OVERDELETING


INCREMENTAL: Mapping[str, Incremental] = {
    each.name: each
    for each in (
        Incremental("counting", counting.maintain, Kept.NONRECURSIVE, Kept.BOTH),
        Incremental("dred", dred.maintain),
        Incremental("dred-c", dred_counting.maintain, Kept.BOTH, Kept.BOTH),
        Incremental("bf", backward_forward.maintain, modular=_SEARCHING),
        Incremental(
            "bf-c",
            backward_forward.maintain_counting,
            Kept.NONRECURSIVE,
            Kept.NONRECURSIVE,
            modular=_SEARCHING,
        ),
        Incremental("fp", fixpoint_update.maintain),
    )
}

DESCRIPTIONS: tuple[Description, ...] = (
    Description(
        AUTO,
        "chooses one of the others for each update",
        "nearly always",
        "statistics",
        "",
    ),
    Description(
        REMATERIALISE,
        "derives everything again",
        "a large part of the facts changes",
        "a second copy of the facts for a while",
        "",
    ),
    Description(
        "counting",
        "counts derivations; nonrecursive programs only",
        "no rule is recursive",
        "one count per fact",
        "gupta1993",
    ),
    Description(
        "dred",
        "overdeletes, then rederives",
        "no counts are kept, and little is overdeleted",
        "none",
        "gupta1993",
    ),
    Description(
        "dred-c",
        "overdeletes, guided by two counts; never matches rules backwards",
        "rules with built-ins, or rules that are hard to match backwards",
        "two counts per fact",
        "hu2018",
    ),
    Description(
        "bf",
        "searches for another proof before it deletes",
        "no counts are kept, and facts have many derivations",
        "none",
        "motik2015",
    ),
    Description(
        "bf-c",
        "the same, with nonrecursive derivations counted",
        "many recursive rules, and facts have many derivations",
        "one count per fact",
        "hu2018",
    ),
    Description(
        "fp",
        "continues from the part of the old fixpoint that is sure",
        "rules change, and few facts depend on them",
        "none",
        "kotowski2011",
    ),
)

NAMES: tuple[str, ...] = tuple(description.name for description in DESCRIPTIONS)


class AlgorithmError(EvermatError, ValueError):
    """An algorithm that does not exist, or that is not supported here."""

    code: ClassVar[str] = "EM511"


def require_algorithm(name: str, kept: Kept) -> None:
    """Refuse an algorithm that does not exist, or that needs counters not kept."""
    if name not in NAMES:
        raise AlgorithmError(
            f"there is no algorithm `{name}`", help=f"choose from {', '.join(NAMES)}"
        )
    chosen = INCREMENTAL.get(name)
    if chosen is not None and chosen.needs > kept:
        reads, there = _WORDS[chosen.needs][0], _WORDS[kept][1]
        settings = (each.setting for each in Kept if each >= chosen.needs)
        wanted = " or ".join(f"`counters={setting!r}`" for setting in settings)
        others = [
            other
            for other in NAMES
            if other not in INCREMENTAL or INCREMENTAL[other].needs <= kept
        ]
        raise AlgorithmError(
            f"`{name}` reads {reads}, and {there}",
            reason="counters are kept from the first fact on, or not at all",
            help=f"keep counters with {wanted}, or choose from {', '.join(others)}",
        )


_WORDS = {
    Kept.NONE: ("no counters", "none are kept"),
    Kept.NONRECURSIVE: (
        "counters of nonrecursive derivations",
        "only those of nonrecursive derivations are kept",
    ),
    Kept.BOTH: ("counters of all derivations", ""),
}
"""The wording of counters that an algorithm reads or maintains, in tables."""


def require_no_monotone(strata: Iterable[StratumPlan]) -> None:
    """Refuse programs with recursion through aggregates, which need both counters."""
    for stratum in strata:
        for each in stratum.monotone:
            raise AlgorithmError(
                f"recursion through an aggregate needs counters: {each.rule.written}",
                reason="deletion is exact there by counting derivations",
                help="make the knowledge base with `counters=True`, the default",
            )
