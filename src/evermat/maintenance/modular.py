"""DRed^c-MOD and B/F^c-MOD: updates by modules together with ordinary rules.

Source: [hu2019], Algorithm 3; B/F^c-MOD is what its conclusion leaves for later. Its
Algorithm 2, MAT-MOD, is in `modular_materialise`.

Notation (left: the paper; right: this file)

    Δ; Δᵢ            `delta`; `own[i]`, what module i derived in the last round
    Add, Diff, …     see `evermat.maintenance.modules`
    Π_nr; Π_r without Πᵢ  `stratum.nonrecursive`; `stratum.recursive`

The ordinary recursive rules are the module that the paper calls seminaïve. It counts
its derivations, so that an overdeleted fact with a recursive count comes back, and so
that a fact of a module's region with a count is known to have support from outside.

Where this differs from the paper:

- Lines 23 and 25 keep only facts whose nonrecursive count has fallen to zero. A fact
  that lost one of two nonrecursive derivations would be deleted for ever otherwise.
- `Del` runs before the recursive counts of the round are lowered. A path that loses
  two facts in two rounds is then met in the first of them.
- Facts that surely hold are not overdeleted (`Module.prove`).
- B/F^c-MOD looks for proofs before anything is deleted; the searches go through the
  bodies of ordinary rules and through what modules name as bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra.compile import derive_counts
from evermat.maintenance.affected import gained_counts, lost_counts
from evermat.maintenance.backward_forward import Search
from evermat.maintenance.backward_forward_counting import counted_support
from evermat.maintenance.modules import Stage, from_others

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.algebra import Counts, Facts, SettledFacts
    from evermat.maintenance.context import Changes, Run
    from evermat.maintenance.strata import Stratum


# ------------------------------------------------------------------------ DRed^c-MOD


def maintain(run: Run, stratum: Stratum) -> None:
    """Bring a stratum with modules up to date by DRed^c-MOD (l. 17 to 19)."""
    changes = run.changes()
    with run.forwards("overdelete"):
        overdelete(run, stratum, losses(run, stratum, changes))
    with run.forwards("rederive"):
        rederived = rederive(run, stratum)
        run.report.rederived = sum(facts.size() for facts in rederived)
    with run.forwards("insert"):
        insert(run, stratum, gains(run, stratum, changes), rederived)


def losses(
    run: Run, stratum: Stratum, changes: Changes, *, is_final: bool = True
) -> SettledFacts:
    """Facts that lost support from below, counted down (l. 23 to 25).

    Unless it is final, recursive counts stay, and external facts are the old ones.
    """
    engine = run.engine
    losers = [run.deletions_in(stratum)]
    for counts in lost_counts(run, stratum.nonrecursive, changes):
        engine.nonrecursive_counts.subtract(counts)
        losers.append(counts.facts)
    if not changes.are_empty():
        stage = Stage(engine, run.materialised, run.materialised, run.materialised)
        losers += [
            module.diff(stage, changes.lost, changes.gained)
            for module in stratum.modules
        ]
    for counts in lost_counts(run, stratum.recursive, changes):
        if is_final:
            engine.recursive_counts.subtract(counts)
        losers.append(counts.facts)
    return run.union(losers)


def overdelete(run: Run, stratum: Stratum, candidates: SettledFacts) -> None:
    """Delete what may have lost its support (l. 26 to 30).

    Afterwards the recursive counts are the numbers of instances of ordinary rules over
    I ∖ (D ∖ A) and I ∪ A, and no deleted fact has a nonrecursive derivation.
    """
    engine = run.engine
    stage = _remaining(run, stratum)
    nothing = engine.no_facts()
    own = [nothing for _ in stratum.modules]
    while True:
        lost = engine.nonrecursive_counts.zero(candidates & run.remaining)
        if not lost.is_empty():
            kept = [module.prove(stage, lost, None) for module in stratum.modules]
            lost = engine.settle(lost - run.union(kept))
        delta = run.union([lost, *own])
        if delta.is_empty():
            return
        run.round(delta)
        # Modules with new rules speak of facts, too, that have never been there.
        own = [
            engine.nonrecursive_counts.zero(
                (module.delete(stage, each) & run.remaining) - delta
            )
            for module, each in zip(
                stratum.modules, from_others(engine, lost, own), strict=True
            )
        ]
        candidates = nothing
        if stratum.recursive.rules:
            counts = _affected(run, stratum, delta)
            engine.recursive_counts.subtract(counts)
            candidates = counts.facts
        run.delete(delta)


def _affected(run: Run, stratum: Stratum, delta: SettledFacts) -> Counts:
    # `deleted` must not contain `delta` yet: an instance may use two facts that fall
    # in the same round.
    return derive_counts(
        run.engine,
        stratum.recursive.delta,
        positive=run.remaining,
        negative=run.possible,
        delta_positive=delta,
    )


def rederive(run: Run, stratum: Stratum) -> list[SettledFacts]:
    """Overdeleted facts that still follow: by ordinary rules, by each module."""
    engine = run.engine
    deleted = engine.settle(run.deleted.within(stratum.region))
    if deleted.is_empty():
        return [deleted] * (1 + len(stratum.modules))
    stage = _updated(run, stratum)
    return [
        engine.recursive_counts.positive(deleted),
        *(module.rederive(stage, deleted) for module in stratum.modules),
    ]


def gains(run: Run, stratum: Stratum, changes: Changes) -> list[SettledFacts]:
    """What the update gives, newly derives from below, or derives by new rules.

    First what ordinary rules have to do with, then what each module derives (l. 32 to
    35).
    """
    engine = run.engine
    candidates = [run.insertions_in(stratum)]
    for counters, stayed, new in (
        (engine.nonrecursive_counts, stratum.nonrecursive, stratum.new_nonrecursive),
        (engine.recursive_counts, stratum.recursive, stratum.new_recursive),
    ):
        for counts in gained_counts(run, stayed, new, changes):
            counters.add(counts)
            candidates.append(counts.facts)
    stage = _updated(run, stratum)
    derived = []
    for module in stratum.modules:
        if module in stratum.new_modules:
            derived.append(module.derive(stage))
        else:
            derived.append(module.diff(stage, changes.gained, changes.lost))
    return [run.union(candidates), *derived]


def insert(
    run: Run,
    stratum: Stratum,
    gained: Sequence[SettledFacts],
    rederived: Sequence[SettledFacts],
) -> None:
    """Add facts and all that follows from them (l. 36 to 40).

    Both sequences begin with what ordinary rules derive; then comes each module's part,
    which the module itself need not look at again.
    """
    engine = run.engine
    stage = _updated(run, stratum)
    others = run.union([gained[0], rederived[0]])
    own = [
        engine.settle((one | other) - run.updated)
        for one, other in zip(gained[1:], rederived[1:], strict=True)
    ]
    while True:
        others = engine.settle(others - run.updated)
        delta = run.union([others, *own])
        if delta.is_empty():
            return
        inputs = from_others(engine, others, own)
        run.add(delta)
        run.round(delta)
        own = [
            engine.settle(module.add(stage, each) - run.updated)
            for module, each in zip(stratum.modules, inputs, strict=True)
        ]
        others = engine.no_facts()
        if stratum.all_recursive.rules:
            counts = derive_counts(
                engine,
                stratum.all_recursive.delta,
                positive=run.updated,
                negative=run.updated,
                delta_positive=delta,
            )
            engine.recursive_counts.add(counts)
            others = counts.facts


# ------------------------------------------------------------------------- B/F^c-MOD


def maintain_searching(run: Run, stratum: Stratum) -> None:
    """Bring a stratum with modules up to date by B/F^c-MOD."""
    changes = run.changes()
    with run.forwards("delete"):
        candidates = losses(run, stratum, changes, is_final=False)
    delete_unproved(run, stratum, candidates)
    with run.forwards("delete"):
        # What was deleted is known now, and with it the instances that are gone.
        for counts in lost_counts(run, stratum.recursive, run.changes()):
            run.engine.recursive_counts.subtract(counts)
    with run.forwards("insert"):
        nothing = run.engine.no_facts()
        insert(
            run,
            stratum,
            gains(run, stratum, changes),
            [nothing] * (1 + len(stratum.modules)),
        )


def delete_unproved(run: Run, stratum: Stratum, candidates: SettledFacts) -> None:
    """Delete the candidates and what depends on them, unless proved."""
    engine = run.engine
    stage = _remaining(run, stratum)
    search = Search(run, stratum, counted_support(run))
    while True:
        batch = engine.settle(candidates & run.remaining)
        if batch.is_empty():
            return
        delta = search.check(batch)
        if delta.is_empty():
            return
        run.round(delta)
        with run.forwards("delete"):
            following = [module.delete(stage, delta) for module in stratum.modules]
            if stratum.recursive.rules:
                following.append(_affected(run, stratum, delta).facts)
            candidates = run.union(following)
        run.delete(delta)


# ----------------------------------------------------------------------------- views


def _remaining(run: Run, stratum: Stratum) -> Stage:
    return _stage(run, stratum, run.remaining, run.possible)


def _updated(run: Run, stratum: Stratum) -> Stage:
    return _stage(run, stratum, run.updated, run.updated)


def _stage(run: Run, stratum: Stratum, positive: Facts, negative: Facts) -> Stage:
    is_certain = not stratum.all_recursive.rules
    return Stage(run.engine, positive, negative, run.materialised, is_certain)
