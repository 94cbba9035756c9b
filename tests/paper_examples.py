"""The worked examples of the papers, small enough to know every intermediate value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from engine_facts import make_facts, rows_of, tables
from evermat.kb.materialisation import Materialisation
from evermat.lang.parser import parse_rules

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.algebra import Engine, Snapshot
    from evermat.lang.syntax import Rule
    from evermat.maintenance.limits import Budget, Progress
    from evermat.maintenance.update import Outcome

Rows = Iterable[tuple[object, ...]]
Change = Mapping[str, Rows] | str | None


class Request(TypedDict):
    """The arguments of an update."""

    delete: dict[str, pa.Table]
    insert: dict[str, pa.Table]
    add_rules: tuple[Rule, ...]
    remove_rules: tuple[Rule, ...]


def _rows(change: Change) -> Mapping[str, Rows]:
    return change if isinstance(change, Mapping) else {}


class Example:
    """A materialisation that speaks of facts as Python tuples."""

    def __init__(
        self,
        engine: Engine,
        rules: str,
        *,
        counters: bool = True,
        budget: Budget | None = None,
        progress: Progress | None = None,
        **facts: Rows,
    ) -> None:
        self.materialisation = Materialisation(engine, counters=counters)
        self.update(insert=facts, add_rules=rules, algorithm="remat")
        self.materialisation.budget = budget
        self.materialisation.progress = progress

    def update(self, *, algorithm: str = "auto", **change: Change) -> Outcome:
        """Delete and insert rows by predicate; add and remove rules as texts."""
        request = self._request(**change)
        return self.materialisation.update(**request, algorithm=algorithm)

    def plan(self, *, algorithm: str = "auto", **change: Change) -> Outcome:
        """A dry run of `update`."""
        request = self._request(**change)
        return self.materialisation.plan(**request, algorithm=algorithm)

    def _request(
        self,
        *,
        delete: Change = None,
        insert: Change = None,
        add_rules: Change = "",
        remove_rules: Change = "",
    ) -> Request:
        return {
            "delete": dict(tables(make_facts(**_rows(delete)))),
            "insert": dict(tables(make_facts(**_rows(insert)))),
            "add_rules": parse_rules(str(add_rules)),
            "remove_rules": parse_rules(str(remove_rules)),
        }

    def rows(self, predicate: str) -> set[tuple[object, ...]]:
        """The facts of a predicate."""
        return set(self.counts(predicate))

    def counts(self, predicate: str) -> dict[tuple[object, ...], tuple[int, int]]:
        """C_nr and C_r of the facts of a predicate."""
        table = self.materialisation.engine.read_counts(predicate)
        width = table.num_columns - 2
        rows = rows_of(table.select(range(width)))
        numbers = zip(
            table.column("c_nr").to_pylist(),
            table.column("c_r").to_pylist(),
            strict=True,
        )
        return {
            tuple(value.value for value in row): both
            for row, both in zip(rows, numbers, strict=True)
        }


def values(snapshot: Snapshot, predicate: str) -> set[tuple[object, ...]]:
    """The rows of a predicate in a snapshot."""
    if predicate not in snapshot.relations():
        return set()
    rows = rows_of(snapshot.read(predicate))
    return {tuple(value.value for value in row) for row in rows}


SYMMETRIC_PAIRS = "s(?y1, ?y2) :- r(?x, ?y1), r(?x, ?y2) ."
"""Example 1 of the counting paper."""


def symmetric_pairs(number: int) -> list[tuple[object, ...]]:
    """R(aᵢ, b) and R(aᵢ, cᵢ)."""
    hubs = [(f"a{i}", "b") for i in range(number)]
    return [*hubs, *((f"a{i}", f"c{i}") for i in range(number))]


PATH_LENGTHS = """
    d(?y, ?z) :- b("a", ?y, ?z) .
    d(?y, ?z) :- d(?x, ?z1), b(?x, ?y, ?z2), ?z = ?z1 + ?z2 .
"""
"""Example 2 of the counting paper."""


def path_lengths(number: int) -> list[tuple[object, ...]]:
    """B(a, b₁, 1), B(a, cᵢ, 1) and B(bᵢ, dⱼ, 1)."""
    edges: list[tuple[object, ...]] = [("a", "b1", 1)]
    edges += [("a", f"c{i}", 1) for i in range(1, number + 1)]
    edges += [
        (f"b{i}", f"d{j}", 1)
        for i in range(1, number + 1)
        for j in range(1, number + 1)
    ]
    return edges


CHAIN = "a(?y) :- a(?x), b(?x, ?y) ."
"""Example 3 of the counting paper."""

CHAIN_FACTS: dict[str, Any] = {
    "a": [("a",), ("b",), ("d",)],
    "b": [("a", "c"), ("b", "c"), ("c", "d"), ("d", "e")],
}

REACHABILITY = """
    reach(?s, ?d) :- edge(?s, ?d) .
    reach(?s, ?d) :- reach(?s, ?i), edge(?i, ?d) .
"""
"""Example 2 of the FP-update paper."""

GRAPH = ["ab", "ac", "be", "cf", "ed", "dg", "ef", "fg", "fh"]
"""A graph in which Table 1 of that paper holds; its Figure 3 is a picture."""


def pairs(words: Iterable[str]) -> set[tuple[object, ...]]:
    """`pairs(["ab"])` is `{("a", "b")}`."""
    return {tuple(word) for word in words}
