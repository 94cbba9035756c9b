"""What the embedded engine does for equality by rewriting.

See `evermat.algebra.abilities.EqualityEngine` for the methods. Which constants are
equal is kept in cliques (`representatives`), and facts are taken to those that stand
for them by arrays (`rewriting`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

import numpy as np

from evermat.engines.embedded.representatives import Cliques
from evermat.engines.embedded.rewriting import (
    Sought,
    explicit_behind,
    images_of,
    normalise,
    rewritten,
    rows_among,
    rows_mentioning,
    shared_ids,
)
from evermat.engines.embedded.settled import Settled

if TYPE_CHECKING:
    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.abilities import Representatives
    from evermat.engines.embedded.arrays import Ids
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.store import Store
    from evermat.values import Kind


class EqualityOperators(ABC):
    """The methods of an engine that are about equal constants.

    Attributes:
        store: the facts.
    """

    store: Store
    _dictionary: Dictionary

    @abstractmethod
    def declare(self, relation: str, arity: int) -> None:
        """Make a relation known."""

    def representatives(self) -> Cliques:
        """Cliques of equal constants, none of them with two members yet."""
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
        return Settled({})

    def _unary(self, relation: str, ids: Ids) -> Settled:
        if not ids.size:
            return Settled({})
        table = np.ascontiguousarray(ids).reshape(1, -1)
        return Settled({relation: self.store.images.rows_of(relation, table)})

    def restore(
        self,
        representatives: Representatives,
        members: SettledFacts,
        source: Representatives,
    ) -> None:
        """Take the second constants of binary facts to be what `source` says."""
        for name, rows in cast("Settled", members).rows.items():
            ids = self.store.relations[name].table[1, rows]
            cast("Cliques", representatives).assign(ids, cast("Cliques", source))

    def members(self, nodes: SettledFacts, representatives: Representatives) -> Settled:
        """For each fact `r(c, c)` the facts `r(c, d)` with d in the clique of c."""
        cliques = cast("Cliques", representatives)
        found = {}
        for name, rows in cast("Settled", nodes).rows.items():
            relation = self.store.relations[name]
            ones = relation.table[0, rows]
            sizes, members = cliques.members(ones)
            pairs = np.stack([np.repeat(ones, sizes), members])
            found[name] = self.store.images.rows_of(name, pairs)
        return Settled(found)

    def moved(
        self, before: Representatives, after: Representatives, relation: str
    ) -> Settled:
        """The constants whose representative differs."""
        self.declare(relation, 1)
        old, new = cast("Cliques", before), cast("Cliques", after)
        return self._unary(relation, old.differences(new))

    def rewrite(self, facts: SettledFacts, representatives: Representatives) -> Settled:
        """The facts with every constant replaced by its representative."""
        cliques = cast("Cliques", representatives)
        if cliques.is_identity():
            return cast("Settled", facts)
        few = self.store.images.rewrite(cast("Settled", facts), cliques)
        if few is not None:
            return few
        return Settled(
            {
                name: rewritten(self.store.relations[name], rows, cliques)
                for name, rows in cast("Settled", facts).rows.items()
            }
        )

    def shared(self, facts: SettledFacts, representatives: Representatives) -> Settled:
        """All facts with a constant that is equal to another, and maybe more."""
        cliques = cast("Cliques", representatives)
        if cliques.is_identity():
            return Settled({})
        few = self.store.images.shared(cast("Settled", facts), cliques)
        if few is not None:
            return few
        return Settled(
            {
                name: cliques.shared(self.store.relations[name].table, rows)
                for name, rows in cast("Settled", facts).rows.items()
            }
        )

    def rewritten_into(
        self, facts: SettledFacts, representatives: Representatives, target: Facts
    ) -> Settled:
        """Those of the facts that `rewrite` takes to a fact of a view."""
        cliques = cast("Cliques", representatives)
        few = self.store.images.rewritten_into(cast("Settled", facts), cliques, target)
        if few is not None:
            return few
        sets = self.store.sets
        kept = {}
        for name, rows in cast("Settled", facts).rows.items():
            images = images_of(self.store.relations[name], rows, cliques)
            known = images >= 0
            known[known] = sets.test(target, name, images[known])
            kept[name] = rows[known]
        return Settled(kept)

    def mentioning(self, marks: SettledFacts, facts: Facts) -> Settled:
        """The facts of a view with a constant that begins one of the marks."""
        parts = [
            self.store.relations[name].table[0, rows]
            for name, rows in cast("Settled", marks).rows.items()
        ]
        if not parts:
            return Settled({})
        return self._mentioning(np.unique(np.concatenate(parts)), facts)

    def about_moved(
        self, before: Representatives, after: Representatives, facts: Facts
    ) -> Settled:
        """The facts of a view about constants whose representative differs."""
        old, new = cast("Cliques", before), cast("Cliques", after)
        moved = old.differences(new)
        if not moved.size:
            return Settled({})
        ones = np.concatenate([old.map(moved), new.map(moved)])
        # No fact mentions the others.
        return self._mentioning(np.unique(ones[old.map(ones) == ones]), facts)

    def _mentioning(self, ids: Ids, facts: Facts) -> Settled:
        """The facts of a view that mention one of some ids, which are in order."""
        if isinstance(facts, Settled):
            return self._among(facts, ids)
        few = self.store.images.mentioning(ids, facts)
        if few is not None:
            return few
        sets, sought = self.store.sets, Sought(ids)
        found = {}
        for name, relation in self.store.relations.items():
            if not sets.sees_any(facts, name):
                continue
            rows = rows_mentioning(relation, sought)
            if rows.size:
                found[name] = rows[sets.test(facts, name, rows)]
        return Settled(found)

    def _among(self, facts: Settled, ids: Ids) -> Settled:
        """Those of the facts that mention one of some ids, which are in order."""
        few = self.store.images.among(facts, ids)
        if few is not None:
            return few
        return Settled(
            {
                name: rows_among(self.store.relations[name], rows, ids)
                for name, rows in facts.rows.items()
            }
        )

    def nodes_of(
        self, facts: SettledFacts, representatives: Representatives, relation: str
    ) -> Settled:
        """A fact `relation(c, c)` for each clique of two and more of the facts."""
        cliques = cast("Cliques", representatives)
        if cliques.is_identity():
            return Settled({})
        if facts.is_empty():
            return Settled({})
        ids = self.store.images.shared_ids(cast("Settled", facts), cliques)
        if ids is None:
            parts = [
                shared_ids(self.store.relations[name], rows, cliques)
                for name, rows in cast("Settled", facts).rows.items()
            ]
            ids = np.concatenate(parts)
        table = np.stack([ids, ids])
        return Settled({relation: self.store.images.rows_of(relation, table)})

    def normalise(self, representatives: Representatives) -> Settled:
        """Let representatives of given facts hold in their place."""
        cliques = cast("Cliques", representatives)
        if cliques.is_identity():
            return Settled({})
        return Settled(
            {
                name: normalise(relation, cliques)
                for name, relation in self.store.relations.items()
            }
        )

    def marked(self) -> Settled:
        """The explicit facts with a recursive count above zero."""
        return Settled(
            {
                name: relation.marked_rows()
                for name, relation in self.store.relations.items()
            }
        )

    def originals(
        self, facts: SettledFacts, representatives: Representatives
    ) -> Settled:
        """The explicit facts that `rewrite` takes to one of the facts."""
        cliques = cast("Cliques", representatives)
        few = self.store.images.originals(cast("Settled", facts), cliques)
        if few is not None:
            return few
        return Settled(
            {
                name: explicit_behind(self.store.relations[name], rows, cliques)
                for name, rows in cast("Settled", facts).rows.items()
            }
        )

    def expanded_count(self, relation: str, representatives: Representatives) -> int:
        """How many facts the materialised facts of a relation stand for."""
        known = self.store.relations.get(relation)
        if known is None:
            return 0
        if representatives.is_identity() or not known.arity:
            return known.alive
        rows = self.store.sets.stored_rows(self.store.materialised, relation)
        return cast("Cliques", representatives).weight(known.table[:, rows])
