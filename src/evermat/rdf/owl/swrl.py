"""Rules in SWRL that an ontology has, as rules over triples.

| atom                          | in a body               | in a head             |
| ----------------------------- | ----------------------- | --------------------- |
| `swrl:ClassAtom`              | a body of the class     | what its members gain |
| `swrl:IndividualPropertyAtom` | a triple                | a triple              |
| `swrl:DatavaluedPropertyAtom` | a triple                | a triple              |
| `swrl:SameIndividualAtom`     | `owl:sameAs`            | `owl:sameAs`          |
| `swrl:DifferentIndividualsAtom` | `owl:differentFrom`   | `owl:differentFrom`   |
| `swrl:DataRangeAtom`          | a value of the datatype | else a contradiction  |
| `swrl:BuiltinAtom`            | a condition             | –                     |

A rule of which one atom has no counterpart is left out as a whole, and noted with what
was missing: without the atom it would say more than it does.
"""

from __future__ import annotations

import re
from functools import reduce
from itertools import chain, product
from typing import TYPE_CHECKING

from evermat.lang.checks import find_errors
from evermat.lang.syntax import Call, Condition, Program, Term, Variable
from evermat.rdf.namespaces import RDF, SWRL
from evermat.rdf.owl.expressions import bodies, heads, rule
from evermat.rdf.owl.graph import SAME, Names, owl, triple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evermat.lang.syntax import Atom, Expression, Rule
    from evermat.rdf.owl.expressions import Heads
    from evermat.rdf.owl.graph import Body, Node, OntologyGraph
    from evermat.values import Constant

SWRLB = "http://www.w3.org/2003/11/swrlb#"

_COMPARISONS = {
    "equal": "=",
    "notEqual": "!=",
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
}

_TESTS = {
    "contains": "contains",
    "startsWith": "starts_with",
    "endsWith": "ends_with",
    "matches": "regex",
}

_IGNORING_CASE = {"stringEqualIgnoreCase": "=", "containsIgnoreCase": "contains"}

_RESULTS: dict[str, tuple[str, int, int | None]] = {
    "add": ("+", 2, None),
    "subtract": ("-", 2, 2),
    "multiply": ("*", 2, None),
    "divide": ("/", 2, 2),
    "mod": ("%", 2, 2),
    "unaryMinus": ("-", 1, 1),
    "abs": ("abs", 1, 1),
    "stringConcat": ("concat", 1, None),
    "stringLength": ("length", 1, 1),
    "upperCase": ("upper", 1, 1),
    "lowerCase": ("lower", 1, 1),
    "substring": ("substr", 2, 3),
}
"""Built-ins whose first argument is the result; how many others there may be."""


class _UnsupportedError(Exception):
    """A part of a rule that has no counterpart, by name."""


def swrl_rules(graph: OntologyGraph, found: Constant) -> Iterator[Rule]:
    """The rules that a `swrl:Imp` stands for; several if it has unions."""
    known = len(graph.ignored)
    try:
        rules = list(_Reader(graph).rules(found))
    except _UnsupportedError as missing:
        graph.ignore(f"SWRL rule with {missing}")
        return
    if len(graph.ignored) > known:
        # A class expression in it says more than a rule can.
        graph.ignore("SWRL rule with a class expression that is no rule")
        return
    for each in rules:
        if find_errors(Program(rules=(each,))):
            graph.ignore("SWRL rule that is not safe")
            return
    yield from rules


