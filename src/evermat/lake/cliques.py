"""What stands for equal constants, as rows of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import STORED_NUMBERS
from evermat.columns import as_terms

if TYPE_CHECKING:
    from evermat.maintenance.driver import NewCliques


def clique_changes(cliques: NewCliques) -> pa.Table:
    """Pairs of a constant and what stands for it: those that leave, those that come.

    A constant that stands for itself is in no pair.
    """
    members = as_terms(cliques.members.column(0))
    return pa.concat_tables(
        [
            _pairs(members, as_terms(cliques.before.column(0)), -1),
            _pairs(members, as_terms(cliques.after.column(0)), 1),
        ]
    )


def _pairs(members: pa.StructArray, ones: pa.StructArray, holds: int) -> pa.Table:
    """Rows like those of facts, which begin or cease to hold."""
    is_other = pc.or_(
        *(
            pc.not_equal(pc.struct_field(members, [at]), pc.struct_field(ones, [at]))
            for at in (0, 1)
        )
    )
    pairs = pa.table([members, ones], names=["0", "1"]).filter(is_other)
    nothing = pa.array(np.zeros(pairs.num_rows, np.int64))
    pairs = pairs.append_column(
        STORED_NUMBERS[0], pa.array(np.full(pairs.num_rows, holds, np.int64))
    )
    for name in STORED_NUMBERS[1:]:
        pairs = pairs.append_column(name, nothing)
    return pairs
