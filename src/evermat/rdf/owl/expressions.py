"""Class expressions: how to see that something is a member, and what a member gains.

| expression           | on the left (a body)     | on the right (a head)           |
| -------------------- | ------------------------ | ------------------------------- |
| `C`                  | `[?x, a, C]`             | `[?x, a, C]`                    |
| `owl:intersectionOf` | all bodies together      | each head                       |
| `owl:unionOf`        | a rule for each          | –                               |
| `owl:oneOf`          | `?x` is one of them      | one: `[?x, owl:sameAs, a]`      |
| `owl:hasValue`       | `[?x, p, v]`             | `[?x, p, v]`                    |
| `owl:hasSelf`        | `[?x, p, ?x]`            | `[?x, p, ?x]`                   |
| `owl:someValuesFrom` | `[?x, p, ?y]`, `?y` in C | –                               |
| at least one         | the same                 | –                               |
| `owl:allValuesFrom`  | –                        | `[?x, p, ?y]` makes `?y` one    |
| at most one          | –                        | two values are the same         |
| at most none         | –                        | a value contradicts             |
| `owl:complementOf`   | –                        | to be a member contradicts      |
| `owl:Nothing`        | never                    | to be a member contradicts      |
| a datatype           | `?y` is a value of it    | another literal contradicts     |

Properties may be inverses of others.
"""

from __future__ import annotations

from itertools import chain, product
from typing import TYPE_CHECKING

from evermat.lang.syntax import (
    TRIPLE,
    Atom,
    Call,
    Condition,
    Rule,
    Term,
    Variable,
    contradiction,
    substitute,
    substitute_rule,
)
from evermat.rdf.namespaces import OWL, RDFS
from evermat.rdf.owl.bounds import some_value
from evermat.rdf.owl.graph import SAME, TYPE, Names, owl, triple
from evermat.values import Constant, Kind, boolean_constant, is_known, is_literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.lang.syntax import BodyElement, Expression
    from evermat.rdf.owl.graph import Body, Node, OntologyGraph

_FALSE = Term(boolean_constant(value=False))

DESCRIPTIONS = ("intersectionOf", "unionOf", "complementOf", "oneOf", "onProperty")
"""Names of OWL that say what a class consists of."""

_EQUAL = "~equal"
"""The predicate of atoms that say what a variable stands for: `rule` replaces it."""

Heads = tuple[Atom, "Body"]
"""What a member gains, and what else must hold for that."""


# --------------------------------------------------------------------------- rules


def rule(head: Atom, *body: BodyElement) -> Rule:
    """A rule, with terms in place of variables that stand for one."""
    equal = [each for each in body if isinstance(each, Atom) and _says(each)]
    if not equal:
        return Rule((head,), body)
    known: dict[str, Expression] = {}
    rest = [each for each in body if not isinstance(each, Atom) or not _says(each)]
    for each in equal:
        left, right = each.arguments
        left = substitute(left, known)
        if isinstance(left, Variable):
            known[left.name] = right
        elif left != right:
            rest.append(Atom(TRIPLE, (left, SAME, right)))
    return substitute_rule(Rule((head,), tuple(rest)), known)


def _says(atom: Atom) -> bool:
    return atom.predicate == _EQUAL


def different_values(one: Node, other: Node) -> Body:
    """That two literals stand for different values."""
    return (
        Condition(Call("!=", (one, other))),
        Condition(Call("values_differ", (one, other))),
    )


def is_name(node: Node) -> Condition:
    """That something is an IRI or a blank node, and no literal."""
    return Condition(Call("=", (Call("is_literal", (node,)), _FALSE)))


# ---------------------------------------------------------------------------- left


def bodies(
    graph: OntologyGraph, found: Constant, subject: Node, names: Names
) -> Iterator[Body]:
    """The ways to see that something is a member of a class."""
    graph.work()
    if graph.is_datatype(found):
        yield from _values_of(graph, found, subject)
    elif found.kind == Kind.BLANK and graph.contains_itself(found):
        graph.ignore("class that is part of itself")
    elif found.kind == Kind.BLANK:
        graph.go_deeper(names)
        yield from expression_bodies(graph, found, subject, names)
        names.depth -= 1
    elif found.text == OWL + "Thing":
        yield ()
    elif found.text != OWL + "Nothing":
        yield (triple(subject, TYPE, Term(found)),)


def _values_of(graph: OntologyGraph, found: Constant, subject: Node) -> Iterator[Body]:
    """That something is a value of a datatype."""
    if not is_known(found.text):
        graph.ignore("datatype")
        return
    is_outside = Call("literal_outside", (subject, Term(found)))
    yield (
        Condition(Call("is_literal", (subject,))),
        Condition(Call("=", (is_outside, _FALSE))),
    )


