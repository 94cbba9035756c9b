"""Sets of facts as expressions, and which of them can be worked out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from evermat.errors import EvermatError

if TYPE_CHECKING:
    from evermat.algebra.queries import Region


class Facts:
    """A set of facts, as an expression; see the module's docstring."""

    __slots__ = ()

    def __or__(self, other: Facts) -> Facts:
        return Union(self, other)

    def __sub__(self, other: Facts) -> Facts:
        return Difference(self, other)

    def __and__(self, other: Facts) -> Facts:
        return Intersection(self, other)

    def within(self, region: Region) -> Facts:
        """Those of the facts that lie in a region."""
        return Within(self, region)

    def __bool__(self) -> bool:
        message = "a set of facts has no truth value; call is_empty() on a settled set"
        raise TypeError(message)


@dataclass(frozen=True, slots=True, eq=False)
class Union(Facts):
    """Facts of either side."""

    left: Facts
    right: Facts


@dataclass(frozen=True, slots=True, eq=False)
class Difference(Facts):
    """Facts of the left side that the right side does not have."""

    left: Facts
    right: Facts


@dataclass(frozen=True, slots=True, eq=False)
class Intersection(Facts):
    """Facts of both sides."""

    left: Facts
    right: Facts


@dataclass(frozen=True, slots=True, eq=False)
class Within(Facts):
    """Facts of a set that lie in a region."""

    facts: Facts
    region: Region


class StoredFacts(Facts):
    """A set the engine keeps between updates. Engines subclass it."""

    __slots__ = ()


class GrowingFacts(Facts):
    """A set that an update accumulates. Engines subclass it."""

    __slots__ = ()

    def add(self, facts: Facts) -> None:
        """Add facts; what is already there is no error."""
        raise NotImplementedError

    def discard(self, facts: Facts) -> None:
        """Take facts out; what is not there is no error."""
        raise NotImplementedError


class SettledFacts(Facts):
    """A fixed set. Engines subclass it."""

    __slots__ = ()

    def is_empty(self) -> bool:
        """Whether the set has no facts. Free: settling has found out."""
        raise NotImplementedError

    def size(self) -> int:
        """The number of facts. Free, like `is_empty`."""
        raise NotImplementedError

    def relations(self) -> frozenset[str]:
        """The relations that have facts in the set. Free, like `is_empty`."""
        raise NotImplementedError


class Counts:
    """A multiset of facts: how often each was derived. Engines subclass it."""

    __slots__ = ()

    @property
    def facts(self) -> SettledFacts:
        """The facts, each once."""
        raise NotImplementedError


class Counters(Protocol):
    """A number for each fact, zero where nothing was said."""

    def add(self, counts: Counts) -> None:
        """Raise the numbers by the counts."""

    def subtract(self, counts: Counts) -> None:
        """Lower the numbers by the counts; never below zero, which is an error."""

    def positive(self, facts: Facts) -> SettledFacts:
        """Those of the facts whose number is above zero."""

    def zero(self, facts: Facts) -> SettledFacts:
        """Those of the facts whose number is zero."""


class EngineUseError(EvermatError, RuntimeError):
    """A call that an engine must refuse: it would break or be far too costly."""

    code: ClassVar[str] = "EM603"


def is_bounded(facts: Facts) -> bool:
    """Whether working out a view follows its settled and growing parts.

    Such a view may be settled, added to a growing set, or asked about in counters.
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
    """Refuse to work out a view that would walk through a stored set."""
    if not is_bounded(facts):
        raise EngineUseError(
            "a view of a stored set cannot be settled",
            reason="the work must follow the settled and growing parts of a view",
            help="intersect it with a settled or growing set, or take a snapshot",
        )
