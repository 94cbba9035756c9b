"""Rematerialisation: forget what was derived and start again from the given facts.

The baseline that every other algorithm must beat, and the best choice when a large part
of the facts changes. It works on a fresh engine, so that a failure costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from evermat.algebra import Engine, Facts
    from evermat.maintenance.limits import Watch


def copy_given(engine: Engine, watch: Watch, *, without: Facts, also: Facts) -> Engine:
    """A fresh engine with the facts that are given after an update."""
    fresh = engine.fresh()
    fresh.monitor = watch.monitor
    engine.copy_explicit(fresh, without=without, also=also)
    return fresh


def load_given(engine: Engine, watch: Watch, tables: Mapping[str, pa.Table]) -> Engine:
    """A fresh engine with rows of tables as its given facts."""
    fresh = engine.fresh()
    fresh.monitor = watch.monitor
    fresh.load(tables.items())
    return fresh
