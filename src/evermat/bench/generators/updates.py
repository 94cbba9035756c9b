"""Random updates: samples of the explicit facts of a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.bench.problem import Problem


def sample(
    problem: Problem, count: int, seed: int, *, only: str | None = None
) -> Mapping[str, pa.Table]:
    """That many explicit facts, each equally likely, by predicate.

    Args:
        problem: where the facts come from.
        count: how many; all of them if there are not so many.
        seed: of the random choice.
        only: the one predicate to take facts from, instead of all.
    """
    predicates = [only] if only is not None else sorted(problem.facts)
    sizes = [problem.facts[predicate].num_rows for predicate in predicates]
    total = sum(sizes)
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(total, size=min(count, total), replace=False))
    starts = np.cumsum([0, *sizes])
    cuts = np.searchsorted(chosen, starts)
    update = {}
    for number, predicate in enumerate(predicates):
        rows = chosen[cuts[number] : cuts[number + 1]] - starts[number]
        if len(rows):
            update[predicate] = problem.facts[predicate].take(pa.array(rows))
    return update


def half(problem: Problem, predicate: str) -> Mapping[str, pa.Table]:
    """The second half of a predicate's facts; for Example 1 all `r(a_i, c_i)`."""
    table = problem.facts[predicate]
    return {predicate: table.slice(table.num_rows // 2)}
