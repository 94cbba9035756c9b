"""SSPE, single-source path enumeration: the lengths of all paths from node 0.

A random DAG as in `graphs`, with an integer length from 1 to 100 on each edge. How many
facts come out depends on how early the first nodes after node 0 lie, so it varies a
lot with the seed: 100,000 nodes and 1,000,000 edges give 8 to 40 million.
`SEEDS` lists seeds that give about 8.2 million facts for each 100,000 nodes, which is
the size the workload is known by.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evermat.bench.generators.graphs import random_dag
from evermat.bench.problem import Problem

RULES = """\
dist(?y, ?z) :- edge(0, ?y, ?z) .
dist(?y, ?z) :- dist(?x, ?z1), edge(?x, ?y, ?z2), ?z = ?z1 + ?z2 .
"""

LONGEST = 100

SEEDS = {25_000: 105, 50_000: 38, 100_000: 18, 200_000: 5}
"""For each number of nodes, with ten times as many edges, a seed of the usual size."""


def path_lengths(nodes: int, edges: int, seed: int | None = None) -> Problem:
    """Lengths of the paths from node 0; without a seed, the usual size."""
    chosen = SEEDS.get(nodes, 1) if seed is None else seed
    random = np.random.default_rng(chosen)
    sources, targets = random_dag(nodes, edges, random)
    lengths = random.integers(1, LONGEST + 1, size=edges)
    table = pa.table({"source": sources, "target": targets, "length": lengths})
    return Problem(RULES, {"edge": table})
