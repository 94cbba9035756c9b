"""Example 1 of the paper on DRed with counters: work that only backwards rules do.

`R(a_i, b)` and `R(a_i, c_i)` for i = 1 … n, and one rule. Materialising takes time
linear in n. Deleting all `R(a_i, c_i)` overdeletes 3n facts; a rule that is matched from
its head backwards, one fact at a time, then looks at n candidates for each of n facts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evermat.bench.problem import Problem

RULES = "s(?y1, ?y2) :- r(?x, ?y1), r(?x, ?y2) .\n"


def backward_work(n: int) -> Problem:
    """The facts `r(a_i, b)` and `r(a_i, c_i)`; a, b and c are ranges of integers."""
    return Problem(RULES, {"r": pa.concat_tables([_hub(n), spokes(n)])})


def spokes(n: int) -> pa.Table:
    """The facts `r(a_i, c_i)`, which the update deletes."""
    numbers = np.arange(1, n + 1, dtype=np.int64)
    return pa.table({"x": numbers, "y": numbers + n})


def _hub(n: int) -> pa.Table:
    numbers = np.arange(1, n + 1, dtype=np.int64)
    return pa.table({"x": numbers, "y": np.zeros(n, dtype=np.int64)})
