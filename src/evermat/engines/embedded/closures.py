"""The closure operators of the embedded engine: from views to graphs and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import (
    ClosureKind,
    Column,
    Difference,
    SettledFacts,
    Union,
    Within,
    is_bounded,
)
from evermat.engines.embedded.arrays import NO_FACTS, NO_ROWS
from evermat.engines.embedded.closure_graphs import (
    NO_PAIRS,
    NO_PATHS,
    Comparison,
    Pairs,
    Paths,
    has_pairs,
    pairs_of,
    paths_of,
)
from evermat.engines.embedded.closure_index import External
from evermat.engines.embedded.closure_search import FEW_CHANGES, Changes
from evermat.engines.embedded.closure_snapshots import PathsSnapshot
from evermat.engines.embedded.dedup import Counted, distinct, find_or_append
from evermat.engines.embedded.fact_sets import Settled
from evermat.engines.embedded.index import WIDEST_EXACT_KEY, make_keys
from evermat.engines.embedded.kernels import keys as kernels
from evermat.engines.embedded.relation import NONRECURSIVE, RECURSIVE, Fitting
from evermat.engines.embedded.sorting import sort_pairs
from evermat.engines.embedded.store import Copy
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from evermat.algebra import Closure, Facts, Monitor, Pattern
    from evermat.engines.embedded.arrays import Ids, Keys, Rows
    from evermat.engines.embedded.closure_search import Search
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.store import Store


class ClosureOperators:
    """The methods of an engine for closures.

    Attributes:
        store: the facts.
        monitor: receives the sizes of closures.
    """

    store: Store
    monitor: Monitor | None
    _dictionary: Dictionary

    def _tell(self, closure: Closure, pairs: int = 0) -> None:
        """Report a lower bound of the number of facts about to be written."""
        if self.monitor is None:
            return
        pattern = closure.pattern
        relation = self.store.relations[pattern.relation]
        known = self._matching(pattern, relation)
        # Facts that have no row are new.
        rows = relation.count if known is None else known.size
        self.monitor.writing(closure.label, pairs - rows)

    # ------------------------------------------------------------------- operators

    def counted(self, pattern: Pattern) -> Settled:
        """Return the facts of a pattern with at least one count above zero."""
        name = pattern.relation
        relation = self.store.relations.get(name)
        if relation is None:
            return Settled({})
        key = tuple(self._constants(pattern).items())
        parts = relation.raised.get(key)
        if parts is None:
            rows = self._matching(pattern, relation)
            if rows is None:
                rows = relation.counted_rows()
        elif len(parts) == 1:
            rows = parts[0]
        else:
            rows = distinct(self._fitting(pattern, np.concatenate(parts)))
        is_counted = relation.counted(NONRECURSIVE, rows) > 0
        is_counted |= relation.counted(RECURSIVE, rows) > 0
        rows = rows[is_counted]
        relation.raised[key] = [rows]
        return Settled({name: rows})

    def close(
        self,
        closure: Closure,
        facts: Facts,
        *,
        without: Facts | None = None,
        through: SettledFacts | None = None,
        only: Pattern | None = None,
    ) -> Settled:
        """Return the closure of facts, without the closure of other facts."""
        if through is not None and through.is_empty():
            return Settled({})
        keys = self._nearby(closure, facts, without, through, only)
        if keys is not None:
            return self._settled(closure, keys)
        paths = self._paths(closure, facts)
        less = NO_PATHS if without is None else self._paths(closure, without)
        via = None if through is None else self._paths(closure, through)
        self._tell(closure)
        comparison = Comparison(paths, less, via)
        if only is not None:
            comparison.keep_ends(*self._ends(closure, only))
        keys = comparison.keys(lambda pairs: self._tell(closure, pairs))
        self._tell(closure)
        return self._settled(closure, keys)

    def read_closure(
        self, closure: Closure, facts: Facts, only: Pattern
    ) -> pa.Table | None:
        """Return the closure's facts that match a pattern, if a search is cheap."""
        pairs = self._at_ends(closure, facts, only)
        if pairs is None:
            return None
        if closure.kind is ClosureKind.RIGHT_LINEAR:
            pairs = pairs.flipped()
        columns = [
            np.full(pairs.size, self._dictionary.id_of(operand), np.uint32)
            if isinstance(operand, Constant)
            else pairs[operand.index]
            for operand in closure.pattern.operands
        ]
        return Copy(self._dictionary, {"": np.stack(columns)}).read("")

    def _ends(self, closure: Closure, only: Pattern) -> tuple[int | None, int | None]:
        """Return the constants required where paths begin and end."""
        constants = self._constants(only)
        operands = closure.pattern.operands
        first = constants.get(operands.index(Column(0)))
        last = constants.get(operands.index(Column(1)))
        is_backwards = closure.kind is ClosureKind.RIGHT_LINEAR
        return (last, first) if is_backwards else (first, last)

    def close_among(self, closure: Closure, facts: Facts, candidates: Facts) -> Settled:
        """Return those of the candidates that are in the closure of facts."""
        pattern = closure.pattern
        name = pattern.relation
        relation = self.store.relations[name]
        rows = self.store.sets.rows_of(candidates).get(name, NO_ROWS)
        rows = self._fitting(pattern, rows)
        pairs = _columns(pattern, relation.table, rows)
        if closure.kind is ClosureKind.RIGHT_LINEAR:
            pairs = pairs.flipped()
        has = None
        if rows.size <= FEW_CHANGES:
            with self._search(closure, facts, None, rows.size) as search:
                has = None if search is None else search.has_pairs(pairs)
        if has is None:
            has = has_pairs(self._paths(closure, facts), pairs)
        return Settled({name: rows[has]})

    def snapshot_closure(self, closure: Closure, facts: Facts) -> PathsSnapshot:
        """Return a closure snapshot, which can be read after the facts have changed."""
        constants = self._constants(closure.pattern)
        external = self._remembered(closure.pattern, facts)
        edges = self._remembered(closure.edges, facts)
        return PathsSnapshot(self._dictionary, closure, constants, external, edges)

    def snapshot_closures(
        self, closure: Closure, before: Facts, after: Facts, *changes: SettledFacts
    ) -> tuple[PathsSnapshot, PathsSnapshot]:
        """Return snapshots of two views' closures, as far as they can differ."""
        if closure.kind is ClosureKind.PLAIN:
            pairs = [self._pairs(closure.pattern, each) for each in changes]
            parts = [(each, NO_PAIRS) for each in pairs]
        else:
            lost, gained = (self._changes(closure, each) for each in changes)
            with self._search(
                closure, before, after, lost.size + gained.size
            ) as search:
                found = None if search is None else search.differing(lost, gained)
            if found is None:
                return self.snapshot_closure(closure, before), self.snapshot_closure(
                    closure, after
                )
            parts = found
        constants = self._constants(closure.pattern)

        def captured(external: Pairs, edges: Pairs) -> PathsSnapshot:
            return PathsSnapshot(
                self._dictionary, closure, constants, lambda: external, lambda: edges
            )

        return captured(*parts[0]), captured(*parts[1])

    def _remembered(self, pattern: Pattern | None, facts: Facts) -> Callable[[], Pairs]:
        """Return a function that finds what `_pairs` would find now."""
        name = "" if pattern is None else pattern.relation
        if pattern is None or name not in self.store.relations:
            return lambda: NO_PAIRS
        # The ids of a row never change.
        table = self.store.relations[name].table
        if self._constants(pattern):
            rows = self._rows_of(pattern, facts)
            return lambda: _columns(pattern, table, rows)
        find = self.store.sets.remembered_rows(facts, name)
        return lambda: _columns(pattern, table, find())

    # ------------------------------------------------------------- bounded searches

    def external(
        self, pattern: Pattern, facts: Facts, *, certain: bool = False
    ) -> External:
        """Return the facts of a pattern in a view that have a count above zero."""
        return External(pattern, facts, certain)

    def _nearby(
        self,
        closure: Closure,
        facts: Facts,
        without: Facts | None,
        through: SettledFacts | None,
        only: Pattern | None,
    ) -> Keys | None:
        """Return the pairs of `close`, if a bounded search finds them."""
        if only is None and without is not None and through is not None:
            return self._near_changes(closure, facts, without, through)
        if only is not None and without is None and through is None:
            pairs = self._at_ends(closure, facts, only)
            return None if pairs is None else pairs.keys()
        return None

    def _near_changes(
        self, closure: Closure, facts: Facts, without: Facts, through: SettledFacts
    ) -> Keys | None:
        changes = self._changes(closure, through)
        with self._search(closure, facts, without, changes.size) as search:
            keys = None if search is None else search.compare(changes)
        if keys is not None and self.monitor is not None:
            relation = self.store.relations[closure.pattern.relation]
            self.monitor.writing(closure.label, keys.size - relation.count)
        return keys

    def _at_ends(self, closure: Closure, facts: Facts, only: Pattern) -> Pairs | None:
        first, last = self._ends(closure, only)
        if first is None and last is None:
            return None
        with self._search(closure, facts, None, 0) as search:
            return None if search is None else search.pairs_at(first=first, last=last)

    def _changes(self, closure: Closure, facts: SettledFacts) -> Changes:
        """Return changed facts as entries of the graph of a closure."""
        if facts.is_empty():
            return Changes(NO_PAIRS, NO_PAIRS)
        seeds = self._pairs(closure.pattern, facts)
        edges = seeds if closure.edges is None else self._pairs(closure.edges, facts)
        if closure.kind is ClosureKind.RIGHT_LINEAR:
            return Changes(seeds.flipped(), edges.flipped())
        return Changes(seeds, edges)

    def _search(
        self, closure: Closure, facts: Facts, less: Facts | None, changes: int
    ) -> AbstractContextManager[Search | None]:
        indexes = self.store.closure_indexes
        return indexes.search(closure, (facts, less), changes, self._constants)

    # ---------------------------------------------------------------------- graphs

    def _paths(self, closure: Closure, facts: Facts) -> Paths:
        external = self._pairs(closure.pattern, facts)
        edges = NO_PAIRS if closure.edges is None else self._pairs(closure.edges, facts)
        return paths_of(closure, external, edges)

    def _pairs(self, pattern: Pattern, facts: Facts) -> Pairs:
        relation = self.store.relations.get(pattern.relation)
        if relation is None:
            return NO_PAIRS
        return _columns(pattern, relation.table, self._rows_of(pattern, facts))

    def _rows_of(self, pattern: Pattern, facts: Facts) -> Rows:
        """Return the rows of a view that match a pattern.

        Stored parts are scanned only where the view can get facts of the relation from
        them.
        """
        sets, name = self.store.sets, pattern.relation
        if not self._constants(pattern) and sets.is_marked(facts):
            return sets.stored_rows(facts, name)
        match facts:
            case Union(left=left, right=right):
                parts = self._rows_of(pattern, left), self._rows_of(pattern, right)
                return _united(*parts)
            case Within(facts=inner, region=region):
                if not region.touches(name):
                    return NO_ROWS
                rows = self._rows_of(pattern, inner)
                return rows[sets.test(inner.within(region), name, rows)]
            case Difference(left=left):
                rows = self._rows_of(pattern, left)
                return rows[sets.test(facts, name, rows)]
        if isinstance(facts, External):
            return self._external_rows(facts, pattern)
        if is_bounded(facts):
            return self._fitting(pattern, sets.rows_of(facts).get(name, NO_ROWS))
        return self._stored_rows(pattern, facts)

    def _stored_rows(self, pattern: Pattern, facts: Facts) -> Rows:
        """Return the rows of a view of stored sets that match a pattern."""
        sets, name = self.store.sets, pattern.relation
        matching = self._matching(pattern, self.store.relations[name])
        if matching is None:
            return sets.stored_rows(facts, name)
        return matching[sets.test(facts, name, matching)]

    def _external_rows(self, external: External, pattern: Pattern) -> Rows:
        name = pattern.relation
        if external.pattern.relation != name:
            return NO_ROWS
        found = self.store.sets.settled(self.counted(external.pattern) & external.facts)
        if external.is_certain:
            found = self.store.counters[NONRECURSIVE].positive(found)
        rows = found.rows.get(name, NO_ROWS)
        return rows if external.pattern == pattern else self._fitting(pattern, rows)

    def _fitting(self, pattern: Pattern, rows: Rows) -> Rows:
        return Fitting(
            self.store.relations[pattern.relation], self._constants(pattern)
        )(rows)

    def _matching(self, pattern: Pattern, relation: Relation) -> Rows | None:
        """Return all rows with the constants of a pattern, None if it has none."""
        constants = self._constants(pattern)
        if not constants:
            return None
        positions = tuple(constants)
        if len(positions) > WIDEST_EXACT_KEY:
            rows = np.arange(relation.count, dtype=np.int32)
        else:
            index = relation.index(positions)
            goals = np.array(
                [[constants[at]] for at in index.columns[: len(positions)]], np.uint32
            )
            rows = index.rows_for(goals)
        return self._fitting(pattern, rows)

    def _settled(self, closure: Closure, keys: Keys) -> Settled:
        """Return pairs as facts, appending rows for those that have none."""
        pattern = closure.pattern
        relation = self.store.relations[pattern.relation]
        keys = _in_order(closure, keys)
        if relation.arity <= WIDEST_EXACT_KEY:
            heads = Counted(keys, NO_ROWS, NO_FACTS)
        else:
            table = _table(pattern, self._constants(pattern), keys)
            hashes, order = sort_pairs(
                make_keys(table), np.arange(keys.size, dtype=np.int32)
            )
            heads = Counted(hashes, NO_ROWS, table.T.take(order, axis=0))
        return Settled({relation.name: find_or_append(relation, heads)})

    def _constants(self, pattern: Pattern) -> dict[int, int]:
        return {
            at: self._dictionary.id_of(operand)
            for at, operand in enumerate(pattern.operands)
            if not isinstance(operand, Column)
        }


