"""Views of facts, evaluated to sets or compiled to masks over status bits.

A view is evaluated in one of two ways. *Settling* starts from the settled and growing
parts and chooses among their rows, for all relations in one call. A view mask (`Sight`)
is for rule evaluation: a table that says for each possible status whether such rows are
visible, so that a join tests a row by one look-up, however complicated the view.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

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
from evermat.engines.embedded.arrays import NO_FLAGS, NO_ROWS, in_sorted
from evermat.engines.embedded.cores import core_count, together
from evermat.engines.embedded.fact_sets import (
    NOTHING,
    Growing,
    Marker,
    Settled,
    Stored,
)
from evermat.engines.embedded.index import WIDEST_EXACT_KEY, make_keys
from evermat.engines.embedded.kernels import fact_sets as kernels_fact_sets
from evermat.engines.embedded.relation import MATERIALISED
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evermat.engines.embedded.arrays import Flags, Keys, Mask, Rows, Status
    from evermat.engines.embedded.dictionary import Dictionary
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.relation import Clock, Relation

Names = frozenset[str] | None
"""The relations to be evaluated; None for all of them."""

Code = int | tuple[str, "Code", "Code"]
"""A view in one relation: a status bit, or a set operation on two codes."""

STATUSES = np.arange(1 << 16, dtype=np.uint16)
"""All possible statuses."""

FIRST_FREE_BIT = 2
"""The two lower bits represent the stored sets."""

MOST_MARKED = 1 << 15
"""Up to this many facts are given a status bit to evaluate a view, …"""

FEW_TIMES = 16
"""… or up to this many times as many as are tested."""

ALONE = 1 << 16
"""Up to this many rows, one core does all the work."""


@dataclass(frozen=True, slots=True)
class Sight:
    """The rows of a relation that a pattern can see: a range, and a view mask."""

    visible: Flags
    low: int
    high: int


class Sets:
    """Allocates status bits, evaluates views, and compiles them to view masks."""

    def __init__(
        self, relations: dict[str, Relation], dictionary: Dictionary, clock: Clock
    ) -> None:
        self.relations = relations
        self._clock = clock
        self._free = [1 << n for n in range(15, FIRST_FREE_BIT - 1, -1)]
        self._uncleared: list[int] = []
        """Bits of released sets that could not be cleared for lack of memory."""
        self._growing: WeakSet[Growing] = WeakSet()
        self._sights: dict[Code, Flags] = {}
        self._classes: dict[tuple[tuple[int, Code], ...], Flags] = {}
        self._regions = Regions(relations, dictionary)
        self.nothing = Sight(NO_FLAGS, 0, 0)

    # ------------------------------------------------------------------------ bits

    def grow(self) -> Growing:
        """Return a new, empty, growing set."""
        growing = Growing(self, self.take_bit())
        self._growing.add(growing)
        return growing

    def release_all(self) -> None:
        """Release all growing sets."""
        for growing in list(self._growing):
            growing.release()
        self._growing.clear()
        while self._uncleared:
            bit = self._uncleared[-1]
            for relation in self.relations.values():
                relation.status[: relation.count] &= ~np.uint16(bit)
            self._uncleared.pop()
            self.give_back(bit)

    def clear_later(self, bit: int) -> None:
        """Defer clearing a bit; no other set gets it in this transaction."""
        if bit not in self._free:
            self._uncleared.append(bit)

    def give_back(self, *bits: int) -> None:
        """Free bits that no row has any more."""
        # Sorted, so that updates use the same bits and find their cached tables.
        self._free += bits
        self._free.sort(reverse=True)

    def has_bits(self, count: int) -> bool:
        """Return whether `count` bits are free."""
        return len(self._free) >= count

    def take_bit(self) -> int:
        """Allocate a bit that no row has."""
        if not self._free:
            raise EngineUseError(
                "too many growing sets at once",
                help="end the transaction, which gives them back",
            )
        return self._free.pop()

    def take_bits(self, count: int) -> list[int]:
        """Allocate `count` bits that no row has; check `has_bits` first."""
        return [self._free.pop() for _ in range(count)]

    @property
    def spare_bit(self) -> int:
        """A free bit for the time of one call; 0 if there is none."""
        return self._free[-1] if self._free else 0

    @property
    def time(self) -> int:
        """The logical time of the last change of any relation."""
        return self._clock.time

    # --------------------------------------------------------------------- settling

    def rows_of(self, facts: Facts) -> Mapping[str, Rows]:
        """Return the rows of a view, by relation."""
        return self.settled(facts).rows

    def settled(self, facts: Facts, names: Names = None) -> Settled:
        """Evaluate a view, for some relations only if `names` is not None."""
        match facts:
            case Settled() | Growing():
                found = facts if isinstance(facts, Settled) else facts.settled()
                return found if names is None else _chosen(found, names)
            case Union(left=left, right=right):
                return self._united(
                    self.settled(left, names), self.settled(right, names)
                )
            case Intersection(left=left, right=right):
                if not is_bounded(left):
                    left, right = right, left
                return self._kept(self.settled(left, names), right, present=True)
            case Difference(left=left, right=right):
                return self._without(left, right, names)
            case Within(facts=inner, region=region):
                return self._within(inner, region, names)
            case _:
                require_bounded(facts)
                raise _foreign(facts)

    def _united(self, left: Settled, right: Settled) -> Settled:
        """Return the union of two sets; the first is marked with a bit temporarily."""
        if left.is_empty() or right.is_empty():
            return right if left.is_empty() else left
        bit = self.spare_bit
        if not bit:
            return _united_without_bit(left, right)
        places = dict.fromkeys([*left.names, *right.names], (-1, -1))
        for at, name in enumerate(left.names):
            places[name] = (at, -1)
        for at, name in enumerate(right.names):
            places[name] = (places[name][0], at)
        one, other = left.segments(self.relations), right.segments(self.relations)
        self.describe()
        rows = np.empty(left.size() + right.size(), np.int32)
        found = np.empty((len(places), 3), np.int64)
        size = kernels_fact_sets.unite(
            one,
            left.every,
            other,
            right.every,
            np.array(list(places.values()), np.int64),
            bit,
            rows,
            found,
        )
        return Settled.of_segments(list(places), rows[:size], found)

    def _without(self, left: Facts, right: Facts, names: Names) -> Settled:
        if isinstance(left, Growing) and isinstance(right, Growing) and names is None:
            return self._only_in(left, right)
        found = self.settled(left, names)
        if isinstance(right, Within) and right.facts is left:
            region = right.region
            return _filtered(found, lambda n, r: self._outside(region, n, r))
        return self._kept(found, right, present=False)

    def _only_in(self, left: Growing, right: Growing) -> Settled:
        """Return the difference of growing sets, cached as it is needed again."""
        mine, theirs = left.settled(), right.settled()
        known = left.compared
        if known is None or known[0] is not mine or known[1] is not theirs:
            found = self._kept(mine, right, present=False)
            known = left.compared = mine, theirs, found
        return known[2]

    def _within(self, inner: Facts, region: Region, names: Names) -> Settled:
        names = region.names if names is None else names & region.names
        found = self.settled(inner, names)
        if region.relations.issuperset(found.names):
            return found
        return _filtered(found, lambda n, r: self._inside(region, n, r))

    def _kept(self, found: Settled, facts: Facts, *, present: bool) -> Settled:
        """Return those of the facts that are in a view, or those that are not."""
        if found.is_empty():
            return found
        if isinstance(facts, (Settled, Growing)) and facts.is_empty():
            return NOTHING if present else found
        with Marker(self) as marker:
            most = max(MOST_MARKED, FEW_TIMES * found.size())
            code = self.common_code(facts, marker, most)
            if code is not None:
                visible = self.visible(code)
                return self.chosen(found, kernels_fact_sets.choose, visible, present)
        return _filtered(found, lambda n, r: r[self.test(facts, n, r) == present])

    def having(self, facts: Settled, bit: int) -> Settled:
        """Return those of the facts whose status has a bit."""
        visible, present = self.visible(bit), True
        return self.chosen(facts, kernels_fact_sets.choose, visible, present)

    def chosen(
        self, facts: Settled, kernel: Callable[..., int], *what: object
    ) -> Settled:
        """Return the facts that a kernel chooses; cores share large sets."""
        if facts.is_empty():
            return facts
        segments = facts.segments(self.relations)
        self.describe()
        rows = np.empty(facts.size(), np.int32)
        if is_shared(facts.size()):
            return self._chosen_by_cores(facts, kernel, what, rows)
        found = np.empty((len(segments), 4), np.int64)
        count = kernel(segments, facts.every, *what, rows, found)
        return found_facts(facts.names, rows, found[:count])

    def _chosen_by_cores(
        self,
        facts: Settled,
        kernel: Callable[..., int],
        what: tuple[object, ...],
        rows: Rows,
    ) -> Settled:
        """Do the same on several cores."""
        shares = shares_of(facts.segments(self.relations), facts.size())

        def choose(share: Numbers) -> Numbers:
            found = np.empty((len(share), 4), np.int64)
            count = kernel(share, facts.every, *what, rows[share[0, 1] :], found)
            return found[:count]

        names = facts.names
        parts: dict[str, list[Rows]] = {}
        results = together([partial(choose, share) for share in shares])
        for share, found in zip(shares, results, strict=True):
            mine = rows[share[0, 1] :]
            for _, low, high, line in found.tolist():
                name = names[int(share[line, 3])]
                parts.setdefault(name, []).append(mine[low:high])
        return Settled({name: np.concatenate(some) for name, some in parts.items()})

    def describe(self) -> None:
        """Bring the layouts of all relations up to date."""
        for relation in self._clock.changed:
            relation.require_layout()
        self._clock.changed.clear()

    def mark(
        self, facts: Settled, bit: int, *, present: bool, zeros: int = 0
    ) -> list[int]:
        """Set or clear a status bit of facts; return the changes per relation.

        The bits `zeros` are cleared, too.
        """
        if facts.is_empty():
            return []
        segments = facts.segments(self.relations)
        self.describe()
        changed: Numbers = np.empty(len(segments), np.int64)
        kernels_fact_sets.mark(segments, facts.every, bit, present, zeros, changed)
        counts: list[int] = changed.tolist()
        return counts

    def _outside(self, region: Region, name: str, rows: Rows) -> Rows:
        if not region.touches(name):
            return rows
        return rows[~self._regions.test(region, name, rows)]

    def _inside(self, region: Region, name: str, rows: Rows) -> Rows:
        if name in region.relations:
            return rows
        return rows[self._regions.test(region, name, rows)]

    def stored_rows(self, facts: Facts, name: str) -> Rows:
        """Return all rows of a view by scanning the relation."""
        relation = self.relations[name]
        if self.is_marked(facts):
            status = relation.status[: relation.count]
            return _seen_rows(self._marked(facts, name), status)
        every = np.arange(relation.count, dtype=np.int32)
        return every[self.test(facts, name, every)]

    def remembered_rows(self, facts: Facts, name: str) -> Callable[[], Rows]:
        """Return a function that finds what `stored_rows` would find now.

        Copying the status of all rows costs far less than evaluating the view.
        """
        if self.is_marked(facts):
            relation = self.relations[name]
            visible = self._marked(facts, name)
            status = relation.status[: relation.count].copy()
            return lambda: _seen_rows(visible, status)
        rows = self.stored_rows(facts, name)
        return lambda: rows

    def _marked(self, facts: Facts, name: str) -> Flags:
        """Return the view mask of a view; see `is_marked`."""
        return self.visible(self.code(facts, name, Marker(self)))

    def is_marked(self, facts: Facts) -> bool:
        """Return whether the status of a row decides whether it is in a view."""
        match facts:
            case Growing() | Stored():
                return True
            case Union() | Intersection() | Difference():
                return self.is_marked(facts.left) and self.is_marked(facts.right)
            case _:
                return False

    def test(self, facts: Facts, name: str, rows: Rows) -> Mask:
        """Return which rows of a relation are in a view."""
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
        """Return which rows are in a set, which is marked if it is small."""
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
        """Return the rows of a view that are visible to a pattern over a relation."""
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
        """Return the view mask: for every possible status, whether it is in a view."""
        visible = self._sights.get(code)
        if visible is None:
            visible = self._sights[code] = mark_visible({1: code})
        return visible

    def classified(self, codes: Mapping[int, Code]) -> Flags:
        """Return for every possible status the numbers of the views that contain it.

        Args:
            codes: views by number, each number being one bit.
        """
        key = tuple(codes.items())
        classes = self._classes.get(key)
        if classes is None:
            classes = self._classes[key] = mark_visible(codes or {1: 0})
        return classes

    def common_code(
        self, facts: Facts, marker: Marker, most: int = MOST_MARKED
    ) -> Code | None:
        """Return a view as bits and set operations, if relations agree on them.

        Args:
            facts: the view.
            marker: assigns bits to its settled parts.
            most: the largest set that may be marked.
        """
        match facts:
            case Growing(bit=bit) | Stored(bit=bit):
                return bit
            case Settled() if facts.is_empty():
                return 0
            case Settled() if facts.size() <= most and self._free:
                return marker.bit(facts)
            case Union() | Difference() | Intersection():
                word, left, right = _operation(facts)
                one = self.common_code(left, marker, most)
                other = None if one is None else self.common_code(right, marker, most)
                return None if other is None or one is None else (word, one, other)
            case _:
                return None

    def _range(self, facts: Facts, name: str) -> int | None:
        """Return the first invisible row, if exactly the rows before it are visible.

        Only for relations all of whose rows are materialised. Such views are read when
        materialising from scratch: everything, or everything but the newest facts.
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
        """Return whether a view may have facts of a relation; false if it has none."""
        match facts:
            case Settled():
                return name in facts.names
            case Growing():
                return facts.has(name)
            case Union(left=left, right=right):
                return self.sees_any(left, name) or self.sees_any(right, name)
            case Difference(left=left):
                return self.sees_any(left, name)
            case Within(facts=inner, region=region):
                return region.touches(name) and self.sees_any(inner, name)
            case _:
                return True

    def code(self, facts: Facts, name: str, marker: Marker) -> Code:
        """Return a view in one relation, as bits and set operations."""
        match facts:
            case Settled():
                return marker.bit(facts) if name in facts.names else 0
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


