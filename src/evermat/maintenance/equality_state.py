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

from evermat.algebra import Column, Pattern, Query, QuerySet, Role, Views
from evermat.lang.equality import SAME
from evermat.lang.syntax import TRIPLE
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evermat.algebra import EqualityEngine, Facts, SettledFacts

LOST = "~lost"
"""Constants that represent no longer."""
MOVED = "~moved"
"""Constants whose representative is another one after an update."""

_MARKS = frozenset({LOST, MOVED})


def values_among(relations: Iterable[str]) -> frozenset[Kind]:
    """The kinds of constants that are never equal to each other.

    Strings are names in programs without triples, as in `same_as(ann, anna)`; in
    triples they are literals.
    """
    names = {Kind.IRI, Kind.BLANK}
    if TRIPLE not in relations:
        names.add(Kind.STRING)
    return frozenset(Kind) - names


class Mentions:
    """Queries that find facts by a constant in any place, and cliques by facts."""

    def __init__(self, arities: Mapping[str, int]) -> None:
        self.arities = {
            name: arity
            for name, arity in arities.items()
            if arity and name not in _MARKS
        }
        self.lost = self._by_constant(Pattern(LOST, (Column(0),), Role.CHANGED))
        self.moved = self._by_constant(Pattern(MOVED, (Column(0),), Role.CHANGED))
        node = (Column(0), Column(0))
        self.of_nodes = self._by_constant(Pattern(SAME, node, Role.CHANGED))
        self.with_nodes = QuerySet(
            tuple(
                Query(
                    head=Pattern(name, columns),
                    positive=(
                        Pattern(name, columns, Role.CHANGED),
                        Pattern(SAME, (columns[at], columns[at])),
                    ),
                    column_count=arity,
                    label="facts about cliques",
                )
                for name, arity in self.arities.items()
                for columns in (_columns(arity),)
                for at in range(arity)
            )
        )
        self.nodes = QuerySet(
            tuple(
                Query(
                    head=Pattern(SAME, (columns[at], columns[at])),
                    positive=(
                        Pattern(name, columns, Role.CHANGED),
                        Pattern(SAME, (columns[at], columns[at])),
                    ),
                    column_count=arity,
                    label="cliques of facts",
                )
                for name, arity in self.arities.items()
                for columns in (_columns(arity),)
                for at in range(arity)
            )
        )
        self.every_node = QuerySet(
            (
                Query(
                    head=Pattern(SAME, node),
                    positive=(Pattern(SAME, node),),
                    column_count=1,
                    label="all cliques",
                ),
            )
        )

    def _by_constant(self, mark: Pattern) -> QuerySet:
        queries = []
        for name, arity in self.arities.items():
            for at in range(arity):
                columns = tuple(
                    Column(0) if place == at else Column(place + 1)
                    for place in range(arity)
                )
                queries.append(
                    Query(
                        head=Pattern(name, columns),
                        positive=(mark, Pattern(name, columns)),
                        column_count=arity + 1,
                        label="facts about constants",
                    )
                )
        return QuerySet(tuple(queries))


def _columns(arity: int) -> tuple[Column, ...]:
    return tuple(Column(at) for at in range(arity))


def find(
    engine: EqualityEngine, queries: QuerySet, marks: SettledFacts, within: Facts
) -> SettledFacts:
    """The facts of a view that some marks lead to."""
    if marks.is_empty():
        return engine.no_facts()
    return engine.derive(queries, Views(within, within, marks))


class GivenFacts:
    """The facts that are given, before and after an update."""

    def __init__(
        self, engine: EqualityEngine, deletions: SettledFacts, insertions: SettledFacts
    ) -> None:
        self.engine = engine
        self.deletions = deletions
        self.insertions = insertions

    def before(self, facts: Facts) -> SettledFacts:
        """Those of the facts that were given before the update."""
        return given_among(self.engine, facts)

    def kept(self, facts: Facts) -> SettledFacts:
        """Those of the facts that were given before and still are."""
        engine = self.engine
        return engine.settle(given_among(engine, facts) - self.deletions)

    def after(self, facts: SettledFacts) -> SettledFacts:
        """Those of the facts that are given after the update."""
        engine = self.engine
        return engine.settle(self.kept(facts) | (facts & self.insertions))


def given_among(engine: EqualityEngine, facts: Facts) -> SettledFacts:
    """Those of the facts that were given themselves."""
    explicit = engine.settle(facts & engine.explicit)
    if explicit.is_empty():
        return explicit
    return engine.settle(explicit - engine.recursive_counts.positive(explicit))


def implied_facts(engine: EqualityEngine, mentions: Mentions) -> SettledFacts:
    """All explicit facts that were not given themselves."""
    everything = engine.materialised
    nodes = engine.derive(mentions.every_node, Views(everything, everything))
    found = find(engine, mentions.of_nodes, nodes, engine.explicit)
    return engine.recursive_counts.positive(found)


def normal_explicit(engine: EqualityEngine) -> Facts:
    """The representatives of given facts."""
    return engine.explicit & engine.materialised
