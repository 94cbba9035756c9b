"""Few facts and what stands for them, in all relations by one call of compiled code.

Each function does what a method of `evermat.algebra.abilities.EqualityEngine` promises,
or returns None where facts have to be handled one relation at a time: there are many of
them, or integers are equal to names, or a fact has no row so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import Within
from evermat.engines.embedded import flat
from evermat.engines.embedded.bits import Marker
from evermat.engines.embedded.flat import Flat
from evermat.engines.embedded.heads import distinct, intern_rows
from evermat.engines.embedded.kernels import rewriting as kernels_rewriting
from evermat.engines.embedded.kernels.rewriting import (
    MOST_COMBINATIONS,
    TOO_MANY,
    UNKNOWN,
)
from evermat.engines.embedded.settled import Settled

if TYPE_CHECKING:
    from evermat.algebra import Facts
    from evermat.engines.embedded.arrays import Flags, Ids, Rows
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.relation import Relation
    from evermat.engines.embedded.representatives import Cliques
    from evermat.engines.embedded.sets import Names, Sets

MANY_SEARCHES = 1 << 13
"""After so many look-ups indexes are told of them."""

FEW_MENTIONING = 1 << 13
"""There is room for so many facts about some ids at first: to look for them again costs
far more than room."""


class Images:
    """Answers questions about few facts and equal constants."""

    def __init__(self, sets: Sets) -> None:
        self._sets = sets
        self._columns: dict[Names, _Columns] = {}
        self._searches = 0

    def _flat(self, facts: Settled, cliques: Cliques | None = None) -> Flat | None:
        """Facts one relation after the other, if there are few, and some."""
        if not 0 < facts.size() <= flat.MOST:
            return None
        if cliques is not None and cliques.has_integers:
            return None
        together = facts.flat(self._sets.relations)
        self._sets.describe()
        return together

    def rewrite(self, facts: Settled, cliques: Cliques) -> Settled | None:
        """What stands for facts."""
        together, bit = self._flat(facts, cliques), self._sets.spare_bit
        if together is None or not bit:
            return None
        self._note_searches(together)
        found = np.empty_like(together.rows)
        lines = np.empty((len(together.names), 4), np.int64)
        count = kernels_rewriting.rewrite(
            together.lines, together.rows, cliques.links, bit, found, lines
        )
        if count == UNKNOWN:
            return None
        return Settled(together.part(found, lines[:count])) if count else facts

    def shared(self, facts: Settled, cliques: Cliques) -> Settled | None:
        """Facts with a constant that is equal to another."""
        together = self._flat(facts, cliques)
        if together is None:
            return None
        kept = together.kept(kernels_rewriting.choose_shared, cliques.others)
        return Settled(kept)

    def shared_ids(self, facts: Settled, cliques: Cliques) -> Ids | None:
        """The constants in facts that are equal to others, in order."""
        together = self._flat(facts, cliques)
        if together is None:
            return None
        found = np.empty(4 * together.rows.size, np.uint32)
        size = kernels_rewriting.list_shared_ids(
            together.lines, together.rows, cliques.others, found
        )
        return None if size == TOO_MANY else np.unique(found[:size])

    def rewritten_into(
        self, facts: Settled, cliques: Cliques, target: Facts
    ) -> Settled | None:
        """Facts for which a fact of a view stands."""
        together = self._flat(facts, cliques)
        if together is None:
            return None
        self._note_searches(together)
        with Marker(self._sets) as marker:
            code = self._sets.common_code(target, marker)
            if code is None:
                return None
            visible = self._sets.visible(code)
            kernel = kernels_rewriting.choose_by_image
            return Settled(together.kept(kernel, cliques.links, visible))

    def originals(self, facts: Settled, cliques: Cliques) -> Settled | None:
        """The explicit facts that facts of representatives stand for."""
        together, bit = self._flat(facts, cliques), self._sets.spare_bit
        if together is None or not bit:
            return None
        total = kernels_rewriting.count_originals(
            together.lines, together.rows, cliques.others, MOST_COMBINATIONS
        )
        if total == TOO_MANY:
            return None
        self._note_searches(together)
        found = np.empty(total, np.int32)
        lines = np.empty((len(together.names), 4), np.int64)
        count = kernels_rewriting.list_originals(
            together.lines, together.rows, cliques.ring, bit, found, lines
        )
        return Settled(together.part(found, lines[:count]))

    def rows_of(self, name: str, table: Ids) -> Rows:
        """The rows of facts of a relation, given by column; some may get new ones."""
        relation = self._sets.relations[name]
        size = table.shape[1]
        if relation.count and size <= flat.MOST:
            found = np.empty(size, np.int32)
            self._sets.describe()
            if kernels_rewriting.find_rows(relation.address, table, found) != UNKNOWN:
                return distinct(found)
        return intern_rows(relation, table)

    def _note_searches(self, facts: Flat) -> None:
        """Take note of look-ups, so that directories are made if they are worth it.

        They are put down to the facts of the moment: it is the same in the long run.
        """
        self._searches += facts.rows.size
        if self._searches > MANY_SEARCHES:
            for name, low, high in facts.parts():
                share = (high - low) / facts.rows.size
                primary = self._sets.relations[name].primary
                primary.note_searches(int(share * self._searches))
            self._searches = 0

    # ---------------------------------------------------------------- where ids occur

    def among(self, facts: Settled, ids: Ids) -> Settled | None:
        """Facts that mention one of some ids, which are in order."""
        together = self._flat(facts)
        if together is None:
            return None
        return Settled(together.kept(kernels_rewriting.choose_mentioning, ids))

    def mentioning(self, ids: Ids, facts: Facts) -> Settled | None:
        """Facts of a view that mention one of some ids, which are in order."""
        sets = self._sets
        wanted: Names = None
        if isinstance(facts, Within):
            if facts.region.relations != facts.region.names:
                return None
            wanted, facts = facts.region.names, facts.facts
        with Marker(sets) as marker:
            code = sets.common_code(facts, marker)
            bit = sets.spare_bit
            if code is None or not bit or ids.size > flat.MOST:
                return None
            columns = self._columns_of(wanted)
            return _found(columns, ids, sets.visible(code), bit)

    def _columns_of(self, wanted: Names) -> _Columns:
        """Some relations, or all of them, and an index for each of their columns."""
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
        lines: what `kernels_images.list_mentioning` is told of them.
        time: when they were described.
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
        """Have indexes and layouts up to date."""
        for relation, index in self._indexes:
            if relation.changed_at > self.time and index.described != relation.count:
                relation.describe(index)
        self.time = time


def _found(columns: _Columns, ids: Ids, visible: Flags, bit: int) -> Settled:
    """Rows that mention one of some ids."""
    room = FEW_MENTIONING
    while True:
        found = np.empty(room, np.int32)
        lines = np.empty((len(columns.names), 4), np.int64)
        count = kernels_rewriting.list_mentioning(
            columns.lines, ids, visible, bit, found, lines
        )
        if count != TOO_MANY:
            break
        room *= 8
    every = Flat(columns.names, found, lines)
    return Settled(every.part(found, lines[:count]))