def expression_bodies(
    graph: OntologyGraph, found: Constant, subject: Node, names: Names
) -> Iterator[Body]:
    """The same for what a class is said to consist of, whatever its name."""
    members = graph.one(found, OWL + "intersectionOf")
    if members is not None:
        yield from _conjunctions(graph, graph.listed(members), subject, names)
        return
    members = graph.one(found, OWL + "unionOf")
    if members is not None:
        for member in graph.listed(members):
            yield from bodies(graph, member, subject, names)
        return
    members = graph.one(found, OWL + "oneOf")
    if members is not None:
        for member in graph.listed(members):
            yield (Atom(_EQUAL, (subject, Term(member))),)
        return
    if graph.is_upper and graph.one(found, OWL + "complementOf") is not None:
        yield ()  # `axioms` says the rest: what is no member gains more
        return
    name = graph.one(found, OWL + "onProperty")
    if name is None:
        graph.ignore("class expression on the left")
        return
    yield from _restricted_bodies(graph, found, name, subject, names)


def _restricted_bodies(
    graph: OntologyGraph, found: Constant, name: Constant, subject: Node, names: Names
) -> Iterator[Body]:
    value = graph.one(found, OWL + "hasValue")
    filler = graph.one(found, OWL + "someValuesFrom")
    if value is not None:
        yield (graph.link(subject, name, Term(value)),)
    elif _has_self(graph, found):
        yield (graph.link(subject, name, subject),)
    elif filler is not None or _needs_one(graph, found):
        other = names.new()
        link = graph.link(subject, name, other)
        filler = filler or _of_class(graph, found) or owl("Thing").constant
        for body in bodies(graph, filler, other, names):
            yield (link, *body)
    else:
        graph.ignore("class expression on the left")


def _needs_one(graph: OntologyGraph, found: Constant) -> bool:
    """Whether a class has what has at least one value."""
    least = _bound(graph, found, "min")
    return least == 1 or (graph.is_upper and least is not None and least > 1)


def _conjunctions(
    graph: OntologyGraph, members: list[Constant], subject: Node, names: Names
) -> Iterator[Body]:
    ways = [list(bodies(graph, member, subject, names)) for member in members]
    for several in product(*ways):
        graph.work(sum(map(len, several)))
        yield tuple(chain.from_iterable(several))


# --------------------------------------------------------------------------- right


def heads(
    graph: OntologyGraph, found: Constant, subject: Node, names: Names
) -> Iterator[Heads]:
    """What a member of a class gains, each with what else must hold."""
    graph.work()
    if graph.is_datatype(found):
        yield from _only_values_of(graph, found, subject)
    elif found.kind == Kind.BLANK and graph.contains_itself(found):
        graph.ignore("class that is part of itself")
    elif found.kind == Kind.BLANK:
        graph.go_deeper(names)
        yield from expression_heads(graph, found, subject, names)
        names.depth -= 1
    elif found.text == OWL + "Nothing":
        yield contradiction(owl("Nothing"), subject), ()
    elif found.text not in {OWL + "Thing", RDFS + "Resource"}:
        yield triple(subject, TYPE, Term(found)), ()


def _only_values_of(
    graph: OntologyGraph, found: Constant, subject: Node
) -> Iterator[Heads]:
    """That a literal is a value of a datatype: otherwise it contradicts."""
    if not is_known(found.text):
        graph.ignore("datatype")
    elif found.text != RDFS + "Literal":
        outside = Condition(Call("literal_outside", (subject, Term(found))))
        yield contradiction(Term(found), subject), (outside,)


def expression_heads(
    graph: OntologyGraph, found: Constant, subject: Node, names: Names
) -> Iterator[Heads]:
    """The same for what a class is said to consist of, whatever its name."""
    members = graph.one(found, OWL + "intersectionOf")
    if members is None and graph.is_upper:
        members = graph.one(found, OWL + "unionOf")
    if members is not None:
        for member in graph.listed(members):
            yield from heads(graph, member, subject, names)
        return
    other = graph.one(found, OWL + "complementOf")
    if other is not None:
        for body in bodies(graph, other, subject, names):
            yield contradiction(owl("complementOf"), Term(other), subject), body
        return
    members = graph.one(found, OWL + "oneOf")
    name = graph.one(found, OWL + "onProperty")
    if members is not None:
        yield from _equal_to(graph, graph.listed(members), subject)
    elif name is not None:
        yield from _restricted_heads(graph, found, name, subject, names)
    else:
        graph.ignore("class expression on the right")


def _equal_to(
    graph: OntologyGraph, members: list[Constant], subject: Node
) -> Iterator[Heads]:
    """That something is the one member of a class; in the upper bound, all of them."""
    if (len(members) != 1 and not graph.is_upper) or any(map(is_literal, members)):
        graph.ignore("class expression on the right")
        return
    for one in members:
        yield triple(subject, SAME, Term(one)), ()


