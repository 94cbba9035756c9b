"""Sets of facts as rows of relations, and views as masks over their status bits.

A settled set is, for each relation, an array of rows (`settled`); a stored or growing
set is a bit in the status of the rows (`bits`).

A view is worked out in one of two ways. *Settling* starts from the settled and growing
parts and tests their rows one array at a time. A *sight* is for rule evaluation: a
table that says for every possible status whether a row may be seen, so that a join
tests a row by one look-up, however complicated the view.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np

from evermat.algebra import (
    Difference,
    EngineUseError,
    Facts,
    Intersection,
    Region,
    Union,
    Within,
    is_bounded,
    require_bounded,
)
from evermat.engines.embedded import flat
from evermat.engines.embedded.arrays import NO_FLAGS, NO_ROWS, in_sorted
from evermat.engines.embedded.bits import Growing, Marker, Stored
from evermat.engines.embedded.cores import chosen_rows
from evermat.engines.embedded.kernels import rows as kernels_rows
from evermat.engines.embedded.regions import Regions
from evermat.engines.embedded.relation import MATERIALISED
from evermat.engines.embedded.settled import Settled
from evermat.engines.embedded.view_masks import mark_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evermat.engines.embedded.arrays import Flags, Mask, Rows, Status
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.relation import Clock, Relation
    from evermat.engines.embedded.view_masks import Code

Names = frozenset[str] | None
"""The relations that are asked for; without them, all."""

FIRST_FREE_BIT = 2
"""The two bits below mark the stored sets."""

FEW_TIMES = 16
"""A set is marked for a moment unless it is this much larger than what is compared."""


@dataclass(frozen=True, slots=True)
class Sight:
    """Which rows of a relation a pattern may see: a range, and statuses in it."""

    visible: Flags
    low: int
    high: int


class Sets:
    """Hands out status bits, works out views and turns them into sights."""

    def __init__(
        self, relations: dict[str, Relation], dictionary: Dictionary, clock: Clock
    ) -> None:
        self.relations = relations
        self._clock = clock
        self._free = [1 << n for n in range(15, FIRST_FREE_BIT - 1, -1)]
        self._growing: WeakSet[Growing] = WeakSet()
        self._sights: dict[Code, Flags] = {}
        self._classes: dict[tuple[tuple[int, Code], ...], Flags] = {}
        self._regions = Regions(relations, dictionary)
        self.nothing = Sight(NO_FLAGS, 0, 0)

    # ------------------------------------------------------------------------ bits

    def grow(self) -> Growing:
        """A new, empty, growing set."""
        growing = Growing(self, self.take_bit())
        self._growing.add(growing)
        return growing

    def release_all(self) -> None:
        """End the life of all growing sets."""
        for growing in list(self._growing):
            growing.release()
        self._growing.clear()

    def give_back(self, *bits: int) -> None:
        """Make bits, which no row has any more, free for other sets."""
        # In order, so that updates take the same bits, and find tables made for them.
        self._free += bits
        self._free.sort(reverse=True)

    def has_bits(self, count: int) -> bool:
        """Whether so many bits are free."""
        return len(self._free) >= count

    def take_bit(self) -> int:
        """A bit that no row has."""
        if not self._free:
            raise EngineUseError(
                "too many growing sets at once",
                help="end the transaction, which gives them back",
            )
        return self._free.pop()

    def take_bits(self, count: int) -> list[int]:
        """So many bits that no row has: ask first whether there are any."""
        return [self._free.pop() for _ in range(count)]

    @property
    def spare_bit(self) -> int:
        """A bit that no row has, for the time of one call; 0 if there is none."""
        return self._free[-1] if self._free else 0

    @property
    def time(self) -> int:
        """Goes on whenever a relation has other rows."""
        return self._clock.time

    # --------------------------------------------------------------------- settling

    def settled(self, facts: Facts) -> Settled:
        """What is in a view."""
        return self._walk(facts)

    def rows_of(self, facts: Facts) -> dict[str, Rows]:
        """The rows of a view, by relation."""
        return self.settled(facts).rows

    def _walk(self, facts: Facts, names: Names = None) -> Settled:
        """What is in a view; only of some relations, where they are named."""
        match facts:
            case Settled():
                return _chosen(facts, names)
            case Growing():
                return _chosen(facts.settled(), names)
            case Union(left=left, right=right):
                return self._united(self._walk(left, names), self._walk(right, names))
            case Intersection(left=left, right=right):
                if not is_bounded(left):
                    left, right = right, left
                return self._kept(self._walk(left, names), right, present=True)
            case Difference(left=left, right=right):
                return self._without(left, right, names)
            case Within(facts=inner, region=region):
                return self._within(inner, region, names)
            case _:
                require_bounded(facts)
                raise _foreign(facts)

    def _united(self, left: Settled, right: Settled) -> Settled:
        if left.is_empty() or right.is_empty():
            return right if left.is_empty() else left
        relations = max(len(left.names()), len(right.names()))
        bit = self.spare_bit
        if bit and flat.is_worth_it(relations, left.size() + right.size()):
            one, other = left.flat(self.relations), right.flat(self.relations)
            self.describe()
            return Settled(one.united(other, bit))
        both = dict(left.rows)
        for name, rows in right.rows.items():
            both[name] = _union(both[name], rows) if name in both else rows
        return Settled(both)

    def _without(self, left: Facts, right: Facts, names: Names) -> Settled:
        if isinstance(left, Growing) and isinstance(right, Growing) and names is None:
            return self._only_in(left, right)
        found = self._walk(left, names)
        if isinstance(right, Within) and right.facts is left:
            region = right.region
            if region.relations == region.names:
                return found.outside(region.names)
            return _filtered(found, lambda n, r: self._outside(region, n, r))
        return self._kept(found, right, present=False)

    def _only_in(self, left: Growing, right: Growing) -> Settled:
        """What one growing set has and another has not: updates ask more than once."""
        mine, theirs = left.settled(), right.settled()
        known = left.compared
        if known is None or known[0] is not mine or known[1] is not theirs:
            found = self._kept(mine, right, present=False)
            known = left.compared = mine, theirs, found
        return known[2]

    def _within(self, inner: Facts, region: Region, names: Names) -> Settled:
        names = region.names if names is None else names & region.names
        found = self._walk(inner, names)
        if region.relations.issuperset(found.names()):
            return found
        return _filtered(found, lambda n, r: self._inside(region, n, r))

    def _kept(self, found: Settled, facts: Facts, *, present: bool) -> Settled:
        """Those of the facts that a view has, or those that it has not."""
        if isinstance(facts, (Settled, Growing)) and facts.is_empty():
            return Settled({}) if present else found
        if self.is_flat(found):
            with Marker(self) as marker:
                code = self.common_code(facts, marker)
                if code is not None:
                    visible = self.visible(code)
                    together = found.flat(self.relations)
                    self.describe()
                    return Settled(together.choose(visible, present=present))

        return _filtered(
            found, lambda n, r: self._kept_rows(facts, n, r, present=present)
        )

    def _kept_rows(self, facts: Facts, name: str, rows: Rows, *, present: bool) -> Rows:
        """Those of some rows of a relation that a view has, or has not."""
        if not self.sees_any(facts, name):
            return NO_ROWS if present else rows
        status = self.relations[name].status
        if not present and isinstance(facts, (Growing, Stored)):
            return _without_bit(status, rows, facts.bit)
        if isinstance(facts, Settled):
            return self._compared(facts, name, rows, wanted=present)
        if self.is_marked(facts):
            visible = self._marked(facts, name)
            return _with_status(status, rows, visible, present=present)
        mask = self.test(facts, name, rows)
        return rows[mask if present else ~mask]

    def is_flat(self, facts: Settled) -> bool:
        """Whether facts are best handled one relation after the other."""
        return flat.is_worth_it(len(facts.names()), facts.size())

    def describe(self) -> None:
        """Have the layouts of all relations up to date."""
        for relation in self._clock.changed:
            relation.require_layout()
        self._clock.changed.clear()

    def mark(self, facts: Settled, bit: int, *, present: bool) -> None:
        """Set a status bit of facts, or clear it."""
        if not facts.is_empty() and facts.size() <= flat.MOST:
            together = facts.flat(self.relations)
            self.describe()
            together.mark(bit, present=present)
            return
        change = kernels_rows.set_bit if present else kernels_rows.clear_bit
        for name, rows in facts.rows.items():
            change(self.relations[name].status, np.ascontiguousarray(rows), bit)

    def lacking(self, facts: Settled, name: str, rows: Rows) -> Rows:
        """Those of some rows that a set does not have."""
        return self._compared(facts, name, rows, wanted=False)

    def _compared(self, facts: Settled, name: str, rows: Rows, *, wanted: bool) -> Rows:
        members = facts.rows.get(name, NO_ROWS)
        if not members.size:
            return NO_ROWS if wanted else rows
        if members.size > FEW_TIMES * rows.size or not self._free:
            mask = in_sorted(rows, facts.ordered(name))
            return rows[mask if wanted else ~mask]
        bit = self._free[-1]
        rows = np.ascontiguousarray(rows)
        found = np.empty_like(rows)
        status = self.relations[name].status
        members = np.ascontiguousarray(members)
        size = kernels_rows.compare(status, members, rows, bit, wanted, found)
        return found[:size]

    def _outside(self, region: Region, name: str, rows: Rows) -> Rows:
        if not region.touches(name):
            return rows
        return rows[~self._regions.test(region, name, rows)]

    def _inside(self, region: Region, name: str, rows: Rows) -> Rows:
        if name in region.relations:
            return rows
        return rows[self._regions.test(region, name, rows)]

    def stored_rows(self, facts: Facts, name: str) -> Rows:
        """All rows of any view, found by looking at every row of the relation."""
        relation = self.relations[name]
        if self.is_marked(facts):
            status = relation.status[: relation.count]
            return _seen_rows(self._marked(facts, name), status)
        every = np.arange(relation.count, dtype=np.int32)
        return every[self.test(facts, name, every)]

    def remembered_rows(self, facts: Facts, name: str) -> Callable[[], Rows]:
        """Finds what `stored_rows` would find now, at any time.

        To copy the status of all rows costs far less than to look at it.
        """
        if self.is_marked(facts):
            relation = self.relations[name]
            visible = self._marked(facts, name)
            status = relation.status[: relation.count].copy()
            return lambda: _seen_rows(visible, status)
        rows = self.stored_rows(facts, name)
        return lambda: rows

    def _marked(self, facts: Facts, name: str) -> Flags:
        """For each status whether a row that has it is in a view; see `is_marked`."""
        return self.visible(self.code(facts, name, Marker(self)))

    def is_marked(self, facts: Facts) -> bool:
        """Whether the status of a row tells if a view has it."""
        match facts:
            case Growing() | Stored():
                return True
            case Union() | Intersection() | Difference():
                return self.is_marked(facts.left) and self.is_marked(facts.right)
            case _:
                return False

    def test(self, facts: Facts, name: str, rows: Rows) -> Mask:
        """Which of some rows of a relation are in a view."""
        if not isinstance(facts, (Growing, Stored)) and self.is_marked(facts):
            status = self.relations[name].status[rows]
            return self._marked(facts, name)[status].view(np.bool_)
        match facts:
            case Settled():
                return self._test_settled(facts, name, rows)
            case Growing(bit=bit) | Stored(bit=bit):
                return (self.relations[name].status[rows] & bit).astype(np.bool_)
            case Union(left=left, right=right):
                return self.test(left, name, rows) | self.test(right, name, rows)
            case Intersection(left=left, right=right):
                return self.test(left, name, rows) & self.test(right, name, rows)
            case Difference(left=left, right=right):
                return self.test(left, name, rows) & ~self.test(right, name, rows)
            case Within(facts=inner, region=region):
                return self.test(inner, name, rows) & self._regions.test(
                    region, name, rows
                )
            case _:
                raise _foreign(facts)

    def _test_settled(self, facts: Settled, name: str, rows: Rows) -> Mask:
        """Which of some rows a set has: it is marked for a moment if it is small."""
        members = facts.rows.get(name, NO_ROWS)
        if members.size > rows.size or not self._free:
            return in_sorted(rows, facts.ordered(name))
        status, bit = self.relations[name].status, self.take_bit()
        status[members] |= bit
        mask: Mask = (status[rows] & bit).astype(np.bool_)
        status[members] &= ~np.uint16(bit)
        self.give_back(bit)
        return mask

    # ----------------------------------------------------------------------- sights

    def sight(self, facts: Facts, name: str, marker: Marker) -> Sight:
        """What a pattern over a relation may see of a view."""
        relation = self.relations[name]
        if not self.sees_any(facts, name):
            return self.nothing
        if relation.alive == relation.count:
            range_ = self._range(facts, name)
            if range_ is not None:
                return Sight(NO_FLAGS, 0, range_)
        visible = self.visible(self.code(facts, name, marker))
        return Sight(visible, 0, relation.count)

    def visible(self, code: Code) -> Flags:
        """For every possible status whether a view has rows with it."""
        visible = self._sights.get(code)
        if visible is None:
            visible = self._sights[code] = mark_visible({1: code})
        return visible

    def classified(self, codes: Mapping[int, Code]) -> Flags:
        """For every possible status the numbers of the views that have rows with it.

        Args:
            codes: views by number, which is one bit.
        """
        key = tuple(codes.items())
        classes = self._classes.get(key)
        if classes is None:
            classes = self._classes[key] = mark_visible(codes or {1: 0})
        return classes

    def common_code(self, facts: Facts, marker: Marker) -> Code | None:
        """A view as bits and set operations, if they are the same in all relations."""
        match facts:
            case Growing(bit=bit) | Stored(bit=bit):
                return bit
            case Settled() if facts.is_empty():
                return 0
            case Settled() if facts.size() <= flat.MOST and self._free:
                return marker.bit_everywhere(facts)
            case Union() | Difference() | Intersection():
                word, left, right = _operation(facts)
                one = self.common_code(left, marker)
                other = None if one is None else self.common_code(right, marker)
                return None if other is None or one is None else (word, one, other)
            case _:
                return None

    def _range(self, facts: Facts, name: str) -> int | None:
        """Where all rows of a relation hold: the first row that a view does not see.

        Only for views that see the rows up to some row and no others, which is what
        materialising from scratch reads: everything, or everything but the newest.
        """
        match facts:
            case Stored(bit=bit) if bit == MATERIALISED:
                return self.relations[name].count
            case Difference(left=Stored(bit=bit), right=Settled() as settled):
                if bit != MATERIALISED:
                    return None
                count = self.relations[name].count
                newest = settled.ordered(name)
                is_tail = not newest.size or newest[-1] == count - 1
                first = count - newest.size
                return (
                    first
                    if is_tail and (not newest.size or newest[0] == first)
                    else None
                )
            case _:
                return None

    def sees_any(self, facts: Facts, name: str) -> bool:
        """False if a view surely has no facts of a relation."""
        match facts:
            case Settled() | Growing():
                return name in facts.rows
            case Union(left=left, right=right):
                return self.sees_any(left, name) or self.sees_any(right, name)
            case Difference(left=left):
                return self.sees_any(left, name)
            case Within(facts=inner, region=region):
                return region.touches(name) and self.sees_any(inner, name)
            case _:
                return True

    def code(self, facts: Facts, name: str, marker: Marker) -> Code:
        """A view in one relation, as bits and set operations."""
        match facts:
            case Settled():
                return marker.bit(facts, name) if name in facts.rows else 0
            case Growing(bit=bit) | Stored(bit=bit):
                return bit
            case Within(facts=inner, region=region):
                if region.touches(name) and name not in region.relations:
                    raise EngineUseError("rules cannot read a part of a relation")
                return self.code(inner, name, marker) if region.touches(name) else 0
            case _:
                word, left, right = _operation(facts)
                return (
                    word,
                    self.code(left, name, marker),
                    self.code(right, name, marker),
                )


def _chosen(facts: Settled, names: Names) -> Settled:
    """What there is of the relations that are asked for."""
    if names is None or names.issuperset(facts.names()):
        return facts
    return Settled({name: some for name, some in facts.rows.items() if name in names})


def _filtered(facts: Settled, keep: Callable[[str, Rows], Rows]) -> Settled:
    return Settled({name: keep(name, some) for name, some in facts.rows.items()})


def _without_bit(status: Status, rows: Rows, bit: int) -> Rows:
    """The rows whose status lacks a bit."""
    rows = np.ascontiguousarray(rows)

    def choose(part: slice, found: Rows) -> int:
        return kernels_rows.without_bit(status, rows[part], bit, found)

    return chosen_rows(rows.size, choose)


def _with_status(status: Status, rows: Rows, visible: Flags, *, present: bool) -> Rows:
    """The rows whose status is visible, or those whose status is not."""
    rows = np.ascontiguousarray(rows)

    def choose(part: slice, found: Rows) -> int:
        return kernels_rows.choose(status, rows[part], visible, present, found)

    return chosen_rows(rows.size, choose)


def _seen_rows(visible: Flags, status: Status) -> Rows:
    """The rows whose status is visible."""
    return np.flatnonzero(visible[status].view(np.bool_)).astype(np.int32)


def _operation(facts: Facts) -> tuple[str, Facts, Facts]:
    match facts:
        case Union(left=left, right=right):
            return "|", left, right
        case Intersection(left=left, right=right):
            return "&", left, right
        case Difference(left=left, right=right):
            return "-", left, right
        case _:
            raise _foreign(facts)


def _foreign(facts: Facts) -> TypeError:
    return TypeError(f"not a set of this engine: {type(facts).__name__}")


def _union(left: Rows, right: Rows) -> Rows:
    if not left.size or not right.size:
        return left if left.size else right
    both = np.sort(np.concatenate([left, right]))
    keep = np.ones(both.size, np.bool_)
    keep[1:] = both[1:] != both[:-1]
    return both[keep]
