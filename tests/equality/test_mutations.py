"""Planted bugs that random programs with equality must find; see docs/testing.md."""

# ruff: noqa: SLF001, N803  mutants are made in private functions, and speak of classes

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
from evermat.maintenance import modular
from evermat.maintenance.equality import program
from evermat.maintenance.equality.deletion import BaseFacts, Deletion
from evermat.maintenance.equality.program import ExplicitFacts
from evermat.maintenance.equality.update import EqualityUpdate, Insertion
from planting import Mutant, plant

if TYPE_CHECKING:
    from collections.abc import Callable

    from evermat.algebra.engine import Engine

EXAMPLES = 70
"""Scenarios of each sort that are tried; most mutants fall within the first thirty."""
FIRST = (52, 35, 18, 15, 9)
"""Hard programs that are known to show mutants, and are tried before the others."""
FIRST_DRAWN = (0, 69)
"""The same for programs that are drawn."""

MUTANTS = (
    Mutant(
        "B/F^≈ takes facts for proved whose cliques are not",
        Deletion._proved,
        lambda broken: broken.is_empty(),
        lambda: True,
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ forgets facts that mention a doubtful clique",
        Deletion.delete,
        lambda engine, derived, self, nodes: engine.settle(
            derived | self._split(nodes)
        ),
        lambda derived: derived,
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ does not restore what was merged",
        Deletion._propagate,
        lambda engine, after, members, self: engine.restore(after, members, self.new),
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ forgets proofs that were found before anybody asked",
        Deletion._sure,
        lambda facts, self: facts & self.delayed,
        lambda engine: engine.no_facts(),
        algorithm="bf",
    ),
    Mutant(
        "the same for facts with names that were represented by others",
        Deletion._sure,
        lambda self: not self.delayed_images.is_empty(),
        lambda: False,
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ does not rewrite proved facts when names turn out to be equal",
        Deletion._merge,
        lambda engine, outdated, self: engine.rewrite(outdated, self.new),
        lambda engine: engine.no_facts(),
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ forgets what is left of a clique",
        Deletion._merge,
        lambda engine, self, nodes: engine.settle(self.nodes | nodes),
        lambda self: self.nodes,
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ does not apply rules again whose constants were merged",
        Deletion._merge,
        lambda after, before: after is not before,
        lambda: False,
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ takes facts for disproved of which some part is proved",
        Deletion._reasons,
        lambda run, self: run.deleted - self.images,
        lambda run: run.deleted,
        algorithm="bf",
    ),
    Mutant(
        "closures are not told what other rules derive",
        modular.materialise_closing,
        lambda inputs, closure, at: (
            inputs is None or closure.pattern.relation in inputs[at].relations()
        ),
        lambda inputs: inputs is None,
        algorithm="bf",
    ),
    Mutant(
        "deleted facts still prove others",
        ExplicitFacts.kept,
        lambda explicit, implied, self: explicit - implied - self.deletions,
        lambda explicit, implied: explicit - implied,
        algorithm="bf",
    ),
    Mutant(
        "insertion keeps facts of constants that lost their status",
        Insertion._merge,
        lambda setting, engine, outdated, before: setting.run.retract(
            engine.settle(outdated.within(before.region))
        ),
        algorithm="bf",
    ),
    Mutant(
        "insertion does not apply rules again whose constants were merged",
        Insertion._merge,
        lambda after, before: after is not before,
        lambda: False,
        algorithm="bf",
    ),
    Mutant(
        "rules whose constants were merged before are not applied again",
        program.NormalRules.changed_since,
        lambda old, new, rule: old.get(rule, rule) != new.get(rule, rule),
        lambda old, rule: rule not in old,
        algorithm="bf",
    ),
    Mutant(
        "other rules do not see that constants in them have changed",
        EqualityUpdate.maintain_others,
        lambda RuleChange, old, new: RuleChange(tuple(old - new), tuple(new - old)),
        lambda RuleChange: RuleChange(),
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ overlooks what is given under other names",
        BaseFacts.delete,
        lambda engine, told, still: engine.settle(told & still),
        lambda engine: engine.no_facts(),
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ takes facts to have been given under one name",
        BaseFacts.lose,
        lambda engine, facts, self, given: engine.settle(facts & self._crowded(given)),
        lambda engine: engine.no_facts(),
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ trusts all cliques of facts of which something is still given",
        BaseFacts.delete,
        lambda following, self, safe: following(self.run, self.rules, safe),
        lambda engine: engine.no_facts(),
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ forgets what is given of facts about a clique that falls apart",
        Deletion._split,
        lambda self, told: self._prove(told),
        algorithm="bf",
    ),
    Mutant(
        "B/F^≈ forgets what depends on such facts",
        Deletion._split,
        lambda self, told, given: self.base.lose(told, given),
        lambda self, told, given: self.base.lose(told, given) & told,
        algorithm="bf",
    ),
    Mutant(
        "a rule with one atom is thought to need two facts",
        program._takes_two,
        lambda one, other, places: any(
            one in place and other in place for place in places
        ),
        lambda: True,
        algorithm="bf",
    ),
    Mutant(
        "given facts of a split clique keep their old form",
        EqualityUpdate._marks_of_changes,
        lambda engine, given, found, deletions: engine.settle(
            given.before(found) | deletions
        ),
        lambda deletions: deletions,
        algorithm="bf",
    ),
    Mutant(
        "a given fact that equality came to matter to is taken to be alone",
        EqualityUpdate._marks_of_changes,
        lambda engine, deletions, more: engine.settle(deletions | more),
        lambda deletions: deletions,
        algorithm="bf",
    ),
    Mutant(
        "a given fact without other names is deleted, and nothing with it",
        BaseFacts.delete,
        lambda facts, alone: facts | alone,
        lambda facts: facts,
        algorithm="bf",
    ),
    Mutant(
        "a given fact with other names takes them along",
        EqualityUpdate._marks_of_deletions,
        lambda behind, still: behind.facts - still,
        lambda behind: behind.facts,
        algorithm="bf",
    ),
    Mutant(
        "a representative is forgotten as long as another name is given",
        EqualityUpdate._marks_of_deletions,
        lambda touched, still: touched - still,
        lambda touched: touched,
        algorithm="bf",
    ),
    Mutant(
        "a representative that is not given any more is not marked",
        EqualityUpdate._marks_of_deletions,
        lambda engine, still, preimages: engine.settle(still - preimages.explicit),
        lambda engine: engine.no_facts(),
        algorithm="bf",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert is_found(mutant.algorithm)


def is_found(algorithm: str) -> bool:
    """Whether random scenarios show a difference to the oracle, or an error."""
    new_engine = cast("Callable[[], Engine]", partial(make_engine, "reference"))
    for story in chain(
        equality_skeletons.BY_HAND,
        map(equality_skeletons.scenario_of, FIRST),
        map(scenario_of, FIRST_DRAWN),
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
