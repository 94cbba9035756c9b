"""Axioms as rules over triples with constants, which engines fold.

| axiom                                               | rule                           |
| --------------------------------------------------- | ------------------------------ |
| `rdfs:subClassOf`, `owl:equivalentClass`            | `[?x, a, D] :- [?x, a, C]`     |
| `rdfs:subPropertyOf`, `owl:equivalentProperty`      | `[?x, Q, ?y] :- [?x, P, ?y]`   |
| `rdfs:domain`, `rdfs:range`                         | `[?x, a, C] :- [?x, P, ?y]`    |
| `owl:inverseOf`, symmetric, transitive, reflexive   | as they say                    |
| `owl:propertyChainAxiom`                            | a chain of triples             |
| functional, inverse functional, `owl:hasKey`        | `[?y, owl:sameAs, ?z] :- …`    |
| disjoint classes and properties, `owl:disjointUnionOf`, | `false(…) :- …`            |
| asymmetric, irreflexive, negative assertions        | `false(…) :- …`                |
| `owl:AllDifferent`                                  | `[a, owl:differentFrom, b]`    |
| `owl:differentFrom`                                 | `false(…) :- …`                |

Classes may be expressions (`evermat.rdf.owl.expressions`).
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from evermat.lang.syntax import Call, Condition, Term, Variable, contradiction
from evermat.rdf.namespaces import OWL, RDF, RDFS, SWRL
from evermat.rdf.owl.bounds import complements
from evermat.rdf.owl.expressions import (
    DESCRIPTIONS,
    bodies,
    expression_bodies,
    expression_heads,
    has_description,
    heads,
    is_name,
    rule,
    the_same,
)
from evermat.rdf.owl.graph import SAME, TYPE, Names, owl, triple
from evermat.rdf.owl.swrl import swrl_rules
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evermat.lang.syntax import Rule
    from evermat.rdf.owl.graph import OntologyGraph

_X, _Y, _Z = Variable("x"), Variable("y"), Variable("z")

_IMPOSSIBLE = frozenset({OWL + "bottomObjectProperty", OWL + "bottomDataProperty"})
_UNIVERSAL = frozenset({OWL + "topObjectProperty", OWL + "topDataProperty"})


def axiom_rules(graph: OntologyGraph) -> Iterator[Rule]:
    """The rules of an ontology; what is left out is noted in the graph."""
    yield from _classes(graph)
    yield from _properties(graph)
    yield from ALWAYS
    yield from _by_type(graph)


# ----------------------------------------------------------------------------- classes


def _classes(graph: OntologyGraph) -> Iterator[Rule]:
    for left, right in graph.axioms(RDFS + "subClassOf"):
        yield from _inclusion(graph, left, right)
    for left, right in graph.axioms(OWL + "equivalentClass"):
        yield from _inclusion(graph, left, right)
        yield from _inclusion(graph, right, left)
    for name in DESCRIPTIONS:
        for found, _ in graph.axioms(OWL + name):
            if found.kind != Kind.BLANK:
                yield from _definition(graph, found)
    for left, right in graph.axioms(OWL + "disjointWith"):
        yield from _disjoint(graph, "disjointWith", left, right)
    for found, parts in graph.axioms(OWL + "disjointUnionOf"):
        yield from _disjoint_union(graph, found, graph.listed(parts))
    yield from _keys(graph)


def _inclusion(graph: OntologyGraph, left: Constant, right: Constant) -> Iterator[Rule]:
    """The rules that say that members of one class are members of another."""
    if left == right:
        return
    if graph.is_datatype(left) or graph.is_datatype(right):
        graph.ignore("datatype")
        return
    rights = [right, *complements(graph, left)] if graph.is_upper else [right]
    for body in bodies(graph, left, _X, Names()):
        if not body:
            yield from _things(graph)
            body = (triple(_X, TYPE, owl("Thing")),)  # noqa: PLW2901  of what is said to be one
        for one in rights:
            for head, more in heads(graph, one, _X, Names(100)):
                graph.work(len(body))
                if head not in body:
                    yield rule(head, *body, *more)


def _things(graph: OntologyGraph) -> Iterator[Rule]:
    """That all that is spoken of is a thing, for the upper bound."""
    if not graph.is_upper:
        graph.ignore("axiom about every thing")
        return
    thing = owl("Thing")
    yield rule(triple(_X, TYPE, thing), triple(_X, _Y, _Z))
    is_no_class = Condition(Call("!=", (_Y, TYPE)))
    yield rule(triple(_Z, TYPE, thing), triple(_X, _Y, _Z), is_no_class, is_name(_Z))


def _definition(graph: OntologyGraph, found: Constant) -> Iterator[Rule]:
    """A class with a name that is an expression itself."""
    if graph.is_datatype(found):
        graph.ignore("datatype")
        return
    member = triple(_X, TYPE, Term(found))
    for body in expression_bodies(graph, found, _X, Names()):
        if body and member not in body:
            yield rule(member, *body)
    for head, more in expression_heads(graph, found, _X, Names(100)):
        if head != member:
            yield rule(head, member, *more)


def _disjoint(
    graph: OntologyGraph, axiom: str, left: Constant, right: Constant
) -> Iterator[Rule]:
    """That nothing is a member of two classes."""
    if graph.is_datatype(left) or graph.is_datatype(right):
        graph.ignore("datatype")
        return
    for one in bodies(graph, left, _X, Names()):
        for other in bodies(graph, right, _X, Names(100)):
            graph.work(len(one) + len(other))
            if one or other:
                yield rule(
                    contradiction(owl(axiom), Term(left), Term(right), _X), *one, *other
                )


def _disjoint_union(
    graph: OntologyGraph, found: Constant, parts: list[Constant]
) -> Iterator[Rule]:
    for part in parts:
        yield from _inclusion(graph, part, found)
    for left, right in combinations(parts, 2):
        yield from _disjoint(graph, "disjointUnionOf", left, right)
    if not graph.is_upper:
        graph.ignore("union on the right")
        return
    for part in parts:
        yield from _inclusion(graph, found, part)


def _keys(graph: OntologyGraph) -> Iterator[Rule]:
    for found, names in graph.axioms(OWL + "hasKey"):
        keys = graph.listed(names)
        if not keys:
            graph.ignore("owl:hasKey")
            continue
        values = [Variable(f"v{at}") for at in range(len(keys))]
        body = [
            graph.link(subject, key, value)
            for subject in (_X, _Y)
            for key, value in zip(keys, values, strict=True)
        ]
        for left in bodies(graph, found, _X, Names(100)):
            for right in bodies(graph, found, _Y, Names(200)):
                graph.work(len(left) + len(right))
                yield rule(triple(_X, SAME, _Y), *left, *right, *body)


# -------------------------------------------------------------------------- properties


def _properties(graph: OntologyGraph) -> Iterator[Rule]:
    for left, right in graph.axioms(RDFS + "subPropertyOf"):
        yield from _implied(graph, left, right)
    for left, right in graph.axioms(OWL + "equivalentProperty"):
        yield from _implied(graph, left, right)
        yield from _implied(graph, right, left)
    for left, right in graph.axioms(OWL + "inverseOf"):
        if Kind.BLANK not in {left.kind, right.kind}:  # or part of an expression
            yield rule(triple(_Y, Term(right), _X), triple(_X, Term(left), _Y))
            yield rule(triple(_Y, Term(left), _X), triple(_X, Term(right), _Y))
    yield from _ends(graph)
    for name, chain in graph.axioms(OWL + "propertyChainAxiom"):
        yield from _chain(graph, name, chain)
    for left, right in graph.axioms(OWL + "propertyDisjointWith"):
        yield _disjoint_properties(graph, "propertyDisjointWith", left, right)


def _ends(graph: OntologyGraph) -> Iterator[Rule]:
    """What the things are that a property relates."""
    for predicate, subject in (("domain", _X), ("range", _Y)):
        for name, found in graph.axioms(RDFS + predicate):
            link = graph.link(_X, name, _Y)
            for head, more in heads(graph, found, subject, Names()):
                yield rule(head, link, *more)


def _implied(graph: OntologyGraph, left: Constant, right: Constant) -> Iterator[Rule]:
    link = graph.link(_X, left, _Y)
    if right.text in _IMPOSSIBLE:
        yield rule(contradiction(Term(right), Term(left), _X, _Y), link)
    elif left.text in _UNIVERSAL:
        graph.ignore("axiom about every pair of things")
    elif left != right and right.text not in _UNIVERSAL:
        yield rule(graph.link(_X, right, _Y), link)


def _chain(graph: OntologyGraph, name: Constant, chain: Constant) -> Iterator[Rule]:
    links = graph.listed(chain)
    if not links:
        graph.ignore("owl:propertyChainAxiom")
        return
    nodes = [Variable(f"x{at}") for at in range(len(links) + 1)]
    body = [graph.link(nodes[at], link, nodes[at + 1]) for at, link in enumerate(links)]
    yield rule(graph.link(nodes[0], name, nodes[-1]), *body)


def _disjoint_properties(
    graph: OntologyGraph, axiom: str, left: Constant, right: Constant
) -> Rule:
    """That no two things are in two relations."""
    about = (owl(axiom), Term(left), Term(right), _X, _Y)
    links = graph.link(_X, left, _Y), graph.link(_X, right, _Y)
    return rule(contradiction(*about), *links)


# ------------------------------------------------------------------------- individuals


ALWAYS = (
    rule(contradiction(owl("Nothing"), _X), triple(_X, TYPE, owl("Nothing"))),
    rule(contradiction(owl("differentFrom"), _X), triple(_X, owl("differentFrom"), _X)),
)
"""What holds whatever an ontology says. Two names that are equal are one."""


def _all_different(graph: OntologyGraph, found: Constant) -> Iterator[Rule]:
    members = [
        each
        for name in ("members", "distinctMembers")
        for each in graph.listed(graph.one(found, OWL + name))
    ]
    for left, right in combinations(members, 2):
        graph.work()
        yield rule(triple(Term(left), owl("differentFrom"), Term(right)))


def _negative_assertion(graph: OntologyGraph, found: Constant) -> Iterator[Rule]:
    subject = graph.one(found, OWL + "sourceIndividual")
    name = graph.one(found, OWL + "assertionProperty")
    value = graph.one(found, OWL + "targetIndividual")
    value = value or graph.one(found, OWL + "targetValue")
    if subject is None or name is None or value is None:
        graph.ignore("owl:NegativePropertyAssertion")
        return
    link = graph.link(Term(subject), name, Term(value))
    about = Term(subject), Term(name), Term(value)
    yield rule(contradiction(owl("NegativePropertyAssertion"), *about), link)


# ------------------------------------------------------------ what has a type of OWL


def _by_type(graph: OntologyGraph) -> Iterator[Rule]:
    for subject, found in graph.axioms(RDF + "type"):
        compile_axiom = _BY_TYPE.get(found.text)
        if compile_axiom is not None:
            yield from compile_axiom(graph, subject)
        elif found.kind == Kind.BLANK and has_description(graph, found):
            member = triple(_X, TYPE, Term(found))
            for head, more in heads(graph, found, _X, Names()):
                yield rule(head, member, *more)


def _symmetric(graph: OntologyGraph, name: Constant) -> Iterator[Rule]:
    yield rule(graph.link(_Y, name, _X), graph.link(_X, name, _Y))


def _transitive(graph: OntologyGraph, name: Constant) -> Iterator[Rule]:
    links = graph.link(_X, name, _Y), graph.link(_Y, name, _Z)
    yield rule(graph.link(_X, name, _Z), *links)


def _functional(graph: OntologyGraph, name: Constant) -> Iterator[Rule]:
    links = graph.link(_X, name, _Y), graph.link(_X, name, _Z)
    for head, body in the_same(graph, name, (_X, _Y, _Z), links):
        yield rule(head, *body)


def _inverse_functional(graph: OntologyGraph, name: Constant) -> Iterator[Rule]:
    links = graph.link(_X, name, _Y), graph.link(_Z, name, _Y)
    yield rule(triple(_X, SAME, _Z), *links)


def _asymmetric(graph: OntologyGraph, name: Constant) -> Iterator[Rule]:
    about = contradiction(owl("AsymmetricProperty"), Term(name), _X, _Y)
    yield rule(about, graph.link(_X, name, _Y), graph.link(_Y, name, _X))


def _irreflexive(graph: OntologyGraph, name: Constant) -> Iterator[Rule]:
    about = contradiction(owl("IrreflexiveProperty"), Term(name), _X)
    yield rule(about, graph.link(_X, name, _X))


def _reflexive(graph: OntologyGraph, name: Constant) -> Iterator[Rule]:
    """Of what is known to be an individual: by its type, or by the property."""
    loop = graph.link(_X, name, _X)
    for body in (
        triple(_X, TYPE, owl("Thing")),
        triple(_X, TYPE, owl("NamedIndividual")),
        graph.link(_X, name, _Y),
        graph.link(_Y, name, _X),
    ):
        yield rule(loop, body)


def _all_disjoint(graph: OntologyGraph, found: Constant) -> Iterator[Rule]:
    members = graph.listed(graph.one(found, OWL + "members"))
    for left, right in combinations(members, 2):
        yield from _disjoint(graph, "AllDisjointClasses", left, right)


def _all_disjoint_properties(graph: OntologyGraph, found: Constant) -> Iterator[Rule]:
    members = graph.listed(graph.one(found, OWL + "members"))
    for left, right in combinations(members, 2):
        graph.work()
        yield _disjoint_properties(graph, "AllDisjointProperties", left, right)


_BY_TYPE: dict[str, Callable[[OntologyGraph, Constant], Iterator[Rule]]] = {
    OWL + "SymmetricProperty": _symmetric,
    OWL + "TransitiveProperty": _transitive,
    OWL + "FunctionalProperty": _functional,
    OWL + "InverseFunctionalProperty": _inverse_functional,
    OWL + "AsymmetricProperty": _asymmetric,
    OWL + "IrreflexiveProperty": _irreflexive,
    OWL + "ReflexiveProperty": _reflexive,
    OWL + "AllDifferent": _all_different,
    OWL + "AllDisjointClasses": _all_disjoint,
    OWL + "AllDisjointProperties": _all_disjoint_properties,
    OWL + "NegativePropertyAssertion": _negative_assertion,
    SWRL + "Imp": swrl_rules,
}
"""Types that are axioms: what properties can be, and axioms that are nodes."""
