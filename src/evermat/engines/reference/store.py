"""The contents of the engine: facts, explicit facts, and two counters per fact."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from evermat.algebra import (
    STORED_NUMBERS,
    Counts,
    Difference,
    EngineUseError,
    GrowingFacts,
    Intersection,
    SettledFacts,
    StoredFacts,
    Union,
    Within,
    require_bounded,
)
from evermat.columns import as_terms, table_of_rows
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evermat.algebra import Facts, Region

# ------------------------------------------------------------------------ sets of facts

Row = tuple[Constant, ...]
Fact = tuple[str, Row]
Rows = AbstractSet[Row]

NO_ROWS: frozenset[Row] = frozenset()


class Stored(StoredFacts):
    """A set that an engine keeps between updates. The engine replaces the contents."""

    __slots__ = ("contents",)

    def __init__(self) -> None:
        self.contents: dict[str, set[Row]] = {}


class Growing(GrowingFacts):
    """A set of an update, changed in place."""

    __slots__ = ("contents",)

    def __init__(self) -> None:
        self.contents: dict[str, set[Row]] = {}

    def add(self, facts: Facts) -> None:
        """Add facts; those already in the set are ignored."""
        require_bounded(facts)
        for relation, rows in contents_of(facts).items():
            self.contents.setdefault(relation, set()).update(rows)

    def discard(self, facts: Facts) -> None:
        """Remove facts; those not in the set are ignored."""
        # The difference is evaluated first: `facts` may be a view of this very set.
        self.contents = contents_of(self - facts)


class Settled(SettledFacts):
    """A fixed set."""

    __slots__ = ("contents",)

    def __init__(self, contents: Mapping[str, Rows]) -> None:
        self.contents = {
            relation: frozenset(rows) for relation, rows in contents.items() if rows
        }

    def is_empty(self) -> bool:
        """Return whether the set has no facts."""
        return not self.contents

    def size(self) -> int:
        """Return the number of facts."""
        return sum(map(len, self.contents.values()))

    def relations(self) -> frozenset[str]:
        """Return the relations with facts in the set."""
        return frozenset(self.contents)


class Counted(Counts):
    """A multiset of facts."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: Mapping[Fact, int]) -> None:
        self.numbers = dict(numbers)

    @property
    def facts(self) -> SettledFacts:
        """The facts, each once."""
        return Settled(by_relation(self.numbers))


def by_relation(facts: Iterable[Fact]) -> dict[str, set[Row]]:
    """Group facts by relation."""
    contents: defaultdict[str, set[Row]] = defaultdict(set)
    for relation, row in facts:
        contents[relation].add(row)
    return contents


def rows_of(facts: Facts, relation: str) -> Rows:
    """Return the rows of a relation in a view, as of now. They must not be changed."""
    match facts:
        case Stored() | Growing() | Settled():
            return facts.contents.get(relation, NO_ROWS)
        case Union(left=left, right=right):
            return rows_of(left, relation) | rows_of(right, relation)
        case Difference(left=left, right=right):
            return rows_of(left, relation) - rows_of(right, relation)
        case Intersection(left=left, right=right):
            return rows_of(left, relation) & rows_of(right, relation)
        case Within(facts=inner, region=region):
            return _rows_within(inner, region, relation)
    raise _foreign(facts)


def _rows_within(facts: Facts, region: Region, relation: str) -> Rows:
    if not region.touches(relation):
        return NO_ROWS
    return {row for row in rows_of(facts, relation) if region.contains(relation, row)}


def contents_of(facts: Facts) -> dict[str, set[Row]]:
    """Copy all rows of a view."""
    return {relation: set(rows_of(facts, relation)) for relation in _relations(facts)}


def facts_of(facts: Facts) -> list[Fact]:
    """Return all facts of a view."""
    return [(name, row) for name, rows in contents_of(facts).items() for row in rows]


def _relations(facts: Facts) -> set[str]:
    """Return the relations that may have facts in a view."""
    match facts:
        case Stored() | Growing() | Settled():
            return set(facts.contents)
        case Union(left=left, right=right):
            return _relations(left) | _relations(right)
        case Difference(left=inner) | Intersection(left=inner) | Within(facts=inner):
            return _relations(inner)
    raise _foreign(facts)


def _foreign(facts: Facts) -> EngineUseError:
    return EngineUseError(f"`{type(facts).__name__}` is no set of this engine")


# -------------------------------------------------------------------------------- store

Stored4 = tuple[int, int, int, int]
"""The stored numbers of a fact."""


