"""Ontologies as rules: OWL 2 RL, and RDFS with it.

Axioms become rules over triples with constants, which engines fold: twenty thousand
subclass axioms are one join. Those that forbid something become rules with the head
`false`, whose facts are contradictions. What would need new individuals, or a case
distinction, is no rule; it is listed, and told in a warning, so that nobody is misled.

How is told in `evermat.rdf.owl`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError
from evermat.lang.syntax import Program
from evermat.rdf.namespaces import OWL
from evermat.rdf.owl.axioms import ALWAYS, axiom_rules
from evermat.rdf.owl.bounds import BOUNDS, BoundError
from evermat.rdf.owl.documents import prefixes_of, read_catalogue, read_documents
from evermat.rdf.owl.graph import IgnoredAxiom, OntologyGraph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evermat.lang.syntax import Rule
    from evermat.rdf.owl.bounds import Bound

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Ontology:
    """The rules of an ontology.

    Attributes:
        rules: what its axioms stand for; a rule without a body is a fact.
        ignored: the axioms, and parts of axioms, that no rule stands for.
        prefixes: those that its document declares.
    """

    rules: tuple[Rule, ...]
    ignored: tuple[IgnoredAxiom, ...]
    prefixes: tuple[tuple[str, str], ...] = ()

    @property
    def program(self) -> Program:
        """The rules as a program, which may use the prefixes of the ontology."""
        return Program(rules=self.rules, prefixes=self.prefixes)

    @property
    def has_axioms(self) -> bool:
        """Whether anything is an axiom, so that this is no file of facts alone."""
        return len(self.rules) > len(ALWAYS) or bool(self.ignored)

    @property
    def ignored_counts(self) -> Mapping[str, int]:
        """How many axioms are ignored, by name."""
        return _counts(self.ignored)


class IgnoredAxiomsWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """Axioms of an ontology that no rule stands for.

    Attributes:
        ignored: the axioms.
    """

    code: ClassVar[str] = "EM912"

    def __init__(self, path: str | Path, ignored: Sequence[IgnoredAxiom]) -> None:
        self.ignored = tuple(ignored)
        names = ", ".join(
            f"{name} ({count:,})" for name, count in _counts(ignored).items()
        )
        shown = "; ".join(map(str, ignored[:_SHOWN]))
        more = ", …" if len(ignored) > _SHOWN else ""
        super().__init__(
            f"axioms of `{path}` are ignored: {names}",
            reason=f"they are not in OWL 2 RL, or not found: {shown}{more}",
            help="write rules for what they mean, where it matters; `ignored` of the "
            "ontology lists them",
        )


def _counts(ignored: Sequence[IgnoredAxiom]) -> Mapping[str, int]:
    return dict(sorted(Counter(each.name for each in ignored).items()))


def read_ontology(
    path: str | Path,
    *,
    catalogue: Mapping[str, str | Path] | str | Path | None = None,
    base: str | None = None,
    bound: Bound = "lower",
) -> Ontology:
    """The rules that an ontology stands for.

    Args:
        path: an RDF file, or one in functional syntax (`.ofn`), OWL/XML (`.owx`),
            Manchester syntax (`.omn`) or OBO (`.obo`), which need
            `pip install "evermat[owl]"`.
        catalogue: where the ontologies are that it imports: a mapping from IRIs to
            paths, an XML catalogue, or a folder. By default `catalog-v001.xml` beside
            the file, if there is one. Nothing is read from the network.
        base: what relative IRIs are relative to.
        bound: `"lower"` for rules that derive only what follows from the ontology, or
            `"upper"` for rules that derive all that follows, and maybe more: see
            `evermat.rdf.owl.bounds`.

    Raises:
        EvermatError: a file cannot be read, or there is no such bound.

    Warns:
        IgnoredAxiomsWarning: there are axioms that no rule stands for.
    """
    if bound not in BOUNDS:
        raise BoundError(bound)
    graph = ontology_graph(path, catalogue=catalogue, base=base)
    graph.is_upper = bound == "upper"
    rules = dict.fromkeys(axiom_rules(graph))
    if graph.ignored:
        warnings.warn(IgnoredAxiomsWarning(path, graph.ignored), stacklevel=2)
    prefixes = tuple(prefixes_of(Path(path)).items())
    return Ontology(tuple(rules), tuple(graph.ignored), prefixes)


def ontology_graph(
    path: str | Path,
    *,
    catalogue: Mapping[str, str | Path] | str | Path | None = None,
    base: str | None = None,
) -> OntologyGraph:
    """The triples of an ontology and of what it imports; see `read_ontology`."""
    file = Path(path)
    places = {} if catalogue is None else read_catalogue(catalogue)
    graph = OntologyGraph(read_documents(file, places, base), file.name)
    for _ in graph.axioms(OWL + "imports"):
        graph.ignore("owl:imports")
    return graph
