"""What an update of a program with equality works on.

Source: [motik2015equality], Section 2: the r-materialisation (π, I).

Notation (left: the paper; right: the code)

    π; π'         `representatives` before, and as they become
    I            `engine.materialised`   representatives only (*normal* facts)
    E            facts that are given, as they were given
    c ≈ c        `~same(c, c)`, kept for cliques of two and more constants only

How given facts are kept: an explicit fact of the engine is one that was given, or one
whose representative was not given itself; the latter are *implied*, and have the number
1 in `engine.recursive_counts`, which programs with equality do not use otherwise. Given
facts that are not normal are explicit, but do not hold in the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.lang.syntax import TRIPLE
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.abilities import EqualityEngine

LOST = "~lost"
"""Constants that represent no longer."""
MOVED = "~moved"
"""Constants whose representative is another one after an update."""


_ALL_BUT_IRIS = frozenset(Kind) - {Kind.IRI, Kind.BLANK}
_ALL_BUT_NAMES = _ALL_BUT_IRIS - {Kind.STRING}


def values_among(relations: Collection[str]) -> frozenset[Kind]:
    """The kinds of constants that are never equal to each other.

    Strings are names in programs without triples, as in `same_as(ann, anna)`; in
    triples they are literals.
    """
    return _ALL_BUT_IRIS if TRIPLE in relations else _ALL_BUT_NAMES


class GivenFacts:
    """The facts that are given, before and after an update."""

    def __init__(
        self, engine: EqualityEngine, deletions: SettledFacts, insertions: SettledFacts
    ) -> None:
        self.engine = engine
        self.deletions = deletions
        self.insertions = insertions

    def before(self, explicit: SettledFacts) -> SettledFacts:
        """Those of explicit facts that were given before the update."""
        return self.engine.settle(explicit - self._implied(explicit))

    def kept(self, explicit: SettledFacts) -> SettledFacts:
        """Those of explicit facts that were given before and still are."""
        implied = self._implied(explicit)
        return self.engine.settle(explicit - implied - self.deletions)

    def after(self, facts: SettledFacts) -> SettledFacts:
        """Those of any facts that are given after the update."""
        engine = self.engine
        explicit = engine.settle(facts & engine.explicit)
        return engine.settle(self.kept(explicit) | (facts & self.insertions))

    def _implied(self, explicit: SettledFacts) -> SettledFacts:
        return self.engine.recursive_counts.positive(explicit)


def given_among(engine: EqualityEngine, facts: Facts) -> SettledFacts:
    """Those of the facts that were given themselves."""
    explicit = engine.settle(facts & engine.explicit)
    if explicit.is_empty():
        return explicit
    return engine.settle(explicit - engine.recursive_counts.positive(explicit))


def normal_explicit(engine: EqualityEngine) -> Facts:
    """The representatives of given facts."""
    return engine.explicit & engine.materialised