class _Reader:
    """Reads one rule: its variables have names that are valid here."""

    def __init__(self, graph: OntologyGraph) -> None:
        self._graph = graph
        self._variables: dict[Constant, Variable] = {}
        self._names = Names(1_000)

    def rules(self, found: Constant) -> Iterator[Rule]:
        graph = self._graph
        wanted, then = (
            graph.listed(graph.one(found, SWRL + part)) for part in ("body", "head")
        )
        if not (wanted and then):
            message = "no body or no head"
            raise _UnsupportedError(message)
        ways = [list(self._body(atom)) for atom in wanted]
        gained = [head for atom in then for head in self._heads(atom)]
        for several in product(*ways):
            body = tuple(chain.from_iterable(several))
            graph.work(len(body))
            for head, more in gained:
                if head not in body:
                    yield rule(head, *body, *more)

    # -- atoms

    def _kind(self, atom: Constant) -> str:
        for each in self._graph.all(atom, RDF + "type"):
            if each.text.startswith(SWRL):
                return each.text.removeprefix(SWRL)
        message = "an atom without a type"
        raise _UnsupportedError(message)

    def _body(self, atom: Constant) -> Iterator[Body]:
        graph, kind = self._graph, self._kind(atom)
        match kind:
            case "ClassAtom" | "DataRangeAtom":
                name = "classPredicate" if kind == "ClassAtom" else "dataRange"
                found = self._part(atom, name)
                yield from bodies(graph, found, self._node(atom, 1), self._names)
            case "BuiltinAtom":
                yield (self._condition(atom),)
            case _:
                yield (self._link(atom, kind),)

    def _heads(self, atom: Constant) -> Iterator[Heads]:
        graph, kind = self._graph, self._kind(atom)
        match kind:
            case "ClassAtom" | "DataRangeAtom":
                name = "classPredicate" if kind == "ClassAtom" else "dataRange"
                found = self._part(atom, name)
                yield from heads(graph, found, self._node(atom, 1), self._names)
            case "BuiltinAtom":
                message = "a built-in in its head"
                raise _UnsupportedError(message)
            case _:
                link = self._link(atom, kind)
                yield link, ()

    def _link(self, atom: Constant, kind: str) -> Atom:
        one, other = self._node(atom, 1), self._node(atom, 2)
        match kind:
            case "IndividualPropertyAtom" | "DatavaluedPropertyAtom":
                name = self._part(atom, "propertyPredicate")
                return self._graph.link(one, name, other)
            case "SameIndividualAtom":
                return triple(one, SAME, other)
            case "DifferentIndividualsAtom":
                return triple(one, owl("differentFrom"), other)
        message = f"`swrl:{kind}`"
        raise _UnsupportedError(message)

    def _part(self, atom: Constant, name: str) -> Constant:
        found = self._graph.one(atom, SWRL + name)
        if found is None:
            message = f"an atom without `swrl:{name}`"
            raise _UnsupportedError(message)
        return found

    def _node(self, atom: Constant, number: int) -> Node:
        return self._argument(self._part(atom, f"argument{number}"))

    def _argument(self, found: Constant) -> Node:
        if not self._is_variable(found):
            return Term(found)
        known = self._variables.get(found)
        if known is None:
            name = re.sub(r"\W", "_", re.split(r"[#/:]", found.text)[-1])
            # No two variables may have one name, nor one that class expressions use.
            name = f"{name or 'x'}_{len(self._variables)}"
            name = name if name[0].isalpha() else f"x{name}"
            known = self._variables[found] = Variable(name)
        return known

    def _is_variable(self, found: Constant) -> bool:
        types = self._graph.all(found, RDF + "type")
        return any(each.text == SWRL + "Variable" for each in types)

    # -- built-ins

    def _condition(self, atom: Constant) -> Condition:
        builtin = self._part(atom, "builtin").text
        name = builtin.removeprefix(SWRLB)
        listed = self._graph.listed(self._graph.one(atom, SWRL + "arguments"))
        arguments = [self._argument(each) for each in listed]
        known = builtin.startswith(SWRLB) and _call(name, arguments)
        if not known:
            message = f"the built-in `{name}`"
            raise _UnsupportedError(message)
        return Condition(known)


def _call(name: str, arguments: Sequence[Node]) -> Call | None:
    """The built-in as a condition; None if there is none for so many arguments."""
    if len(arguments) == _PAIR:
        lowered = tuple(Call("lower", (each,)) for each in arguments)
        for functions, values in (
            (_COMPARISONS, tuple(arguments)),
            (_TESTS, tuple(arguments)),
            (_IGNORING_CASE, lowered),
        ):
            if name in functions:
                return Call(functions[name], values)
    if name in _RESULTS and arguments:
        function, least, most = _RESULTS[name]
        result, *others = arguments
        if least <= len(others) and (most is None or len(others) <= most):
            return Call("=", (result, _applied(function, others)))
    return None


_PAIR = 2


def _applied(function: str, arguments: Sequence[Expression]) -> Expression:
    """A function of several arguments; sums and products two at a time."""
    if function in {"+", "*"}:
        return reduce(lambda one, other: Call(function, (one, other)), arguments)
    return Call(function, tuple(arguments))
