"""The graphs of closures that are kept, and searches in two views of one of them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from evermat.algebra import ClosureKind
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.closure_index import (
    ClosureIndex,
    EntrySet,
    entry_columns,
)
from evermat.engines.embedded.closure_search import (
    FEW_CHANGES,
    SHARE_OF_CHANGES,
    Search,
)
from evermat.engines.embedded.external import terms_of
from evermat.engines.embedded.fact_sets import Marker, Settled
from evermat.engines.embedded.fitting import Fitting
from evermat.engines.embedded.kernels.bounded import (
    ANY_COUNT,
    NO_COUNT,
    NONRECURSIVE_COUNT,
)
from evermat.engines.embedded.relation import NONRECURSIVE, RECURSIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evermat.algebra import Closure, Facts, Pattern
    from evermat.engines.embedded.external import Term
    from evermat.engines.embedded.kernels.bounded import Part
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.views import Code, Sets

    Terms = tuple[list[Term], list[Term]]
    """The views whose facts belong to the first graph, and to the second."""
    Constants = Callable[[Pattern], Mapping[int, int]]

MOST_BITS = 4
"""Status bits that a search may need."""

MOST_ENTRIES = 1 << 23
"""Rows that entries are made for; an entry takes 28 bytes, and a node 60."""

_NEEDS = {None: NO_COUNT, False: ANY_COUNT, True: NONRECURSIVE_COUNT}


class ClosureIndexes:
    """The graphs of a store, as far as searches have asked for them.

    A closure can have two: one of the facts with a count, and one of all facts.
    """

    def __init__(self, relations: Mapping[str, Relation], sets: Sets) -> None:
        self._relations = relations
        self._sets = sets
        self._indexes: dict[tuple[Closure, bool], ClosureIndex] = {}

    @property
    def has_any(self) -> bool:
        """Whether a graph is kept."""
        return bool(self._indexes)

    @contextmanager
    def search(
        self,
        closure: Closure,
        views: tuple[Facts, Facts | None],
        changes: int,
        constants: Constants,
    ) -> Iterator[Search | None]:
        """A search in the graphs of two views, None if that is not worth it.

        Settled facts have status bits as long as the block lasts.

        Args:
            closure: what the graphs are for.
            views: the facts of both.
            changes: how many entries they differ in, as far as that matters.
            constants: the ids that a pattern has, by position.
        """
        terms = self._terms(closure, *views)
        index = None
        if terms is not None and self._sets.has_bits(MOST_BITS):
            index = self._index(closure, terms, changes, constants)
        if terms is None or index is None:
            yield None
            return
        index.catch_up()
        _add_settled(index, terms)
        with Marker(self._sets) as marker:
            parts = [
                self._part(entries, some, marker)
                for entries, some in zip(index.sets, terms, strict=True)
            ]
            yield Search(closure, index, parts[0], parts[-1])

    def _terms(
        self, closure: Closure, facts: Facts, less: Facts | None
    ) -> list[Terms] | None:
        """What seeds, and edges if they are others, belong to either graph."""
        if closure.kind is ClosureKind.PLAIN:
            return None
        found = []
        for pattern in _patterns(closure):
            if pattern.relation not in self._relations:
                return None
            every = terms_of(facts, pattern)
            fewer = [] if less is None else terms_of(less, pattern)
            if every is None or fewer is None:
                return None
            found.append((every, fewer))
        return found

    def _index(
        self,
        closure: Closure,
        terms: list[Terms],
        changes: int,
        constants: Constants,
    ) -> ClosureIndex | None:
        """The index for some views; None if it is not worth making one."""
        is_counted = not any(
            which is None and not isinstance(view, Settled)
            for some in terms[0]
            for view, which in some
        )
        key = closure, is_counted
        index = self._indexes.get(key)
        relations = [self._relations[each.relation] for each in _patterns(closure)]
        if index is not None:
            if index.is_current and index.relations == relations:
                return index
            index.leave()
            del self._indexes[key]
        # A closure can have many times more facts than it starts from.
        size = sum(
            min(relation.alive, relation.counted_until)
            if is_counted and pattern is closure.pattern
            else relation.alive
            for relation, pattern in zip(relations, _patterns(closure), strict=True)
        )
        if size > MOST_ENTRIES or changes > max(FEW_CHANGES, size // SHARE_OF_CHANGES):
            return None
        sets = [
            EntrySet(
                relation,
                entry_columns(closure, pattern),
                Fitting(relation, constants(pattern)),
                is_counted=is_counted and pattern is closure.pattern,
            )
            for relation, pattern in zip(relations, _patterns(closure), strict=True)
        ]
        index = self._indexes[key] = ClosureIndex(closure, sets[0], sets[-1])
        return index

    def _part(self, entries: EntrySet, terms: Terms, marker: Marker) -> Part:
        """What the compiled loops know of entries."""
        sets, relation = self._sets, entries.relation
        codes: dict[int, Code] = {}
        for some, place in zip(terms, (0, 3), strict=True):
            for view, which in some:
                if sets.sees_any(view, relation.name):
                    need = _NEEDS[which] << place
                    code = sets.code(view, relation.name, marker)
                    known = codes.get(need)
                    codes[need] = code if known is None else ("|", known, code)
        table = sets.classified(codes)
        # Where no count is asked for, none is looked at.
        first = second = NO_ROWS
        if any(number & ~(NO_COUNT | NO_COUNT << 3) for number in codes):
            first, second = relation.counter(NONRECURSIVE), relation.counter(RECURSIVE)
        return entries.arrays, (relation.status, first, second, table)


def _patterns(closure: Closure) -> tuple[Pattern, ...]:
    """What seeds are, and edges if they are something else."""
    if closure.edges is None:
        return (closure.pattern,)
    return closure.pattern, closure.edges


def _add_settled(index: ClosureIndex, terms: list[Terms]) -> None:
    """Have entries for settled facts, whether they have a count or not."""
    for entries, (every, fewer) in zip(index.sets, terms, strict=True):
        for view, which in (*every, *fewer):
            if entries.is_counted and which is None:
                rows = cast("Settled", view).rows[entries.relation.name]
                index.add(entries, entries.fitting(rows))
