"""A store for rdflib: graphs with derived triples that are maintained on changes.

    from rdflib import Graph
    from evermat.rdflib_store import EvermatStore

    graph = Graph(store=EvermatStore(kb))        # or Graph(store="Evermat")

Reading returns explicit and derived triples. `add` and `remove` update explicit triples
and maintain the derived ones; a triple that rules derive cannot be removed.
`graph.query` and `graph.update` are evaluated by `kb.sparql`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rdflib import Graph, plugin
from rdflib.query import Result as RdfResult
from rdflib.store import VALID_STORE, Store
from rdflib.term import BNode, URIRef, Variable

from evermat.api import KnowledgeBase
from evermat.lang.syntax import TRIPLE
from evermat.results.result import Result
from evermat.sparql.solutions import term_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rdflib.graph import _QuadType, _TriplePatternType, _TripleType


class EvermatStore(Store):
    """The triples of a knowledge base.

    Attributes:
        kb: the knowledge base, to which rules and ontologies can be added.
    """

    context_aware = False
    formula_aware = False
    transaction_aware = False

    def __init__(
        self,
        configuration: KnowledgeBase | str | None = None,
        identifier: object = None,
    ) -> None:
        """Create a store.

        Args:
            configuration: a knowledge base, or the path of a state; by default a new
                knowledge base in memory.
            identifier: passed by rdflib, and ignored.
        """
        super().__init__()
        del identifier
        self.kb: KnowledgeBase = (
            configuration
            if isinstance(configuration, KnowledgeBase)
            else KnowledgeBase(state=configuration)
        )
        self._prefixes: dict[str, URIRef] = {}

    def open(
        self,
        configuration: str | tuple[str, str],
        create: bool = False,  # noqa: FBT001, FBT002  rdflib's signature
    ) -> int | None:
        """Open the state at a path."""
        place = str(configuration)
        made = KnowledgeBase(state=place) if create else KnowledgeBase.open(place)
        self.kb = made
        return VALID_STORE

    # -- changes

    def add(
        self,
        triple: _TripleType,
        context: object,
        quoted: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Insert a triple."""
        del context, quoted
        self.kb.insert(TRIPLE, [triple])

    def addN(self, quads: Iterable[_QuadType]) -> None:  # noqa: N802  rdflib's name
        """Insert triples, in one update."""
        rows = [quad[:3] for quad in quads]
        if rows:
            self.kb.insert(TRIPLE, rows)

    def remove(self, triple: _TriplePatternType, context: object = None) -> None:
        """Delete the explicit triples that match a pattern."""
        rows = [found for found, _ in self.triples(triple, context)]
        if rows:
            self.kb.delete(TRIPLE, rows)

    # -- reading

    def triples(
        self, triple_pattern: _TriplePatternType, context: object = None
    ) -> Iterator[tuple[_TripleType, Iterator[None]]]:
        """Yield the triples that match a pattern, without contexts."""
        del context
        if TRIPLE not in self.kb:
            return
        names = ("s", "p", "o")
        given: dict[str, Any] = {
            name: term
            for name, term in zip(names, triple_pattern, strict=True)
            if term is not None
        }
        places = [f"${name}" if name in given else f"?{name}" for name in names]
        found = self.kb.query(f"[{', '.join(places)}]", **given)
        rows: Iterable[Any] = found.constants() if found.columns else [()] * len(found)
        for row in rows:
            values = dict(zip(found.columns, map(term_of, row), strict=True)) | given
            subject, predicate, value = (values[name] for name in names)
            if isinstance(subject, URIRef | BNode) and isinstance(predicate, URIRef):
                yield (subject, predicate, value), iter(())

    def __len__(self, context: object = None) -> int:
        """Return the number of triples."""
        del context
        return self.kb.count(TRIPLE) if TRIPLE in self.kb else 0

    # -- SPARQL

    def query(
        self,
        query: Any,  # noqa: ANN401  a string, or parsed already
        initNs: Mapping[str, object],  # noqa: N803  rdflib's name
        initBindings: Mapping[str, object],  # noqa: N803
        queryGraph: object,  # noqa: N803
        **kwargs: object,
    ) -> RdfResult:
        """Answer a query; those with initial bindings are left to rdflib."""
        del queryGraph, kwargs
        if initBindings or not isinstance(query, str):
            raise NotImplementedError
        return _as_rdflib(self.kb.sparql(_with_prefixes(query, initNs)))

    def update(
        self,
        update: Any,  # noqa: ANN401  as above
        initNs: Mapping[str, object],  # noqa: N803
        initBindings: Mapping[str, object],  # noqa: N803
        queryGraph: object,  # noqa: N803
        **kwargs: object,
    ) -> None:
        """Carry out an update."""
        del queryGraph, kwargs
        if initBindings or not isinstance(update, str):
            raise NotImplementedError
        self.kb.sparql(_with_prefixes(update, initNs))

    # -- prefixes

    def bind(self, prefix: str, namespace: URIRef, override: bool = True) -> None:  # noqa: FBT001, FBT002
        """Declare a prefix."""
        if override or prefix not in self._prefixes:
            self._prefixes[prefix] = namespace

    def namespace(self, prefix: str) -> URIRef | None:
        """Return the namespace of a prefix."""
        return self._prefixes.get(prefix)

    def prefix(self, namespace: URIRef) -> str | None:
        """Return the prefix of a namespace."""
        found = (each for each, iri in self._prefixes.items() if iri == namespace)
        return next(found, None)

    def namespaces(self) -> Iterator[tuple[str, URIRef]]:
        """Yield all prefixes."""
        yield from self._prefixes.items()


def _with_prefixes(text: str, known: Mapping[str, object]) -> str:
    lines = [f"PREFIX {prefix}: <{iri}>" for prefix, iri in known.items()]
    return "\n".join([*lines, text])


def _as_rdflib(answer: object) -> RdfResult:
    if isinstance(answer, bool):
        found = RdfResult("ASK")
        found.askAnswer = answer
        return found
    if not isinstance(answer, Result):
        raise NotImplementedError
    cells: Iterable[tuple[Any, ...]] = answer.constants()  # None is unbound
    rows: Iterator[list[Any]] = (
        [None if each is None else term_of(each) for each in row] for row in cells
    )
    if answer.predicate == TRIPLE:
        found = RdfResult("CONSTRUCT")
        found.graph = Graph()
        for row in rows:
            subject, predicate, value = row
            found.graph.add((subject, predicate, value))
        return found
    found = RdfResult("SELECT")
    found.vars = [Variable(name) for name in answer.columns]
    found.bindings = [
        {
            name: term
            for name, term in zip(found.vars, row, strict=True)
            if term is not None
        }
        for row in rows
    ]
    return found


plugin.register("Evermat", Store, "evermat.rdflib_store", "EvermatStore")
