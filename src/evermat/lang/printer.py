"""From programs to text; what is printed reads back as the same program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evermat.functions import FUNCTIONS
from evermat.lang.lexer import LOCAL_NAME, PREFIX_NAME
from evermat.lang.normalise import is_auxiliary
from evermat.lang.reader import COMPARISON_LEVEL, LEVELS
from evermat.lang.syntax import (
    ANONYMOUS,
    TRIPLE,
    Assignment,
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
)
from evermat.lang.terms import KEYWORDS, RDF_TYPE
from evermat.values import Constant, Kind, iri_text, quote, term_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.lang.syntax import DataSink, DataSource, Declaration

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_LOCAL = re.compile(LOCAL_NAME)
_PREFIX = re.compile(PREFIX_NAME)
_PLAIN_OPERAND = re.compile(r"\?\w+|-?[0-9][0-9.eE+\-]*")
_TRIPLE_ARITY = 3


def rule_text(rule: Rule, prefixes: Mapping[str, str] | None = None) -> str:
    """A rule on one line, IRIs shortened by the prefixes.

    >>> from evermat.lang.parser import parse_rules
    >>> rule_text(*parse_rules("p(?x):-q(?x,a)."))
    'p(?x) :- q(?x, "a") .'
    """
    return Printer(prefixes or {}).rule(rule)


def program_text(program: Program) -> str:
    """A whole program.

    The base comes last: all IRIs are written in full or with a prefix, and none of
    them must be resolved anew.
    """
    printer = Printer(dict(program.prefixes))
    prefixes = [
        f"@prefix {prefix}: {iri_text(iri)} ."
        for prefix, iri in program.prefixes
        if _is_prefix(prefix)
    ]
    base = [] if program.base is None else [f"@base {iri_text(program.base)} ."]
    blocks = [
        prefixes,
        [printer.declaration(declaration) for declaration in program.declarations],
        [printer.file("import", source) for source in program.sources],
        [f"{printer.atom(fact)} ." for fact in program.facts],
        [printer.rule(rule) for rule in program.rules],
        [printer.file("export", sink) for sink in program.sinks],
        base,
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


class Printer:
    """Writes the parts of programs with the prefixes of one of them."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._namespaces = sorted(
            (
                (iri, prefix)
                for prefix, iri in prefixes.items()
                if iri and _is_prefix(prefix)
            ),
            key=lambda pair: -len(pair[0]),
        )
        self._names: dict[str, str | None] = {}

    # -- names and constants

    def shortened(self, iri: str) -> str | None:
        """The IRI as a prefixed name, None if no prefix fits."""
        if iri not in self._names:
            self._names[iri] = self._shorten(iri)
        return self._names[iri]

    def _shorten(self, iri: str) -> str | None:
        for namespace, prefix in self._namespaces:
            if iri.startswith(namespace):
                local = iri[len(namespace) :]
                if _LOCAL.fullmatch(local):
                    return f"{prefix}:{local}"
        return None

    def predicate(self, name: str) -> str:
        """The name of a predicate."""
        if _PLAIN_NAME.fullmatch(name) and not _is_reserved(name):
            return name
        if is_auxiliary(name):
            return name
        return self.shortened(name) or iri_text(name)

    def constant(self, constant: Constant) -> str:
        """A constant."""
        if constant.kind is Kind.IRI:
            return self.shortened(constant.text) or iri_text(constant.text)
        if constant.kind is Kind.TYPED:
            datatype, _, lexical = constant.text.partition("\0")
            written = self.shortened(datatype) or iri_text(datatype)
            return f"{quote(lexical)}^^{written}"
        return term_text(constant.kind, constant.text)

    # -- expressions

    def expression(self, expression: Expression, level: int = COMPARISON_LEVEL) -> str:
        """An expression, in parentheses if it binds less tightly than `level`."""
        match expression:
            case Variable(name=name):
                return name if name == ANONYMOUS else f"?{name}"
            case Term(constant=constant):
                return self.constant(constant)
            case Call(function="-", arguments=(argument,)):
                inner = self.expression(argument)
                return f"-{inner}" if isinstance(argument, Variable) else f"-({inner})"
            case Call(function=sign, arguments=(left, right)) if sign in LEVELS:
                return self._operation(sign, left, right, level)
            case Call(function=name, arguments=arguments):
                return f"{name}({', '.join(map(self.expression, arguments))})"

    def _operation(
        self, sign: str, left: Expression, right: Expression, level: int
    ) -> str:
        own = LEVELS[sign]
        # `a - b - c` is `(a - b) - c`, but comparisons cannot be chained at all.
        left_level = own + 1 if own == COMPARISON_LEVEL else own
        before = self.expression(left, left_level)
        after = self.expression(right, own + 1)
        if sign == "%":
            before, after = _beside_percent(before), _beside_percent(after)
        text = f"{before} {sign} {after}"
        return f"({text})" if own < level else text

    # -- atoms and rules

    def atom(self, atom: Atom) -> str:
        """An atom; triples in square brackets."""
        if atom.predicate == TRIPLE and len(atom.arguments) == _TRIPLE_ARITY:
            subject, relation, value = map(self.expression, atom.arguments)
            if atom.arguments[1] == Term(RDF_TYPE):
                relation = "a"
            return f"[{subject}, {relation}, {value}]"
        name = self.predicate(atom.predicate)
        if not atom.arguments:
            return name
        return f"{name}({', '.join(map(self.expression, atom.arguments))})"

    def element(self, element: BodyElement) -> str:
        """An element of a body."""
        match element:
            case Atom():
                return self.atom(element)
            case Negation(atom=atom):
                return f"not {self.atom(atom)}"
            case Condition(expression=expression):
                return self.expression(expression)
            case Assignment(variable=variable, expression=expression):
                value = self.expression(expression, COMPARISON_LEVEL + 1)
                return f"?{variable.name} = {value}"

    def rule(self, rule: Rule) -> str:
        """A rule with its final dot; without a body, a fact."""
        heads = ", ".join(map(self.atom, rule.heads))
        if not rule.body:
            return f"{heads} ."
        return f"{heads} :- {', '.join(map(self.element, rule.body))} ."

    # -- directives

    def declaration(self, declaration: Declaration) -> str:
        """`@declare age(person: string, years: integer) .`."""
        types = declaration.column_types or ("any",) * declaration.arity
        columns = list(types)
        for index, name in enumerate(declaration.column_names):
            if _PREFIX.fullmatch(name) or _PLAIN_NAME.fullmatch(name):
                columns[index] = f"{name}: {types[index]}"
        listed = f"({', '.join(columns)})" if columns else ""
        return f"@declare {self.predicate(declaration.predicate)}{listed} ."

    def file(self, directive: str, file: DataSource | DataSink) -> str:
        """`@import` or `@export`."""
        options = ", ".join(f"{name} = {quote(value)}" for name, value in file.options)
        braces = f" {{{options}}}" if options else ""
        name = self.predicate(file.predicate)
        return f"@{directive} {name} {quote(file.path)}{braces} ."


def _beside_percent(operand: str) -> str:
    """In parentheses unless plain, for `%` might be taken for a comment otherwise."""
    is_plain = _PLAIN_OPERAND.fullmatch(operand) is not None
    return operand if is_plain else f"({operand})"


def _is_prefix(name: str) -> bool:
    """Whether a prefix can be written; those of other languages may have dots."""
    return not name or _PREFIX.fullmatch(name) is not None


def _is_reserved(name: str) -> bool:
    function = FUNCTIONS.get(name)
    is_condition = function is not None and function.is_condition
    return name in KEYWORDS or name == ANONYMOUS or is_condition
