"""The Spark engine's operators for equality by rewriting.

See `evermat.algebra.engine.Engine` for the methods. The driver stores which constants
are equal (`representatives`); many equalities are first contracted on the cluster
(`components`), so that the driver gets each constant once. Facts are joined with the
map (`rewriting`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from evermat.engines.spark.blocks import local_block
from evermat.engines.spark.representatives import NO_IDS, Cliques
from evermat.engines.spark.rewriting import (
    behind,
    images,
    mentioning,
    shared_ids,
    weight,
)
from evermat.engines.spark.rows import block_rows, partitioned, settled_block, work_out
from evermat.engines.spark.sets import Settled, as_settled, empty, rows_of, settle
from evermat.engines.spark.spreading import stars

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.equality import Representatives
    from evermat.engines.spark.blocks import Cluster
    from evermat.engines.spark.counters import CounterLog
    from evermat.engines.spark.dictionary import Ids
    from evermat.engines.spark.rows import Rows
    from evermat.engines.spark.sets import Stored
    from evermat.values import Kind

ON_DRIVER = 20
"""The driver contracts this many times more pairs than it keeps rows of a block."""


class EqualityOperators(ABC):
    """The methods of an engine that deal with equal constants.

    They use some of its other methods and its stored sets.
    """

    cluster: Cluster
    _arities: dict[str, int]
    _materialised: Stored
    _explicit: Stored
    _counters: tuple[CounterLog, CounterLog]

    @abstractmethod
    def declare(self, relation: str, arity: int) -> None:
        """Declare a relation."""

    @abstractmethod
    def begin(self) -> None:
        """Start a transaction."""

    @abstractmethod
    def commit(
        self,
        *,
        deleted: Facts,
        added: Facts,
        explicit_removed: Facts,
        explicit_added: Facts,
    ) -> None:
        """Commit the transaction."""

    # --------------------------------------------------------------------- cliques

    def representatives(self) -> Cliques:
        """Return cliques of equal constants, all of them singletons."""
        return Cliques(self.cluster)

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
        rows = block_rows(as_settled(equalities).block)
        if rows.table is None and rows.bound > ON_DRIVER * self.cluster.small:
            rows = block_rows(stars(images(rows, cliques)))
        left, right = _columns(rows)
        return self._facts(lost, cliques.unite(left, right, values))

    def restore(
        self,
        representatives: Representatives,
        members: SettledFacts,
        source: Representatives,
    ) -> None:
        """Reset the second constants of binary facts to their state in `source`."""
        _, ids = _columns(block_rows(as_settled(members).block))
        ones = cast("Cliques", source).map(ids)
        cast("Cliques", representatives).assign(ids, ones)

    def members(self, nodes: SettledFacts, representatives: Representatives) -> Settled:
        """Return for each fact `r(c, c)` the facts `r(c, d)`, d in c's clique."""
        ones, _ = _columns(block_rows(as_settled(nodes).block))
        cliques = cast("Cliques", representatives)
        origin, members = cliques.multiply(ones.reshape(1, -1))
        for relation in nodes.relations():
            return self._facts(relation, ones[origin], members[0])
        return empty(self.cluster)

    def moved(
        self, before: Representatives, after: Representatives, relation: str
    ) -> Settled:
        """Return the constants whose representative differs."""
        self.declare(relation, 1)
        old, new = cast("Cliques", before), cast("Cliques", after)
        return self._facts(relation, old.differences(new))

    def _facts(self, relation: str, *columns: Ids) -> Settled:
        """Return ids by column as facts of a relation; they must be distinct."""
        tags = np.full(columns[0].size, self.cluster.tag(relation), np.int64)
        names = ["tag", *(f"c{at}" for at in range(len(columns)))]
        table = pa.table([tags, *columns], names=names)
        block = local_block(self.cluster, table)
        if block.size > self.cluster.small:
            block = partitioned(block_rows(block))
        return Settled(block)

    # ------------------------------------------------------------------------ facts

    def rewrite(self, facts: SettledFacts, representatives: Representatives) -> Settled:
        """Return the facts with every constant replaced by its representative."""
        settled, cliques = as_settled(facts), cast("Cliques", representatives)
        if cliques.is_identity():
            return settled
        return Settled(settled_block(images(block_rows(settled.block), cliques)))

    def rewritten_into(
        self, facts: SettledFacts, representatives: Representatives, target: Facts
    ) -> Settled:
        """Return those of the facts that `rewrite` maps to a fact of a view."""
        block = as_settled(facts).block
        wanted = rows_of(target, self.cluster, frozenset(block.sizes))
        cliques = cast("Cliques", representatives)
        return Settled(settled_block(behind(block_rows(block), cliques, wanted)))

    def preimages(
        self, facts: SettledFacts, representatives: Representatives
    ) -> Settled:
        """Return the explicit facts that `rewrite` maps to one of the facts."""
        wanted = block_rows(as_settled(facts).block)
        tags = frozenset(as_settled(facts).block.sizes)
        given = self._explicit.heap.rows(tags)
        cliques = cast("Cliques", representatives)
        return Settled(settled_block(behind(given, cliques, wanted)))

    def mentioning(self, marks: SettledFacts, facts: Facts) -> Settled:
        """Return the facts of a view with a constant that begins a mark."""
        ids, *_ = _columns(block_rows(as_settled(marks).block))
        return self._mentioning(ids, facts)

    def about_moved(
        self, before: Representatives, after: Representatives, facts: Facts
    ) -> Settled:
        """Return the facts of a view about constants whose representative differs."""
        old, new = cast("Cliques", before), cast("Cliques", after)
        moved = old.differences(new)
        ones = np.concatenate([old.map(moved), new.map(moved)])
        # Facts mention representatives only.
        return self._mentioning(np.unique(ones[old.map(ones) == ones]), facts)

    def nodes_of(
        self, facts: SettledFacts, representatives: Representatives, relation: str
    ) -> Settled:
        """Return a fact `relation(c, c)` for each clique of several in the facts."""
        self.declare(relation, 2)
        rows = block_rows(as_settled(facts).block)
        cliques = cast("Cliques", representatives)
        ids = shared_ids(rows, cliques, self._arities_by_tag())
        return self._facts(relation, ids, ids)

    def normalise(self, representatives: Representatives) -> Settled:
        """Materialise the images of explicit facts in their place."""
        cliques = cast("Cliques", representatives)
        outdated = self._mentioning(cliques.moved, self._explicit)
        images = self.rewrite(outdated, cliques)
        implied = settle(images - self._explicit, self.cluster)
        nothing = empty(self.cluster)
        self.begin()
        self.commit(
            deleted=outdated,
            added=images,
            explicit_removed=nothing,
            explicit_added=implied,
        )
        return implied

    def marked(self) -> Settled:
        """Return the explicit facts whose recursive count is above zero."""
        counted = Settled(settled_block(self._counters[1].counted()))
        return settle(counted & self._explicit, self.cluster)

    def _mentioning(self, ids: Ids, facts: Facts) -> Settled:
        if not ids.size:
            return empty(self.cluster)
        arities = self._arities_by_tag()
        rows = rows_of(facts, self.cluster, frozenset(arities))
        return Settled(settled_block(mentioning(rows, ids, arities)))

    def _arities_by_tag(self) -> Mapping[int, int]:
        """Return the arities of relations that have arguments."""
        tag = self.cluster.tag
        return {tag(name): arity for name, arity in self._arities.items() if arity}

    def expanded_count(self, relation: str, representatives: Representatives) -> int:
        """Return how many facts the materialised facts of a relation represent."""
        arity = self._arities.get(relation, 0)
        tag = self.cluster.tag(relation)
        rows = self._materialised.heap.rows(frozenset({tag}))
        if not rows.bound:
            return 0
        if not arity:
            return int(work_out(rows).num_rows)
        return weight(rows, cast("Cliques", representatives), arity)


def _columns(rows: Rows) -> tuple[Ids, Ids]:
    """Return the first two columns of rows, on the driver."""
    if not rows.bound:
        return NO_IDS, NO_IDS
    table = work_out(rows)
    first = table["c0"].to_numpy()
    return first, table["c1"].to_numpy() if "c1" in table.column_names else first
