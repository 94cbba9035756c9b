"""The Spark engine's operators on rules.

All queries of a set are run by the driver if it has all inputs (`on_driver`), and
otherwise by one plan (`evaluation`), which is deferred until its result is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from evermat.algebra import QuerySet
from evermat.engines.spark.decoding import ClusterRows, decoded
from evermat.engines.spark.decomposition import decompose
from evermat.engines.spark.pieces import Pieces
from evermat.engines.spark.reading import Reader
from evermat.engines.spark.rows import block_rows, work_out
from evermat.engines.spark.sets import Counted
from evermat.errors.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.algebra import Monitor, Query, Views
    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.evaluation import Evaluation
    from evermat.engines.spark.sets import Settled, Stored


class RuleOperators(ABC):
    """The methods of an engine that run queries.

    Attributes:
        monitor: receives the numbers of matches.
        matches: the number of matches so far.
    """

    cluster: Cluster
    monitor: Monitor | None
    matches: int
    _evaluation: Evaluation
    _materialised: Stored
    _steps: int

    @abstractmethod
    def declare(self, relation: str, arity: int) -> None:
        """Declare a relation."""

    def derive(self, queries: QuerySet, views: Views) -> Settled:
        """Return the facts that the queries derive, each once."""
        return self.derive_counts(queries, views).facts

    def derive_counts(self, queries: QuerySet, views: Views) -> Counted:
        """Return the facts that the queries derive, with numbers of matches."""
        self._declare(queries)
        self._note(queries)
        here = self._evaluation.driver.run(queries, views, self.monitor)
        if here is not None:
            self._found(sum(here[1].values()))
            return Counted(here[0])
        if self.monitor is None:
            block = self._evaluation.put_off(queries, views, self._found)
            if block is not None:
                return Counted(block)
        block, matches = self._evaluation.run_on_cluster(queries, views)
        self._found(sum(matches.values()))
        if self.monitor is not None:
            for label, number in matches.items():
                self.monitor.working(label, number)
        return Counted(block)

    def _note(self, queries: QuerySet) -> None:
        """Describe the rules of the next jobs for Spark's web interface."""
        self._steps += 1
        self.cluster.doing = job_text(self._steps, queries)

    def fixpoint(self, queries: QuerySet) -> tuple[Counted, Settled] | None:
        """Return all facts that recursive rules derive, in one pass if possible."""
        if self.monitor is not None:
            return None  # budgets are checked after every round
        self._declare(queries)
        self._note(queries)
        facts = self._materialised
        derived = self._evaluation.fixpoints.run(queries, facts, facts)
        if derived is not None:
            self._found(derived[0].total())
        return derived

    def answer(self, query: Query, views: Views) -> pa.Table:
        """Return the distinct rows of a single query."""
        answers = self.answer_distant(query, views)
        return answers.read() if isinstance(answers, ClusterRows) else answers

    def answer_distant(self, query: Query, views: Views) -> pa.Table | ClusterRows:
        """Do the same; if there are many answers, they stay on the cluster."""
        self._declare_patterns(query)
        self.cluster.dictionary.reconcile()
        here = self._evaluation.driver.answer(query, views)
        if here is not None:
            return here
        queries = QuerySet((query,))
        try:
            block, _ = self._evaluation.run_on_cluster(queries, views)
        finally:
            self._evaluation.forget(queries)
        arity, rows = len(query.head.operands), block_rows(block)
        if rows.table is not None or not arity:
            return decoded(self.cluster, work_out(rows), arity)
        tag = self.cluster.tag(query.head.relation)
        return ClusterRows(self.cluster, rows, tag, arity)

    def explain(self, query: Query, views: Views) -> list[str]:
        """Return the steps of the plan of a query."""
        self._declare_patterns(query)
        plans = self._evaluation.plan([query], views)
        if not plans:
            return ["nothing to do: a relation has no facts"]
        reader = Reader(self.cluster, views)
        inside = (
            [] if query.computations else Pieces(self.cluster, reader, [query]).told()
        )
        return [*folding_lines(query), *(inside or plans[0][1].steps)]

    def explain_layout(self) -> list[str]:
        """Describe where facts and constants are, and how they are partitioned."""
        return layout_lines(self.cluster)

    def explain_recursion(self, recursive: QuerySet) -> list[str]:
        """Describe how the recursive rules of a stratum are run."""
        return recursion_lines(recursive)

    def explain_plan(self, query: Query, views: Views) -> str:
        """Return Spark's own plan for a query."""
        plans = self._evaluation.plan([query], views)
        if not plans:
            return ""
        explained = self.cluster.sql(f"EXPLAIN FORMATTED {plans[0][1].sql}")
        return str(explained.collect()[0][0])

    def _found(self, matches: int) -> None:
        self.matches += matches

    def _declare(self, queries: QuerySet) -> None:
        for query in queries.queries:
            self._declare_patterns(query)
            self.declare(query.head.relation, len(query.head.operands))

    def _declare_patterns(self, query: Query) -> None:
        for pattern in (*query.positive, *query.negative):
            self.declare(pattern.relation, len(pattern.operands))


# ----------------------------------------------------------------------------- in words

# What the Spark engine does, in words: where facts are, and how rounds are run.


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
    most = cluster.limits.constants
    constants = (
        f"constants: {here:,} on the driver (at most {most:,}), {there:,} "
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
