"""Compiled loops over the members of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.engines.embedded.kernels.keys import int64, kernel

if TYPE_CHECKING:
    from evermat.engines.embedded.arrays import Ids
    from evermat.engines.embedded.kernels.layout import Numbers

SIZE, SUM, LEAST, GREATEST = range(4)
"""What is known of a group: how many members, their sum, and two of their ids."""

_ids = "uint32[::1]"


@kernel(f"boolean({_ids}, int64, {_ids}, int64, int64, int64[:, ::1])")
def tally(
    groups: Ids, first_group: int, values: Ids, zero: int, first: int, tallies: Numbers
) -> bool:
    """Size, sum, least and greatest of each group; whether all values are integers.

    Where they are not, only sizes mean something.

    Args:
        groups: a number for each member.
        first_group: the least of the numbers.
        values: the ids of the members.
        zero: the id of the integer 0.
        first: the least id of an integer.
        tallies: is given a line for each group; see `aggregates`.
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
