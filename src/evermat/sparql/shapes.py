"""SHACL: shapes are checked by pySHACL on what holds; its rules become ours.

| rule of SHACL                                   | becomes                            |
| ----------------------------------------------- | ---------------------------------- |
| `sh:TripleRule` of constants, `sh:this`, paths  | a rule with the target as its body |
| `sh:SPARQLRule` of triple patterns              | a rule for each triple it makes    |

Targets are classes, nodes, and subjects or objects of a property. Rules with conditions
that are no classes, with filters, or with other parts of SPARQL are listed as ignored.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rdflib import RDF, RDFS, SH, BNode, Graph, Literal, URIRef, Variable
from rdflib.paths import Path as PropertyPath
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery

from evermat.errors import EvermatError
from evermat.lang.syntax import TRIPLE, Atom, Program, Rule, Term
from evermat.lang.syntax import Variable as RuleVariable
from evermat.sparql.solutions import constant_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rdflib.term import Node

    from evermat.sparql.solutions import Part

_THIS = RuleVariable("this")
_TYPE = Term(constant_of(RDF.type))

Operand = RuleVariable | Term


class ShapesError(EvermatError, ValueError):
    """Shapes that cannot be read, or not be checked."""

    code: ClassVar[str] = "EM751"


class IgnoredShaclRulesWarning(EvermatError, UserWarning):  # noqa: N818  a warning
    """Rules of SHACL that are outside of our language."""

    code: ClassVar[str] = "EM917"


# -------------------------------------------------------------------------- validation


@dataclass(frozen=True, slots=True)
class Violation:
    """A result of a validation.

    Attributes:
        focus: the node that does not conform, as a term of RDF in text.
        path: the property that it is about, if it is about one.
        value: the value that is wrong, if there is one.
        severity: `Violation`, `Warning` or `Info`.
        message: what is wrong.
        shape: the shape, or the part of a shape, that says so.
    """

    focus: str
    path: str | None
    value: str | None
    severity: str
    message: str
    shape: str

    def __str__(self) -> str:
        path = "" if self.path is None else f" {self.path}"
        value = "" if self.value is None else f" {self.value}"
        return f"{self.severity}: {self.focus}{path}{value}: {self.message}"


@dataclass(frozen=True, slots=True)
class Validation:
    """What a validation found; true if everything conforms.

    Attributes:
        conforms: whether all shapes are satisfied.
        violations: what does not conform.
        report: the report as SHACL describes it, a graph of rdflib.
    """

    conforms: bool
    violations: tuple[Violation, ...]
    report: Graph

    def __bool__(self) -> bool:
        return self.conforms


def validate(data: Graph, shapes: Graph | str | Path) -> Validation:
    """Check shapes on a graph.

    Raises:
        ShapesError: the shapes cannot be read, or pySHACL cannot check them.
    """
    from pyshacl import validate as check  # noqa: PLC0415  slow to import
    from pyshacl.errors import ReportableRuntimeError, ShapeLoadError  # noqa: PLC0415

    graph = read_shapes(shapes)
    try:
        conforms, report, _ = check(data, shacl_graph=graph, inference="none")
    except (ReportableRuntimeError, ShapeLoadError) as error:
        raise ShapesError(f"the shapes cannot be checked: {error}") from error
    if not isinstance(report, Graph):
        raise ShapesError(f"the shapes cannot be checked: {report}")
    violations = sorted(_violations(report, data), key=str)
    return Validation(conforms, tuple(violations), report)


def read_shapes(shapes: Graph | str | Path) -> Graph:
    """The graph of shapes: a graph, or that of a file."""
    if isinstance(shapes, Graph):
        return shapes
    try:
        return Graph().parse(shapes)
    except Exception as error:
        raise ShapesError(
            f"`{shapes}` cannot be read as a graph of shapes: {error}",
            help="give a Turtle file, or a graph of rdflib",
        ) from error


def _violations(report: Graph, data: Graph) -> Iterator[Violation]:
    for result in report.subjects(RDF.type, SH.ValidationResult):

        def text(name: URIRef, result: Node = result) -> str | None:
            value = report.value(result, name)
            return None if value is None else value.n3(data.namespace_manager)

        messages = sorted(map(str, report.objects(result, SH.resultMessage)))
        severity = str(report.value(result, SH.resultSeverity)).rpartition("#")[2]
        yield Violation(
            focus=text(SH.focusNode) or "",
            path=text(SH.resultPath),
            value=text(SH.value),
            severity=severity,
            message="; ".join(messages),
            shape=text(SH.sourceShape) or "",
        )


# ------------------------------------------------------------------------------- rules


def read_shacl_rules(shapes: Graph | str | Path) -> Program:
    """The rules in a graph of shapes.

    Raises:
        ShapesError: the shapes cannot be read.

    Warns:
        IgnoredShaclRulesWarning: some rules are outside of our language.
    """
    graph = read_shapes(shapes)
    rules: list[Rule] = []
    ignored: list[str] = []
    for shape, node in sorted(graph.subject_objects(SH.rule)):
        if (node, SH.deactivated, Literal(True)) in graph:  # noqa: FBT003  of RDF
            continue
        try:
            made = [*_rules_of(graph, shape, node)]
        except _OutsideError as outside:
            ignored.append(f"{_named(graph, shape)}: {outside}")
        else:
            rules += made
    if ignored:
        warning = IgnoredShaclRulesWarning(
            f"rules of SHACL are ignored: {'; '.join(ignored)}",
            reason="only rules of triple patterns have a counterpart",
            help="write them as rules",
        )
        warnings.warn(warning, stacklevel=2)
    prefixes = tuple((name, str(iri)) for name, iri in graph.namespaces())
    return Program(rules=tuple(dict.fromkeys(rules)), prefixes=prefixes)


class _OutsideError(Exception):
    """A rule that has no counterpart; the message says why."""


def _named(graph: Graph, node: Node) -> str:
    return node.n3(graph.namespace_manager)


def _rules_of(graph: Graph, shape: Node, node: Node) -> Iterator[Rule]:
    conditions = tuple(_conditions(graph, node))
    if (node, RDF.type, SH.SPARQLRule) in graph or graph.value(node, SH.construct):
        heads, body = _constructed(graph, node)
    else:
        heads, body = _triple(graph, node)
    targets = [*_targets(graph, shape)]
    if not targets:
        message = "its shape has no target that is known"
        raise _OutsideError(message)
    for target in targets:
        for head in heads:
            yield Rule((head,), (*target, *conditions, *body))


def _targets(graph: Graph, shape: Node) -> Iterator[tuple[Atom, ...]]:
    classes = [*graph.objects(shape, SH.targetClass)]
    if (shape, RDF.type, RDFS.Class) in graph:
        classes.append(shape)
    for found in classes:
        yield (_atom(_THIS, _TYPE, _term(found)),)
    for name in graph.objects(shape, SH.targetSubjectsOf):
        yield (_atom(_THIS, _term(name), RuleVariable("target")),)
    for name in graph.objects(shape, SH.targetObjectsOf):
        yield (_atom(RuleVariable("target"), _term(name), _THIS),)
    if (shape, SH.targetNode, None) in graph:
        message = "a single node is its target"
        raise _OutsideError(message)


def _conditions(graph: Graph, node: Node) -> Iterator[Atom]:
    """The conditions of a rule, as far as they are classes."""
    for condition in graph.objects(node, SH.condition):
        said = {
            name
            for name in graph.predicates(condition)
            if name not in {RDF.type, RDFS.label, SH.name}
        }
        found = graph.value(condition, SH["class"])
        if said != {SH["class"]} or found is None:
            message = "it has a condition that is more than a class"
            raise _OutsideError(message)
        yield _atom(_THIS, _TYPE, _term(found))


def _triple(graph: Graph, node: Node) -> tuple[list[Atom], tuple[Atom, ...]]:
    parts: list[Operand] = []
    body: list[Atom] = []
    for at, name in enumerate((SH.subject, SH.predicate, SH.object)):
        value = graph.value(node, name)
        if value is None:
            message = f"it says nothing of `{_named(graph, name)}`"
            raise _OutsideError(message)
        parts.append(_operand(graph, value, RuleVariable(f"v{at}"), body))
    return [_atom(*parts)], tuple(body)


def _operand(
    graph: Graph, value: Node, fresh: RuleVariable, body: list[Atom]
) -> Operand:
    """A constant, `sh:this`, or the values of a property of it."""
    if value == SH.this:
        return _THIS
    if not isinstance(value, BNode):
        return _term(value)
    path = graph.value(value, SH.path)
    if not isinstance(path, URIRef) or len([*graph.predicates(value)]) != 1:
        message = "it has an expression that is no property"
        raise _OutsideError(message)
    body.append(_atom(_THIS, _term(path), fresh))
    return fresh


def _constructed(graph: Graph, node: Node) -> tuple[list[Atom], tuple[Atom, ...]]:
    text = str(graph.value(node, SH.construct)).replace("$this", "?this")
    known = {name: URIRef(str(iri)) for name, iri in _prefixes(graph, node).items()}
    try:
        algebra = translateQuery(parseQuery(text), initNs=known).algebra
    except Exception as error:
        message = f"its query cannot be read: {error}"
        raise _OutsideError(message) from error
    pattern = algebra.p.p if algebra.p.name == "Project" else algebra.p
    if algebra.name != "ConstructQuery" or pattern.name != "BGP":
        message = "its query has more than triple patterns"
        raise _OutsideError(message)
    heads = _atoms(algebra.template or pattern.triples)
    body = _atoms(pattern.triples)
    if any(isinstance(each, BNode) for row in algebra.template or () for each in row):
        message = "its query makes new blank nodes"
        raise _OutsideError(message)
    return heads, tuple(body)


def _prefixes(graph: Graph, node: Node) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for holder in graph.objects(node, SH.prefixes):
        for declared in graph.objects(holder, SH.declare):
            prefix = graph.value(declared, SH.prefix)
            found[str(prefix)] = graph.value(declared, SH.namespace)
    return found


def _atoms(triples: Part) -> list[Atom]:
    if any(isinstance(row[1], PropertyPath) for row in triples):
        message = "its query has property paths"
        raise _OutsideError(message)
    return [_atom(*map(_argument, row)) for row in triples]


def _argument(term: Part) -> Operand:
    if isinstance(term, Variable | BNode):
        return RuleVariable(str(term))
    return _term(term)


def _atom(*arguments: Operand) -> Atom:
    return Atom(TRIPLE, arguments)


def _term(term: Part) -> Term:
    return Term(constant_of(term))
