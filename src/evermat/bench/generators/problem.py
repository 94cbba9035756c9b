"""A generated problem: rules and explicit facts, and updates of these.

A problem can be written to a folder and opened again, so that one process generates it
and others measure: the memory of a generator is then not part of the measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_RULES = "rules.dl"


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A program and its explicit facts, an Arrow table for each predicate."""

    rules: str
    facts: Mapping[str, pa.Table]

    @property
    def size(self) -> int:
        """The number of explicit facts."""
        return sum(table.num_rows for table in self.facts.values())

    def save(self, folder: Path) -> None:
        """Write the problem to a folder: its rules and an Arrow file per predicate."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _RULES).write_text(self.rules, encoding="utf-8")
        for predicate, table in self.facts.items():
            path = str(folder / f"{predicate}.arrow")
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)


def open_problem(folder: Path) -> Problem:
    """Open a saved problem; its tables stay in the files until they are read."""
    facts = {}
    for path in sorted(folder.glob("*.arrow")):
        with pa.memory_map(str(path)) as source:
            facts[path.stem] = pa.ipc.open_file(source).read_all()
    return Problem((folder / _RULES).read_text(encoding="utf-8"), facts)


# ----------------------------------------------------------------------------- updates

# Random updates: samples of the explicit facts of a problem.


def sample(
    problem: Problem, count: int, seed: int, *, only: str | None = None
) -> Mapping[str, pa.Table]:
    """Draw `count` explicit facts, each equally likely, by predicate.

    Args:
        problem: the problem with the facts.
        count: how many; all of them if there are fewer.
        seed: of the random choice.
        only: the one predicate to take facts from, instead of all.
    """
    return divided(problem, count, seed, only=only)[0]


def divided(
    problem: Problem, count: int, seed: int, *, only: str | None = None
) -> tuple[Mapping[str, pa.Table], Problem]:
    """Return the result of `sample`, and the problem without it."""
    predicates = [only] if only is not None else sorted(problem.facts)
    sizes = [problem.facts[predicate].num_rows for predicate in predicates]
    total = sum(sizes)
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(total, size=min(count, total), replace=False))
    starts = np.cumsum([0, *sizes])
    cuts = np.searchsorted(chosen, starts)
    update, left = {}, dict(problem.facts)
    for number, predicate in enumerate(predicates):
        rows = chosen[cuts[number] : cuts[number + 1]] - starts[number]
        if len(rows):
            table = problem.facts[predicate]
            update[predicate] = table.take(pa.array(rows))
            others = np.delete(np.arange(table.num_rows), rows)
            left[predicate] = table.take(pa.array(others))
    return update, Problem(problem.rules, left)


def half(problem: Problem, predicate: str) -> Mapping[str, pa.Table]:
    """Return the second half of a predicate's facts."""
    table = problem.facts[predicate]
    return {predicate: table.slice(table.num_rows // 2)}
