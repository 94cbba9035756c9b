"""Closures of real graphs have the sizes, and the facts, that are known."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

import evermat

if TYPE_CHECKING:
    from pathlib import Path

CLOSURE = "reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) ."
SYMMETRY = "reach(?y, ?x) :- reach(?x, ?y) ."
LINEAR = """
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""


def pairs(path: Path) -> list[tuple[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [line.rstrip("\n").split("\t") for line in lines]
    return [(row[0], row[1]) for row in found]


@pytest.mark.parametrize("graph", ["wiki-vote", "tree11", "grid150", "debian-depends"])
def test_sizes_of_closures(graph: str, shared_data: Path) -> None:
    folder = shared_data / "graphs"
    known = json.loads((folder / "counts.json").read_text())[graph]
    edges = pairs(folder / f"{graph}.tsv.gz")
    kb = evermat.KnowledgeBase(CLOSURE)
    kb.insert("reach", edges)
    assert kb.count("reach") == known["transitive_closure"]
    kb.update(add_rules=SYMMETRY)
    assert kb.count("reach") == known["symmetric_transitive_closure"]


@pytest.mark.parametrize("rules", [CLOSURE, LINEAR])
def test_a_real_update(rules: str, shared_data: Path) -> None:
    folder = shared_data / "graphs"
    counts = json.loads((folder / "counts.json").read_text())
    before = counts["debian-depends"]["transitive_closure"]
    after = counts["debian-depends-after-update"]["transitive_closure"]
    predicate = "edge" if rules is LINEAR else "reach"
    kb = evermat.KnowledgeBase(rules)
    kb.insert(predicate, pairs(folder / "debian-depends.tsv.gz"))
    change = kb.update(
        insert={predicate: pairs(folder / "debian-depends-added.tsv.gz")},
        delete={predicate: pairs(folder / "debian-depends-removed.tsv.gz")},
    )
    assert kb.count("reach") == after
    added, removed = change.sizes["reach"]
    assert added - removed == after - before


@pytest.mark.parametrize(
    "part", ["cellular_component", "molecular_function", "biological_process"]
)
def test_all_facts_of_the_gene_ontology(part: str, shared_data: Path) -> None:
    folder = shared_data / "go"
    kb = evermat.KnowledgeBase(CLOSURE)
    kb.insert("reach", pairs(folder / f"{part}-edges.tsv.gz"))
    assert set(kb.facts("reach")) == set(pairs(folder / f"{part}-closure.tsv.gz"))


def count_walks(edges: list[tuple[str, str]]) -> int:
    """How many pairs have a path between them, by walking from every node."""
    following: dict[str, list[str]] = {}
    for start, end in edges:
        following.setdefault(start, []).append(end)
    count = 0
    for start in following:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for end in following.get(todo.pop(), ()):
                if end not in seen:
                    seen.add(end)
                    todo.append(end)
        count += len(seen)
    return count


@pytest.mark.parametrize("reader", ["", "seen(?y) :- reach(?x, ?y) ."])
def test_the_largest_part_of_the_gene_ontology(reader: str, shared_data: Path) -> None:
    edges = pairs(shared_data / "go" / "biological_process-edges.tsv.gz")
    kb = evermat.KnowledgeBase(CLOSURE + reader)
    kb.insert("reach", edges)
    assert kb.count("reach") == count_walks(edges)
    change = kb.delete("reach", edges[::100])
    left = count_walks([edge for at, edge in enumerate(edges) if at % 100])
    assert kb.count("reach") == left
    assert change.sizes["reach"] == (0, count_walks(edges) - left)
