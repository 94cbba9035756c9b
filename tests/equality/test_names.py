"""Built-ins read names as the axioms would have them do, on every engine."""

from __future__ import annotations

import pytest

from evermat.algebra.abilities import UnequalValuesError
from evermat.errors import StratificationError
from evermat.lang.equality import EqualityError
from mutants import Mutant, fails, plant
from name_scenarios import QUERIES, Tracked, story_of

EXAMPLES = 50
"""Stories in which a planted bug must show."""

MUTANTS = (
    Mutant(
        "names stay those of a clique that fell apart",
        "evermat.maintenance.equality.update",
        "run.delete(engine.settle(old - new))",
        "pass",
        "bf",
    ),
    Mutant(
        "names of a clique that grew are forgotten",
        "evermat.maintenance.equality.update",
        "run.add(engine.settle(new - old))",
        "pass",
        "bf",
    ),
    Mutant(
        "all names of a clique are taken for those that moved",
        "evermat.maintenance.equality.names",
        "Views(moved, moved, pairs)",
        "Views(pairs, pairs, pairs)",
        "bf",
    ),
    Mutant(
        "built-ins read representatives only",
        "evermat.lang.names",
        "    yield Atom(NAME, (one, name))\n",
        "",
        "bf",
    ),
    Mutant(
        "constants of built-ins are replaced",
        "evermat.lang.names",
        "return Written(constant, span)",
        "return expression",
        "bf",
    ),
    Mutant(
        "computed names stand for themselves in heads",
        "evermat.lang.names",
        "heads = rule.heads if is_answer else changed.heads",
        "heads = rule.heads",
        "bf",
    ),
    Mutant(
        "computed names are not looked up",
        "evermat.lang.names",
        "    if not made:\n",
        "    if True:\n",
        "bf",
    ),
    Mutant(
        "answers that a built-in chose are multiplied out",
        "evermat.lang.equality",
        "if not isinstance(term, Variable) or term.name in alone",
        "if False",
        "bf",
    ),
    Mutant(
        "equal names are read by rules that equality depends on",
        "evermat.maintenance.equality.update",
        "        if not watching:\n",
        "        if True:\n",
        "bf",
    ),
    Mutant(
        "the first name that is met represents the others",
        "evermat.engines.reference.representatives",
        "winner, loser = sorted((left, right), key=order)",
        "winner, loser = right, left",
        "bf",
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(_play_on_reference, number) for number in range(EXAMPLES))


def _play_on_reference(number: int) -> None:
    _play(number, "reference", "bf")


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_oracle_rules_and_queries_read_names(
    seed: int, engine_name: str, stories: slice
) -> None:
    for number in range(seed, seed + 6)[stories]:
        _play(number, engine_name, ("bf", "dred", "fp", "auto")[number % 4])


def _play(number: int, engine: str, algorithm: str) -> None:
    story = story_of(number)
    try:
        tracked = Tracked(story, engine)
        tracked.apply(frozenset(), story.facts, "auto")
    except (EqualityError, StratificationError, UnequalValuesError):
        return
    tracked.check_queries(QUERIES)
    for gone, come in story.updates:
        try:
            tracked.apply(gone, come, algorithm)
        except (EqualityError, UnequalValuesError):
            tracked.check()
        tracked.check_queries(QUERIES[number % 3 :: 3])
        tracked.check_history()
