"""Planted bugs that the random tests must find; see docs/testing.md.

Each mutant replaces one expression of an algorithm. A test suite that lets one of them
pass would let the real mistake pass, too.
"""

# ruff: noqa: SLF001, N803  mutants are made in private functions, and speak of classes

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest

from evermat.algebra import Engine, fixpoint
from evermat.engines import make_engine
from evermat.maintenance import (
    backward_forward,
    context,
    counting,
    dred,
    dred_counting,
    fixpoint_update,
    rules,
    update,
)
from evermat.maintenance.context import Run
from planting import Mutant, plant
from skeletons import half_checked, scenario
from tracked import Tracked

if TYPE_CHECKING:
    from evermat.maintenance.counting import CountersSetting

EXAMPLES = 300
"""Scenarios that are tried; most mutants fall within the first fifty."""
FIRST = (8, 16, 38, 69, 75, 83)
"""Scenarios that are known to show mutants, and are tried before the others."""


MUTANTS = (
    Mutant(
        "DRed forgets given facts when it rederives",
        context.holding,
        lambda run, rules, views: run.engine.derivable(rules, views, run.explicit),
        lambda run, rules, views: run.engine.derivable(
            rules, views, run.engine.no_facts()
        ),
        algorithm="dred",
    ),
    Mutant(
        "DRed hides facts of the same round from each other",
        Run.overdelete,
        lambda Saturation: Saturation(..., enters_first=False),
        lambda Saturation: Saturation(..., enters_first=True),
        algorithm="dred",
    ),
    Mutant(
        "DRed rederives by nonrecursive rules only",
        dred.rederive,
        lambda holding, run, deleted, stratum: holding(
            run, deleted, stratum.nonrecursive, stratum.recursive
        ),
        lambda holding, run, deleted, stratum: holding(
            run, deleted, stratum.nonrecursive
        ),
        algorithm="dred",
    ),
    Mutant(
        "DRed rederives from facts that were just deleted",
        context.holding,
        lambda Views, run, facts: Views(run.remaining, run.possible, facts),
        lambda Views, run, facts: Views(run.materialised, run.possible, facts),
        algorithm="dred",
    ),
    Mutant(
        "DRed does not look at what was lost through recursive rules below",
        dred.losses,
        lambda losing, run, stratum, changes: losing(run, stratum.recursive, changes),
        lambda: (),
        algorithm="dred",
    ),
    Mutant(
        "DRed^c deletes facts with nonrecursive support",
        dred_counting.overdelete,
        lambda run, nonrecursive: run.overdelete(..., zero=nonrecursive),
        lambda run: run.overdelete(...),
        algorithm="dred-c",
    ),
    Mutant(
        "DRed^c does not rederive",
        dred_counting.maintain,
        lambda rederived, run, stratum: [rederived, run.insertions_in(stratum)],
        lambda run, stratum: [run.insertions_in(stratum)],
        algorithm="dred-c",
    ),
    Mutant(
        "DRed^c forgets to count down in later rounds",
        dred_counting.overdelete,
        lambda run, recursive: run.overdelete(..., counters=recursive),
        lambda run: run.overdelete(...),
        algorithm="dred-c",
    ),
    Mutant(
        "DRed^c overdeletes against the wrong negative facts",
        Run.overdelete,
        lambda Views, self: Views(self.remaining, self.possible),
        lambda Views, self: Views(self.remaining, self.materialised),
        algorithm="dred-c",
    ),
    Mutant(
        "DRed^c overdeletes against all old facts",
        Run.overdelete,
        lambda Views, self: Views(self.remaining, self.possible),
        lambda Views, self: Views(self.materialised, self.possible),
        algorithm="dred-c",
    ),
    Mutant(
        "insertion counts only instances of the old rules",
        dred_counting.maintain,
        lambda stratum: stratum.all_recursive.delta_queries,
        lambda stratum: stratum.recursive.delta_queries,
        algorithm="dred-c",
    ),
    Mutant(
        "insertion stops after one round",
        Run.insert,
        lambda rules, Application, views, counters: (
            None if rules is None else Application(rules, views, counters)
        ),
        algorithm="bf",
    ),
    Mutant(
        "a saturation overlooks what its first rules derive",
        fixpoint.apply_first,
        lambda apply_rules, engine, task, application: apply_rules(
            engine, task, application
        ),
        lambda apply_rules, engine, task, application: (
            apply_rules(engine, task, application),
            engine.no_facts(),
        )[1],
        algorithm="dred",
    ),
    Mutant(
        "a saturation admits what is there already",
        fixpoint.apply_round,
        lambda candidates, task: candidates - task.unless,
        lambda candidates, task: candidates - task.into,
        algorithm="dred-c",
    ),
    Mutant(
        "derivations that are lost are counted up",
        fixpoint.apply_rules,
        lambda task: task.is_deletion,
        lambda: False,
        algorithm="dred-c",
    ),
    Mutant(
        "new facts below are not seen through negation",
        context._gained,
        lambda Views, run, changes: Views(
            run.updated, run.updated, changes.gained, changes.lost
        ),
        lambda Views, run, changes: Views(run.updated, run.updated, changes.gained),
        algorithm="dred-c",
    ),
    Mutant(
        "lost facts below are not seen through negation",
        context._lost,
        lambda Views, run, changes: Views(
            run.materialised, run.materialised, changes.lost, changes.gained
        ),
        lambda Views, run, changes: Views(
            run.materialised, run.materialised, changes.lost
        ),
        algorithm="bf-c",
    ),
    Mutant(
        "lost instances are looked for among the new facts",
        context._lost,
        lambda Views, run, changes: Views(
            run.materialised, run.materialised, changes.lost, changes.gained
        ),
        lambda Views, run, changes: Views(
            run.possible, run.possible, changes.lost, changes.gained
        ),
        algorithm="dred-c",
    ),
    Mutant(
        "new rules are taken for old ones",
        context._gained,
        lambda new, Views, run: (new.full, Views(run.updated, run.updated)),
        lambda new, Views, run, changes: (
            new.delta,
            Views(run.updated, run.updated, changes.gained, changes.lost),
        ),
        algorithm="dred",
    ),
    Mutant(
        "B/F takes checked facts for proved ones",
        fixpoint._Levels.check,
        lambda batch, search: batch - search.proved,
        lambda batch, search: batch - search.checked,
        algorithm="bf",
    ),
    Mutant(
        "B/F forgets delayed facts",
        fixpoint._Levels._saturate,
        lambda facts, search, sure: facts & search.delayed | sure,
        lambda sure: sure,
        algorithm="bf-c",
    ),
    Mutant(
        "B/F keeps half-checked facts when a search ends early",
        fixpoint._Levels.check,
        lambda search, visited: search.checked.discard(visited - search.proved),
        algorithm="bf-c",
    ),
    Mutant(
        "B/F proves facts from facts that are not proved",
        fixpoint._Levels._following,
        lambda Views, search, delta: Views(
            search.positive, search.negative, delta, local=search.proved
        ),
        lambda Views, search, delta: Views(search.positive, search.negative, delta),
        algorithm="bf",
    ),
    Mutant(
        "B/F looks one step back only",
        fixpoint._Levels.check,
        lambda engine, self, todo, search: engine.settle(
            self._bodies(todo) - search.checked
        ),
        lambda engine: engine.no_facts(),
        algorithm="bf",
    ),
    Mutant(
        "B/F overlooks given facts",
        Engine.derivable,
        lambda changed, explicit: changed & explicit,
        lambda self: self.no_facts(),
        algorithm="bf",
    ),
    Mutant(
        "B/F asks for proofs of facts that no rule derives",
        fixpoint._Levels._saturate,
        lambda search: search.region is not None,
        lambda: False,
        algorithm="bf",
    ),
    Mutant(
        "B/F^c does not count down",
        backward_forward.counted_losses,
        lambda run, counts: run.engine.nonrecursive_counts.subtract(counts),
        algorithm="bf-c",
    ),
    Mutant(
        "FP-update restores nothing",
        fixpoint_update.restore,
        lambda rederive, run, stratum: rederive(run, stratum),
        lambda run: run.engine.no_facts(),
        algorithm="fp",
    ),
    Mutant(
        "FP-update overestimates one round only",
        fixpoint_update.overestimate,
        lambda rules, Application, views: (
            None if rules is None else Application(rules, views)
        ),
        algorithm="fp",
    ),
    Mutant(
        "FP-update overestimates what is left only, and may use two facts of a round",
        fixpoint_update.overestimate,
        lambda Views, run: Views(run.materialised, run.materialised),
        lambda Views, run: Views(run.remaining, run.possible),
        algorithm="fp",
    ),
    Mutant(
        "counts of recursive rules are not brought in line",
        counting.bring_in_line,
        lambda bring_recursive_in_line, run: bring_recursive_in_line(run),
        algorithm="dred",
    ),
    Mutant(
        "given facts are not counted",
        counting.count_explicit,
        lambda engine, update: engine.nonrecursive_counts.add(
            engine.once(update.insertions)
        ),
        algorithm="dred-c",
    ),
    Mutant(
        "facts of removed rules stay",
        rules.undermine_counting,
        lambda counts: counts.facts,
        lambda engine: engine.no_facts(),
        algorithm="dred-c",
    ),
    Mutant(
        "rules that change sides keep their counts where they were",
        rules.reclassify,
        lambda target: target.add,
        lambda source: source.add,
        algorithm="dred-c",
    ),
    Mutant(
        "facts of no stratum go although they are given",
        Run.delete_base,
        lambda facts, self: facts - self.explicit,
        lambda facts: facts,
        algorithm="dred-c",
    ),
    Mutant(
        "a stratum is not visited when only its rules change",
        Run.touched_strata,
        lambda self: self.strata.changed,
        lambda: (),
        algorithm="dred",
    ),
    Mutant(
        "a stratum is not visited when only facts below it change",
        Run.touched_strata,
        lambda waiting, readers, position: waiting.update(
            reader for reader in readers if reader > position
        ),
        algorithm="dred",
    ),
    Mutant(
        "deleting and inserting a fact deletes it",
        update.read_request,
        lambda engine, explicit_among, unwanted, wanted: engine.settle(
            explicit_among(unwanted) - wanted
        ),
        lambda explicit_among, unwanted: explicit_among(unwanted),
        algorithm="dred-c",
    ),
    Mutant(
        "derived facts can be deleted",
        update.read_request,
        lambda explicit_among, unwanted: explicit_among(unwanted),
        lambda unwanted: unwanted,
        algorithm="dred",
    ),
)


