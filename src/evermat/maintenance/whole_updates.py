"""Updates that an engine carries out by itself, as a whole."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from evermat.engine_abilities import can_maintain
from evermat.maintenance.updates import StratumReport

if TYPE_CHECKING:
    from evermat.engine_abilities import StratumWork
    from evermat.maintenance.run import Run


def is_carried_out(run: Run, *, counting: bool) -> bool:
    """Have the engine do the work of DRed^c or of B/F, if it can; whether it has.

    Not where rules change, or where somebody wants to be told of every round.
    """
    engine, strata = run.engine, run.strata
    if not can_maintain(engine) or run.watch.is_strict:
        return False
    if strata.changed or not run.undermined.is_empty():
        return False
    start = perf_counter()
    changes = run.withdrawn, run.given
    sets = run.deleted, run.added
    explicit = None if counting else run.explicit
    work = engine.maintain(strata, changes, sets, explicit)
    if work is None:
        return False
    run.finish(_reports(run, work, perf_counter() - start))
    return True


def _reports(run: Run, work: list[StratumWork], seconds: float) -> list[StratumReport]:
    """A report for each stratum; time is divided as the work is."""
    each = [_efforts(one) for one in work]
    unit = seconds / max(1, sum(sum(efforts.values()) for efforts in each))
    return [
        StratumReport(
            index=0 if one.position < 0 else run.strata.strata[one.position].index,
            rounds=one.rounds,
            forward_instances=one.losing + one.gaining,
            backward_instances=one.searching,
            overdeleted=one.overdeleted,
            rederived=one.rederived,
            proved=one.proved,
            inserted=one.inserted,
            seconds={phase: unit * effort for phase, effort in efforts.items()},
        )
        for one, efforts in zip(work, each, strict=True)
    ]


def _efforts(work: StratumWork) -> dict[str, int]:
    """The phases of the work: rule instances that were matched, and facts."""
    efforts = {
        "delete": work.losing + work.overdeleted,
        "check": work.searching + work.proved,
        "insert": work.gaining + work.inserted,
    }
    return {phase: effort for phase, effort in efforts.items() if effort}
