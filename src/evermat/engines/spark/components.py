"""Connected components on the cluster, by star contraction.

Source: [kiveris2014], alternating large stars and small stars.

Pairs are edges between ids. A *large star* links all larger neighbours of a node to its
smallest neighbour, a *small star* links the node and all smaller ones to it.
Alternately applied, they turn each component into one star around its smallest id; the
number of rounds is logarithmic, and the number of edges does not grow. A round is one
plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evermat.engines.spark.blocks import Block, Cluster
    from evermat.engines.spark.rows import Rows


def stars(pairs: Rows) -> Block:
    """Return a pair with the smallest node of its component for each other node.

    Args:
        pairs: edges, as `c0` and `c1`; the tags do not matter.

    Returns:
        A block of rows with the tag 0, the node as `c0` and the smallest as `c1`.
    """
    cluster = pairs.cluster
    # The larger end of an edge comes first.
    ends = "greatest(c0, c1) AS c0, least(c0, c1) AS c1"
    sql = f"SELECT {ends} FROM ({pairs.query()}) WHERE c0 <> c1"  # noqa: S608
    edges = _written(cluster, sql)
    before, now = None, _state(edges)
    while before != now and edges.size:
        edges = _written(cluster, _small_stars(_large_stars(f"TABLE {edges.view}")))
        before, now = now, _state(edges)
    return edges


def _written(cluster: Cluster, sql: str) -> Block:
    # The sum of the hashes is computed with the size, so that no job has to compare
    # edges.
    number = "pmod(xxhash64(c0, c1), 2147483647L) AS n"
    return cluster.checkpoint(
        f"SELECT 0L AS tag, c0, c1, {number} FROM ({sql}) GROUP BY c0, c1",  # noqa: S608
        width=2,
        tags={0},
    )


def _large_stars(edges: str) -> str:
    """Return each larger neighbour of a node with the smallest one, or the node."""
    both = f"""
        SELECT c0 AS node, c1 AS other FROM ({edges})
        UNION ALL SELECT c1 AS node, c0 AS other FROM ({edges})
    """  # noqa: S608
    least = "least(node, min(other) OVER (PARTITION BY node))"
    starred = f"SELECT node, other, {least} AS one FROM ({both})"  # noqa: S608
    return f"SELECT other AS c0, one AS c1 FROM ({starred}) WHERE other > node"  # noqa: S608


def _small_stars(edges: str) -> str:
    """Return each node, and its smaller neighbours, with the smallest of them."""
    least = "min(c1) OVER (PARTITION BY c0)"
    starred = f"SELECT c0, c1, {least} AS one FROM ({edges})"  # noqa: S608
    ends = f"SELECT explode(array(c0, c1)) AS c0, one AS c1 FROM ({starred})"  # noqa: S608
    return f"SELECT c0, c1 FROM ({ends}) WHERE c0 <> c1"  # noqa: S608


def _state(edges: Block) -> tuple[int, int]:
    """Return a fingerprint that almost certainly differs if the edges differ."""
    return edges.size, sum(edges.numbers.values())
