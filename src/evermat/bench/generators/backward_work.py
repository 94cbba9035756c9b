"""Example 1 of the paper on DRed with counters: work that only backwards rules do.

`R(a_i, b)` and `R(a_i, c_i)` for i = 1 … n, and one rule. Materialising takes time
linear in n. Deleting all `R(a_i, c_i)` overdeletes 3n facts; a rule that is matched
from its head backwards, one fact at a time, then looks at n candidates for each of n.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evermat.bench.problem import Problem

RULES = "s(?y1, ?y2) :- r(?x, ?y1), r(?x, ?y2) .\n"


def backward_work(n: int) -> Problem:
    """The facts `r(a_i, b)`, then the facts `r(a_i, c_i)`, which the update deletes.

    The a, b and c are integers: 1 to n, 0, and n + 1 to 2n.
    """
    numbers = np.arange(1, n + 1, dtype=np.int64)
    hub = pa.table({"x": numbers, "y": np.zeros(n, dtype=np.int64)})
    spokes = pa.table({"x": numbers, "y": numbers + n})
    return Problem(RULES, {"r": pa.concat_tables([hub, spokes])})
