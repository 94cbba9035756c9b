"""The operators of the reference engine for equality by rewriting.

`evermat.algebra.engine.Engine` documents the methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import product
from math import prod
from typing import TYPE_CHECKING, cast

from evermat.algebra.equality import UnequalValuesError
from evermat.columns import as_terms, constants, table_of_rows
from evermat.engines.reference.store import Settled, by_relation, facts_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import pyarrow as pa

    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.equality import Representatives
    from evermat.engines.reference.store import Row, Store
    from evermat.values import Constant, Kind

# ---------------------------------------------------------------------- representatives


class Cliques:
    """Cliques and representatives; see `evermat.algebra.equality.Representatives`."""

    def __init__(self, known: dict[Constant, Constant] | None = None) -> None:
        self.known = dict(known or {})
        """Constants that are not their own representatives, with these."""

    def copy(self) -> Cliques:
        """Return an independent copy of the cliques."""
        return Cliques(self.known)

    def is_identity(self) -> bool:
        """Return whether no two constants are equal."""
        return not self.known

    def one(self, constant: Constant) -> Constant:
        """Return the representative of a constant."""
        return self.known.get(constant, constant)

    def replaced(self, constants: Sequence[Constant]) -> dict[Constant, Constant]:
        """Map those of the constants that have another representative to it."""
        return {each: self.known[each] for each in constants if each in self.known}

    def row(self, row: Row) -> Row:
        """Return a row with every constant replaced."""
        return tuple(self.one(constant) for constant in row)

    def clique(self, representative: Constant) -> list[Constant]:
        """Return the constants with the given representative."""
        return [
            representative,
            *(member for member, one in self.known.items() if one == representative),
        ]

    def unite(
        self, left: Constant, right: Constant, values: frozenset[Kind]
    ) -> Constant | None:
        """Make two constants equal; return the former representative of one."""
        left, right = self.one(left), self.one(right)
        if left == right:
            return None
        if left.kind in values and right.kind in values:
            raise UnequalValuesError(left, right)

        def order(constant: Constant) -> tuple[bool, int, str]:
            return constant.kind not in values, constant.kind, constant.text

        winner, loser = sorted((left, right), key=order)
        for member in self.clique(loser):
            self.known[member] = winner
        return loser

    def cliques(self) -> pa.Table:
        """Return the members of cliques of at least two, with their representatives."""
        rows: set[Row] = set(self.known.items())
        rows |= {(one, one) for one in self.known.values()}
        return table_of_rows(sorted(rows, key=repr), 2)

    def take_up(self, table: pa.Table) -> None:
        """Make constants of the second column representatives of those in the first."""
        self.known = dict(cast("list[tuple[Constant, Constant]]", rows_in(table)))

    def normalised(self, table: pa.Table) -> pa.Table:
        """Return a table with every constant replaced by its representative."""
        rows = [self.row(row) for row in rows_in(table)]
        return table_of_rows(rows, table.num_columns)

    def expanded(self, table: pa.Table, names: Collection[int] = ()) -> pa.Table:
        """Return all rows that the rows of a table of term columns represent."""
        rows = [
            each
            for row in rows_in(table)
            for each in product(
                *(
                    [constant] if at in names else self.clique(constant)
                    for at, constant in enumerate(row)
                )
            )
        ]
        return table_of_rows(rows, table.num_columns)

    def expanded_size(self, table: pa.Table) -> int:
        """Return the number of rows of `expanded`."""
        return self.weight(rows_in(table))

    def weight(self, rows: Iterable[Row]) -> int:
        """Return the number of rows that some rows represent."""
        return sum(prod(len(self.clique(one)) for one in row) for row in rows)


def rows_in(table: pa.Table) -> list[Row]:
    """Return the rows of a table, as constants."""
    if not table.num_columns:
        return [()] * table.num_rows
    columns = [constants(as_terms(column)) for column in table.columns]
    return list(zip(*columns, strict=True))


# ------------------------------------------------------------------------ the operators


class EqualityOperators(ABC):
    """The methods of an engine for equal constants.

    Attributes:
        store: the facts.
    """

    store: Store

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
        """End the transaction, and apply the changes."""

    def representatives(self) -> Cliques:
        """Create a set of cliques in which every constant is alone."""
        return Cliques()

    def merge(
        self,
        representatives: Representatives,
        equalities: SettledFacts,
        lost: str,
        values: frozenset[Kind],
    ) -> SettledFacts:
        """Make the two constants of each binary fact equal."""
        self.declare(lost, 1)
        cliques = cast("Cliques", representatives)
        losers = set()
        for _, (left, right) in facts_of(equalities):
            loser = cliques.unite(left, right, values)
            if loser is not None:
                losers.add((loser,))
        return Settled({lost: losers})

    def restore(
        self,
        representatives: Representatives,
        members: SettledFacts,
        source: Representatives,
    ) -> None:
        """Set the representatives of the second constants of facts as in `source`."""
        cliques = cast("Cliques", representatives)
        for _, (_, member) in facts_of(members):
            one = cast("Cliques", source).one(member)
            cliques.known.pop(member, None)
            if one != member:
                cliques.known[member] = one

    def members(
        self, nodes: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """Return `r(c, d)` for each fact `r(c, c)` and each d in the clique of c."""
        cliques = cast("Cliques", representatives)
        return Settled(
            by_relation(
                (name, (row[0], member))
                for name, row in facts_of(nodes)
                for member in cliques.clique(row[0])
            )
        )

    def moved(
        self, before: Representatives, after: Representatives, relation: str
    ) -> SettledFacts:
        """Return the constants whose representative differs."""
        self.declare(relation, 1)
        moved = _moved(cast("Cliques", before), cast("Cliques", after))
        return Settled({relation: {(constant,) for constant in moved}})

    def rewrite(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """Return the facts with every constant replaced by its representative."""
        cliques = cast("Cliques", representatives)
        found = ((name, cliques.row(row)) for name, row in facts_of(facts))
        return Settled(by_relation(found))

    def shared(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """Return the facts with a constant that is equal to another."""
        known = cast("Cliques", representatives).known
        members = known.keys() | known.values()
        found = (fact for fact in facts_of(facts) if not members.isdisjoint(fact[1]))
        return Settled(by_relation(found))

    def rewritten_into(
        self, facts: SettledFacts, representatives: Representatives, target: Facts
    ) -> SettledFacts:
        """Return those of the facts whose rewritten fact is in a view."""
        cliques = cast("Cliques", representatives)
        rows = {name: rows_of(target, name) for name in facts.relations()}
        found = (
            (name, row)
            for name, row in facts_of(facts)
            if cliques.row(row) in rows[name]
        )
        return Settled(by_relation(found))

    def mentioning(self, marks: SettledFacts, facts: Facts) -> SettledFacts:
        """Return the facts of a view that mention the first constant of a mark."""
        return _mentioning({row[0] for _, row in facts_of(marks)}, facts)

    def about_moved(
        self, before: Representatives, after: Representatives, facts: Facts
    ) -> SettledFacts:
        """Return the facts of a view about constants whose representative differs."""
        old, new = cast("Cliques", before), cast("Cliques", after)
        wanted: set[Constant] = set()
        for constant in _moved(old, new):
            wanted |= {constant, old.one(constant), new.one(constant)}
        return _mentioning(wanted, facts)

    def nodes_of(
        self, facts: SettledFacts, representatives: Representatives, relation: str
    ) -> SettledFacts:
        """Return `relation(c, c)` for each mentioned clique of two or more."""
        cliques = cast("Cliques", representatives)
        shared = set(cliques.known.values())
        return Settled(
            {
                relation: {
                    (constant, constant)
                    for _, row in facts_of(facts)
                    for constant in row
                    if constant in shared
                }
            }
        )

    def normalise(self, representatives: Representatives) -> SettledFacts:
        """Replace explicit facts by their rewritten facts, which then hold instead."""
        cliques = cast("Cliques", representatives)
        explicit = list(facts_of(self.store.explicit))
        outdated = [(name, row) for name, row in explicit if cliques.row(row) != row]
        images = {(name, cliques.row(row)) for name, row in outdated}
        implied = Settled(by_relation(images - set(explicit)))
        self.begin()
        self.commit(
            deleted=Settled(by_relation(outdated)),
            added=Settled(by_relation(images)),
            explicit_removed=Settled({}),
            explicit_added=implied,
        )
        return implied

    def marked(self) -> SettledFacts:
        """Return the explicit facts whose recursive count is above zero."""
        return self.store.recursive.positive(
            Settled(by_relation(facts_of(self.store.explicit)))
        )

    def preimages(
        self, facts: SettledFacts, representatives: Representatives
    ) -> SettledFacts:
        """Return the explicit facts that `rewrite` maps to one of the facts."""
        cliques = cast("Cliques", representatives)
        wanted = {name: rows_of(facts, name) for name in facts.relations()}
        found = (
            (name, row)
            for name, rows in wanted.items()
            for row in rows_of(self.store.explicit, name)
            if cliques.row(row) in rows
        )
        return Settled(by_relation(found))

    def expanded_count(self, relation: str, representatives: Representatives) -> int:
        """Return the number of facts that the stored facts of a relation represent."""
        cliques = cast("Cliques", representatives)
        return cliques.weight(rows_of(self.store.materialised, relation))


def _moved(old: Cliques, new: Cliques) -> set[Constant]:
    """Return the constants whose representative differs."""
    every = old.known.keys() | new.known.keys()
    return {each for each in every if old.one(each) != new.one(each)}


def _mentioning(wanted: set[Constant], facts: Facts) -> SettledFacts:
    """Return the facts of a view that mention one of some constants."""
    found = (fact for fact in facts_of(facts) if not wanted.isdisjoint(fact[1]))
    return Settled(by_relation(found))
