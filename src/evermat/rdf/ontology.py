"""Ontologies as rules: RDFS, and the part of OWL 2 RL that derives facts.

Axioms become rules over triples with constants, which engines fold: twenty thousand
subclass axioms are one join. Axioms that only forbid things, or that would need new
individuals, are no rules; they are counted and told in a warning, so that nobody is
misled.

| axiom                                            | rule                        |
| ------------------------------------------------ | --------------------------- |
| `rdfs:subClassOf`, `owl:equivalentClass`         | `[?x, a, D] :- [?x, a, C]`  |
| `rdfs:subPropertyOf`, `owl:equivalentProperty`   | `[?x, Q, ?y] :- [?x, P, ?y]`|
| `rdfs:domain`, `rdfs:range`                      | `[?x, a, C] :- [?x, P, ?y]` |
| `owl:inverseOf`, symmetric, transitive           | as they say                 |
| `owl:propertyChainAxiom`                         | a chain of triples          |
| functional, inverse functional, `owl:hasKey`     | `[?y, owl:sameAs, ?z] :- …` |

Classes may be intersections, `owl:hasValue`, on the left also unions and
`owl:someValuesFrom`, on the right also `owl:allValuesFrom` and at most one value.
Properties in them may be inverses.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from evermat.columns import constants
from evermat.errors import EvermatError
from evermat.lang.components import strong_components
from evermat.lang.syntax import TRIPLE, Atom, Rule, Term, Variable
from evermat.rdf.namespaces import OWL, RDF, RDFS
from evermat.rdf.reading import read_rdf
from evermat.runtime.input_limits import AxiomSizeError, NestingError, input_limits
from evermat.values import XSD, Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WORK_PER_RULE = 20
"""Atoms, and steps that lead to none, in a rule that an axiom stands for."""

Node = Variable | Term
Body = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Ontology:
    """The rules of an ontology, and the axioms that are none, by name."""

    rules: tuple[Rule, ...]
    ignored: Mapping[str, int]


class IgnoredAxiomsWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """Axioms of an ontology that no rule stands for.

    Attributes:
        ignored: how many there are, by name.
        unchecked: those of them that forbid something, so that facts may contradict
            them unnoticed.
    """

    code: ClassVar[str] = "EM912"

    def __init__(self, path: str | Path, ignored: Mapping[str, int]) -> None:
        self.ignored = dict(ignored)
        self.unchecked = {
            name: count for name, count in ignored.items() if name in _FORBIDDING
        }
        law = "only axioms that derive facts become rules"
        if self.unchecked:
            law += (
                "; whether facts contradict those that forbid something is not "
                f"checked: {_listed(self.unchecked)}"
            )
        super().__init__(
            f"axioms of `{path}` are ignored: {_listed(ignored)}",
            law=law,
            help="write rules for what they mean, where it matters",
        )


def _listed(axioms: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in axioms.items())


def read_ontology(path: str | Path) -> Ontology:
    """The rules that an ontology in an RDF file stands for.

    Raises:
        EvermatError: the file cannot be read.

    Warns:
        IgnoredAxiomsWarning: there are axioms that no rule stands for.
    """
    columns = map(constants, read_rdf(path).columns)
    graph = _Graph(zip(*columns, strict=True), Path(path).name)
    rules = dict.fromkeys(_rules(graph))
    ignored = dict(sorted(graph.ignored.items()))
    if ignored:
        warnings.warn(IgnoredAxiomsWarning(path, ignored), stacklevel=2)
    return Ontology(tuple(rules), ignored)


class _Graph:
    """The triples of an ontology, by subject and predicate."""

    def __init__(self, triples: Iterator[tuple[Constant, ...]], name: str) -> None:
        self._name = name
        self._limits = input_limits()
        self._work = 0
        self._cyclic: frozenset[Constant] | None = None
        self.ignored: Counter[str] = Counter()
        self.by_predicate: dict[str, list[tuple[Constant, Constant]]] = defaultdict(
            list
        )
        self._objects: dict[tuple[Constant, str], list[Constant]] = defaultdict(list)
        for subject, predicate, found in triples:
            self.by_predicate[predicate.text].append((subject, found))
            self._objects[subject, predicate.text].append(found)

    def pairs(self, predicate: str) -> list[tuple[Constant, Constant]]:
        """Subjects and objects of a predicate."""
        return self.by_predicate.get(predicate, [])

    def one(self, subject: Constant, predicate: str) -> Constant | None:
        """The object of a subject, if there is one."""
        return next(iter(self._objects.get((subject, predicate), ())), None)

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

    def contains_itself(self, found: Constant) -> bool:
        """Whether a class without a name is, somewhere inside, a part of itself."""
        if self._cyclic is None:
            self._cyclic = self._classes_in_cycles()
        return found in self._cyclic

    def _classes_in_cycles(self) -> frozenset[Constant]:
        """The classes without names that are parts of themselves."""
        nodes = {
            subject: at
            for at, subject in enumerate(
                dict.fromkeys(each for each, _ in self._objects if _is_blank(each))
            )
        }
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

    def begin_axiom(self) -> None:
        """Start to count the work on an axiom."""
        self._work = 0

    def work(self, amount: int = 1) -> None:
        """Count work on an axiom: an intersection of unions may take exponential.

        Raises:
            AxiomSizeError: it is too much.
        """
        self._work += amount
        if self._work > _WORK_PER_RULE * self._limits.rules_per_axiom:
            message = f"an axiom of `{self._name}` stands for too many rules"
            raise AxiomSizeError(message, "rules_per_axiom")

    def go_deeper(self, names: _Names) -> None:
        """Count how deep class expressions are within each other.

        Raises:
            NestingError: it is too deep.
        """
        names.depth += 1
        if names.depth > self._limits.nesting:
            message = f"class expressions of `{self._name}` are nested too deeply"
            raise NestingError(message, "nesting")

    def _parts(self, found: Constant) -> list[Constant]:
        parts: list[Constant] = []
        for name in ("intersectionOf", "unionOf"):
            parts += self.listed(self.one(found, OWL + name))
        for name in ("someValuesFrom", "allValuesFrom", "onClass"):
            part = self.one(found, OWL + name)
            parts += [] if part is None else [part]
        return parts

    def ignore(self, name: str) -> None:
        """Count an axiom that is not a rule."""
        self.ignored[name] += 1


@dataclass(slots=True)
class _Names:
    """New variables, and how deep the expression is in which they stand."""

    count: int = field(default=0)
    depth: int = field(default=0)

    def new(self) -> Variable:
        self.count += 1
        return Variable(f"v{self.count}")


_X, _Y, _Z = Variable("x"), Variable("y"), Variable("z")
_TYPE = Term(Constant(Kind.IRI, RDF + "type"))
_SAME = Term(Constant(Kind.IRI, OWL + "sameAs"))


def _is_blank(found: Constant) -> bool:
    return found.kind == Kind.BLANK


def _triple(subject: Node, predicate: Node, found: Node) -> Atom:
    return Atom(TRIPLE, (subject, predicate, found))


def _rule(head: Atom, *body: Atom) -> Rule:
    return Rule((head,), body)


def _rules(graph: _Graph) -> Iterator[Rule]:
    for left, right in graph.pairs(RDFS + "subClassOf"):
        yield from _inclusion(graph, left, right)
    for left, right in graph.pairs(OWL + "equivalentClass"):
        yield from _inclusion(graph, left, right)
        yield from _inclusion(graph, right, left)
    yield from _definitions(graph)
    yield from _property_rules(graph)
    yield from _characteristics(graph)
    yield from _keys(graph)
    for name in _NO_RULES:
        for _ in graph.pairs(OWL + name):
            graph.ignore(f"owl:{name}")
    _count_others(graph)


def _count_others(graph: _Graph) -> None:
    """Count what is no rule in forms of its own."""
    for name in _LIMITS:
        for _, limit in graph.pairs(OWL + name):
            if _number(limit) == 0:
                graph.ignore(f"owl:{name} 0")
    for _, found in graph.pairs(RDF + "type"):
        if found.text == _SWRL_RULE:
            graph.ignore("rule in SWRL")


_NO_RULES = (
    "disjointWith", "propertyDisjointWith", "complementOf", "oneOf",
    "minCardinality", "cardinality", "qualifiedCardinality", "minQualifiedCardinality",
    "differentFrom", "disjointUnionOf", "hasSelf", "imports",
)  # fmt: skip

_NO_RULE_TYPES = frozenset({
    "AsymmetricProperty", "IrreflexiveProperty", "ReflexiveProperty", "AllDifferent",
    "AllDisjointClasses", "AllDisjointProperties", "NegativePropertyAssertion",
    "Nothing",
})  # fmt: skip

_LIMITS = ("maxCardinality", "maxQualifiedCardinality")
_IMPOSSIBLE = frozenset({OWL + "bottomObjectProperty", OWL + "bottomDataProperty"})
_SWRL_RULE = "http://www.w3.org/2003/11/swrl#Imp"

_FORBIDDING = frozenset(
    {f"owl:{name}" for name in _NO_RULE_TYPES - {"ReflexiveProperty"}}
    | {"owl:disjointWith", "owl:propertyDisjointWith", "owl:complementOf"}
    | {"owl:differentFrom", "owl:disjointUnionOf", "impossible property"}
    | {f"owl:{name} 0" for name in _LIMITS}
)
"""The axioms that facts can contradict, by the names under which they are counted."""


# -------------------------------------------------------------------------- properties


def _property_rules(graph: _Graph) -> Iterator[Rule]:
    for left, right in graph.pairs(RDFS + "subPropertyOf"):
        yield from _implied(graph, left, right)
    for left, right in graph.pairs(OWL + "equivalentProperty"):
        yield from _implied(graph, left, right)
        yield from _implied(graph, right, left)
    yield from _inverses(graph)
    for predicate, subject in (("domain", _X), ("range", _Y)):
        for name, found in graph.pairs(RDFS + predicate):
            graph.begin_axiom()
            body = (_link(graph, _X, name, _Y),)
            for head, more in _heads(graph, found, subject, _Names()):
                yield _rule(head, *body, *more)
    for name, links in graph.pairs(OWL + "propertyChainAxiom"):
        yield from _chain(graph, name, links)


def _inverses(graph: _Graph) -> Iterator[Rule]:
    for left, right in graph.pairs(OWL + "inverseOf"):
        if Kind.BLANK in {left.kind, right.kind}:
            continue  # part of an expression, see `_link`
        yield _rule(_triple(_Y, Term(right), _X), _triple(_X, Term(left), _Y))
        yield _rule(_triple(_Y, Term(left), _X), _triple(_X, Term(right), _Y))


def _link(graph: _Graph, subject: Node, name: Constant, other: Node) -> Atom:
    """That two things are in a relation, which may be the inverse of another."""
    inverse = graph.one(name, OWL + "inverseOf") if name.kind == Kind.BLANK else None
    if inverse is None:
        return _triple(subject, Term(name), other)
    return _triple(other, Term(inverse), subject)


def _implied(graph: _Graph, left: Constant, right: Constant) -> Iterator[Rule]:
    if right.text in _IMPOSSIBLE:
        graph.ignore("impossible property")
    elif left != right:
        yield _rule(_link(graph, _X, right, _Y), _link(graph, _X, left, _Y))


def _chain(graph: _Graph, name: Constant, chain: Constant) -> Iterator[Rule]:
    links = graph.listed(chain)
    if not links:
        graph.ignore("owl:propertyChainAxiom")
        return
    nodes = [Variable(f"x{at}") for at in range(len(links) + 1)]
    body = [
        _link(graph, nodes[at], link, nodes[at + 1]) for at, link in enumerate(links)
    ]
    yield _rule(_link(graph, nodes[0], name, nodes[-1]), *body)


def _characteristics(graph: _Graph) -> Iterator[Rule]:
    for subject, found in graph.pairs(RDF + "type"):
        if found.kind == Kind.BLANK:
            graph.ignore("member of a class without a name")
        xy, yz, xz, yx, zy = (
            _link(graph, one, subject, other)
            for one, other in ((_X, _Y), (_Y, _Z), (_X, _Z), (_Y, _X), (_Z, _Y))
        )
        match found.text.removeprefix(OWL):
            case "SymmetricProperty":
                yield _rule(yx, xy)
            case "TransitiveProperty":
                yield _rule(xz, xy, yz)
            case "FunctionalProperty":
                yield _rule(_triple(_Y, _SAME, _Z), xy, xz)
            case "InverseFunctionalProperty":
                yield _rule(_triple(_X, _SAME, _Z), xy, zy)
            case kind if kind in _NO_RULE_TYPES:
                graph.ignore(f"owl:{kind}")


def _keys(graph: _Graph) -> Iterator[Rule]:
    for found, names in graph.pairs(OWL + "hasKey"):
        keys = graph.listed(names)
        if not keys:
            graph.ignore("owl:hasKey")
            continue
        graph.begin_axiom()
        values = [Variable(f"v{at}") for at in range(len(keys))]
        body = [
            _link(graph, subject, key, value)
            for subject in (_X, _Y)
            for key, value in zip(keys, values, strict=True)
        ]
        for left in _bodies(graph, found, _X, _Names(100)):
            for right in _bodies(graph, found, _Y, _Names(200)):
                graph.work(len(left) + len(right))
                yield _rule(_triple(_X, _SAME, _Y), *left, *right, *body)


# ----------------------------------------------------------------------------- classes


def _inclusion(graph: _Graph, left: Constant, right: Constant) -> Iterator[Rule]:
    """The rules that say that members of one class are members of another."""
    if left == right:
        return
    graph.begin_axiom()
    for body in _bodies(graph, left, _X, _Names()):
        if not body:
            graph.ignore("axiom about every thing")
            continue
        for head, more in _heads(graph, right, _X, _Names(100)):
            graph.work(len(body))
            if head not in body:
                yield _rule(head, *body, *more)


def _definitions(graph: _Graph) -> Iterator[Rule]:
    """Classes with names that are intersections or unions themselves."""
    for predicate in ("intersectionOf", "unionOf"):
        for name, _ in graph.pairs(OWL + predicate):
            if name.kind == Kind.BLANK:
                continue
            graph.begin_axiom()
            member = _triple(_X, _TYPE, Term(name))
            for body in _expression_bodies(graph, name, _X, _Names()):
                if body and member not in body:
                    yield _rule(member, *body)
            for head, more in _expression_heads(graph, name, _X, _Names(100)):
                if head != member:
                    yield _rule(head, member, *more)


def _bodies(
    graph: _Graph, found: Constant, subject: Variable, names: _Names
) -> Iterator[Body]:
    """The ways to see that something is a member of a class."""
    graph.work()
    if found.kind == Kind.BLANK and graph.contains_itself(found):
        graph.ignore("class that is part of itself")
    elif found.kind == Kind.BLANK:
        graph.go_deeper(names)
        yield from _expression_bodies(graph, found, subject, names)
        names.depth -= 1
    else:
        is_thing = found.text == OWL + "Thing"
        yield () if is_thing else (_triple(subject, _TYPE, Term(found)),)


def _expression_bodies(
    graph: _Graph, found: Constant, subject: Variable, names: _Names
) -> Iterator[Body]:
    members = graph.one(found, OWL + "intersectionOf")
    if members is not None:
        yield from _conjunctions(graph, graph.listed(members), subject, names)
        return
    members = graph.one(found, OWL + "unionOf")
    if members is not None:
        for member in graph.listed(members):
            yield from _bodies(graph, member, subject, names)
        return
    name = graph.one(found, OWL + "onProperty")
    value = graph.one(found, OWL + "hasValue")
    filler = graph.one(found, OWL + "someValuesFrom")
    if name is not None and value is not None:
        yield (_link(graph, subject, name, Term(value)),)
    elif name is not None and filler is not None:
        other = names.new()
        for body in _bodies(graph, filler, other, names):
            yield (_link(graph, subject, name, other), *body)
    else:
        graph.ignore("class expression on the left")


def _conjunctions(
    graph: _Graph, members: list[Constant], subject: Variable, names: _Names
) -> Iterator[Body]:
    ways = [list(_bodies(graph, member, subject, names)) for member in members]
    for bodies in product(*ways):
        graph.work(sum(map(len, bodies)))
        yield tuple(chain.from_iterable(bodies))


def _heads(
    graph: _Graph, found: Constant, subject: Variable, names: _Names
) -> Iterator[tuple[Atom, Body]]:
    """What a member of a class gains, each with what else must hold."""
    graph.work()
    if found.kind == Kind.BLANK and graph.contains_itself(found):
        graph.ignore("class that is part of itself")
    elif found.kind == Kind.BLANK:
        graph.go_deeper(names)
        yield from _expression_heads(graph, found, subject, names)
        names.depth -= 1
    elif found.text == OWL + "Nothing":
        graph.ignore("owl:Nothing")
    elif _is_datatype(graph, found):
        graph.ignore("datatype")  # literals are subjects of no triple
    elif found.text not in {OWL + "Thing", RDFS + "Resource"}:
        yield _triple(subject, _TYPE, Term(found)), ()


def _is_datatype(graph: _Graph, found: Constant) -> bool:
    declared = graph.one(found, RDF + "type")
    return (
        found.text.startswith(XSD)
        or found.text in {RDFS + "Literal", RDF + "langString"}
        or (declared is not None and declared.text == RDFS + "Datatype")
    )


def _expression_heads(
    graph: _Graph, found: Constant, subject: Variable, names: _Names
) -> Iterator[tuple[Atom, Body]]:
    members = graph.one(found, OWL + "intersectionOf")
    if members is not None:
        for member in graph.listed(members):
            yield from _heads(graph, member, subject, names)
        return
    name = graph.one(found, OWL + "onProperty")
    value = graph.one(found, OWL + "hasValue")
    filler = graph.one(found, OWL + "allValuesFrom")
    if name is not None and value is not None:
        yield _link(graph, subject, name, Term(value)), ()
    elif name is not None and filler is not None:
        other = names.new()
        link = _link(graph, subject, name, other)
        for head, body in _heads(graph, filler, other, names):
            yield head, (link, *body)
    elif name is not None and _is_at_most_one(graph, found):
        yield from _one_value(graph, found, name, subject, names)
    else:
        graph.ignore("class expression on the right")


def _is_at_most_one(graph: _Graph, found: Constant) -> bool:
    most = [graph.one(found, OWL + limit) for limit in _LIMITS]
    return any(each is not None and _number(each) == 1 for each in most)


def _number(value: Constant) -> int | None:
    """The number that a literal stands for: `xsd:nonNegativeInteger`, mostly."""
    text = value.text.rpartition("\0")[2]
    return int(text) if text.isascii() and text.isdecimal() else None


def _one_value(
    graph: _Graph,
    found: Constant,
    name: Constant,
    subject: Variable,
    names: _Names,
) -> Iterator[tuple[Atom, Body]]:
    """At most one value, or at most one of a class: any two are the same."""
    one, other = names.new(), names.new()
    links = (_link(graph, subject, name, one), _link(graph, subject, name, other))
    of_class = graph.one(found, OWL + "onClass")
    if of_class is None:
        yield _triple(one, _SAME, other), links
        return
    for left in _bodies(graph, of_class, one, names):
        for right in _bodies(graph, of_class, other, names):
            graph.work(len(left) + len(right))
            yield _triple(one, _SAME, other), (*links, *left, *right)
