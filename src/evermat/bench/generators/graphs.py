"""Random directed acyclic graphs and their transitive closure.

A graph has nodes 0 … n-1 and m distinct edges `i -> j` with `i < j`, each set of m such
pairs being equally likely. With 10,000 nodes and 100,000 edges the closure has about
22.4 million facts, and its linear rules about 103 million instances. At scale `s` there
are `s` times as many nodes and edges; the closure then grows by about `s` squared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.bench.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

LINEAR_CLOSURE = """\
reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""

NONLINEAR_CLOSURE = """\
reach(?x, ?y) :- edge(?x, ?y) .
reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .
"""


def linear_closure(nodes: int, edges: int, seed: int = 1) -> Problem:
    """Transitive closure by a rule with one recursive atom."""
    return Problem(LINEAR_CLOSURE, {"edge": _edge_table(nodes, edges, seed)})


def nonlinear_closure(nodes: int, edges: int, seed: int = 1) -> Problem:
    """Transitive closure by a rule with two recursive atoms."""
    return Problem(NONLINEAR_CLOSURE, {"edge": _edge_table(nodes, edges, seed)})


def _edge_table(nodes: int, edges: int, seed: int) -> pa.Table:
    sources, targets = random_dag(nodes, edges, np.random.default_rng(seed))
    return pa.table({"source": sources, "target": targets})


def random_dag(
    nodes: int, edges: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sources and targets of a random DAG, ordered by source and target."""
    possible = nodes * (nodes - 1) // 2
    if edges > possible:
        message = f"{nodes} nodes have {possible} possible edges, not {edges}"
        raise ValueError(message)
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < edges:
        # About half of the missing pairs are drawn twice over, so that a dense graph
        # needs few rounds as well.
        draws = 2 * (edges - len(keys)) + 16
        ends = np.sort(random.integers(0, nodes, size=(2, draws)), axis=0)
        ends = ends[:, ends[0] < ends[1]]
        keys = distinct(np.concatenate([keys, ends[0] * nodes + ends[1]]))
    kept = np.sort(random.choice(keys, size=edges, replace=False))
    return kept // nodes, kept % nodes


def distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct keys in ascending order; sorting is far quicker than `np.unique`."""
    ordered = np.sort(keys)
    if len(ordered) == 0:
        return ordered
    first = np.empty(len(ordered), dtype=np.bool_)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