class Numbers:
    """A number for each fact, zero by default."""

    def __init__(self) -> None:
        self.numbers: dict[Fact, int] = {}

    def add(self, counts: Counts) -> None:
        """Raise the numbers by the counts."""
        for fact, number in _numbers(counts).items():
            self.numbers[fact] = self.numbers.get(fact, 0) + number

    def subtract(self, counts: Counts) -> None:
        """Lower the numbers by the counts; an error if one would be negative."""
        lowered = {
            fact: self.numbers.get(fact, 0) - number
            for fact, number in _numbers(counts).items()
        }
        for (relation, row), number in lowered.items():
            if number < 0:
                fact = f"{relation}({', '.join(map(str, row))})"
                raise EngineUseError(f"the counter of `{fact}` would fall below zero")
        self.numbers.update(lowered)

    def positive(self, facts: Facts) -> SettledFacts:
        """Return those of the facts whose number is above zero."""
        require_bounded(facts)
        found = (fact for fact in facts_of(facts) if self.numbers.get(fact, 0) > 0)
        return Settled(by_relation(found))

    def zero(self, facts: Facts) -> SettledFacts:
        """Return those of the facts whose number is zero."""
        require_bounded(facts)
        found = (fact for fact in facts_of(facts) if not self.numbers.get(fact, 0))
        return Settled(by_relation(found))


def _numbers(counts: Counts) -> dict[Fact, int]:
    return cast("Counted", counts).numbers


@dataclass(frozen=True)
class Copy:
    """Facts as of one moment."""

    contents: Mapping[str, Rows]
    arities: Mapping[str, int]

    def relations(self) -> Mapping[str, int]:
        """Return the number of facts of each nonempty relation."""
        return {name: len(rows) for name, rows in self.contents.items() if rows}

    def read(self, relation: str) -> pa.Table:
        """Return the rows of a relation, as columns of terms."""
        rows = self.contents.get(relation, frozenset())
        return table_of_rows(list(rows), self.arities.get(relation, 0))


@dataclass(frozen=True)
class StoreDelta:
    """Differences of the stored numbers of facts."""

    contents: Mapping[str, Mapping[Row, Stored4]]
    arities: Mapping[str, int]

    def relations(self) -> Mapping[str, int]:
        """Return the number of rows of each nonempty relation."""
        return {name: len(rows) for name, rows in self.contents.items() if rows}

    def read(self, relation: str) -> pa.Table:
        """Return columns of terms for the facts, and a column for each number."""
        rows = self.contents[relation]
        facts = table_of_rows(list(rows), self.arities[relation])
        numbers = [
            pa.array([stored[at] for stored in rows.values()], pa.int64())
            for at in range(len(STORED_NUMBERS))
        ]
        return pa.table(
            [*(as_terms(column) for column in facts.columns), *numbers],
            names=[*facts.column_names, *STORED_NUMBERS],
        )


@dataclass
class Store:
    """The state of an engine. Its parts keep their identity, so views stay valid."""

    arities: dict[str, int] = field(default_factory=dict)
    materialised: Stored = field(default_factory=Stored)
    explicit: Stored = field(default_factory=Stored)
    nonrecursive: Numbers = field(default_factory=Numbers)
    recursive: Numbers = field(default_factory=Numbers)

    def copy(self) -> Store:
        """Return a store with the same contents."""
        store = Store()
        store.take(self)
        return store

    def take(self, other: Store) -> None:
        """Replace the contents by a copy of another store's."""
        self.arities = dict(other.arities)
        self.materialised.contents = contents_of(other.materialised)
        self.explicit.contents = contents_of(other.explicit)
        self.nonrecursive.numbers = dict(other.nonrecursive.numbers)
        self.recursive.numbers = dict(other.recursive.numbers)

    def numbers(self) -> dict[Fact, Stored4]:
        """Return the stored numbers of each fact."""
        facts = {
            *facts_of(self.materialised),
            *facts_of(self.explicit),
            *self.nonrecursive.numbers,
            *self.recursive.numbers,
        }
        return {
            (name, row): (
                int(row in rows_of(self.materialised, name)),
                int(row in rows_of(self.explicit, name)),
                self.nonrecursive.numbers.get((name, row), 0),
                self.recursive.numbers.get((name, row), 0),
            )
            for name, row in facts
        }

    def difference(self, old: Mapping[Fact, Stored4]) -> StoreDelta:
        """Return the differences from earlier numbers."""
        new = self.numbers()
        nothing = (0, 0, 0, 0)
        contents: dict[str, dict[Row, Stored4]] = {}
        for fact in {**old, **new}:
            before, after = old.get(fact, nothing), new.get(fact, nothing)
            if before != after:
                a, b, c, d = (y - x for x, y in zip(before, after, strict=True))
                contents.setdefault(fact[0], {})[fact[1]] = (a, b, c, d)
        return StoreDelta(contents, dict(self.arities))

    def forget(self) -> None:
        """Drop the numbers of facts that neither hold nor are explicit."""
        held = set(facts_of(self.materialised | self.explicit))
        for counters in (self.nonrecursive, self.recursive):
            kept = counters.numbers.keys() & held
            counters.numbers = {fact: counters.numbers[fact] for fact in kept}
