"""The arrays that cliques are kept in, and copies of them that cost little.

See `kernels.cliques` for what they mean. An update that splits or merges cliques needs
them as they were and as they will be, and B/F^≈ needs arrays in which nothing is equal.
Making these anew takes as long as the rest of the work on few cliques, so arrays that
nobody needs any more are kept as *spares*. It is known in which places a spare differs
from what is wanted, because all arrays know what they are a copy of.

Cliques of equal constants: an array that leads from each id to what stands for it.

Integers have ids beyond all arrays. One that is equal to names stands for them, and is
*attached* to the name that would represent them without it, the *root* of the clique.
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
"""Arrays are copied in blocks of so many ids. Those without a name that is equal to
another are not: they are zeros."""

MOST_SPARES = 2
"""One for what was, and one in which nothing is equal."""

FEW_DIFFERENT = 8
"""A spare is used if it differs in one place of so many, at most."""

_BLANK = object()
"""The version of arrays in which nothing is equal."""


class CliqueArrays:
    """Arrays by id, with room at the end; in new ones, nothing is equal.

    Attributes:
        links: how each id differs from what stands for it, as `id ^ other`.
        ring: how it differs from the next member of its clique.
        others: how many other names its clique has.
        version: tells them from all others; they are not written to any more as soon
            as there is a copy.
    """

    def __init__(self) -> None:
        self.links: Ids = NO_IDS
        self.ring: Ids = NO_IDS
        self.others: Rows = np.empty(0, np.int32)
        self.version = _BLANK
        self._blocks: Flags = np.empty(0, np.uint8)
        """Which blocks have names of cliques; all others are zeros."""
        self._origin = _BLANK
        """The version of the arrays that these are a copy of, …"""
        self._touched: list[Ids] = []
        """… and all ids whose places may have changed since."""

    def note(self, names: Ids) -> None:
        """Take note of names whose places have changed."""
        self._touched.append(names)
        self._blocks[names // BLOCK] = 1

    def is_copy_of(self, other: CliqueArrays) -> bool:
        """Whether these were the same as others once, and all changes are known."""
        return self._origin is other.version

    @property
    def touched(self) -> Ids:
        """All ids whose places may have changed since these were a copy."""
        return np.concatenate([NO_IDS, *self._touched])

    def grow(self, size: int) -> None:
        """Have room for so many ids."""
        if size > self.links.size:
            self._copy(self, self._blocks_for(size))

    def twin(self, size: int, spares: list[CliqueArrays]) -> CliqueArrays:
        """A copy with room for so many ids, made of a spare if there is an apt one."""
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
        """Be a copy with room for so many blocks."""
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
        """A copy with so many blocks that was a spare."""
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
        """Be a copy of others, which differ in some places at most."""
        mine = self.links, self.ring, self.others
        kernels_cliques.copy_places(
            places, *mine, other.links, other.ring, other.others
        )
        if other.links.size:
            self._blocks |= other._blocks


class Held:
    """Arrays that some cliques have in common, until none of them is left.

    Attributes:
        arrays: what is held.
        spares: is given the arrays then.
        is_whole: whether all changes of the arrays have been noted.
    """

    __slots__ = ("arrays", "is_whole", "spares")

    def __init__(self, arrays: CliqueArrays, spares: list[CliqueArrays]) -> None:
        self.arrays = arrays
        self.spares = spares
        self.is_whole = True

    def twin(self, size: int) -> Held:
        """A copy with room for so many ids."""
        return Held(self.arrays.twin(size, self.spares), self.spares)

    def __del__(self) -> None:
        """Leave the arrays to those who need others."""
        # There may have been no memory to set it.
        if getattr(self, "is_whole", False) and self.arrays.links.size:
            self.spares.append(self.arrays)
            del self.spares[:-MOST_SPARES]


def _roomy(
    array: npt.NDArray[_T], blocks: int, used: npt.NDArray[np.intp]
) -> npt.NDArray[_T]:
    """A copy with room for so many blocks, of which only some are not all zeros."""
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
        """Whether the arrays belong to a copy as well, and must not be written to."""
        self._integers: dict[int, int] = {}
        """Integers that stand for cliques, by root."""
        self._roots: dict[int, int] = {}
        """The same the other way round."""
        self._moved = 0
        """How many constants do not stand for themselves."""
        self._ids = RememberedIds(dictionary.encode_constants)

    @classmethod
    def without_any(cls, dictionary: Dictionary, spares: list[CliqueArrays]) -> Cliques:
        """No cliques of two and more; arrays of others may be used again."""
        return cls(dictionary, Held(CliqueArrays(), spares))

    # ------------------------------------------------------------------- questions

    def copy(self) -> Cliques:
        """The same cliques, to be changed on their own; costs nothing until then."""
        twin = Cliques(self._dictionary, self._held)
        twin._integers, twin._roots = dict(self._integers), dict(self._roots)
        twin._moved = self._moved
        twin._ids = self._ids
        twin._is_shared = self._is_shared = True
        return twin

    def is_identity(self) -> bool:
        """Whether no two constants are equal."""
        return not self._moved

    @property
    def has_integers(self) -> bool:
        """Whether integers are equal to names: the arrays do not tell all then."""
        return bool(self._integers)

    @property
    def links(self) -> Ids:
        """For each id how it differs from what stands for it, as `id ^ other`."""
        return self._held.arrays.links

    @property
    def ring(self) -> Ids:
        """For each id how it differs from the next member of its clique."""
        return self._held.arrays.ring

    @property
    def others(self) -> Rows:
        """For each id the number of other names in its clique."""
        return self._held.arrays.others

    @property
    def kinds(self) -> Flags:
        """The kind of each id."""
        return self._dictionary.kinds

    @property
    def texts(self) -> tuple[Flags, npt.NDArray[np.int64]]:
        """The texts of all ids, and where each ends; see `Dictionary.texts`."""
        return self._dictionary.texts

    def map(self, ids: Ids) -> Ids:
        """The representatives of ids, in any shape."""
        return self._images(ids) if self._moved else ids

    def _images(self, ids: Ids) -> Ids:
        return _translated(_followed(ids, self.links), self._integers)

    def differs(self, table: Ids, rows: Rows) -> npt.NDArray[np.bool_]:
        """Which rows of a table have a constant that something else stands for."""
        if self._integers:
            part = table[:, rows]
            moved: npt.NDArray[np.bool_] = (self.map(part) != part).any(axis=0)
            return moved
        marks = np.empty(rows.size, np.bool_)
        kernels_cliques.mark_moved(table, self.links, rows, marks.view(np.uint8))
        return marks

    def replaced(self, constants: Sequence[Constant]) -> dict[Constant, Constant]:
        """Those of the constants that something else stands for, and what does."""
        if not self._moved or not constants:
            return {}
        before = self._ids.of(constants)
        after = self.map(before)
        return {
            constants[at]: self._dictionary.constant(int(after[at]))
            for at in np.flatnonzero(before != after).tolist()
        }

    def sizes(self, ids: Ids) -> Sizes:
        """The size of the clique of each representative."""
        known = ids < self.links.size
        sizes: Sizes = np.ones(ids.shape, np.int64)
        sizes[known] += self.others[ids[known]]
        if self._roots:
            roots = _translated(ids, self._roots)
            attached = roots != ids
            sizes[attached] = self.others[roots[attached]] + 2
        return sizes

    def members(self, ids: Ids) -> tuple[Sizes, Ids]:
        """The sizes of the cliques of representatives, and all their members."""
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
        """All rows that rows of representatives stand for, and which row each is of.

        Some columns may be `names`, which stand for themselves only.
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
        """What rows of representatives stand for, and the rows that stand for more.

        Args:
            table: facts of representatives, by column.
            rows: some of them.
            most: those that stand for more facts than this are not multiplied out.
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
        """The members of cliques of two and more, beside their representative."""
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
        """A table with every constant replaced by its representative."""
        if not self._moved or not table.num_columns:
            return table
        return self._decoded(self.map(self._encoded(table)))

    def expanded(self, table: pa.Table, names: Collection[int] = ()) -> pa.Table:
        """All rows that the rows of a table of term columns stand for."""
        if not table.num_columns:
            return rows_without_columns(table.num_rows)
        if not self._moved or not table.num_rows:
            return table
        return self._decoded(self.multiply(self._encoded(table), names)[1])

    def expanded_size(self, table: pa.Table) -> int:
        """How many rows `expanded` would have."""
        if not self._moved or not table.num_columns:
            return int(table.num_rows)
        return self.weight(self._encoded(table))

    def weight(self, table: Ids) -> int:
        """How many rows some rows of representatives stand for."""
        return sum_of_products(self.sizes(table))

    # --------------------------------------------------------------------- changes

    def unite(self, left: Ids, right: Ids, values: frozenset[Kind]) -> Ids:
        """Make pairs of constants equal; returns those that lost their status."""
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
        """Pairs of names, and pairs of a name and an integer that is new to cliques."""
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
        """Let an integer stand for the clique of a name."""
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
        """The names of the cliques of some roots."""
        sizes = self.others[roots] + 1
        members = np.empty(int(sizes.sum()), np.uint32)
        none = np.zeros(roots.size, np.uint8)
        kernels_cliques.list_members(self.ring, sizes, roots, roots, none, members)
        return members

    def _refuse(self, left: int, right: int) -> NoReturn:
        """Two values would be equal."""
        raise UnequalValuesError(self._value(left), self._value(right))

    def _value(self, one: int) -> Constant:
        root = np.array([one], np.uint32)
        if one < FIRST_INTEGER:
            kernels_cliques.find_roots(self.links, root)
        value = int(root[0])
        return self._dictionary.constant(self._integers.get(value, value))

    def assign(self, members: Ids, source: Cliques) -> None:
        """Take whole cliques to be what other cliques say of their members."""
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
        """Let all names of some cliques be what their roots say."""
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
        """Have the constants of the second column stand for those of the first."""
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
        """Have arrays of one's own, with room for all constants, to be written to."""
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
        """The constants whose representative is another one there."""
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
    """What links lead to from ids, in any shape; links of later ids lead nowhere."""
    known = ids < links.size
    if known.all():
        return ids ^ links[ids]
    if not known.any():
        return ids
    followed: Ids = np.where(known, ids ^ links[np.where(known, ids, 0)], ids)
    return followed


def _distinct(ids: Ids) -> Ids:
    """Ids in order, each once."""
    names = ids[ids < FIRST_INTEGER]
    if names.size < ids.size or not names.size or names.max() > names.size * FEW:
        return np.unique(ids)
    marks = np.zeros(int(names.max()) + 1, np.bool_)
    marks[names] = True
    return np.flatnonzero(marks).astype(np.uint32)


def _translated(ids: Ids, table: Mapping[int, int]) -> Ids:
    """Ids with those that are in a table replaced."""
    if not table or not ids.size:
        return ids
    keys = np.array(sorted(table), np.uint32)
    values = np.array([table[int(key)] for key in keys], np.uint32)
    places = np.minimum(np.searchsorted(keys, ids), keys.size - 1)
    return np.where(keys[places] == ids, values[places], ids)


@cache
def ranks_of(values: frozenset[Kind]) -> Flags:
    """For every kind of constant 0 if it is one of some kinds, else 1."""
    ranks = np.ones(256, np.uint8)
    ranks[[int(kind) for kind in values]] = 0
    return ranks
