"""Which triples a query or an update is about: its dataset, and the graph at hand.

The default graph is the predicate `triple`; triples of named graphs are facts of
`quad`. `FROM <evermat:explicit>` asks for explicit facts only.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdflib.term import URIRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdflib.term import Variable

    from evermat.sparql.solutions import Part, RdfTerm

EXPLICIT = URIRef("evermat:explicit")
"""The name of the graph of explicit facts."""


@dataclass(slots=True)
class Dataset:
    """The graphs that patterns are matched with.

    Attributes:
        default: the named graphs that together are the default graph; None if the
            query does not say.
        named: the graphs that `GRAPH` may speak of; None for all.
        is_explicit: whether only explicit facts count.
        active: the graph at hand inside `GRAPH`: a name, or the variable that stands
            for it; None outside.
    """

    default: tuple[RdfTerm, ...] | None = None
    named: tuple[RdfTerm, ...] | None = None
    is_explicit: bool = False
    active: RdfTerm | Variable | None = None

    @classmethod
    def of(cls, clauses: Sequence[Part] | None) -> Dataset:
        """The dataset of `FROM` and `FROM NAMED`, or of `USING` and `USING NAMED`."""
        clauses = clauses or ()
        default = tuple(each.default for each in clauses if each.default)
        named = tuple(each.named for each in clauses if each.named)
        found = cls(is_explicit=EXPLICIT in default)
        default = tuple(each for each in default if each != EXPLICIT)
        if default or named:
            is_default = found.is_explicit and not default
            found.default = None if is_default else default
            found.named = named
        return found

    @property
    def graphs(self) -> tuple[RdfTerm | Variable, ...] | None:
        """The named graphs to look at; None for the facts of `triple`."""
        return self.default if self.active is None else (self.active,)

    @contextmanager
    def within(self, graph: RdfTerm | Variable) -> Iterator[None]:
        """Make a graph the one at hand."""
        before, self.active = self.active, graph
        try:
            yield
        finally:
            self.active = before
