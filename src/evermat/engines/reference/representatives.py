"""Cliques of equal constants, as a dictionary from constants to representatives."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, cast

from evermat.algebra.equality import UnequalValuesError
from evermat.columns import as_terms, constants, table_of_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import pyarrow as pa

    from evermat.engines.reference.sets import Row
    from evermat.values import Constant, Kind


class Cliques:
    """See `evermat.algebra.equality.Representatives`."""

    def __init__(self, known: dict[Constant, Constant] | None = None) -> None:
        self.known = dict(known or {})
        """Constants that do not stand for themselves, and what stands for them."""

    def copy(self) -> Cliques:
        """Return the same cliques, to be changed on their own."""
        return Cliques(self.known)

    def is_identity(self) -> bool:
        """Return whether no two constants are equal."""
        return not self.known

    def one(self, constant: Constant) -> Constant:
        """What stands for a constant."""
        return self.known.get(constant, constant)

    def replaced(self, constants: Sequence[Constant]) -> dict[Constant, Constant]:
        """Those of the constants that something else stands for, and what does."""
        return {each: self.known[each] for each in constants if each in self.known}

    def row(self, row: Row) -> Row:
        """Return a row with every constant replaced."""
        return tuple(self.one(constant) for constant in row)

    def clique(self, representative: Constant) -> list[Constant]:
        """Return the constants that a representative stands for."""
        return [
            representative,
            *(member for member, one in self.known.items() if one == representative),
        ]

    def unite(
        self, left: Constant, right: Constant, values: frozenset[Kind]
    ) -> Constant | None:
        """Make two constants equal; returns the one that lost its status."""
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
        """The members of cliques of two and more, beside their representative."""
        rows: set[Row] = set(self.known.items())
        rows |= {(one, one) for one in self.known.values()}
        return table_of_rows(sorted(rows, key=repr), 2)

    def take_up(self, table: pa.Table) -> None:
        """Have the constants of the second column stand for those of the first."""
        self.known = dict(cast("list[tuple[Constant, Constant]]", rows_in(table)))

    def normalised(self, table: pa.Table) -> pa.Table:
        """Return a table with every constant replaced by its representative."""
        rows = [self.row(row) for row in rows_in(table)]
        return table_of_rows(rows, table.num_columns)

    def expanded(self, table: pa.Table, names: Collection[int] = ()) -> pa.Table:
        """Return all rows that the rows of a table of term columns stand for."""
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
        """How many rows `expanded` would have."""
        return self.weight(rows_in(table))

    def weight(self, rows: Iterable[Row]) -> int:
        """How many rows some rows stand for."""
        return sum(prod(len(self.clique(one)) for one in row) for row in rows)


def rows_in(table: pa.Table) -> list[Row]:
    """Return the rows of a table, as constants."""
    if not table.num_columns:
        return [()] * table.num_rows
    columns = [constants(as_terms(column)) for column in table.columns]
    return list(zip(*columns, strict=True))
