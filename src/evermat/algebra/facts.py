"""Sets of facts as expressions, and the test whether a view can be evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from evermat.errors import EvermatError

if TYPE_CHECKING:
    from evermat.algebra.queries import Region


class Facts:
    """A set of facts, as an expression; see the package's docstring."""

    __slots__ = ()

    def __or__(self, other: Facts) -> Facts:
        return Union(self, other)

    def __sub__(self, other: Facts) -> Facts:
        return Difference(self, other)

    def __and__(self, other: Facts) -> Facts:
        return Intersection(self, other)

    def within(self, region: Region) -> Facts:
        """Return those of the facts that lie in a region."""
        return Within(self, region)

    def __bool__(self) -> bool:
        message = "a set of facts has no truth value; call is_empty() on a settled set"
        raise TypeError(message)


@dataclass(frozen=True, slots=True, eq=False)
class Union(Facts):
    """The facts of either side."""

    left: Facts
    right: Facts


@dataclass(frozen=True, slots=True, eq=False)
class Difference(Facts):
    """The facts of the left side that are not in the right side."""

    left: Facts
    right: Facts


@dataclass(frozen=True, slots=True, eq=False)
class Intersection(Facts):
    """The facts of both sides."""

    left: Facts
    right: Facts


@dataclass(frozen=True, slots=True, eq=False)
class Within(Facts):
    """The facts of a set that lie in a region."""

    facts: Facts
    region: Region


class StoredFacts(Facts):
    """A set that the engine keeps between updates. Engines subclass it."""

    __slots__ = ()


class GrowingFacts(Facts):
    """A set that an update accumulates. Engines subclass it."""

    __slots__ = ()

    def add(self, facts: Facts) -> None:
        """Add facts; those already in the set are ignored."""
        raise NotImplementedError

    def discard(self, facts: Facts) -> None:
        """Remove facts; those not in the set are ignored."""
        raise NotImplementedError


class SettledFacts(Facts):
    """A fixed set. Engines subclass it."""

    __slots__ = ()

    def is_empty(self) -> bool:
        """Return whether the set is empty. Free: known since the set was settled."""
        raise NotImplementedError

    def size(self) -> int:
        """Return the number of facts. Free, like `is_empty`."""
        raise NotImplementedError

    def relations(self) -> frozenset[str]:
        """Return the relations with facts in the set. Free, like `is_empty`."""
        raise NotImplementedError


class Counts:
    """A multiset of facts: derivation counts. Engines subclass it."""

    __slots__ = ()

    @property
    def facts(self) -> SettledFacts:
        """The facts, each once."""
        raise NotImplementedError


class Counters(Protocol):
    """A number for each fact, zero by default."""

    def add(self, counts: Counts) -> None:
        """Raise the numbers by the counts."""

    def subtract(self, counts: Counts) -> None:
        """Lower the numbers by the counts; an error if one would be negative."""

    def positive(self, facts: Facts) -> SettledFacts:
        """Return those of the facts whose number is above zero."""

    def zero(self, facts: Facts) -> SettledFacts:
        """Return those of the facts whose number is zero."""


class EngineUseError(EvermatError, RuntimeError):
    """A call that an engine must refuse, as wrong or far too costly."""

    code: ClassVar[str] = "EM603"


def is_bounded(facts: Facts) -> bool:
    """Return whether a view can be evaluated from its settled and growing parts.

    Such a view may be settled, added to a growing set, or looked up in counters.
    """
    match facts:
        case SettledFacts() | GrowingFacts():
            return True
        case Union(left=left, right=right):
            return is_bounded(left) and is_bounded(right)
        case Intersection(left=left, right=right):
            return is_bounded(left) or is_bounded(right)
        case Difference(left=inner) | Within(facts=inner):
            return is_bounded(inner)
        case _:
            return False


def require_bounded(facts: Facts) -> None:
    """Refuse to evaluate a view that would scan a stored set."""
    if not is_bounded(facts):
        raise EngineUseError(
            "a view of a stored set cannot be settled",
            reason="the work must follow the settled and growing parts of a view",
            help="intersect it with a settled or growing set, or take a snapshot",
        )