def _chosen(facts: Settled, names: frozenset[str]) -> Settled:
    """Return the facts of the requested relations."""
    if names.issuperset(facts.names):
        return facts
    return Settled({name: some for name, some in facts.rows.items() if name in names})


def _filtered(facts: Settled, keep: Callable[[str, Rows], Rows]) -> Settled:
    return Settled({name: keep(name, some) for name, some in facts.rows.items()})


def _seen_rows(visible: Flags, status: Status) -> Rows:
    """Return the rows whose status is visible."""
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


def _united_without_bit(left: Settled, right: Settled) -> Settled:
    """Return the union of two sets when no bit is free."""
    both = dict(left.rows)
    for name, rows in right.rows.items():
        both[name] = np.union1d(both[name], rows) if name in both else rows
    return Settled(both)


def found_facts(names: list[str], rows: Rows, lines: Numbers) -> Settled:
    """Return the set that a kernel has found, by the lines of its input."""
    if not len(lines):
        return NOTHING
    names = [names[at] for at in lines[:, 3].tolist()]
    return Settled.of_segments(names, rows[: lines[-1, 2]], lines)


def is_shared(size: int) -> bool:
    """Return whether cores share the work on `size` facts."""
    return size > ALONE and core_count() > 1


def shares_of(segments: Numbers, size: int) -> list[Numbers]:
    """Divide segments among cores; the last column is the number of the segment."""
    cores = core_count()
    cuts = dict.fromkeys(size * core // cores for core in range(cores + 1))
    shares = []
    for start, stop in pairwise(cuts):
        low = np.maximum(segments[:, 1], start)
        high = np.minimum(segments[:, 2], stop)
        lines = np.flatnonzero(low < high)
        table = np.stack([segments[lines, 0], low[lines], high[lines], lines], axis=1)
        shares.append(np.ascontiguousarray(table))
    return shares


# ------------------------------------------------------------------------------- masks


def mark_visible(codes: Mapping[int, Code]) -> Flags:
    """Return for every possible status the numbers of the views that contain it.

    Args:
        codes: views by number, each number being one bit.
    """
    # Bits above the highest one mentioned do not matter: the table repeats.
    statuses = STATUSES[: 1 << max(map(_width, codes.values()))]
    seen = np.zeros(statuses.size, np.uint8)
    for number, code in codes.items():
        seen |= _evaluate(code, statuses) * np.uint8(number)
    return np.tile(seen, STATUSES.size // statuses.size)


def _width(code: Code) -> int:
    """Return the number of low status bits that a code depends on."""
    if isinstance(code, int):
        return code.bit_length()
    return max(_width(code[1]), _width(code[2]))


def _evaluate(code: Code, statuses: Status) -> Mask:
    """Return which statuses are in the set that a code represents."""
    if isinstance(code, int):
        return (statuses & code).astype(np.bool_)
    word, left, right = code
    a, b = _evaluate(left, statuses), _evaluate(right, statuses)
    if word == "|":
        return a | b
    return a & b if word == "&" else a & ~b


# ----------------------------------------------------------------------------- regions

Part = tuple[tuple[int, ...], "Keys"]
"""Positions, and the sorted keys of the constants allowed there."""

Shapes = list[list[Part]]
"""Alternatives, each a list of parts that all have to match."""


class Regions:
    """Tests rows against regions.

    A region can have a shape for every class of an ontology, so its shapes are compiled
    once per relation.
    """

    def __init__(self, relations: dict[str, Relation], dictionary: Dictionary) -> None:
        self._relations = relations
        self._dictionary = dictionary
        self._known: WeakKeyDictionary[Region, dict[str, Shapes]] = WeakKeyDictionary()

    def test(self, region: Region, name: str, rows: Rows) -> Mask:
        """Return which rows of a relation lie in a region."""
        if name in region.relations:
            return np.ones(rows.size, np.bool_)
        inside = np.zeros(rows.size, np.bool_)
        table = self._relations[name].table
        for parts in self._shapes(region, name):
            fits = np.ones(rows.size, np.bool_)
            for positions, wanted in parts:
                columns = [table[at].take(rows) for at in positions]
                found = np.array(columns, np.uint32).reshape(len(positions), rows.size)
                fits &= in_sorted(make_keys(found), wanted)
            inside |= fits
        return inside

    def _shapes(self, region: Region, name: str) -> Shapes:
        by_name = self._known.setdefault(region, {})
        if name not in by_name:
            by_name[name] = self._pack(region, name)
        return by_name[name]

    def _pack(self, region: Region, name: str) -> Shapes:
        """Return the compiled shapes of a relation in a region.

        Shapes with constants at the same positions are tested together, unless there
        are more constants than fit into a key.
        """
        shapes = [shape.operands for shape in region.shapes if shape.relation == name]
        self._dictionary.remember(
            operand
            for operands in shapes
            for operand in operands
            if isinstance(operand, Constant)
        )
        together: dict[tuple[int, ...], list[list[int]]] = {}
        packed: Shapes = []
        for operands in shapes:
            fixed = {
                at: self._dictionary.id_of(operand)
                for at, operand in enumerate(operands)
                if isinstance(operand, Constant)
            }
            if len(fixed) > WIDEST_EXACT_KEY:
                packed.append([_part((at,), [[id_]]) for at, id_ in fixed.items()])
            else:
                together.setdefault(tuple(fixed), []).append([*fixed.values()])
        return [*packed, *([_part(*each)] for each in together.items())]


def _part(positions: tuple[int, ...], rows: list[list[int]]) -> Part:
    return positions, np.sort(make_keys(np.array(rows, np.uint32).T))
