"""Sets of facts as Python sets, one for each relation, and what views of them mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from evermat.algebra import (
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
from evermat.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evermat.algebra import Facts, Region

Row = tuple[Constant, ...]
Fact = tuple[str, Row]
Rows = AbstractSet[Row]

NO_ROWS: frozenset[Row] = frozenset()


class Stored(StoredFacts):
    """A set that an engine keeps. The engine replaces the contents."""

    __slots__ = ("contents",)

    def __init__(self) -> None:
        self.contents: dict[str, set[Row]] = {}


class Growing(GrowingFacts):
    """A set of an update, changed in place."""

    __slots__ = ("contents",)

    def __init__(self) -> None:
        self.contents: dict[str, set[Row]] = {}

    def add(self, facts: Facts) -> None:
        """Add facts; what is already there is no error."""
        require_bounded(facts)
        for relation, rows in contents_of(facts).items():
            self.contents.setdefault(relation, set()).update(rows)

    def discard(self, facts: Facts) -> None:
        """Take facts out; what is not there is no error."""
        # All differences are worked out first: `facts` may be a view of this very set.
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
        """Return the relations that have facts in the set."""
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
    """Facts, sorted into relations."""
    contents: defaultdict[str, set[Row]] = defaultdict(set)
    for relation, row in facts:
        contents[relation].add(row)
    return contents


def rows_of(facts: Facts, relation: str) -> Rows:
    """Return the rows of a relation in a view, as of now. Not to be changed."""
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
    """Return all rows of a view, copied."""
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
