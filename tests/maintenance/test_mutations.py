"""Planted bugs that the random tests must find; see docs/testing.md.

Each mutant replaces one piece of an algorithm's source text. A test suite that lets one
of them pass would let the real mistake pass, too.
"""

from __future__ import annotations

from itertools import chain

import pytest

from evermat.engines import make_engine
from mutants import Mutant, plant
from skeletons import half_checked, scenario
from tracked import Tracked

EXAMPLES = 300
"""Scenarios that are tried; most mutants fall within the first fifty."""


MUTANTS = (
    Mutant(
        "DRed forgets given facts when it rederives",
        "derivations",
        "held = [engine.settle(facts & run.explicit)]",
        "held = [engine.no_facts()]",
        "dred",
    ),
    Mutant(
        "DRed hides facts of the same round from each other",
        "dred",
        "        # `deleted` must not contain `delta` yet",
        "        run.delete(delta)\n        # `deleted` must not contain `delta` yet",
        "dred",
    ),
    Mutant(
        "DRed rederives by nonrecursive rules only",
        "dred",
        "holding(run, deleted, stratum.nonrecursive, stratum.recursive)",
        "holding(run, deleted, stratum.nonrecursive)",
        "dred",
    ),
    Mutant(
        "DRed rederives from facts that were just deleted",
        "derivations",
        "Views(run.remaining, run.possible, facts)\n        held",
        "Views(run.materialised, run.possible, facts)\n        held",
        "dred",
    ),
    Mutant(
        "a fact is asked about no further when the first rules do not derive it",
        "derivations",
        "        facts = engine.settle(facts - held[-1])\n",
        "        facts = engine.settle(facts & held[-1])\n",
        "dred",
    ),
    Mutant(
        "DRed does not look at what was lost through recursive rules below",
        "dred",
        "            *lost(run, stratum.recursive, changes),\n",
        "",
        "dred",
    ),
    Mutant(
        "DRed^c deletes facts with nonrecursive support",
        "dred_counting",
        "delta = engine.nonrecursive_counts.zero(candidates - run.deleted)",
        "delta = engine.settle(candidates - run.deleted)",
        "dred-c",
    ),
    Mutant(
        "DRed^c does not rederive",
        "dred_counting",
        "[rederived, *gains(run, stratum, changes)]",
        "gains(run, stratum, changes)",
        "dred-c",
    ),
    Mutant(
        "DRed^c forgets to count down in later rounds",
        "dred_counting",
        "            delta_positive=delta,\n        )\n"
        "        engine.recursive_counts.subtract(counts)",
        "            delta_positive=delta,\n        )",
        "dred-c",
    ),
    Mutant(
        "DRed^c overdeletes against the wrong negative facts",
        "dred_counting",
        "negative=run.possible,",
        "negative=run.materialised,",
        "dred-c",
    ),
    Mutant(
        "DRed^c overdeletes against all old facts",
        "dred_counting",
        "positive=run.remaining,",
        "positive=run.materialised,",
        "dred-c",
    ),
    Mutant(
        "insertion counts only instances of the old rules",
        "seminaive",
        "        counts = derive_counts(\n            run.engine,\n"
        "            rules.delta,",
        "        counts = derive_counts(\n            run.engine,\n"
        "            stratum.recursive.delta,",
        "dred-c",
    ),
    Mutant(
        "insertion stops after one round",
        "seminaive",
        "        candidates = derive(\n            run.engine,\n"
        "            rules.delta,\n"
        "            positive=run.updated,\n            negative=run.updated,\n"
        "            delta_positive=delta,\n        )",
        "        return",
        "bf",
    ),
    Mutant(
        "new facts below are not seen through negation",
        "affected",
        "Views(run.updated, run.updated, changes.gained, changes.lost)",
        "Views(run.updated, run.updated, changes.gained)",
        "dred-c",
    ),
    Mutant(
        "lost facts below are not seen through negation",
        "affected",
        "Views(run.materialised, run.materialised, changes.lost, changes.gained)",
        "Views(run.materialised, run.materialised, changes.lost)",
        "bf-c",
    ),
    Mutant(
        "lost instances are looked for among the new facts",
        "affected",
        "Views(run.materialised, run.materialised, changes.lost, changes.gained)",
        "Views(run.possible, run.possible, changes.lost, changes.gained)",
        "dred-c",
    ),
    Mutant(
        "new rules are taken for old ones",
        "affected",
        "    if new.rules:\n        yield new.full, Views(run.updated, run.updated)",
        "    if new.rules:\n        yield new.delta, "
        "Views(run.updated, run.updated, changes.gained, changes.lost)",
        "dred",
    ),
    Mutant(
        "B/F takes checked facts for proved ones",
        "backward_forward",
        "return engine.settle(batch - self.proved)",
        "return engine.settle(batch - self.checked)",
        "bf",
    ),
    Mutant(
        "B/F forgets delayed facts",
        "backward_forward",
        "engine.settle((facts & self.delayed) | sure)",
        "engine.settle(sure)",
        "bf-c",
    ),
    Mutant(
        "B/F keeps half-checked facts when a search ends early",
        "backward_forward",
        "                self.checked.discard(visited - self.proved)\n",
        "",
        "bf-c",
    ),
    Mutant(
        "B/F proves facts from facts that are not proved",
        "backward_forward",
        "                    local=self.proved,\n",
        "",
        "bf",
    ),
    Mutant(
        "B/F looks one step back only",
        "backward_forward",
        "            todo = engine.settle(self._bodies(todo) - self.checked)",
        "            todo = engine.no_facts()",
        "bf",
    ),
    Mutant(
        "B/F overlooks given facts",
        "derivations",
        "return run.union(held)",
        "return run.union(held[1:])",
        "bf",
    ),
    Mutant(
        "B/F asks for proofs of facts that no rule derives",
        "backward_forward",
        "        if not self.stratum.is_closed:\n",
        "        if False:\n",
        "bf",
    ),
    Mutant(
        "B/F^c does not count down",
        "backward_forward_counting",
        "        run.engine.nonrecursive_counts.subtract(counts)\n",
        "",
        "bf-c",
    ),
    Mutant(
        "FP-update restores by recursive rules only",
        "fixpoint_update",
        "    for rules in (stratum.nonrecursive, stratum.recursive):\n"
        "        if rules.rules:\n            derived",
        "    for rules in (stratum.recursive,):\n"
        "        if rules.rules:\n            derived",
        "fp",
    ),
    Mutant(
        "FP-update overestimates one round only",
        "fixpoint_update",
        "        if not stratum.recursive.rules:\n            return\n",
        "        return\n",
        "fp",
    ),
    Mutant(
        "FP-update restores from the old fixpoint",
        "fixpoint_update",
        "run.engine, rules.full, positive=run.updated, negative=run.updated",
        "run.engine, rules.full, positive=run.materialised, negative=run.updated",
        "fp",
    ),
    Mutant(
        "counts of recursive rules are not brought in line",
        "counters",
        "    bring_nonrecursive_in_line(run)\n    bring_recursive_in_line(run)\n",
        "    bring_nonrecursive_in_line(run)\n",
        "dred",
    ),
    Mutant(
        "given facts are not counted",
        "counters",
        "        engine.nonrecursive_counts.add(engine.once(update.insertions))",
        "        pass",
        "dred-c",
    ),
    Mutant(
        "facts of removed rules stay",
        "rule_updates",
        "            heads |= counts.facts\n",
        "",
        "dred-c",
    ),
    Mutant(
        "rules that change sides keep their counts where they were",
        "rule_updates",
        "            target.add(counts)",
        "            source.add(counts)",
        "dred-c",
    ),
    Mutant(
        "facts of no stratum go although they are given",
        "run",
        "facts - self.explicit - self.deleted",
        "facts - self.deleted",
        "dred-c",
    ),
    Mutant(
        "a stratum is not visited when only its rules change",
        "run",
        "waiting = set(self.strata.changed)",
        "waiting: set[int] = set()",
        "dred",
    ),
    Mutant(
        "a stratum is not visited when only facts below it change",
        "run",
        "waiting.update(reader for reader in readers if reader > position)",
        "pass",
        "dred",
    ),
    Mutant(
        "deleting and inserting a fact deletes it",
        "requests",
        "engine.settle(given_among(unwanted) - wanted)",
        "given_among(unwanted)",
        "dred-c",
    ),
    Mutant(
        "derived facts can be deleted",
        "requests",
        "engine.settle(given_among(unwanted) - wanted)",
        "engine.settle(unwanted - wanted)",
        "dred",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert is_found(mutant.algorithm)


def test_without_a_bug_nothing_is_found() -> None:
    assert not is_found("bf-c", examples=20)


def is_found(algorithm: str, examples: int = EXAMPLES) -> bool:
    """Whether random scenarios show a difference to the oracle, or an error."""
    for story in chain([half_checked()], map(scenario, range(examples))):
        tracked = Tracked(make_engine("reference"))
        tracked.load(story.rules, story.facts)
        try:
            for update in story.updates:
                tracked.apply(update, algorithm)
        except Exception:  # noqa: BLE001  any failure is a finding
            return True
    return False
