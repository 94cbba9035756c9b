"""What a generator gives: rules and the facts they are run on.

A problem can be written to a folder and opened again, so that one process generates it
and others measure: the memory a generator needs is then no part of what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
        """Write the problem to a folder: a text and an Arrow file per predicate."""
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
