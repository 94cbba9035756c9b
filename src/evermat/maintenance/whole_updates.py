"""Updates that an engine carries out by itself, as a whole."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from evermat.engine_abilities import can_maintain
from evermat.maintenance.state import StratumReport

if TYPE_CHECKING:
    from evermat.engine_abilities import StratumWork
    from evermat.maintenance.state import Run


def is_carried_out(run: Run) -> bool:
    """Have the engine do the work of DRed^c, if it can; whether it has.

    Not where rules change, or where somebody wants to be told of every round.
    """
    engine, strata = run.engine, run.strata
    if not can_maintain(engine) or run.watch.is_strict:
        return False
    if strata.changed or not run.undermined.is_empty():
        return False
    start = perf_counter()
    sets = run.deleted, run.added
    work = engine.maintain_counting(strata, run.withdrawn, run.given, sets)
    if work is None:
        return False
    run.finish(_reports(run, work, perf_counter() - start))
    return True


def _reports(run: Run, work: list[StratumWork], seconds: float) -> list[StratumReport]:
    """A report for each stratum; time is divided as the work is."""
    each = [_efforts(one) for one in work]
    unit = seconds / max(1, sum(map(sum, each)))
    return [
        StratumReport(
            index=0 if one.position < 0 else run.strata.strata[one.position].index,
            rounds=one.rounds,
            forward_instances=one.losing + one.gaining,
            overdeleted=one.overdeleted,
            rederived=one.rederived,
            inserted=one.inserted,
            seconds={"overdelete": losing * unit, "insert": gaining * unit},
        )
        for one, (losing, gaining) in zip(work, each, strict=True)
    ]


def _efforts(work: StratumWork) -> tuple[int, int]:
    """The two halves of the work: rule instances that were matched, and facts."""
    return work.losing + work.overdeleted, work.gaining + work.inserted
