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

from evermat.bench.generators.problem import Problem

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
        # About half of the missing pairs are drawn twice, so that a dense graph needs
        # few rounds as well.
        draws = 2 * (edges - len(keys)) + 16
        ends = np.sort(random.integers(0, nodes, size=(2, draws)), axis=0)
        ends = ends[:, ends[0] < ends[1]]
        keys = distinct(np.concatenate([keys, ends[0] * nodes + ends[1]]))
    kept = np.sort(random.choice(keys, size=edges, replace=False))
    return kept // nodes, kept % nodes


def distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct keys in ascending order; far faster than `np.unique`."""
    ordered = np.sort(keys)
    if len(ordered) == 0:
        return ordered
    first = np.empty(len(ordered), dtype=np.bool_)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


# ------------------------------------------------------------------------ path lengths

# SSPE, single-source path enumeration: the lengths of all paths from node 0.
#
# A random DAG as in `graphs`, with an integer length from 1 to 100 on each edge. The
# number of derived facts depends on how early the first nodes after node 0 are, so it
# varies a lot with the seed: 100,000 nodes and 1,000,000 edges give 8 to 40 million.
# `SEEDS` lists seeds that give about 8.2 million facts per 100,000 nodes, which is the
# usual size of the workload.


PATH_LENGTHS = """\
dist(?y, ?z) :- edge(0, ?y, ?z) .
dist(?y, ?z) :- dist(?x, ?z1), edge(?x, ?y, ?z2), ?z = ?z1 + ?z2 .
"""

LONGEST = 100

SEEDS = {25_000: 105, 50_000: 38, 100_000: 18, 200_000: 5}
"""Seeds of the usual size by number of nodes, with ten times as many edges."""


def path_lengths(nodes: int, edges: int, seed: int | None = None) -> Problem:
    """Lengths of the paths from node 0; without a seed, the usual size."""
    chosen = SEEDS.get(nodes, 1) if seed is None else seed
    random = np.random.default_rng(chosen)
    sources, targets = random_dag(nodes, edges, random)
    lengths = random.integers(1, LONGEST + 1, size=edges)
    table = pa.table({"source": sources, "target": targets, "length": lengths})
    return Problem(PATH_LENGTHS, {"edge": table})


# --------------------------------------------------------------------------- points to

# Points-to analysis in the CSPA form: value flow, value alias and memory alias.
#
# The ten rules are those of the context-sensitive pointer analysis that graph systems
# for program analysis are compared on. `assign(x, y)` is an assignment of y to x, and
# `dereference(x, y)` says that y is what x points to. Both lead between variables whose
# numbers are at most `distance` apart, as statements of one function are close
# together. With 50,000 variables, 32,000 assignments, 10,700 dereferences and distance
# 40, the materialisation has 2.7 to 3.7 million facts, depending on the seed; with the
# usual seed it has 2.70 million, from 184 million rule instances.


POINTS_TO = """\
value_flow(?y, ?x) :- assign(?y, ?x) .
value_flow(?x, ?y) :- assign(?x, ?z), memory_alias(?z, ?y) .
value_flow(?x, ?y) :- value_flow(?x, ?z), value_flow(?z, ?y) .
memory_alias(?x, ?w) :- dereference(?y, ?x), value_alias(?y, ?z), dereference(?z, ?w) .
value_alias(?x, ?y) :- value_flow(?z, ?x), value_flow(?z, ?y) .
value_alias(?x, ?y) :- value_flow(?z, ?x), memory_alias(?z, ?w), value_flow(?w, ?y) .
value_flow(?x, ?x) :- assign(?x, ?y) .
value_flow(?x, ?x) :- assign(?y, ?x) .
memory_alias(?x, ?x) :- assign(?y, ?x) .
memory_alias(?x, ?x) :- assign(?x, ?y) .
"""


def points_to(
    variables: int,
    assignments: int,
    dereferences: int,
    *,
    distance: int = 40,
    seed: int = 3,
) -> Problem:
    """A program with some numbers of variables and statements."""
    random = np.random.default_rng(seed)
    facts = {
        "assign": _near_pairs(variables, assignments, distance, random),
        "dereference": _near_pairs(variables, dereferences, distance, random),
    }
    return Problem(POINTS_TO, facts)


def _near_pairs(
    variables: int, wanted: int, distance: int, random: np.random.Generator
) -> pa.Table:
    """Distinct ordered pairs of different variables that are near each other."""
    keys: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    while len(keys) < wanted:
        draws = 2 * (wanted - len(keys)) + 16
        left = random.integers(0, variables, size=draws)
        right = left + random.integers(-distance, distance + 1, size=draws)
        fine = (right >= 0) & (right < variables) & (left != right)
        keys = distinct(np.concatenate([keys, (left * variables + right)[fine]]))
    kept = np.sort(random.choice(keys, size=wanted, replace=False))
    return pa.table({"left": kept // variables, "right": kept % variables})


# ----------------------------------------------------------------------- backward work

# Example 1 of the paper on DRed with counters: rules that are only expensive backwards.
#
# `R(a_i, b)` and `R(a_i, c_i)` for i = 1 … n, and one rule. Materialising takes time
# linear in n. Deleting all `R(a_i, c_i)` overdeletes 3n facts; a rule that is matched
# from its head backwards, one fact at a time, then examines n candidates for each of n.


BACKWARD_WORK = "s(?y1, ?y2) :- r(?x, ?y1), r(?x, ?y2) .\n"


def backward_work(n: int) -> Problem:
    """The facts `r(a_i, b)`, then the facts `r(a_i, c_i)`, which the update deletes.

    The a, b and c are integers: 1 to n, 0, and n + 1 to 2n.
    """
    numbers = np.arange(1, n + 1, dtype=np.int64)
    hub = pa.table({"x": numbers, "y": np.zeros(n, dtype=np.int64)})
    spokes = pa.table({"x": numbers, "y": numbers + n})
    return Problem(BACKWARD_WORK, {"r": pa.concat_tables([hub, spokes])})
