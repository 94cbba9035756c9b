"""Built-ins read names as the axioms would have them do, on every engine."""

from __future__ import annotations

import pytest

from evermat.algebra.abilities import UnequalValuesError
from evermat.errors import StratificationError
from evermat.lang.equality import EqualityError
from name_scenarios import QUERIES, Tracked, story_of


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