def _united(left: Rows, right: Rows) -> Rows:
    """Return the rows of both; duplicates do no harm in a graph."""
    if not left.size or not right.size:
        return left if left.size else right
    return np.concatenate([left, right])


def _columns(pattern: Pattern, table: Ids, rows: Rows) -> Pairs:
    """Return the source and the target of each row."""
    first = pattern.operands.index(Column(0))
    second = pattern.operands.index(Column(1))
    return Pairs(table[first, rows], table[second, rows])


def _in_order(closure: Closure, keys: Keys) -> Keys:
    """Return keys of pairs as keys of the pattern's columns in order of position."""
    operands = closure.pattern.operands
    is_turned = operands.index(Column(0)) > operands.index(Column(1))
    if is_turned != (closure.kind is ClosureKind.RIGHT_LINEAR):
        keys = (keys << np.uint64(32)) | (keys >> np.uint64(32))
        return kernels.sort_keys(keys, np.empty_like(keys))
    return keys


def _table(pattern: Pattern, constants: Mapping[int, int], keys: Keys) -> Ids:
    """Return the rows of a pattern, by column, from the keys of its two columns."""
    pairs = iter(pairs_of(keys))
    table = np.empty((len(pattern.operands), keys.size), np.uint32)
    for at in range(len(pattern.operands)):
        table[at] = constants[at] if at in constants else next(pairs)
    return table
