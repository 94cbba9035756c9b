"""The part of the dictionary that is on the cluster: a table of ids, kinds and texts.

It consists of levels, each of them checkpointed and immutable; levels of similar size
are merged. No id is in two levels, nor in a level and on the driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evermat.columns import TERM
from evermat.engines.spark.dictionary import DigestCollisionError
from evermat.engines.spark.joins import hint_for, hint_for_terms
from evermat.engines.spark.session import TERMS_AT_ONCE, written_down
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.dictionary import Ids


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Constants on the cluster.

    Attributes:
        checkpoint: keeps the files, and their cached rows.
    """

    view: str
    size: int
    checkpoint: DataFrame


class SpreadTerms:
    """Constants on the cluster, each of them once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._levels: list[_Level] = []
        self.unsaved: list[DataFrame] = []
        """Constants added since this list was last emptied, if it is kept."""

    def __len__(self) -> int:
        return sum(level.size for level in self._levels)

    def query(self) -> str | None:
        """Return a query for `id`, `kind` and `text` of all constants, or None."""
        parts = [f"SELECT id, kind, text FROM {each.view}" for each in self._levels]  # noqa: S608
        return " UNION ALL ".join(parts) or None

    def find(self, ids: Ids) -> tuple[Ids, pa.StructArray]:
        """Return those of the ids that exist, and their constants."""
        stored, cluster = self.query(), self._cluster
        if stored is None:
            return np.empty(0, np.int64), pa.array([], TERM)
        wanted = cluster.register_table(pa.table({"id": ids}))
        hint = hint_for(cluster, ids.size)
        table = cluster.collect(
            f"SELECT /*+ {hint}(w) */ t.id, t.kind, t.text FROM ({stored}) t "  # noqa: S608
            f"JOIN {wanted} w ON t.id = w.id",
            ids.size,
            TERMS_AT_ONCE,
        )
        cluster.waste.append((wanted, None))
        return np.asarray(table["id"].to_numpy(), np.int64), term_structs(table)

    # ----------------------------------------------------------------------- adding

    def append(self, terms: pa.Table) -> None:
        """Add new constants: columns `id`, `kind` and `text`."""
        view = self._cluster.register_table(terms)
        # The driver has recorded them as unsaved, if there is such a list.
        self._keep(f"SELECT id, kind, text FROM {view}", terms.num_rows)  # noqa: S608
        self._cluster.waste.append((view, None))
        # The driver has sent all of them, which takes a lot of memory in Java.
        self._cluster.clean()

    def add(self, new: str, *, is_saved: bool = False) -> None:
        """Add the constants of a query, which may have duplicates.

        Args:
            new: a query for `id`, `kind` and `text`.
            is_saved: whether they come from saved constants.

        Raises:
            DigestCollisionError: two constants have the same id.
        """
        cluster, dictionary = self._cluster, self._cluster.dictionary
        # Each id with two of its constants, which are equal unless there is a
        # collision.
        each = (
            "SELECT id, min(struct(kind, text)) AS one, max(struct(kind, text)) AS "  # noqa: S608
            f"other FROM ({new}) GROUP BY id"
        )
        here = cluster.register_table(dictionary.terms())
        there = f"SELECT id, kind, text FROM {here}"  # noqa: S608
        stored = self.query()
        if stored is not None:
            there = f"{there} UNION ALL {stored}"
        hint = hint_for_terms(cluster)
        compared = (
            f"SELECT /*+ {hint}(o) */ n.id, n.one.kind, n.one.text, "  # noqa: S608
            "CASE WHEN n.one <> n.other THEN n.other "
            "WHEN o.id IS NOT NULL AND struct(o.kind, o.text) <> n.one "
            "THEN struct(o.kind, o.text) END AS clash, o.id IS NOT NULL AS known "
            f"FROM ({each}) n LEFT JOIN ({there}) o ON n.id = o.id"
        )
        frame = written_down(cluster.sql(compared))
        view = cluster.register(frame)
        summary = cluster.sql(
            "SELECT count_if(NOT known) AS new, max(CASE WHEN clash IS NOT NULL THEN "  # noqa: S608
            "struct(struct(kind, text) AS one, clash AS other) END) AS clash "
            f"FROM {view}"
        ).collect()[0]
        cluster.jobs += 2
        cluster.waste += [(here, None), (view, None)]
        if summary["clash"] is not None:
            raise DigestCollisionError(
                *(_shown(summary["clash"][name]) for name in ("one", "other"))
            )
        if summary["new"]:
            chosen = f"SELECT id, kind, text FROM {view} WHERE NOT known"  # noqa: S608
            level = self._keep(chosen, summary["new"])
            if dictionary.unsaved is not None and not is_saved:
                self.unsaved.append(level.checkpoint)
            dictionary.version += 1

    def _keep(self, sql: str, size: int) -> _Level:
        level = self._level(sql, size)
        levels = self._levels
        levels.append(level)
        while len(levels) > 1 and levels[-2].size < 2 * levels[-1].size:
            right, left = levels.pop(), levels.pop()
            sql = " UNION ALL ".join(f"TABLE {each.view}" for each in (left, right))
            levels.append(self._level(sql, left.size + right.size))
            self._cluster.waste += [(each.view, None) for each in (left, right)]
        return level

    def _level(self, sql: str, size: int) -> _Level:
        cluster = self._cluster
        cluster.jobs += 1
        # By id, so that a join with ids finds them where they are.
        frame = cluster.sql(f"SELECT * FROM ({sql}) DISTRIBUTE BY id")  # noqa: S608
        checkpoint = written_down(frame)
        return _Level(cluster.register(checkpoint), size, checkpoint)


def term_structs(table: pa.Table) -> pa.StructArray:
    """Return the columns `kind` and `text` of a table as a column of terms."""
    kinds = table["kind"].combine_chunks().cast(pa.uint8())
    texts = table["text"].combine_chunks().cast(pa.string())
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))


def _shown(term: Any) -> str:  # noqa: ANN401  a row of Spark
    return str(Constant(Kind(term["kind"]), term["text"]))
