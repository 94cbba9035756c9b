"""What the embedded engine does with rules.

All queries of a set are run by one call of compiled code where that is little work
(`at_once`), and otherwise one after the other, each by its plan (`evaluate`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from evermat.algebra import Role
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.bits import Marker
from evermat.engines.embedded.evaluation import Evaluation, Prepared
from evermat.engines.embedded.heads import Heads, find_or_append
from evermat.engines.embedded.operators import Source
from evermat.engines.embedded.plan import describe
from evermat.engines.embedded.relation import Relation
from evermat.engines.embedded.settled import RowCounts
from evermat.engines.embedded.small_batch import joined
from evermat.engines.embedded.snapshot import Copy
from evermat.runtime.interrupts import check

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from evermat.algebra import Monitor, Pattern, Query, QuerySet, Views
    from evermat.engines.embedded.evaluation import InlineTables
    from evermat.engines.embedded.plan_cache import Plans
    from evermat.engines.embedded.proving import Proofs
    from evermat.engines.embedded.settled import Derived, Settled
    from evermat.engines.embedded.small_batch import AtOnce, Work
    from evermat.engines.embedded.store import Store


class RuleOperators:
    """The methods of an engine that run queries.

    Attributes:
        store: the facts.
        inline: the inline rows of queries.
        monitor: is told of matches.
        matches: how many there were so far.
    """

    store: Store
    inline: InlineTables
    monitor: Monitor | None
    matches: int
    plans: Plans
    at_once: AtOnce
    _proofs: Proofs
    _known_before: set[str] | None

    def derive(self, queries: QuerySet, views: Views) -> Settled:
        """The facts that the queries yield, each once."""
        return self._run(queries, views).facts

    def derive_counts(self, queries: QuerySet, views: Views) -> RowCounts:
        """The facts that the queries yield, with the number of matches of each."""
        return self._run(queries, views)

    def derivable(self, queries: QuerySet, views: Views) -> Settled:
        """Those of the changed facts that a query yields."""
        done = self.at_once.prove(queries, views, self.store.sets)
        if done is not None:
            found, work = done
            self._note(work)
            return found
        with Marker(self.store.sets) as marker:

            def run(query: Query, views: Views, heads: Heads) -> None:
                self._evaluate(self.plans.prepared(query), views, marker, heads)

            return self._proofs.derivable(queries, views, self.store, run)

    def answer(self, query: Query, views: Views) -> pa.Table:
        """The distinct rows a single query yields."""
        arity = len(query.head.operands)
        relation = Relation(query.head.relation, arity)
        prepared = Prepared(self.plans.new_plan(query), self.inline)
        heads = Heads(arity)
        with Marker(self.store.sets) as marker:
            self._evaluate(prepared, views, marker, heads)
        found = heads.counted()
        if found is not None:
            find_or_append(relation, found)
        return Copy(self.inline.dictionary, {"": relation.whole_table()}).read("")

    def explain(self, query: Query, views: Views) -> list[str]:
        """The steps by which a query would be run."""
        del views  # the order of steps depends on sizes, not on what is visible
        return describe(self.plans.new_plan(query))

    def _run(self, queries: QuerySet, views: Views) -> RowCounts:
        is_update = self._known_before is not None
        done = self.at_once.run(
            queries, views, self.store.sets, from_scratch=not is_update
        )
        if done is None:
            every = queries.affected(views)
            return RowCounts(self._run_in_turn(every, views))
        found, work = done
        self._note(work)
        if work.rest:
            found = joined(found, self._run_in_turn(work.rest, views))
        return found

    def _note(self, work: Work) -> None:
        """Tell how many matches there were."""
        for label, matches in work.matches_by_label():
            self.matches += matches
            if self.monitor is not None:
                self.monitor.working(label, matches)

    def _run_in_turn(self, queries: Iterable[Query], views: Views) -> Derived:
        gathered: dict[str, Heads] = {}
        with Marker(self.store.sets) as marker:
            for query in queries:
                check()
                head = query.head
                heads = gathered.get(head.relation)
                if heads is None:
                    heads = gathered[head.relation] = Heads(len(head.operands))
                self._evaluate(self.plans.prepared(query), views, marker, heads)
        counted = ((name, heads.counted()) for name, heads in gathered.items())
        relations = self.store.relations
        return {
            name: (find_or_append(relations[name], some), some.counts)
            for name, some in counted
            if some is not None
        }

    def _evaluate(
        self, prepared: Prepared, views: Views, marker: Marker, heads: Heads
    ) -> None:
        evaluation = Evaluation(
            prepared, lambda pattern: self._source(pattern, views, marker), self.monitor
        )
        try:
            evaluation.run(heads)
        finally:
            self.matches += evaluation.matches

    def _source(self, pattern: Pattern, views: Views, marker: Marker) -> Source:
        name = pattern.relation
        relation = self.store.relations[name]
        facts = views.read_by(pattern)
        if facts is None:
            return Source(relation, self.store.sets.nothing)
        if pattern.role is Role.CHANGED or pattern.role is Role.CHANGED_ABSENT:
            rows = cast("Settled", facts).rows.get(name, NO_ROWS)
            return Source(relation, self.store.sets.nothing, rows)
        return Source(relation, self.store.sets.sight(facts, name, marker))
