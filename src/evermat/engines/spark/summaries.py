"""Statistics that are collected while a plan runs, without a job of their own.

Rows are counted by relation, exactly. For relations with three columns or more, usually
triples, there are also upper bounds for the number of rows with certain constants: most
patterns over triples name a property, and some a class.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark.sql import DataFrame

MOST_TAGS = 40
"""Relations up to which they are counted by the plan: each is a sum over all rows."""
TRIPLE = 3
ERROR = 0.002
"""The share of all rows by which an upper bound may usually be too large."""
CERTAINTY = 0.9
SEED = 1
_METRICS = "metrics"
_HEAD = struct.Struct(">iqii")
_PRIME = (1 << 31) - 1
_MASK = (1 << 64) - 1


class Frequencies:
    """Upper bounds of the rows with a number: a count-min sketch made by Spark."""

    def __init__(self, sketch: bytes) -> None:
        _, _, depth, width = _HEAD.unpack_from(sketch)
        numbers = np.frombuffer(sketch, ">i8", offset=_HEAD.size)
        self._factors = [int(factor) for factor in numbers[:depth]]
        self._counts = numbers[depth:].reshape(depth, width)

    def most(self, number: int) -> int:
        """Return the bound for a number."""
        _, width = self._counts.shape
        return min(
            int(self._counts[row, _place(factor * number, width)])
            for row, factor in enumerate(self._factors)
        )


def _place(product: int, width: int) -> int:
    """Return where a number is counted, as in Spark's `CountMinSketch`."""
    product = _signed(product)
    return (_signed(product + (product >> 32)) & _PRIME) % width


def _signed(number: int) -> int:
    number &= _MASK
    return number - (1 << 64) if number >> 63 else number


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """Statistics of the rows of a plan, by relation.

    Attributes:
        sizes: the number of rows.
        numbers: the sum of `n`, or the number of rows.
        new: the number of rows not marked as old.
        second: bounds for the relation and the second column together.
        third: bounds for the relation, the second and the third column together.
    """

    sizes: Mapping[int, int]
    numbers: Mapping[int, int]
    new: Mapping[int, int] = field(default_factory=dict)
    second: Frequencies | None = None
    third: Frequencies | None = None

    def most(self, tag: int, second: int | None, third: int | None) -> int:
        """Return an upper bound of the rows of a relation with these constants."""
        bound = self.sizes.get(tag, 0)
        if second is None or self.second is None or self.third is None:
            return bound
        bound = min(bound, self.second.most(_with_tag(second, tag)))
        if third is not None:
            pair = _with_tag(second, tag) ^ _signed(third << 1)
            bound = min(bound, self.third.most(pair))
        return bound


def _with_tag(number: int, tag: int) -> int:
    return number ^ (tag << 40)


def observed(
    frame: DataFrame, names: Collection[str], tags: Iterable[int], width: int
) -> tuple[DataFrame, Observed]:
    """Return the same frame, with the statistics that will be known after it is run.

    Args:
        frame: has `tag`, `c0`, …, and optionally `n` and `old`.
        names: the names of its columns.
        tags: all relations that may have rows.
        width: the number of columns of rows.
    """
    from pyspark.sql import Observation, functions  # noqa: PLC0415  slow to load

    tags = tuple(sorted(tags))
    metrics = {"every": "count(1)"}
    for tag in tags:
        condition = f"tag = {tag}L"
        metrics[f"s{tag}"] = f"count_if({condition})"
        if "n" in names:
            metrics[f"n{tag}"] = f"sum(IF({condition}, n, 0L))"
        if "old" in names:
            metrics[f"f{tag}"] = f"count_if({condition} AND NOT old)"
    if width >= TRIPLE:
        second = "c1 ^ shiftleft(tag, 40)"
        for name, number in (
            ("second", second),
            ("third", f"{second} ^ shiftleft(c2, 1)"),
        ):
            metrics[name] = (
                f"count_min_sketch({number}, {ERROR}D, {CERTAINTY}D, {SEED})"
            )
    # One expression is transferred faster than many.
    together = ", ".join(f"{sql} AS {name}" for name, sql in metrics.items())
    column = functions.expr(f"struct({together}) AS {_METRICS}")
    observation = Observation()
    return frame.observe(observation, column), Observed(observation, tags)


class Observed:
    """A summary that is available once its frame has been run."""

    def __init__(self, observation: object, tags: tuple[int, ...]) -> None:
        self._observation = observation
        self._tags = tags

    def summary(self) -> Summary | None:
        """Return the summary; None if rows or a relation were not counted."""
        metrics = getattr(self._observation, "get")  # noqa: B009  the types lack it
        found = metrics[_METRICS].asDict() if metrics else {}
        sizes = {tag: found.get(f"s{tag}", 0) for tag in self._tags}
        if sum(sizes.values()) != found.get("every"):
            return None
        sizes = {tag: size for tag, size in sizes.items() if size}
        numbers = {tag: found.get(f"n{tag}", sizes[tag]) for tag in sizes}
        new = {tag: found.get(f"f{tag}", 0) for tag in sizes}
        sketches = [
            Frequencies(bytes(found[name])) if found.get(name) else None
            for name in ("second", "third")
        ]
        new = {tag: size for tag, size in new.items() if size}
        return Summary(sizes, numbers, new, *sketches)
