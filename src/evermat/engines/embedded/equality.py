"""Rewriting by equality: the operators that map facts to representatives and back.

See `evermat.algebra.engine.Engine` for the methods. Cliques of equal constants are
stored as arrays (`union_find`). Most operations are one call of compiled code for the
facts of all relations (`kernels.rewriting`). If integers are equal to other constants,
the arrays are not sufficient, and facts are processed one relation at a time; so are
facts that have no row yet.

A row whose constants are all representatives is its own image and is found without a
look-up, which is the case for most rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

import numpy as np

from evermat.algebra import Within
from evermat.engines.embedded.arrays import NO_ROWS
from evermat.engines.embedded.dedup import distinct, intern_rows
from evermat.engines.embedded.fact_sets import NOTHING, Marker, Settled
from evermat.engines.embedded.kernels import cliques as kernels_cliques
from evermat.engines.embedded.kernels import rewriting as kernels_rewriting
from evermat.engines.embedded.kernels.rewriting import (
    MOST_COMBINATIONS,
    TOO_MANY,
    UNKNOWN,
)
from evermat.engines.embedded.relation import EXPLICIT
from evermat.engines.embedded.union_find import Cliques
from evermat.engines.embedded.views import found_facts

if TYPE_CHECKING:
    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.equality import Representatives
    from evermat.engines.embedded.arrays import Flags, Ids, Rows
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.store import Store
    from evermat.engines.embedded.views import Names, Sets
    from evermat.values import Kind


MANY_SEARCHES = 1 << 13
"""Number of look-ups after which they are reported to the indexes."""

FEW_MENTIONING = 1 << 13
"""Initial capacity, in facts, for those that mention some ids: searching again costs
far more than unused capacity.
"""

_EVERY_STATUS = np.ones(1 << 16, np.uint8)


class Rewriting:
    """Maps facts to their images and preimages under equality."""

    def __init__(self, sets: Sets) -> None:
        self._sets = sets
        self._columns: dict[Names, _Columns] = {}
        self._searches = 0

    def rewrite(self, facts: Settled, cliques: Cliques) -> Settled:
        """Return the images of facts; images without a row get one."""
        if facts.is_empty() or cliques.is_identity():
            return facts
        bit = self._sets.spare_bit
        if bit and not cliques.has_integers:
            segments = self._described(facts)
            self._note_searches(facts)
            found = np.empty_like(facts.every)
            lines = np.empty((len(segments), 4), np.int64)
            count = kernels_rewriting.rewrite(
                segments, facts.every, cliques.links, bit, found, lines
            )
            if count != UNKNOWN:
                return (
                    found_facts(facts.names, found, lines[:count]) if count else facts
                )
        relations = self._sets.relations
        return Settled(
            {name: _images(relations[name], r, cliques) for name, r in facts.parts()}
        )

    def shared(self, facts: Settled, cliques: Cliques) -> Settled:
        """Return facts with a constant that is equal to another, or more."""
        if cliques.is_identity():
            return NOTHING
        if cliques.has_integers:
            return facts
        kernel = kernels_rewriting.choose_shared
        return self._sets.chosen(facts, kernel, cliques.others)

    def shared_ids(self, facts: Settled, cliques: Cliques) -> Ids:
        """Return the sorted constants in facts that represent several."""
        relations = self._sets.relations
        if cliques.has_integers:
            parts = [relations[name].table[:, r].ravel() for name, r in facts.parts()]
            ids = np.concatenate(parts)
            return np.unique(ids[cliques.sizes(ids) > 1])
        sizes = facts.sizes().items()
        room = sum(size * relations[name].arity for name, size in sizes)
        found: Ids = np.empty(room, np.uint32)
        size = kernels_rewriting.list_shared_ids(
            self._described(facts), facts.every, cliques.others, found
        )
        return np.unique(found[:size])

    def rewritten_into(
        self, facts: Settled, cliques: Cliques, target: Facts
    ) -> Settled:
        """Return the facts whose image is in a view."""
        if facts.is_empty():
            return facts
        sets = self._sets
        if not cliques.has_integers:
            self._note_searches(facts)
            with Marker(sets) as marker:
                code = sets.common_code(target, marker)
                if code is not None:
                    kernel = kernels_rewriting.choose_by_image
                    visible = sets.visible(code)
                    return sets.chosen(facts, kernel, cliques.links, visible)
        kept = {}
        for name, rows in facts.parts():
            images = _known_images(sets.relations[name], rows, cliques)
            known = images >= 0
            known[known] = sets.test(target, name, images[known])
            kept[name] = rows[known]
        return Settled(kept)

    def preimages(self, facts: Settled, cliques: Cliques) -> Settled:
        """Return the explicit facts that are rewritten to facts of representatives."""
        if facts.is_empty():
            return facts
        bit = self._sets.spare_bit
        if bit and not cliques.has_integers:
            segments, rows = self._described(facts), facts.every
            total = kernels_rewriting.count_originals(
                segments, rows, cliques.others, MOST_COMBINATIONS
            )
            if total != TOO_MANY:
                self._note_searches(facts)
                found = np.empty(total, np.int32)
                lines = np.empty((len(segments), 4), np.int64)
                count = kernels_rewriting.list_originals(
                    segments, rows, cliques.ring, bit, found, lines
                )
                return found_facts(facts.names, found, lines[:count])
        relations = self._sets.relations
        return Settled(
            {name: _preimages(relations[name], r, cliques) for name, r in facts.parts()}
        )

    def normalise(self, relation: Relation, cliques: Cliques) -> tuple[Rows, Rows]:
        """Return the explicit rows that are not their own image, and the images.

        For relations in which nothing else is materialised.
        """
        rows = np.arange(relation.count, dtype=np.int32)
        outdated = _explicit(relation, rows[cliques.differs(relation.table, rows)])
        if not outdated.size:
            return NO_ROWS, NO_ROWS
        return outdated, intern_rows(relation, cliques.map(relation.table[:, outdated]))

    def rows_of(self, name: str, table: Ids) -> Rows:
        """Return the rows of facts by column; new facts get rows."""
        relation = self._sets.relations[name]
        if relation.count:
            found = np.empty(table.shape[1], np.int32)
            self._sets.describe()
            if kernels_rewriting.find_rows(relation.address, table, found) != UNKNOWN:
                return distinct(found)
        return intern_rows(relation, table)

    def _described(self, facts: Settled) -> Numbers:
        """Return the segments of facts; layouts of relations are up to date then."""
        segments = facts.segments(self._sets.relations)
        self._sets.describe()
        return segments

    def _note_searches(self, facts: Settled) -> None:
        """Record look-ups, so that directories are built once they are worthwhile.

        They are attributed to the current facts, which averages out over time.
        """
        self._searches += facts.size()
        if self._searches > MANY_SEARCHES:
            for name, size in facts.sizes().items():
                primary = self._sets.relations[name].primary
                primary.note_searches(int(size / facts.size() * self._searches))
            self._searches = 0

    # ---------------------------------------------------------------- where ids occur

    def mentioning(self, ids: Ids, facts: Facts) -> Settled:
        """Return facts of a view that mention one of some sorted ids."""
        sets = self._sets
        if isinstance(facts, Settled):
            kernel = kernels_rewriting.choose_mentioning
            return sets.chosen(facts, kernel, ids)
        wanted: Names = None
        inner = facts
        if isinstance(facts, Within) and facts.region.relations == facts.region.names:
            wanted, inner = facts.region.names, facts.facts
        with Marker(sets) as marker:
            code = sets.common_code(inner, marker)
            if code is not None:
                return self._mentioning(ids, wanted, sets.visible(code))
        return sets.settled(self._mentioning(ids, wanted, _EVERY_STATUS) & facts)

    def _mentioning(self, ids: Ids, wanted: Names, visible: Flags) -> Settled:
        """Return facts of some relations, or of all of them, with a visible status."""
        columns = self._columns_of(wanted)
        room = FEW_MENTIONING
        bit = self._sets.take_bit()
        try:
            while True:
                found = np.empty(room, np.int32)
                lines = np.empty((len(columns.names), 4), np.int64)
                count = kernels_rewriting.list_mentioning(
                    columns.lines, ids, visible, bit, found, lines
                )
                if count != TOO_MANY:
                    return found_facts(columns.names, found, lines[:count])
                room *= 8
        finally:
            self._sets.give_back(bit)

    def _columns_of(self, wanted: Names) -> _Columns:
        """Return some relations, or all, with an index for each column."""
        known = self._columns.get(wanted)
        if known is not None and known.time == self._sets.time:
            return known
        relations = [
            relation
            for name, relation in self._sets.relations.items()
            if relation.count and (wanted is None or name in wanted)
        ]
        if known is None or known.relations != relations:
            known = self._columns[wanted] = _Columns(relations)
        known.describe(self._sets.time)
        return known


class _Columns:
    """Relations with an index for each of their columns.

    Attributes:
        lines: the argument of `kernels.rewriting.list_mentioning`.
        time: the time when they were described.
    """

    def __init__(self, relations: list[Relation]) -> None:
        self.relations = relations
        self.names = [relation.name for relation in relations]
        self._indexes = [
            (relation, relation.index((column,)))
            for relation in relations
            for column in range(relation.arity)
        ]
        numbers = {relation: number for number, relation in enumerate(relations)}
        self.lines: Numbers = np.array(
            [
                (relation.address, index.address, numbers[relation])
                for relation, index in self._indexes
            ],
            np.int64,
        ).reshape(-1, 3)
        self.time = -1

    def describe(self, time: int) -> None:
        """Bring indexes and layouts up to date."""
        for relation, index in self._indexes:
            if relation.changed_at > self.time and index.described != relation.count:
                relation.describe(index)
        self.time = time


# ------------------------------------------------------------- one relation at a time


def _images(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """Return the rows of the images of some rows."""
    moved = cliques.differs(relation.table, rows)
    if not moved.any():
        return rows
    new = intern_rows(relation, cliques.map(relation.table[:, rows[moved]]))
    return distinct(np.concatenate([rows[~moved], new]))


def _known_images(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """Return the row of each row's image, or -1 if it has none."""
    if cliques.is_identity():
        return rows
    other = cliques.differs(relation.table, rows)
    found = rows.copy()
    if other.any():
        images = cliques.map(relation.table[:, rows[other]])
        found[other] = relation.find(images)
    return found


