"""Counts the rows that Spark hands to the driver, whichever way they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import DataFrame


def count_collected(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list to which the number of rows of every result on the driver is added."""
    from pyspark.sql.classic.dataframe import (  # noqa: PLC0415  only with Spark
        DataFrame as Frame,
    )

    counts: list[int] = []
    for name in ("collect", "toArrow", "toPandas", "take", "head", "toLocalIterator"):
        original = getattr(Frame, name)

        def counted(
            self: DataFrame, *rest: Any, original: Any = original, **named: Any
        ) -> Any:
            found = original(self, *rest, **named)
            rows = getattr(found, "num_rows", None)
            counts.append(len(list(found or ())) if rows is None else rows)
            return found

        monkeypatch.setattr(Frame, name, counted)
    return counts
