"""Descriptions of the Spark engine's work: places of facts, and rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.engines.spark.decomposition import decompose
from evermat.errors.wording import counted

if TYPE_CHECKING:
    from evermat.algebra import Query, QuerySet
    from evermat.engines.spark.blocks import Cluster


def layout_lines(cluster: Cluster) -> list[str]:
    """Describe where facts and constants are, and how they are partitioned."""
    session, dictionary = cluster.session, cluster.dictionary
    parts = session.conf.get("spark.sql.shuffle.partitions")
    here, there = dictionary.size_here, len(cluster.terms)
    sets = (
        f"sets of up to {cluster.small:,} facts on the driver, without a job; others "
        f"on the cluster, in {parts} partitions by all columns"
    )
    checkpoint = (
        "checkpoint: each set on the cluster is one when it is made, so that no plan "
        "holds that of an earlier round"
    )
    constants = (
        f"constants: {here:,} on the driver (at most {cluster.constants:,}), {there:,} "
        "on the cluster"
    )
    return [sets, checkpoint, constants]


def recursion_lines(recursive: QuerySet) -> list[str]:
    """Describe how recursive rules of a stratum are run in a materialisation."""
    if not recursive.queries:
        return []
    found = decompose(recursive.queries)
    if found is None:
        return ["recursive rules: round by round, all of them in one plan each"]
    keys = ", ".join(f"{name} by column {at + 1}" for name, at in found.keys.items())
    sides = sorted({side.pattern.relation for side in found.sides.values()})
    read = f"; tasks read {', '.join(sides)}" if sides else ""
    return [
        f"recursive rules: to their end inside tasks, facts divided ({keys}){read}",
        "updates: round by round, all of them in one plan each",
    ]


def folding_lines(query: Query) -> list[str]:
    """Describe a query that combines several rules."""
    if query.inline is None:
        return []
    return [f"{len(query.inline.rows):,} rules in one: they differ in constants only"]


def job_text(step: int, queries: QuerySet) -> str:
    """Describe the jobs that apply rules, for Spark's web interface.

    Args:
        step: the number of times rules were applied in this update.
        queries: the rules.
    """
    labels = list(dict.fromkeys(query.label for query in queries.queries))
    more = f" and {counted(len(labels) - 1, 'other rule')}" if len(labels) > 1 else ""
    shown = labels[0] if labels else "no rules"
    cut = f"{shown[:_LONGEST]}…" if len(shown) > _LONGEST else shown
    return f"step {step}: {cut}{more}"


_LONGEST = 120
"""Characters of a rule that are shown."""
