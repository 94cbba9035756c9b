"""The algorithms by name: what each is, when it is best, what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.maintenance import (
    backward_forward,
    backward_forward_counting,
    counters,
    counting,
    dred,
    dred_counting,
    fixpoint_update,
    modular,
)
from evermat.maintenance.context import Modular

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evermat.maintenance.context import Algorithm, Run

AUTO = "auto"
REMATERIALISE = "remat"


@dataclass(frozen=True, slots=True)
class Description:
    """One line of the table of algorithms.

    Attributes:
        name: what users write.
        title: what it is.
        best: when it is the best choice.
        memory: what it keeps besides the facts.
        paper: key of the bibliography.
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
        name: what users write.
        maintain: the algorithm.
        needs_counters: whether it reads counts.
        finish: brings the counts in line that the algorithm does not keep itself.
        modular: how strata with modules are brought up to date.
    """

    name: str

    maintain: Algorithm
    needs_counters: bool
    finish: Callable[[Run], None]
    modular: Modular = _OVERDELETING


INCREMENTAL: Mapping[str, Incremental] = {
    "counting": Incremental(
        "counting", counting.maintain, needs_counters=True, finish=counters.leave_alone
    ),
    "dred": Incremental(
        "dred", dred.maintain, needs_counters=False, finish=counters.bring_in_line
    ),
    "dred-c": Incremental(
        "dred-c",
        dred_counting.maintain,
        needs_counters=True,
        finish=counters.leave_alone,
    ),
    "bf": Incremental(
        "bf",
        backward_forward.maintain,
        needs_counters=False,
        finish=counters.bring_in_line,
        modular=_SEARCHING,
    ),
    "bf-c": Incremental(
        "bf-c",
        backward_forward_counting.maintain,
        needs_counters=True,
        finish=counters.bring_recursive_in_line,
        modular=_SEARCHING,
    ),
    "fp": Incremental(
        "fp",
        fixpoint_update.maintain,
        needs_counters=False,
        finish=counters.bring_in_line,
    ),
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
    """An algorithm that does not exist, or that cannot be used here."""

    code: ClassVar[str] = "EM511"


def require_algorithm(name: str, *, counters: bool) -> None:
    """Refuse an algorithm that does not exist, or that lacks the counts it reads."""
    if name not in NAMES:
        raise AlgorithmError(
            f"there is no algorithm `{name}`", help=f"choose from {', '.join(NAMES)}"
        )
    chosen = INCREMENTAL.get(name)
    if chosen is not None and chosen.needs_counters and not counters:
        others = [
            other
            for other in NAMES
            if other not in INCREMENTAL or not INCREMENTAL[other].needs_counters
        ]
        raise AlgorithmError(
            f"`{name}` reads counters, and none are kept",
            law="counters are kept from the first fact on, or not at all",
            help=f"keep counters, or choose from {', '.join(others)}",
        )