ONE_COUNTER_MUTANTS = (
    Mutant(
        "the only counter counts recursive derivations, too",
        rules._counters_of,
        lambda recursive, compiled, rule, nonrecursive: (
            recursive if rule in compiled.recursive else nonrecursive
        ),
        lambda nonrecursive: nonrecursive,
        algorithm="bf-c",
    ),
    Mutant(
        "the only counter is not brought in line",
        counting.bring_in_line,
        lambda Kept, counted, kept: counted < Kept.NONRECURSIVE <= kept,
        lambda: False,
        algorithm="bf",
    ),
    Mutant(
        "rules that go are not taken out of the only counter",
        rules.undermine_counting,
        lambda counters, counts: counters.subtract(counts),
        algorithm="bf-c",
    ),
)


@pytest.mark.parametrize("mutant", ONE_COUNTER_MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found_by_one_counter(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(mutant, monkeypatch)
    assert is_found(mutant.algorithm, counters="nonrecursive")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert is_found(mutant.algorithm)


def test_without_a_bug_nothing_is_found() -> None:
    assert not is_found("bf-c", examples=20)


def is_found(
    algorithm: str, examples: int = EXAMPLES, *, counters: CountersSetting = True
) -> bool:
    """Whether random scenarios show a difference to the oracle, or an error."""
    for story in chain(
        [half_checked()], map(scenario, FIRST), map(scenario, range(examples))
    ):
        tracked = Tracked(make_engine("reference"), counters=counters)
        tracked.load(story.rules, story.facts)
        try:
            for update in story.updates:
                tracked.apply(update, algorithm)
        except Exception:  # noqa: BLE001  any failure is a finding
            return True
    return False
