"""Union–find over constant ids, with member lists and cheap copies.

A clique of equal constants is stored in arrays by id: a link from each member to the
representative, and a ring through all members; `kernels.cliques` documents them. In
this module, *names* are constants with ids in these arrays. Small integers have ids
beyond all arrays. An integer that is equal to names is their representative, and is
*attached* to the name that would represent them without it, the *root* of the clique.

An update that splits or merges cliques needs the arrays before and after, and B/F^≈
needs arrays in which nothing is equal. Allocating these anew takes as long as the rest
of the work on few cliques, so arrays that are no longer used are kept as *spares*. The
positions at which a spare can differ from the arrays in use are recorded, so only these
are corrected.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NoReturn, TypeVar

import numpy as np
import pyarrow as pa

from evermat.algebra.equality import UnequalValuesError
from evermat.columns import rows_without_columns
from evermat.engines.embedded.arrays import sum_of_products
from evermat.engines.embedded.dedup import FEW
from evermat.engines.embedded.dictionary import FIRST_INTEGER, RememberedIds
from evermat.engines.embedded.kernels import cliques as kernels_cliques
from evermat.engines.embedded.kernels.layout import address

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from evermat.engines.embedded.arrays import Flags, Ids, Rows
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.values import Constant, Kind

    Sizes = npt.NDArray[np.int64]


_T = TypeVar("_T", bound=np.generic)

NO_IDS: Ids = np.empty(0, np.uint32)

BLOCK = 4096
"""Size, in ids, of the blocks in which arrays are copied. Blocks in which no name is
equal to another are all zeros, and are not copied.
"""

MOST_SPARES = 2
"""One for the arrays before an update, and one in which nothing is equal."""

FEW_DIFFERENT = 8
"""A spare is used if it differs in at most one of this many positions."""

_BLANK = object()
"""The version of arrays in which nothing is equal."""


class CliqueArrays:
    """Arrays by id, with spare capacity; in new ones, nothing is equal.

    Attributes:
        links: the difference of each id from its representative, as `id ^ other`.
        ring: its difference from the next member of its clique.
        others: the number of other names in its clique.
        version: identifies the contents; arrays are not written to once there is a
            copy.
    """

    def __init__(self) -> None:
        self.links: Ids = NO_IDS
        self.ring: Ids = NO_IDS
        self.others: Rows = np.empty(0, np.int32)
        self.version = _BLANK
        self._blocks: Flags = np.empty(0, np.uint8)
        """Flags of blocks with names of cliques; all others are zeros."""
        self._origin = _BLANK
        """The version of the arrays that these are a copy of, …"""
        self._touched: list[Ids] = []
        """… and all ids whose entries may have changed since."""

    def note(self, names: Ids) -> None:
        """Record names whose entries have changed."""
        self._touched.append(names)
        self._blocks[names // BLOCK] = 1

    def is_copy_of(self, other: CliqueArrays) -> bool:
        """Return whether these began as a copy of others, with all changes recorded."""
        return self._origin is other.version

    @property
    def touched(self) -> Ids:
        """All ids whose entries may have changed since these were a copy."""
        return np.concatenate([NO_IDS, *self._touched])

    def grow(self, size: int) -> None:
        """Reserve capacity for `size` ids."""
        if size > self.links.size:
            self._copy(self, self._blocks_for(size))

    def twin(self, size: int, spares: list[CliqueArrays]) -> CliqueArrays:
        """Return a copy with capacity for `size` ids, made of a spare if possible."""
        blocks = self._blocks_for(size)
        twin = self._from_spare(blocks, spares)
        if twin is None:
            twin = CliqueArrays()
            twin._copy(self, blocks)
        twin.version = object()
        twin._origin, twin._touched = self.version, []
        return twin

    def _blocks_for(self, size: int) -> int:
        room = self.links.size
        if size <= room:
            return room // BLOCK
        return max(size, room + room // 2) // BLOCK + 1

    def _copy(self, other: CliqueArrays, blocks: int) -> None:
        """Become a copy of `other` with capacity for `blocks` blocks."""
        known = other._blocks
        used = np.flatnonzero(known)
        self.links = _roomy(other.links, blocks, used)
        self.ring = _roomy(other.ring, blocks, used)
        self.others = _roomy(other.others, blocks, used)
        self._blocks = np.zeros(blocks, np.uint8)
        self._blocks[: known.size] = known

    def _from_spare(
        self, blocks: int, spares: list[CliqueArrays]
    ) -> CliqueArrays | None:
        """Return a copy with `blocks` blocks made from a spare, or None."""
        size = blocks * BLOCK
        for spare in spares:
            if spare.links.size != size or self.links.size not in (0, size):
                continue
            if spare.is_copy_of(self):
                places = spare.touched
            elif self.is_copy_of(spare):
                places = self.touched
            else:
                continue
            if places.size * FEW_DIFFERENT <= size:
                spares.remove(spare)
                spare.correct(self, places)
                return spare
        return None

    def correct(self, other: CliqueArrays, places: Ids) -> None:
        """Become a copy of others that differ at most at some ids."""
        mine = self.links, self.ring, self.others
        kernels_cliques.copy_places(
            places, *mine, other.links, other.ring, other.others
        )
        if other.links.size:
            self._blocks |= other._blocks


class Held:
    """Arrays shared by several cliques; kept as a spare when none of them is left.

    Attributes:
        arrays: the shared arrays.
        spares: the list that receives the arrays at the end.
        is_whole: whether all changes of the arrays have been recorded.
    """

    __slots__ = ("arrays", "is_whole", "spares")

    def __init__(self, arrays: CliqueArrays, spares: list[CliqueArrays]) -> None:
        self.arrays = arrays
        self.spares = spares
        self.is_whole = True

    def twin(self, size: int) -> Held:
        """Return a copy with capacity for `size` ids."""
        return Held(self.arrays.twin(size, self.spares), self.spares)

    def __del__(self) -> None:
        """Keep the arrays as a spare."""
        # The attribute is missing if its assignment ran out of memory.
        if getattr(self, "is_whole", False) and self.arrays.links.size:
            self.spares.append(self.arrays)
            del self.spares[:-MOST_SPARES]


def _roomy(
    array: npt.NDArray[_T], blocks: int, used: npt.NDArray[np.intp]
) -> npt.NDArray[_T]:
    """Return a copy with `blocks` blocks, given those that are not all zeros."""
    known = array.reshape(-1, BLOCK)
    if used.size * 2 > len(known):
        larger = np.empty((blocks, BLOCK), array.dtype)
        larger[: len(known)] = known
        larger[len(known) :] = 0
    else:
        larger = np.zeros((blocks, BLOCK), array.dtype)
        larger[used] = known[used]
    return larger.ravel()


class Cliques:
    """See `evermat.algebra.equality.Representatives`."""

    def __init__(self, dictionary: Dictionary, held: Held) -> None:
        self._dictionary = dictionary
        self._held = held
        self._is_shared = False
        """Whether a copy shares the arrays, so that they must not be written to."""
        self._integers: dict[int, int] = {}
        """Integers that represent cliques, by root."""
        self._roots: dict[int, int] = {}
        """The inverse: roots by integer."""
        self._moved = 0
        """The number of constants that are not their own representative."""
        self._ids = RememberedIds(dictionary.encode_constants)

    @classmethod
    def without_any(cls, dictionary: Dictionary, spares: list[CliqueArrays]) -> Cliques:
        """Return cliques that are all singletons; spare arrays may be reused."""
        return cls(dictionary, Held(CliqueArrays(), spares))

    # ------------------------------------------------------------------- questions

    def copy(self) -> Cliques:
        """Return an independent copy; the arrays are copied on the first write."""
        twin = Cliques(self._dictionary, self._held)
        twin._integers, twin._roots = dict(self._integers), dict(self._roots)
        twin._moved = self._moved
        twin._ids = self._ids
        twin._is_shared = self._is_shared = True
        return twin

    def is_identity(self) -> bool:
        """Return whether no two constants are equal."""
        return not self._moved

    @property
    def has_integers(self) -> bool:
        """Whether integers are equal to names, so that arrays are insufficient."""
        return bool(self._integers)

    @property
    def links(self) -> Ids:
        """The difference of each id from its representative, as `id ^ other`."""
        return self._held.arrays.links

    @property
    def ring(self) -> Ids:
        """The difference of each id from the next member of its clique."""
        return self._held.arrays.ring

    @property
    def others(self) -> Rows:
        """The number of other names in the clique of each id."""
        return self._held.arrays.others

    @property
    def kinds(self) -> Flags:
        """The kind of each id."""
        return self._dictionary.kinds

    @property
    def texts(self) -> tuple[Flags, npt.NDArray[np.int64]]:
        """The strings of all ids, and their boundaries; see `Dictionary.texts`."""
        return self._dictionary.texts

    def map(self, ids: Ids) -> Ids:
        """Return the representatives of ids, in any shape."""
        return self._images(ids) if self._moved else ids

    def _images(self, ids: Ids) -> Ids:
        return _translated(_followed(ids, self.links), self._integers)

    def differs(self, table: Ids, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows of a table have a constant that is not a representative."""
        if self._integers:
            part = table[:, rows]
            moved: npt.NDArray[np.bool_] = (self.map(part) != part).any(axis=0)
            return moved
        marks = np.empty(rows.size, np.bool_)
        kernels_cliques.mark_moved(table, self.links, rows, marks.view(np.uint8))
        return marks

    def replaced(self, constants: Sequence[Constant]) -> dict[Constant, Constant]:
        """Return the representatives of those constants that have another one."""
        if not self._moved or not constants:
            return {}
        before = self._ids.of(constants)
        after = self.map(before)
        return {
            constants[at]: self._dictionary.constant(int(after[at]))
            for at in np.flatnonzero(before != after).tolist()
        }

    def sizes(self, ids: Ids) -> Sizes:
        """Return the size of the clique of each representative."""
        known = ids < self.links.size
        sizes: Sizes = np.ones(ids.shape, np.int64)
        sizes[known] += self.others[ids[known]]
        if self._roots:
            roots = _translated(ids, self._roots)
            attached = roots != ids
            sizes[attached] = self.others[roots[attached]] + 2
        return sizes

    def members(self, ids: Ids) -> tuple[Sizes, Ids]:
        """Return the sizes of the cliques of representatives, and all their members."""
        sizes = self.sizes(ids)
        alone = (ids >= self.links.size).astype(np.uint8)
        roots = _translated(ids, self._roots)
        members = np.empty(int(sizes.sum()), np.uint32)
        kernels_cliques.list_members(
            self.ring, sizes.astype(np.int32), ids, roots, alone, members
        )
        return sizes, members

    def multiply(
        self, table: Ids, names: Collection[int] = ()
    ) -> tuple[npt.NDArray[np.int64], Ids]:
        """Expand rows of representatives; return the origin of each row, and all rows.

        The columns in `names` are not expanded.
        """
        origin = np.arange(table.shape[1], dtype=np.int64)
        columns: list[Ids] = []
        for at in range(table.shape[0]):
            if at in names:
                columns.append(table[at, origin])
                continue
            sizes, members = self.members(table[at, origin])
            repeated = np.repeat(np.arange(origin.size), sizes)
            columns = [done[repeated] for done in columns]
            columns.append(members)
            origin = origin[repeated]
        if not columns:
            return origin, table
        return origin, np.stack(columns)

    def combinations(self, table: Ids, rows: Rows, most: int) -> tuple[Ids, Rows]:
        """Expand rows of representatives; return the results, and rows not expanded.

        Args:
            table: facts of representatives, by column.
            rows: some of them.
            most: rows that represent more facts than this are not expanded.
        """
        if self._integers:
            part = table[:, rows]
            weights = self.sizes(part).astype(np.float64).prod(axis=0)
            few = weights <= most
            return self.multiply(np.ascontiguousarray(part[:, few]))[1], rows[~few]
        rows = np.ascontiguousarray(rows)
        weights = np.empty(rows.size, np.int64)
        total = kernels_cliques.weigh(table, self.others, rows, weights)
        many = rows[:0]
        if total > most:
            few = weights <= most
            many, rows, weights = rows[~few], rows[few], weights[few]
            total = int(weights.sum())
        found = np.empty((table.shape[0], total), np.uint32)
        kernels_cliques.combine(table, self.ring, rows, weights, found)
        return found, many

    def cliques(self) -> pa.Table:
        """Return the members of cliques of two or more, with their representatives."""
        every = np.arange(self.links.size, dtype=np.uint32)
        ones = self.map(every)
        moved = ones != every
        heads = _distinct(ones[moved])
        columns = [
            np.concatenate([heads, every[moved]]),
            np.concatenate([heads, ones[moved]]),
        ]
        return self._decoded(columns)

    # ---------------------------------------------------------------------- tables

    def _encoded(self, table: pa.Table) -> Ids:
        ids = np.empty((table.num_columns, table.num_rows), np.uint32)
        for at, column in enumerate(table.columns):
            ids[at] = self._dictionary.encode(column)
        return ids

    def _decoded(self, columns: Sequence[Ids] | Ids) -> pa.Table:
        return pa.table(
            [self._dictionary.decode(column) for column in columns],
            names=[str(at) for at in range(len(columns))],
        )

    def normalised(self, table: pa.Table) -> pa.Table:
        """Return a table with every constant replaced by its representative."""
        if not self._moved or not table.num_columns:
            return table
        return self._decoded(self.map(self._encoded(table)))

    def expanded(self, table: pa.Table, names: Collection[int] = ()) -> pa.Table:
        """Return all rows that the rows of a table of term columns represent."""
        if not table.num_columns:
            return rows_without_columns(table.num_rows)
        if not self._moved or not table.num_rows:
            return table
        return self._decoded(self.multiply(self._encoded(table), names)[1])

    def expanded_size(self, table: pa.Table) -> int:
        """Return the number of rows of `expanded`."""
        if not self._moved or not table.num_columns:
            return int(table.num_rows)
        return self.weight(self._encoded(table))

    def weight(self, table: Ids) -> int:
        """Return how many rows some rows of representatives represent."""
        return sum_of_products(self.sizes(table))

    # --------------------------------------------------------------------- changes

    def unite(self, left: Ids, right: Ids, values: frozenset[Kind]) -> Ids:
        """Make pairs of constants equal; return replaced representatives."""
        before = np.concatenate([self.map(left), self.map(right)])
        with self._writing():
            self._unite(left, right, values)
        lost = _distinct(before)
        losers: Ids = lost[self._images(lost) != lost]
        self._moved += losers.size
        return losers

    def _unite(self, left: Ids, right: Ids, values: frozenset[Kind]) -> None:
        left, right, integers = self._names(left, right)
        roots = np.concatenate([left, right])
        valued = np.array(sorted(self._integers), np.uint32)
        conflict = self._unite_names(valued, left, right, values)
        if conflict >= 0:
            self._refuse(int(left[conflict]), int(right[conflict]))
        kernels_cliques.find_roots(self.links, roots)
        self._label(_distinct(roots))
        for name, integer in integers:
            self._attach(name, integer, values)

    def _unite_names(
        self, valued: Ids, left: Ids, right: Ids, values: frozenset[Kind]
    ) -> int:
        """Unite pairs of names; see `kernels_cliques.unite`."""
        texts, ends = self.texts
        return kernels_cliques.unite(
            self.links,
            self.ring,
            self.kinds,
            ranks_of(values),
            address(texts),
            address(ends),
            valued,
            left,
            right,
        )

    def _names(self, left: Ids, right: Ids) -> tuple[Ids, Ids, set[tuple[int, int]]]:
        """Return pairs of names, and pairs of a name and an integer new to cliques."""
        left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
        special = (left >= FIRST_INTEGER) | (right >= FIRST_INTEGER)
        if not special.any():
            return left, right, set()
        pairs: list[tuple[int, int]] = []
        integers: set[tuple[int, int]] = set()
        for one, other in zip(left[special], right[special], strict=True):
            a, b = sorted((int(one), int(other)))
            a, b = self._roots.get(a, a), self._roots.get(b, b)
            a, b = sorted((a, b))
            if a >= FIRST_INTEGER and a != b:
                self._refuse(a, b)
            elif b < FIRST_INTEGER:
                pairs.append((a, b))
            elif a < FIRST_INTEGER:
                integers.add((a, b))
        more = np.array(pairs, np.uint32).reshape(-1, 2)
        return (
            np.concatenate([left[~special], more[:, 0]]),
            np.concatenate([right[~special], more[:, 1]]),
            integers,
        )

    def _attach(self, name: int, integer: int, values: frozenset[Kind]) -> None:
        """Make an integer the representative of the clique of a name."""
        root = name ^ int(self.links[name])
        if root in self._integers:
            if self._integers[root] != integer:
                self._refuse(root, integer)
            return
        if not ranks_of(values)[self._dictionary.kinds[root]]:
            self._refuse(root, integer)
        other = self._roots.get(integer)
        if other is not None:
            pair = np.array([root], np.uint32), np.array([other], np.uint32)
            valued = np.array([other], np.uint32)
            self._unite_names(valued, *pair, values)
            self._label(valued)
            return
        self._integers[root] = integer
        self._roots[integer] = root
        self._held.arrays.note(self._clique(np.array([root], np.uint32)))

    def _label(self, roots: Ids) -> None:
        kernels_cliques.label(self.links, self.ring, self.others, roots)
        self._held.arrays.note(self._clique(roots))

    def _clique(self, roots: Ids) -> Ids:
        """Return the names in the cliques of some roots."""
        sizes = self.others[roots] + 1
        members = np.empty(int(sizes.sum()), np.uint32)
        none = np.zeros(roots.size, np.uint8)
        kernels_cliques.list_members(self.ring, sizes, roots, roots, none, members)
        return members

    def _refuse(self, left: int, right: int) -> NoReturn:
        """Raise the error for two values that would be equal."""
        raise UnequalValuesError(self._value(left), self._value(right))

    def _value(self, one: int) -> Constant:
        root = np.array([one], np.uint32)
        if one < FIRST_INTEGER:
            kernels_cliques.find_roots(self.links, root)
        value = int(root[0])
        return self._dictionary.constant(self._integers.get(value, value))

    def assign(self, members: Ids, source: Cliques) -> None:
        """Set whole cliques to the state that other cliques have for their members."""
        before = self._images(members)
        with self._writing():
            self._assign(members, source)
        moved = np.count_nonzero(self._images(members) != members)
        self._moved += int(moved - np.count_nonzero(before != members))

    def _assign(self, members: Ids, source: Cliques) -> None:
        names = members[members < FIRST_INTEGER]
        if self._integers:
            for root in np.intersect1d(names, list(self._integers)):
                del self._roots[self._integers.pop(int(root))]
        if not names.size:
            return
        self._held.arrays.correct(source._held.arrays, names)
        self._held.arrays.note(names)
        for root, integer in source._integers.items():
            if root in names:
                self._integers[root] = integer
                self._roots[integer] = root

    def _arrange(self, names: Ids, roots: Ids) -> None:
        """Link all names of some cliques to their roots."""
        order = np.argsort(roots, kind="stable")
        names, roots = names[order], roots[order]
        starts = np.flatnonzero(np.append(True, roots[1:] != roots[:-1]))
        ends = np.append(starts[1:], names.size)
        self.links[names] = names ^ roots
        following = np.append(names[1:], names[:1])
        following[ends - 1] = names[starts]
        self.ring[names] = names ^ following
        self.others[names] = np.repeat(ends - starts - 1, ends - starts)
        self._held.arrays.note(names)

    def take_up(self, table: pa.Table) -> None:
        """Make the constants of the second column the representatives of the first."""
        if not table.num_rows:
            return
        names, roots = self._encoded(table)
        self._moved = names.size
        for integer in np.unique(roots[roots >= FIRST_INTEGER]).tolist():
            its = roots == integer
            root = int(names[its].min())
            roots[its] = root
            self._integers[root], self._roots[integer] = integer, root
        heads = np.setdiff1d(roots, names)
        with self._writing():
            self._arrange(np.append(names, heads), np.append(roots, heads))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Get exclusive arrays with capacity for all constants, for writing."""
        size = len(self._dictionary)
        if self._is_shared or not self.links.size:
            self._held = self._held.twin(size)
            self._is_shared = False
        else:
            self._held.arrays.grow(size)
        self._held.is_whole = False
        yield
        self._held.is_whole = True

    def differences(self, other: Cliques) -> Ids:
        """Return the constants whose representatives differ."""
        mine, theirs = self._held.arrays, other._held.arrays
        if mine is theirs and self._integers == other._integers:
            return NO_IDS
        if theirs.is_copy_of(mine):
            every = theirs.touched
            if not self._integers and not other._integers:
                few = np.empty(every.size, np.uint32)
                size = kernels_cliques.list_different(
                    every, self.links, other.links, few
                )
                return few[:size]
            every = _distinct(every)
        else:
            size = max(self.links.size, other.links.size)
            every = np.arange(size, dtype=np.uint32)
        found: Ids = every[self.map(every) != other.map(every)]
        return found


def _followed(ids: Ids, links: Ids) -> Ids:
    """Return the ids that links lead to, in any shape; others are unchanged."""
    known = ids < links.size
    if known.all():
        return ids ^ links[ids]
    if not known.any():
        return ids
    followed: Ids = np.where(known, ids ^ links[np.where(known, ids, 0)], ids)
    return followed


def _distinct(ids: Ids) -> Ids:
    """Return the sorted distinct ids."""
    names = ids[ids < FIRST_INTEGER]
    if names.size < ids.size or not names.size or names.max() > names.size * FEW:
        return np.unique(ids)
    marks = np.zeros(int(names.max()) + 1, np.bool_)
    marks[names] = True
    return np.flatnonzero(marks).astype(np.uint32)


def _translated(ids: Ids, table: Mapping[int, int]) -> Ids:
    """Return ids with those in a table replaced."""
    if not table or not ids.size:
        return ids
    keys = np.array(sorted(table), np.uint32)
    values = np.array([table[int(key)] for key in keys], np.uint32)
    places = np.minimum(np.searchsorted(keys, ids), keys.size - 1)
    return np.where(keys[places] == ids, values[places], ids)


@cache
def ranks_of(values: frozenset[Kind]) -> Flags:
    """Return 0 for every kind of constant in `values`, and 1 for others."""
    ranks = np.ones(256, np.uint8)
    ranks[[int(kind) for kind in values]] = 0
    return ranks