def _preimages(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """Return the explicit rows whose images are among some rows of representatives."""
    if cliques.is_identity() or not relation.arity:
        return _explicit(relation, rows)
    is_shared = (cliques.sizes(relation.table[:, rows]) > 1).any(axis=0)
    parts = [_explicit(relation, rows)]
    if is_shared.any():
        shared = rows[is_shared]
        members, many = cliques.combinations(relation.table, shared, MOST_COMBINATIONS)
        found = relation.find(members)
        parts.append(_explicit(relation, found[found >= 0]))
        if many.size:
            parts.append(_explicit(relation, _through_index(relation, many, cliques)))
    return distinct(np.concatenate(parts))


def _explicit(relation: Relation, rows: Rows) -> Rows:
    explicit: Rows = rows[(relation.status[rows] & EXPLICIT) != 0]
    return explicit


def _through_index(relation: Relation, rows: Rows, cliques: Cliques) -> Rows:
    """Return explicit rows with these images, found by the most selective column."""
    best: tuple[int, int, Ids] | None = None
    for column in range(relation.arity):
        ids = distinct(relation.table[column, rows].astype(np.int64)).astype(np.uint32)
        members = cliques.members(ids)[1]
        index = relation.index((column,))
        hits = sum(run.find_halves(members)[2] for run in index.runs)
        if best is None or hits < best[0]:
            best = (hits, column, members)
    if best is None or not best[0]:
        return NO_ROWS
    _, column, members = best
    parts = []
    for run in relation.index((column,)).runs:
        first, last, total = run.find_halves(members)
        part = np.empty(total, np.int32)
        kernels_cliques.list_ranges(first, last, run.rows, part)
        parts.append(part)
    found = _explicit(relation, np.concatenate(parts))
    images = _known_images(relation, found, cliques)
    return found[np.isin(images, rows)]


class EqualityOperators(ABC):
    """The methods of an engine that deal with equal constants.

    Attributes:
        store: the facts.
    """

    store: Store
    _dictionary: Dictionary

    @abstractmethod
    def declare(self, relation: str, arity: int) -> None:
        """Declare a relation."""

    def representatives(self) -> Cliques:
        """Return cliques of equal constants, all of them singletons."""
        return Cliques.without_any(self._dictionary, self.store.spare_arrays)

    def merge(
        self,
        representatives: Representatives,
        equalities: SettledFacts,
        lost: str,
        values: frozenset[Kind],
    ) -> Settled:
        """Make the two constants of each binary fact equal."""
        self.declare(lost, 1)
        cliques = cast("Cliques", representatives)
        for name, rows in cast("Settled", equalities).rows.items():
            left, right = self.store.relations[name].table[:, rows]
            losers = cliques.unite(left, right, values)
            return self._unary(lost, losers)
        return NOTHING

    def _unary(self, relation: str, ids: Ids) -> Settled:
        if not ids.size:
            return NOTHING
        table = np.ascontiguousarray(ids).reshape(1, -1)
        return Settled({relation: self.store.rewriting.rows_of(relation, table)})

    def restore(
        self,
        representatives: Representatives,
        members: SettledFacts,
        source: Representatives,
    ) -> None:
        """Reset the second constants of binary facts to their state in `source`."""
        for name, rows in cast("Settled", members).rows.items():
            ids = self.store.relations[name].table[1, rows]
            cast("Cliques", representatives).assign(ids, cast("Cliques", source))

    def members(self, nodes: SettledFacts, representatives: Representatives) -> Settled:
        """Return for each fact `r(c, c)` the facts `r(c, d)`, d in c's clique."""
        cliques = cast("Cliques", representatives)
        found = {}
        for name, rows in cast("Settled", nodes).rows.items():
            relation = self.store.relations[name]
            ones = relation.table[0, rows]
            sizes, members = cliques.members(ones)
            pairs = np.stack([np.repeat(ones, sizes), members])
            found[name] = self.store.rewriting.rows_of(name, pairs)
        return Settled(found)

    def moved(
        self, before: Representatives, after: Representatives, relation: str
    ) -> Settled:
        """Return the constants whose representative differs."""
        self.declare(relation, 1)
        old, new = cast("Cliques", before), cast("Cliques", after)
        return self._unary(relation, old.differences(new))

    def rewrite(self, facts: SettledFacts, representatives: Representatives) -> Settled:
        """Return the facts with every constant replaced by its representative."""
        cliques = cast("Cliques", representatives)
        return self.store.rewriting.rewrite(cast("Settled", facts), cliques)

    def shared(self, facts: SettledFacts, representatives: Representatives) -> Settled:
        """Return all facts with a constant that is equal to another, or more."""
        cliques = cast("Cliques", representatives)
        return self.store.rewriting.shared(cast("Settled", facts), cliques)

    def rewritten_into(
        self, facts: SettledFacts, representatives: Representatives, target: Facts
    ) -> Settled:
        """Return those of the facts that `rewrite` maps to a fact of a view."""
        cliques = cast("Cliques", representatives)
        return self.store.rewriting.rewritten_into(
            cast("Settled", facts), cliques, target
        )

    def mentioning(self, marks: SettledFacts, facts: Facts) -> Settled:
        """Return the facts of a view with a constant that begins a mark."""
        parts = [
            self.store.relations[name].table[0, rows]
            for name, rows in cast("Settled", marks).rows.items()
        ]
        if not parts:
            return NOTHING
        ids = np.unique(np.concatenate(parts))
        return self.store.rewriting.mentioning(ids, facts)

    def about_moved(
        self, before: Representatives, after: Representatives, facts: Facts
    ) -> Settled:
        """Return the facts of a view about constants whose representative differs."""
        old, new = cast("Cliques", before), cast("Cliques", after)
        moved = old.differences(new)
        ones = np.concatenate([old.map(moved), new.map(moved)])
        # Facts mention representatives only.
        ids = np.unique(ones[old.map(ones) == ones])
        return self.store.rewriting.mentioning(ids, facts) if ids.size else NOTHING

    def nodes_of(
        self, facts: SettledFacts, representatives: Representatives, relation: str
    ) -> Settled:
        """Return a fact `relation(c, c)` for each clique of several in the facts."""
        cliques = cast("Cliques", representatives)
        if cliques.is_identity() or facts.is_empty():
            return NOTHING
        ids = self.store.rewriting.shared_ids(cast("Settled", facts), cliques)
        table = np.stack([ids, ids])
        return Settled({relation: self.store.rewriting.rows_of(relation, table)})

    def normalise(self, representatives: Representatives) -> Settled:
        """Materialise the images of explicit facts in their place."""
        cliques = cast("Cliques", representatives)
        if cliques.is_identity():
            return NOTHING
        found = {
            name: self.store.rewriting.normalise(relation, cliques)
            for name, relation in self.store.relations.items()
        }
        outdated = Settled({name: rows for name, (rows, _) in found.items()})
        images = Settled({name: rows for name, (_, rows) in found.items()})
        implied = self.store.sets.settled(images - self.store.explicit)
        self.store.remove(outdated)
        self.store.add(images)
        self.store.add_explicit(implied)
        return implied

    def marked(self) -> Settled:
        """Return the explicit facts with a recursive count above zero."""
        return Settled(
            {
                name: relation.marked_rows()
                for name, relation in self.store.relations.items()
            }
        )

    def preimages(
        self, facts: SettledFacts, representatives: Representatives
    ) -> Settled:
        """Return the explicit facts that `rewrite` maps to one of the facts."""
        cliques = cast("Cliques", representatives)
        return self.store.rewriting.preimages(cast("Settled", facts), cliques)

    def expanded_count(self, relation: str, representatives: Representatives) -> int:
        """Return how many facts the materialised facts of a relation represent."""
        known = self.store.relations.get(relation)
        if known is None:
            return 0
        if representatives.is_identity() or not known.arity:
            return known.alive
        rows = self.store.sets.stored_rows(self.store.materialised, relation)
        return cast("Cliques", representatives).weight(known.table[:, rows])
