"""Planted bugs that random programs with equality must find; see docs/testing.md."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, cast

import pytest

import equality_skeletons
from equality_scenarios import play, scenario_of
from evermat.engines import make_engine
from evermat.errors import StratificationError
from evermat.lang.equality import EqualityError
from mutants import Mutant, plant

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.engine_abilities import EqualityEngine

EXAMPLES = 70
"""Scenarios of each sort that are tried; most mutants fall within the first thirty."""

MUTANTS = (
    Mutant(
        "B/F^≈ takes facts for proved whose cliques are not",
        "equality",
        "        if broken.is_empty():\n            return found\n",
        "        return found\n",
        "bf",
    ),
    Mutant(
        "B/F^≈ forgets facts that mention a doubtful clique",
        "equality",
        "candidates = engine.settle(derived | self._split(nodes))",
        "candidates = derived",
        "bf",
    ),
    Mutant(
        "B/F^≈ does not restore what was merged",
        "equality",
        "            engine.restore(after, members, self.new)\n",
        "",
        "bf",
    ),
    Mutant(
        "B/F^≈ forgets proofs that were found before anybody asked",
        "equality",
        "sure: Facts = facts & self.delayed",
        "sure: Facts = engine.no_facts()",
        "bf",
    ),
    Mutant(
        "the same for facts with names that were represented by others",
        "equality",
        "if not self.delayed_images.is_empty():",
        "if False:",
        "bf",
    ),
    Mutant(
        "B/F^≈ does not rewrite proved facts when names turn out to be equal",
        "equality",
        "news: Facts = engine.rewrite(outdated, self.new)",
        "news: Facts = engine.no_facts()",
        "bf",
    ),
    Mutant(
        "B/F^≈ forgets what is left of a clique",
        "equality",
        "        self.nodes = engine.settle(self.nodes | nodes)\n",
        "",
        "bf",
    ),
    Mutant(
        "B/F^≈ does not apply rules again whose constants were merged",
        "equality",
        "        if after is not before:\n",
        "        if False:\n",
        "bf",
    ),
    Mutant(
        "B/F^≈ takes facts for disproved of which some part is proved",
        "equality",
        "run.materialised - (run.deleted - self.images)",
        "run.materialised - run.deleted",
        "bf",
    ),
    Mutant(
        "closures are not told what other rules derive",
        "modular_materialise",
        "if inputs is None or closure.pattern.relation in inputs[at].relations()",
        "if inputs is None",
        "bf",
    ),
    Mutant(
        "deleted facts still prove others",
        "equality_state",
        "return self.engine.settle(explicit - implied - self.deletions)",
        "return self.engine.settle(explicit - implied)",
        "bf",
    ),
    Mutant(
        "insertion keeps facts of constants that lost their status",
        "equality_insertion",
        "setting.run.take_back(engine.settle(outdated.within(before.region)))",
        "pass",
        "bf",
    ),
    Mutant(
        "insertion does not apply rules again whose constants were merged",
        "equality_insertion",
        "        if after is not before:\n",
        "        if False:\n",
        "bf",
    ),
    Mutant(
        "rules whose constants were merged before are not applied again",
        "equality_rules",
        "if rule in self._component and old.get(rule, rule) != new.get(rule, rule)",
        "if rule in self._component and rule not in old",
        "bf",
    ),
    Mutant(
        "other rules do not see that constants in them have changed",
        "equality_update",
        "RuleChange(tuple(old - new), tuple(new - old))",
        "RuleChange()",
        "bf",
    ),
    Mutant(
        "B/F^≈ overlooks what is given under other names",
        "equality_told",
        "held = engine.settle(told & still)",
        "held = engine.no_facts()",
        "bf",
    ),
    Mutant(
        "B/F^≈ takes facts to have been given under one name",
        "equality_told",
        "engine.settle(facts & self._crowded(given))",
        "engine.no_facts()",
        "bf",
    ),
    Mutant(
        "B/F^≈ trusts all cliques of facts of which something is still given",
        "equality_told",
        "found = following(self.run, self.rules, safe)",
        "found = engine.no_facts()",
        "bf",
    ),
    Mutant(
        "B/F^≈ forgets what is given of facts about a clique that falls apart",
        "equality",
        "        self._prove(told)\n",
        "",
        "bf",
    ),
    Mutant(
        "B/F^≈ forgets what depends on such facts",
        "equality",
        "engine.settle((mentioned - told) | self.told.lose(told, given))",
        "engine.settle((mentioned - told) | (self.told.lose(told, given) & told))",
        "bf",
    ),
    Mutant(
        "a rule with one atom is thought to need two facts",
        "equality_rules",
        "return any(one in place and other in place for place in places)",
        "return True",
        "bf",
    ),
    Mutant(
        "given facts of a split clique keep their old form",
        "equality_update",
        "affected = engine.settle(given.before(found) | deletions)",
        "affected = deletions",
        "bf",
    ),
    Mutant(
        "a given fact that equality came to matter to is taken to be alone",
        "equality_update",
        "            deletions = engine.settle(deletions | more)\n",
        "",
        "bf",
    ),
    Mutant(
        "a given fact without other names is deleted, and nothing with it",
        "equality_told",
        "doubtful = (facts | alone) - safe - lost",
        "doubtful = facts - safe - lost",
        "bf",
    ),
    Mutant(
        "a given fact with other names takes them along",
        "equality_update",
        "withdrawn=engine.settle(gone | (behind.facts - still)),",
        "withdrawn=engine.settle(gone | behind.facts),",
        "bf",
    ),
    Mutant(
        "a representative is forgotten as long as another name is given",
        "equality_update",
        "cleared=engine.settle(gone | (touched - still)),",
        "cleared=engine.settle(gone | touched),",
        "bf",
    ),
    Mutant(
        "a representative that is not given any more is not marked",
        "equality_update",
        "self._mark_implied(touched, engine.settle(still - behind.given))",
        "self._mark_implied(touched, engine.no_facts())",
        "bf",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert is_found(mutant.algorithm)


def is_found(algorithm: str) -> bool:
    """Whether random scenarios show a difference to the oracle, or an error."""
    new_engine = cast("Callable[[], EqualityEngine]", partial(make_engine, "reference"))
    for story in chain(
        equality_skeletons.BY_HAND,
        map(equality_skeletons.scenario_of, range(EXAMPLES)),
        map(scenario_of, range(EXAMPLES)),
    ):
        try:
            play(story, (algorithm,), new_engine)
        except (EqualityError, StratificationError):
            continue
        except Exception:  # noqa: BLE001  any failure is a finding
            return True
    return False
