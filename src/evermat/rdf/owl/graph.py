"""The triples of an ontology, by subject and predicate, and what no rule stands for."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.lang.printer import Printer
from evermat.lang.strata import strong_components
from evermat.lang.syntax import TRIPLE, Atom, BodyElement, Term, Variable
from evermat.rdf.namespaces import OWL, PREFIXES, RDF, RDFS
from evermat.runtime.input_limits import AxiomSizeError, NestingError, input_limits
from evermat.values import Constant, Kind, is_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WORK_PER_RULE = 20
"""Atoms, and steps that lead to none, in a rule that an axiom stands for."""

Node = Variable | Term
Body = tuple[BodyElement, ...]
Triple = tuple[Constant, Constant, Constant]

TYPE = Term(Constant(Kind.IRI, RDF + "type"))
SAME = Term(Constant(Kind.IRI, OWL + "sameAs"))


def owl(name: str) -> Term:
    """A name of OWL, as a term."""
    return Term(Constant(Kind.IRI, OWL + name))


def triple(subject: Node, predicate: Node, found: Node) -> Atom:
    """A triple atom."""
    return Atom(TRIPLE, (subject, predicate, found))


@dataclass(frozen=True, slots=True)
class IgnoredAxiom:
    """An axiom, or a part of one, that no rule stands for.

    Attributes:
        name: what it is.
        axiom: the triple that it stands in, as text.
        document: the file that it comes from.
    """

    name: str
    axiom: str
    document: str

    def __str__(self) -> str:
        return f"{self.name}: {self.axiom} ({self.document})"


@dataclass(slots=True)
class Names:
    """New variables, and how deep the expression is in which they stand."""

    count: int = 0
    depth: int = 0

    def new(self) -> Variable:
        """A variable that no other part of the rule has."""
        self.count += 1
        return Variable(f"v{self.count}")


class OntologyGraph:
    """The triples of an ontology.

    Attributes:
        ignored: what no rule stands for.
        is_upper: whether what no rule can say is said more strongly: see `bounds`.
    """

    is_upper = False

    def __init__(self, triples: Iterable[tuple[Triple, str]], name: str) -> None:
        """Hold triples.

        Args:
            triples: each with the document that it comes from.
            name: what messages call the ontology.
        """
        self._name = name
        self._limits = input_limits()
        self._work = 0
        self._axiom: tuple[Triple, str] | None = None
        self._printer = Printer(PREFIXES)
        self._cyclic: frozenset[Constant] | None = None
        self.ignored: list[IgnoredAxiom] = []
        self._by_predicate: dict[str, list[tuple[Constant, Constant, str]]]
        self._by_predicate = defaultdict(list)
        self._objects: dict[tuple[Constant, str], list[Constant]] = defaultdict(list)
        for (subject, predicate, found), document in triples:
            self._by_predicate[predicate.text].append((subject, found, document))
            self._objects[subject, predicate.text].append(found)

    # -- reading

    def axioms(self, predicate: str) -> Iterable[tuple[Constant, Constant]]:
        """Subjects and objects of a predicate; each pair is an axiom of its own."""
        name = Constant(Kind.IRI, predicate)
        for subject, found, document in self._by_predicate.get(predicate, ()):
            self._axiom = (subject, name, found), document
            self._work = 0
            yield subject, found
        self._axiom = None

    def one(self, subject: Constant, predicate: str) -> Constant | None:
        """The object of a subject, if there is one."""
        return next(iter(self._objects.get((subject, predicate), ())), None)

    def all(self, subject: Constant, predicate: str) -> list[Constant]:
        """The objects of a subject."""
        return self._objects.get((subject, predicate), [])

    def about(self, subject: Constant) -> Iterator[tuple[str, Constant]]:
        """Predicates and objects of a subject."""
        for (other, predicate), found in self._objects.items():
            if other == subject:
                yield from ((predicate, each) for each in found)

    def is_a(self, subject: Constant, name: str) -> bool:
        """Whether something is said to be a class, a property and so on of OWL."""
        return any(each.text == OWL + name for each in self.all(subject, RDF + "type"))

    def listed(self, start: Constant | None) -> list[Constant]:
        """The members of an RDF list."""
        members: list[Constant] = []
        seen: set[Constant] = set()
        while start is not None and start.text != RDF + "nil" and start not in seen:
            seen.add(start)
            first = self.one(start, RDF + "first")
            if first is not None:
                members.append(first)
            start = self.one(start, RDF + "rest")
        return members

    def is_datatype(self, found: Constant) -> bool:
        """Whether a class is a datatype, or a range of data without a name."""
        if is_known(found.text) and found.text != RDFS + "Resource":
            return True
        return any(
            each.text in {RDFS + "Datatype", OWL + "DataRange"}
            for each in self.all(found, RDF + "type")
        )

    def link(self, subject: Node, name: Constant, other: Node) -> Atom:
        """That two things are in a relation, which may be the inverse of another."""
        inverse = self.one(name, OWL + "inverseOf") if name.kind == Kind.BLANK else None
        if inverse is None:
            return triple(subject, Term(name), other)
        return triple(other, Term(inverse), subject)

    def contains_itself(self, found: Constant) -> bool:
        """Whether a class without a name is, somewhere inside, a part of itself."""
        if self._cyclic is None:
            self._cyclic = self._classes_in_cycles()
        return found in self._cyclic

    def _classes_in_cycles(self) -> frozenset[Constant]:
        """The classes without names that are parts of themselves."""
        blanks = (each for each, _ in self._objects if each.kind == Kind.BLANK)
        nodes = {subject: at for at, subject in enumerate(dict.fromkeys(blanks))}
        parts = [
            [nodes[part] for part in self._parts(node) if part in nodes]
            for node in nodes
        ]
        component = strong_components(parts)
        sizes = Counter(component)
        return frozenset(
            node
            for node, at in nodes.items()
            if sizes[component[at]] > 1 or at in parts[at]
        )

    def _parts(self, found: Constant) -> list[Constant]:
        parts: list[Constant] = []
        for name in ("intersectionOf", "unionOf"):
            parts += self.listed(self.one(found, OWL + name))
        for name in ("someValuesFrom", "allValuesFrom", "onClass", "complementOf"):
            part = self.one(found, OWL + name)
            parts += [] if part is None else [part]
        return parts

    # -- limits

    def work(self, amount: int = 1) -> None:
        """Count work on an axiom: an intersection of unions may take exponential.

        Raises:
            AxiomSizeError: it is too much.
        """
        self._work += amount
        if self._work > _WORK_PER_RULE * self._limits.rules_per_axiom:
            message = f"an axiom of `{self._name}` stands for too many rules"
            raise AxiomSizeError(message, "rules_per_axiom")

    def go_deeper(self, names: Names) -> None:
        """Count how deep class expressions are within each other.

        Raises:
            NestingError: it is too deep.
        """
        names.depth += 1
        if names.depth > self._limits.nesting:
            message = f"class expressions of `{self._name}` are nested too deeply"
            raise NestingError(message, "nesting")

    # -- what is left out

    def ignore(self, name: str) -> None:
        """Note that no rule stands for the axiom at hand, or for a part of it."""
        text, document = "", self._name
        if self._axiom is not None:
            axiom, document = self._axiom
            text = " ".join(map(self._shown, axiom))
        self.ignored.append(IgnoredAxiom(name, text, document))

    def _shown(self, found: Constant) -> str:
        if found.kind != Kind.BLANK:
            return self._printer.constant(found)
        inverse = self.one(found, OWL + "inverseOf")
        if inverse is not None:
            return f"[ owl:inverseOf {self._shown(inverse)} ]"
        name = self.one(found, OWL + "onProperty")
        if name is not None and name.kind != Kind.BLANK:
            return f"[ owl:onProperty {self._shown(name)} … ]"
        return "[ … ]"
