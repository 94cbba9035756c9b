"""Points-to analysis in the CSPA form: value flow, value alias and memory alias.

The ten rules are those of the context-sensitive pointer analysis that graph systems for
program analysis are compared on. `assign(x, y)` is an assignment of y to x, and
`dereference(x, y)` says that y is what x points to. Both lead between variables whose
numbers are at most `distance` apart, as statements of one function are close together.
With 50,000 variables, 32,000 assignments, 10,700 dereferences and distance 40, the
materialisation has 2.7 to 3.7 million facts, depending on the seed; with the usual seed
it has 2.70 million, from 184 million rule instances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.bench.generators.graphs import distinct
from evermat.bench.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

RULES = """\
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
    """A program of that many variables and statements."""
    random = np.random.default_rng(seed)
    facts = {
        "assign": _near_pairs(variables, assignments, distance, random),
        "dereference": _near_pairs(variables, dereferences, distance, random),
    }
    return Problem(RULES, facts)


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
