"""Skewed keys: join keys that have more rows than one task should get.

All rows of a key go to the same task. If one side of a join has a key with a large
share of its rows, and the other side has few rows for it, these few are broadcast, and
the many stay where they are; only the other keys are shuffled. Heavy keys are found in
samples of both sides, by one job for each pair of large sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.engines.spark.joins import BROADCAST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.engines.spark.blocks import Cluster

MANY = 1_000_000
"""Number of rows of both sides from which heavy keys are searched for."""
SAMPLE = 20_000
"""Approximate number of sampled rows of each side."""
MOST_KEYS = 100
HEAVY = 0.5
"""A key is heavy if it has this share of a task's rows in an even distribution."""


@dataclass(frozen=True, slots=True)
class Side:
    """A side of a join: a scan with its keys, and its number of rows."""

    sql: str
    rows: int


@dataclass(frozen=True, slots=True)
class HeavyKeys:
    """Conditions on the key columns; None if no key is heavy.

    Attributes:
        left: the key is heavy on the left side, and light on the right one.
        right: the other way round.
    """

    left: str | None = None
    right: str | None = None

    def __bool__(self) -> bool:
        return self.left is not None or self.right is not None


def find_heavy_keys(
    cluster: Cluster, left: Side, right: Side, keys: Sequence[str]
) -> HeavyKeys:
    """Return the keys of a join that are heavy on one of its sides."""
    if min(left.rows, right.rows) < MANY:
        return HeavyKeys()
    names = ", ".join(keys)
    samples = " UNION ALL ".join(
        f"SELECT {names}, {at} AS side FROM ({side.sql}) "  # noqa: S608
        f"TABLESAMPLE ({min(100.0, 100 * SAMPLE / side.rows):.6f} PERCENT)"
        for at, side in enumerate((left, right))
    )
    counts = cluster.collect(
        f"SELECT {names}, count_if(side = 0) AS l, count_if(side = 1) AS r "  # noqa: S608
        f"FROM ({samples}) GROUP BY {names} ORDER BY greatest(l, r) DESC "
        f"LIMIT {MOST_KEYS}"
    )
    tasks = int(cluster.session.conf.get("spark.sql.shuffle.partitions") or 1)
    heavy: tuple[list[str], list[str]] = ([], [])
    for row in counts.to_pylist():
        found = [
            row[name] * max(1.0, side.rows / SAMPLE)
            for name, side in (("l", left), ("r", right))
        ]
        is_heavy = [
            many * tasks > HEAVY * side.rows
            for many, side in zip(found, (left, right), strict=True)
        ]
        key = f"({', '.join(f'{row[name]}L' for name in keys)})"
        for at in (0, 1):
            is_light = not is_heavy[1 - at] and found[1 - at] * MOST_KEYS <= BROADCAST
            if is_heavy[at] and is_light:
                heavy[at].append(key)
    return HeavyKeys(*(_condition(keys, each) for each in heavy))


def _condition(keys: Sequence[str], heavy: list[str]) -> str | None:
    if not heavy:
        return None
    return f"({', '.join(keys)}) IN ({', '.join(heavy)})"


def join_apart(
    left: str,
    right: str,
    names: str,
    keys: Sequence[str],
    heavy: HeavyKeys,
    hint: str,
) -> str:
    """Return a join of two queries in which heavy keys are not shuffled.

    Args:
        left: a query for one side.
        right: a query for the other.
        names: the columns of the result.
        keys: the columns that both sides have.
        heavy: conditions for keys.
        hint: the join hint for the other keys.
    """
    either = " OR ".join(each for each in (heavy.left, heavy.right) if each)
    parts = [(hint, f"NOT ({either})")]
    if heavy.left:
        parts.append(("/*+ BROADCAST(r) */", heavy.left))
    if heavy.right:
        parts.append(("/*+ BROADCAST(l) */", heavy.right))
    using = ", ".join(keys)
    return " UNION ALL ".join(
        f"SELECT {hint} {names} FROM (SELECT * FROM ({left}) WHERE {where}) l "  # noqa: S608
        f"JOIN (SELECT * FROM ({right}) WHERE {where}) r USING ({using})"
        for hint, where in parts
    )
