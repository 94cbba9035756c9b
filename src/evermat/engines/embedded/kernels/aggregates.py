"""Grouped aggregation: size, sum, minimum and maximum in one pass over the members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.engines.embedded.kernels.keys import int64, kernel

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids
    from evermat.engines.embedded.kernels.layout import Numbers

SIZE, SUM, LEAST, GREATEST = range(4)
"""Columns of a tally: number of members, their sum, least and greatest id."""

_ids = "uint32[::1]"


@kernel(f"boolean({_ids}, int64, {_ids}, int64, int64, int64[:, ::1])")
def tally(
    groups: Ids, first_group: int, values: Ids, zero: int, first: int, tallies: Numbers
) -> bool:
    """Tally each group, and return whether all values are integers.

    If some value is not an integer, only the sizes are meaningful.

    Args:
        groups: the group number of each member.
        first_group: the least group number.
        values: the id of each member.
        zero: the id of the integer 0.
        first: the least id of an integer.
        tallies: receives a line for each group; see `aggregates`.
    """
    are_integers = True
    for i in range(groups.size):
        at = int64(groups[i]) - first_group
        value = int64(values[i])
        tallies[at, SIZE] += 1
        tallies[at, SUM] += value - zero
        tallies[at, LEAST] = min(tallies[at, LEAST], value)
        tallies[at, GREATEST] = max(tallies[at, GREATEST], value)
        are_integers &= value >= first
    return are_integers
