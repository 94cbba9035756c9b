"""Exports workloads as files for other systems: facts, rules, updates, answers.

A workload is a folder:

    program.dl              the rules
    facts/PREDICATE.csv     the explicit facts; triples as N-Triples
    updates/01/delete/…     the deletions of the first update; others have `insert/`
    answers.json            for each step and predicate, the number of facts, and
                            a digest

`evermat bench run --program program.dl --facts facts --updates updates` runs it. A
digest is the SHA-256 of the sorted lines of a predicate, including line ends; a line
has the values of a fact as plain text, separated by tabs.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from evermat.api import KnowledgeBase
from evermat.bench.generators.problem import sample
from evermat.bench.processes import say
from evermat.bench.workloads import WORKLOADS
from evermat.lang.syntax import TRIPLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from evermat.bench.generators.problem import Problem

SHARES = (0.0, 0.001, 0.01, 0.1)
"""Shares of the facts that are deleted, and inserted again: one fact, and then more."""


def export(folder: Path, *, scale: float, only: Iterable[str] = ()) -> list[Path]:
    """Write workloads into folders; return these.

    Raises:
        ValueError: there is no such workload.
    """
    names = tuple(only) or tuple(WORKLOADS)
    for name in names:
        if name not in WORKLOADS:
            message = f"there is no workload `{name}`: {', '.join(WORKLOADS)}"
            raise ValueError(message)
    return [
        export_problem(WORKLOADS[name].make(scale), folder / name) for name in names
    ]


def export_problem(problem: Problem, folder: Path) -> Path:
    """Write one workload."""
    say(f"{folder.name}: {problem.size:,} facts")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.dl").write_text(problem.rules, encoding="utf-8")
    write_tables(problem.facts, folder / "facts")
    base = KnowledgeBase(problem.rules, equality="off")
    base.load(problem.facts)
    steps = {"loaded": answers(base)}
    number = 0
    for share in SHARES:
        rows = sample(problem, max(1, round(share * problem.size)), seed=number)
        for step in ("delete", "insert"):
            number += 1
            name = f"{number:02}"
            write_tables(rows, folder / "updates" / name / step)
            if step == "delete":
                base.update(delete=rows)
            else:
                base.update(insert=rows)
            steps[name] = answers(base)
    text = json.dumps(steps, indent=2) + "\n"
    (folder / "answers.json").write_text(text, encoding="utf-8")
    return folder


def write_tables(tables: Mapping[str, pa.Table], folder: Path) -> None:
    """Write facts, a file for each predicate."""
    folder.mkdir(parents=True, exist_ok=True)
    for predicate, table in tables.items():
        base = KnowledgeBase(equality="off")
        base.load({predicate: table})
        suffix = "nt" if predicate == TRIPLE else "csv"
        base.facts(predicate).write(folder / f"{predicate}.{suffix}")


def answers(base: KnowledgeBase) -> dict[str, dict[str, object]]:
    """Return the number of facts of each predicate, and their digest."""
    found: dict[str, dict[str, object]] = {}
    for predicate in base.predicates:
        lines = sorted("\t".join(map(str, row)) + "\n" for row in base.facts(predicate))
        digest = sha256("".join(lines).encode()).hexdigest()
        found[predicate] = {"facts": len(lines), "sha256": digest}
    return found
