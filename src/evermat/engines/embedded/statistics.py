"""What a sample of a relation's rows tells about all of them.

Plans of queries are chosen by it: it must be quick and seldom far off, not exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.engines.embedded.index import make_keys
from evermat.engines.embedded.kernels import keys as kernels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.engines.embedded.arrays import Ids

SAMPLE = 2048
"""How many rows are looked at."""


class Statistics:
    """Estimates for a table, given by column.

    Attributes:
        count: how many rows it has.
    """

    def __init__(self, table: Ids) -> None:
        self.count = int(table.shape[1])
        self._step = max(1, self.count // SAMPLE)
        self._sample: Ids = table[:, :: self._step].copy()
        self._distinct: dict[tuple[int, ...], float] = {}

    def fan_out(self, columns: tuple[int, ...]) -> float:
        """About how many rows share given values of some columns."""
        if not self.count:
            return 0.0
        distinct = self._distinct.get(columns)
        if distinct is None:
            distinct = self._distinct[columns] = self._estimate_distinct(columns)
        return max(self.count / distinct, 1e-3)

    def frequency(self, values: Mapping[int, int]) -> float:
        """About how many rows have certain values, by column.

        Values are not equally frequent: most triples may have the same predicate.
        """
        usual = self.fan_out(tuple(values))
        seen = np.ones(self._sample.shape[1], np.bool_)
        for column, value in values.items():
            seen &= self._sample[column] == value
        times = int(np.count_nonzero(seen))
        return float(times * self._step) if times else min(usual, float(self._step))

    def _estimate_distinct(self, columns: tuple[int, ...]) -> float:
        sample = make_keys(self._sample[list(columns)])
        sample = kernels.sort_keys(sample, np.empty_like(sample))
        different = int(np.count_nonzero(sample[1:] != sample[:-1])) + 1
        if self._step == 1:
            return float(different)
        once = sample[1:-1][
            (sample[1:-1] != sample[:-2]) & (sample[1:-1] != sample[2:])
        ].size
        # Values seen once in the sample stand for values not seen at all.
        return float(different + once * (self._step - 1))