def _restricted_heads(
    graph: OntologyGraph, found: Constant, name: Constant, subject: Node, names: Names
) -> Iterator[Heads]:
    value = graph.one(found, OWL + "hasValue")
    filler = graph.one(found, OWL + "allValuesFrom")
    if value is not None:
        yield graph.link(subject, name, Term(value)), ()
    elif _has_self(graph, found):
        yield graph.link(subject, name, subject), ()
    elif filler is not None:
        other = names.new()
        link = graph.link(subject, name, other)
        for head, body in heads(graph, filler, other, names):
            yield head, (link, *body)
    elif not graph.is_upper:
        yield from _at_most(graph, found, name, subject, names)
    else:
        some = list(_existing(graph, found, name, subject, names))
        yield from some
        if not some or _bound(graph, found, "") is not None:
            yield from _at_most(graph, found, name, subject, names)


def _existing(
    graph: OntologyGraph, found: Constant, name: Constant, subject: Node, names: Names
) -> Iterator[Heads]:
    """That there is a value: in the upper bound it has a name."""
    filler = graph.one(found, OWL + "someValuesFrom")
    if filler is None:
        if not (_bound(graph, found, "min") or _bound(graph, found, "")):
            return
        filler = _of_class(graph, found) or owl("Thing").constant
    value = some_value(graph, name, filler)
    yield graph.link(subject, name, value), ()
    if not graph.is_datatype(filler):
        yield from heads(graph, filler, value, names)


def _at_most(
    graph: OntologyGraph, found: Constant, name: Constant, subject: Node, names: Names
) -> Iterator[Heads]:
    """No value, or one, that may have to be of a class."""
    most = _bound(graph, found, "max")
    if most is None:
        most = _bound(graph, found, "")
        if most == 1 and not graph.is_upper:  # the other half needs new individuals
            graph.ignore("at least so many values on the right")
    if most == 0:
        other = names.new()
        link = graph.link(subject, name, other)
        of_class = _of_class(graph, found) or owl("Thing").constant
        for body in bodies(graph, of_class, other, names):
            about = (Term(name), subject, other)
            yield contradiction(owl("maxCardinality"), *about), (link, *body)
    elif most == 1 or (graph.is_upper and most is not None):
        yield from _one_value(graph, found, name, subject, names)
    else:
        graph.ignore("class expression on the right")


def _one_value(
    graph: OntologyGraph, found: Constant, name: Constant, subject: Node, names: Names
) -> Iterator[Heads]:
    """At most one value, or at most one of a class: any two are the same."""
    one, other = names.new(), names.new()
    links = (graph.link(subject, name, one), graph.link(subject, name, other))
    of_class = _of_class(graph, found)
    if of_class is None or of_class.text == OWL + "Thing":
        yield from the_same(graph, name, (subject, one, other), links)
        return
    for left in bodies(graph, of_class, one, names):
        for right in bodies(graph, of_class, other, names):
            graph.work(len(left) + len(right))
            both = (*links, *left, *right)
            yield from the_same(graph, name, (subject, one, other), both)


def the_same(
    graph: OntologyGraph, name: Constant, nodes: tuple[Node, Node, Node], body: Body
) -> Iterator[Heads]:
    """That two values of a property are the same.

    Two names are equal then, and two literals that are not contradict each other.

    Args:
        graph: the ontology, which may say whether the values are literals.
        name: the property.
        nodes: what has the values, and the two values.
        body: when they are the same.
    """
    subject, one, other = nodes
    if not graph.is_a(name, "DatatypeProperty"):
        are_names: Body = ()
        if not graph.is_a(name, "ObjectProperty") and name.kind != Kind.BLANK:
            are_names = (is_name(one), is_name(other))
        yield triple(one, SAME, other), (*body, *are_names)
    if not graph.is_a(name, "ObjectProperty") and name.kind != Kind.BLANK:
        head = contradiction(owl("FunctionalProperty"), Term(name), subject)
        yield head, (*body, *different_values(one, other))


# ------------------------------------------------------------------- restrictions


def _has_self(graph: OntologyGraph, found: Constant) -> bool:
    value = graph.one(found, OWL + "hasSelf")
    return value is not None and value.text.rpartition("\0")[2] in {"true", "1"}


def _bound(graph: OntologyGraph, found: Constant, which: str) -> int | None:
    """The number of `owl:maxCardinality`, `owl:minQualifiedCardinality` and so on."""
    for name in ("Cardinality", "QualifiedCardinality"):
        full = which + name
        value = graph.one(found, OWL + full[:1].lower() + full[1:])
        if value is not None:
            text = value.text.rpartition("\0")[2]
            return int(text) if text.isascii() and text.isdecimal() else None
    return None


def _of_class(graph: OntologyGraph, found: Constant) -> Constant | None:
    return graph.one(found, OWL + "onClass") or graph.one(found, OWL + "onDataRange")


def has_description(graph: OntologyGraph, found: Constant) -> bool:
    """Whether a class is said to consist of something, besides having a name."""
    return any(graph.one(found, OWL + name) is not None for name in DESCRIPTIONS)
