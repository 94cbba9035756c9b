"""Built-ins read names as the axioms would have them do, on every engine."""

# ruff: noqa: SLF001, N803  mutants are made in private functions, and speak of classes

from __future__ import annotations

import pytest

from evermat.algebra.equality import UnequalValuesError
from evermat.engines.reference.equality import Cliques
from evermat.errors import StratificationError
from evermat.lang import equality_builtins
from evermat.lang.equality import EqualityError, answers_with_names
from evermat.maintenance.equality.program import names_of
from evermat.maintenance.equality.update import EqualityUpdate
from name_scenarios import QUERIES, TURNED, Tracked, story_of
from planting import Mutant, fails, plant

EXAMPLES = 50
"""Stories in which a planted bug must show."""

MUTANTS = (
    Mutant(
        "names stay those of a clique that fell apart",
        EqualityUpdate._change_names,
        lambda run, engine, old, new: run.delete(engine.settle(old - new)),
    ),
    Mutant(
        "names of a clique that grew are forgotten",
        EqualityUpdate._change_names,
        lambda run, engine, old, new: run.add(engine.settle(new - old)),
    ),
    Mutant(
        "all names of a clique are taken for those that moved",
        names_of,
        lambda Views, moved, pairs: Views(moved, moved, pairs),
        lambda Views, pairs: Views(pairs, pairs, pairs),
    ),
    Mutant(
        "built-ins read representatives only",
        equality_builtins._ways,
        lambda Atom, NAME, one, name: (yield Atom(NAME, (one, name))),
    ),
    Mutant(
        "constants of built-ins are replaced",
        equality_builtins.as_written,
        lambda Written, constant, span: Written(constant, span),
        lambda expression: expression,
    ),
    Mutant(
        "computed names stand for themselves in heads",
        equality_builtins.divided,
        lambda rule, is_answer, changed: rule.heads if is_answer else changed.heads,
        lambda rule: rule.heads,
    ),
    Mutant(
        "computed names are not looked up",
        equality_builtins.divided,
        lambda made: not made,
        lambda: True,
    ),
    Mutant(
        "answers that a built-in chose are multiplied out",
        answers_with_names,
        lambda term, Variable, alone: (
            not isinstance(term, Variable) or term.name in alone
        ),
        lambda: False,
    ),
    Mutant(
        "equal names are read by rules that equality depends on",
        EqualityUpdate.require_apart,
        lambda watching: not watching,
        lambda: True,
    ),
    Mutant(
        "the first name that is met represents the others",
        Cliques.unite,
        lambda left, right, order: sorted((left, right), key=order),
        lambda left, right: (right, left),
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mutant, monkeypatch)
    assert any(fails(_play_on_reference, number) for number in range(-1, EXAMPLES))


def _play_on_reference(number: int) -> None:
    _play(number, "reference", "bf")


@pytest.mark.parametrize("algorithm", ["bf", "dred", "fp"])
def test_representatives_do_not_depend_on_how_an_equality_is_written(
    engine_name: str, algorithm: str
) -> None:
    _play(-1, engine_name, algorithm)


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_oracle_rules_and_queries_read_names(
    seed: int, engine_name: str, stories: slice
) -> None:
    for number in range(seed, seed + 6)[stories]:
        _play(number, engine_name, ("bf", "dred", "fp", "auto")[number % 4])


def _play(number: int, engine: str, algorithm: str) -> None:
    story = TURNED if number < 0 else story_of(number)
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
