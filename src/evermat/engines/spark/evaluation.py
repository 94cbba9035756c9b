"""Evaluates the queries of one call: one plan, one action."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.columns import TERM, constants
from evermat.engines.spark.blocks import Block, Pending, local_block, spread
from evermat.engines.spark.expressions import failed_computation, mark_in
from evermat.engines.spark.fixpoint import Fixpoints
from evermat.engines.spark.on_driver import DriverEvaluation
from evermat.engines.spark.one_task import MOST_ROWS, round_in_one_task
from evermat.engines.spark.pieces import Pieces
from evermat.engines.spark.queries import (
    Knowledge,
    Planner,
    all_matches,
    heads_condition,
)
from evermat.engines.spark.reading import Reader
from evermat.engines.spark.row_tables import key_columns, padded_keys, summed
from evermat.engines.spark.rows import brought_home, no_rows
from evermat.engines.spark.sets import Growing, Stored
from evermat.errors.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import DataFrame

    from evermat.algebra import Query, QuerySet, Views
    from evermat.algebra.queries import EvaluationError
    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.expressions import Failure
    from evermat.engines.spark.queries import QueryPlan

FIRST_GUESS = 2.0
"""Initial estimate of the facts derived per input fact."""


MOST_COLLECTED = 1_000_000
"""Limit of the facts collected on the driver if few were expected."""


class Evaluation:
    """Evaluates sets of queries, and learns from the results."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._knowledge: weakref.WeakKeyDictionary[Query, Knowledge] = (
            weakref.WeakKeyDictionary()
        )
        self._yield: weakref.WeakKeyDictionary[QuerySet, float] = (
            weakref.WeakKeyDictionary()
        )
        self.driver = DriverEvaluation(cluster)
        self.fixpoints = Fixpoints(cluster)

    def run(self, queries: QuerySet, views: Views) -> tuple[Block, dict[str, int]]:
        """Return the facts with their counts, and the matches of each rule."""
        here = self.driver.run(queries, views, None)
        return self.run_on_cluster(queries, views) if here is None else here

    def run_on_cluster(
        self, queries: QuerySet, views: Views
    ) -> tuple[Block, dict[str, int]]:
        """Do the same for facts that are not all on the driver."""
        affected = list(queries.affected(views))
        while True:
            plans = self.plan(affected, views)
            if not plans:
                block = no_rows(self.cluster).block
                assert block is not None  # noqa: S101  no rows are on the driver
                return block, {}
            try:
                return self._run(queries, views, affected, plans)
            except Exception as error:  # noqa: BLE001  Spark raises all sorts
                self._recover(error, affected)

    def forget(self, queries: QuerySet) -> None:
        """Discard cached data of queries that will not be run again."""
        self._yield.pop(queries, None)
        self.fixpoints.forget(queries)
        self.driver.forget(queries)
        for query in queries.queries:
            knowledge = self._knowledge.pop(query, None)
            if knowledge is not None:
                knowledge.give_back(self.cluster)

    def plan(self, affected: list[Query], views: Views) -> list[tuple[int, QueryPlan]]:
        """Return the plans of queries that may have matches, with their positions."""
        reader = Reader(self.cluster, views)
        plans = []
        for number, query in enumerate(affected):
            plan = Planner(self.cluster, reader, query, self._known(query)).plan()
            if plan is not None:
                plans.append((number, plan))
        return plans

    def _known(self, query: Query) -> Knowledge:
        knowledge = self._knowledge.get(query)
        if knowledge is None:
            knowledge = self._knowledge[query] = Knowledge()
        return knowledge

    def _recover(self, error: Exception, affected: list[Query]) -> None:
        """Adjust the next attempt to an error, or raise it."""
        failure = failed_computation(error)
        if failure is not None:
            raise self._named(failure, affected) from without_secrets(error)
        mark = mark_in(error)
        for query in affected:
            knowledge = self._known(query)
            if knowledge.mark == mark and not knowledge.by_definition:
                knowledge.by_definition = True
                return
        raise error

    def _named(self, failure: Failure, affected: list[Query]) -> EvaluationError:
        """Return the error, with the facts that the rule was applied to."""
        ids = pa.array(failure.ids.values(), pa.int64())
        values = constants(self.cluster.dictionary.decode(ids))
        binding = dict(zip(failure.ids, values, strict=True))
        for query in affected:
            if self._known(query).mark == failure.mark:
                failure.error.name_facts(query.positive, binding)
        return failure.error

    def _run(
        self,
        queries: QuerySet,
        views: Views,
        affected: list[Query],
        plans: list[tuple[int, QueryPlan]],
    ) -> tuple[Block, dict[str, int]]:
        width = max(plan.width for _, plan in plans)
        makes_terms = any(plan.makes_terms for _, plan in plans)
        matches = all_matches(plans, width)
        read = _input_size(views, _sources(plans))
        guess = read * self._yield.get(queries, FIRST_GUESS)
        found_here = None
        if guess <= self.cluster.small or makes_terms:
            found_here = self._collect(matches, width, makes_terms=makes_terms)
        block, numbers = found_here or self._checkpoint(matches, width, plans, affected)
        self._yield[queries] = block.size / max(read, 1)
        found: dict[str, int] = {}
        for number, matched in numbers.items():
            label = affected[number].label
            found[label] = found.get(label, 0) + matched
        return block, found

    def _collect(
        self, matches: str, width: int, *, makes_terms: bool
    ) -> tuple[Block, dict[int, int]] | None:
        """Return the facts on the driver; None if there are far more than expected."""
        keys = ", ".join(["q", *key_columns(width)])
        values = "count(1) AS n"
        if makes_terms:
            values += ", any_value(terms, true) AS terms"
        sql = f"SELECT {keys}, {values} FROM ({matches}) GROUP BY {keys}"  # noqa: S608
        if not makes_terms:
            sql += f" LIMIT {MOST_COLLECTED + 1}"
        table = self.cluster.collect(sql)
        if not makes_terms and table.num_rows > MOST_COLLECTED:
            return None
        if makes_terms:
            self._learn(table["terms"])
        by_query = table.group_by("q", use_threads=False).aggregate([("n", "sum")])
        numbers = dict(
            zip(by_query["q"].to_pylist(), by_query["n_sum"].to_pylist(), strict=True)
        )
        facts = table.select([*key_columns(width), "n"])
        if len(numbers) > 1:
            facts = summed(facts)
        block = local_block(self.cluster, facts)
        if block.size > self.cluster.small:
            block = spread(block)
        return block, numbers

    def _checkpoint(
        self,
        matches: str,
        width: int,
        plans: list[tuple[int, QueryPlan]],
        affected: list[Query],
    ) -> tuple[Block, dict[int, int]]:
        keys = ", ".join(key_columns(width))
        sql = f"SELECT {keys}, count(1) AS n FROM ({matches}) GROUP BY {keys}"  # noqa: S608
        # Matches are known by relation, and attributed to its first rule.
        first: dict[int, int] = {}
        for number, _ in plans:
            tag = self.cluster.tag(affected[number].head.relation)
            first.setdefault(tag, number)
        block = self.cluster.checkpoint(sql, width, first)
        numbers = {first[tag]: matched for tag, matched in block.numbers.items()}
        return brought_home(block), numbers

    def put_off(
        self, queries: QuerySet, views: Views, done: Callable[[int], None]
    ) -> Block | None:
        """Return the facts as a block whose plan is run when it is needed.

        Settling the new ones among them can then be part of the same plan. None if few
        facts are expected, or if computations could fail.
        """
        affected = list(queries.affected(views))
        if any(query.computations for query in affected):
            return None
        cluster, reader = self.cluster, Reader(self.cluster, views)
        affected = [query for query in affected if reader.may_match(query)]
        if not affected:
            return None
        pieces = Pieces(cluster, reader, affected)
        plans = self.plan(pieces.rest, views)
        sources = [*pieces.blocks, *_sources(plans)]
        read = _input_size(views, sources)
        guess = int(read * self._yield.get(queries, FIRST_GUESS))
        if guess <= cluster.small:
            return None
        if not plans and queries not in self._yield:
            guess = min(guess, pieces.matches)
        width = max((pieces.width, *(plan.width for _, plan in plans)))
        block = Block(cluster, width, None, None)
        frame = round_in_one_task(cluster, affected, views)

        def sql() -> str:
            if frame is None:
                return self._added_up(block, pieces, plans)
            view = self._viewed(block, frame, MOST_ROWS)
            return f"SELECT {', '.join(key_columns(width))}, n FROM {view}"  # noqa: S608

        def learn(numbers: Mapping[int, int]) -> None:
            self._yield[queries] = block.size / max(read, 1)
            sources.clear()
            pieces.clear()
            done(sum(numbers.values()))

        block.pending = Pending(
            sql,
            frozenset(cluster.tag(query.head.relation) for query in affected),
            guess,
            heads_condition(affected, cluster),
            learn,
            _marked(frame, views),
        )
        return block

    def _added_up(
        self, block: Block, pieces: Pieces, plans: list[tuple[int, QueryPlan]]
    ) -> str:
        """Return the facts derived by tasks and plans, with summed counts."""
        keys = ", ".join(key_columns(block.width))
        parts = []
        if plans:
            matches = all_matches(plans, block.width)
            parts.append(f"SELECT {keys}, 1L AS n FROM ({matches})")  # noqa: S608
        if pieces.width:
            view = self._viewed(block, pieces.frame())
            names = ", ".join(padded_keys(pieces.width, block.width))
            parts.append(f"SELECT {names}, n FROM {view}")  # noqa: S608
        together = " UNION ALL ".join(parts)
        return f"SELECT {keys}, sum(n) AS n FROM ({together}) GROUP BY {keys}"  # noqa: S608

    def _viewed(self, block: Block, frame: DataFrame, size: int | None = None) -> str:
        """Register a frame for the lifetime of a block."""
        view = self.cluster.register(frame, size)
        weakref.finalize(block, self.cluster.waste.append, (view, None))
        return view

    def _learn(self, column: pa.ChunkedArray) -> None:
        """Add new constants to the dictionary."""
        terms = column.combine_chunks().flatten()
        if isinstance(terms, pa.ChunkedArray):
            terms = pa.concat_arrays(terms.chunks)
        if len(terms):
            ids = np.asarray(terms.field("id").to_numpy(zero_copy_only=False), np.int64)
            kinds = terms.field("kind").cast(pa.uint8())
            texts = terms.field("text").cast(pa.string())
            column = pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))
            self.cluster.dictionary.add(ids, column)


def _marked(
    frame: DataFrame | None, views: Views
) -> tuple[tuple[int, int], DataFrame] | None:
    """Return a frame that marks known facts, and the moment of the comparison."""
    if frame is None or not isinstance(views.positive, Growing | Stored):
        return None
    return views.positive.heap.moment, frame


def _sources(plans: list[tuple[int, QueryPlan]]) -> list[Block]:
    """Return the blocks that plans read."""
    return [source for _, plan in plans for source in plan.blocks]


def _input_size(views: Views, sources: Iterable[Block]) -> int:
    """Return the number of facts that the queries start from."""
    changes = [
        each
        for each in (views.delta_positive, views.delta_negative)
        if each is not None
    ]
    if changes:
        return sum(change.size() for change in changes)
    return sum(block.size for block in set(sources))
