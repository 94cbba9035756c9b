"""The upper bound of an ontology: rules that derive all it entails, and maybe more.

Source: Zhou et al. 2013, as [hu2018] (Section 6), [motik2015] (Section 5) and [hu2019]
use it. The *lower* bound of an ontology are the rules of OWL 2 RL: what they derive
follows, and what follows from other axioms is missing. For the *upper* bound, what no
rule can say is said more strongly than it is:

| on the right         | the ontology says         | the upper bound says       |
| -------------------- | ------------------------- | -------------------------- |
| `owl:unionOf`        | one of the classes        | all of them                |
| `owl:oneOf`          | one of the individuals    | all of them, so equal      |
| `owl:someValuesFrom` | some value                | one constant of the axiom  |
| at least n values    | n values                  | one constant of the axiom  |
| at most n values     | two of n + 1 are the same | all values are the same    |

| on the left          | the ontology says         | the upper bound says       |
| -------------------- | ------------------------- | -------------------------- |
| `owl:complementOf`   | what is in no C is in D   | all is in C and in D       |
| at least n values    | of n different values     | of one value               |

Axioms about everything speak of all that is in triples. A fact that the upper bound
does not derive does not follow, as far as no axiom is ignored; where both bounds agree,
they are exact. Contradictions of an upper bound say nothing.

The *extended* lower bound (LE) of the papers is a lower bound with hard rules that
their authors wrote: `KnowledgeBase([read_ontology(path), Path("hard.dl")])`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Literal

from evermat.errors import EvermatError
from evermat.lang.syntax import Term
from evermat.rdf.namespaces import OWL
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.rdf.owl.graph import OntologyGraph

Bound = Literal["lower", "upper"]
"""Which rules an ontology stands for."""

BOUNDS: tuple[str, ...] = ("lower", "upper")


class BoundError(EvermatError, ValueError):
    """There is no bound of that name.

    Attributes:
        bound: the name.
    """

    code: ClassVar[str] = "EM518"

    def __init__(self, bound: object) -> None:
        self.bound = bound
        super().__init__(
            f"there is no bound {bound!r} of an ontology",
            help='choose `"lower"` or `"upper"`; a lower bound is extended (LE) by '
            "giving rules of your own beside it",
        )


SOME = "urn:evermat:some:"
"""What constants begin with that stand for the values of an axiom."""

_DIGITS = 16
"""So many characters of a digest tell the axioms of an ontology apart."""


def some_value(graph: OntologyGraph, name: Constant, filler: Constant) -> Term:
    """The constant that stands for a value of a property that must exist.

    It depends on what the axiom says, and not on the names of blank nodes, so that an
    ontology has the same constants whenever it is read.
    """
    content = "\0".join(
        (*_content(graph, name, set()), *_content(graph, filler, set()))
    )
    digest = sha256(content.encode()).hexdigest()[:_DIGITS]
    return Term(Constant(Kind.IRI, SOME + digest))


def _content(
    graph: OntologyGraph, found: Constant, seen: set[Constant]
) -> Iterator[str]:
    """What a class or property says, through blank nodes."""
    if found.kind != Kind.BLANK or found in seen:
        yield "" if found in seen else f"{found.kind:d} {found.text}"
        return
    seen.add(found)
    for predicate, value in sorted(
        graph.about(found), key=lambda pair: (pair[0], pair[1].kind, pair[1].text)
    ):
        yield predicate
        yield from _content(graph, value, seen)


def complements(graph: OntologyGraph, found: Constant) -> list[Constant]:
    """Classes that a class on the left is said not to be in, alone or with others."""
    if found.kind != Kind.BLANK:
        return []
    other = graph.one(found, OWL + "complementOf")
    if other is not None:
        return [other]
    members = graph.listed(graph.one(found, OWL + "intersectionOf"))
    return [each for member in members for each in complements(graph, member)]
