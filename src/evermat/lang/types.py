"""Type checks: types by declarations and by functions must be compatible."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from evermat.errors import (
    ConstantConditionWarning,
    ConstantExpressionError,
    Label,
    ProgramError,
    ProgramWarning,
    Span,
    TypeMismatchError,
)
from evermat.functions import (
    ANY,
    ARITHMETIC,
    FUNCTIONS,
    NUMBER,
    TEXT,
    FunctionError,
    Type,
    regular_expression,
)
from evermat.lang.syntax import (
    ANONYMOUS,
    Aggregation,
    Assignment,
    Atom,
    Call,
    Condition,
    Expression,
    Negation,
    Rule,
    Term,
    Variable,
    expression_variables,
    fold,
)
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evermat.lang.syntax import BodyElement, Declaration


# ---------------------------------------------------------------- declared column types


COLUMN_TYPES: Mapping[str, Type] = MappingProxyType(
    {
        "any": ANY,
        "string": frozenset({Kind.STRING}),
        "integer": frozenset({Kind.INTEGER}),
        "decimal": frozenset({Kind.DECIMAL}),
        "double": frozenset({Kind.DOUBLE}),
        "number": NUMBER,
        "boolean": frozenset({Kind.BOOLEAN}),
        "iri": frozenset({Kind.IRI}),
        "blank": frozenset({Kind.BLANK}),
        "resource": frozenset({Kind.IRI, Kind.BLANK}),
        "literal": ANY - {Kind.IRI, Kind.BLANK},
    }
)
"""The kinds of constants that each type allows."""

TYPE_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "int": "integer",
        "str": "string",
        "symbol": "string",
        "float": "double",
        "bool": "boolean",
    }
)
"""Alternative names of types."""


def type_name(kinds: Type) -> str:
    """Return a name for a set of kinds: that of a declared type, or of its kinds.

    >>> type_name(frozenset({Kind.INTEGER}))
    'integer'
    """
    for name, allowed in (*COLUMN_TYPES.items(), ("text", TEXT)):
        if kinds == allowed:
            return name
    names = sorted(_KIND_NAMES[kind] for kind in kinds)
    return " or ".join(names)


_KIND_NAMES = {
    Kind.STRING: "string",
    Kind.IRI: "iri",
    Kind.BLANK: "blank",
    Kind.INTEGER: "integer",
    Kind.DECIMAL: "decimal",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "boolean",
    Kind.TYPED: "typed literal",
    Kind.LANGUAGE: "language string",
}


_RANK = {Kind.INTEGER: 0, Kind.DECIMAL: 1, Kind.DOUBLE: 2}
_ORDER_COMPARISONS = frozenset({"<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class _Use:
    """A place where a variable must have a type, and the reason."""

    type: Type
    span: Span | None
    reason: str


def call_type(name: str, types: list[Type]) -> Type:
    """Return the type of a call of a function with arguments of these types."""
    if name in {"min", "max"}:
        return frozenset().union(*types)
    if name in ARITHMETIC or name == "abs":
        ranks = [[_RANK[kind] for kind in each & NUMBER] for each in types]
        if not all(ranks):
            return NUMBER
        least = max(min(each) for each in ranks)
        return frozenset(
            kind
            for kind, rank in _RANK.items()
            if rank >= least and any(rank in each for each in ranks)
        )
    function = FUNCTIONS.get(name)
    return ANY if function is None else function.result_type


class TypeCheck:
    """Checks the rules and facts of a program against its declarations."""

    def __init__(self, declarations: Mapping[str, Declaration]) -> None:
        self._declarations = declarations
        self._signatures = {
            name: _signature(declaration) for name, declaration in declarations.items()
        }
        self._uses: dict[str, list[_Use]] = {}
        self._problems: list[ProgramError] = []
        self._warnings: list[ProgramWarning] = []

    def rule(self, rule: Rule) -> tuple[list[ProgramError], list[ProgramWarning]]:
        """Return the type errors of a rule, and the conditions that cannot vary."""
        self._uses, self._problems, self._warnings = {}, [], []
        for head in rule.heads:
            self._atom(head)
        for element in rule.body:
            self._element(element)
        for name, uses in self._uses.items():
            self._problems += _clash(name, uses)
        for element in rule.body:
            if isinstance(element, Condition) and not self._problems:
                self._condition(element)
        return self._problems, self._warnings

    def fact(self, fact: Atom) -> list[ProgramError]:
        """Return the type errors of a fact."""
        if fact.predicate not in self._signatures:
            return []
        self._uses, self._problems, self._warnings = {}, [], []
        self._atom(fact)
        return self._problems

    # -- types of expressions

    def _type(self, expression: Expression) -> Type:
        match expression:
            case Term(constant=constant):
                return frozenset({constant.kind})
            case Variable(name=name):
                known = ANY
                for use in self._uses.get(name, ()):
                    known &= use.type
                return known
            case Call(function=name, arguments=arguments):
                return call_type(name, [self._type(each) for each in arguments])

    # -- collecting types

    def _element(self, element: BodyElement) -> None:
        match element:
            case Atom():
                self._atom(element)
            case Negation(atom=atom):
                self._atom(atom)
            case Condition(expression=expression):
                self._call(expression)
            case Assignment(variable=variable, expression=expression):
                self._expression(expression)
                self._equate(variable, expression)
            case Aggregation(function=function, values=values, body=body):
                self._aggregate(function, values, body)

    def _aggregate(
        self,
        function: str,
        values: tuple[Expression, ...],
        body: tuple[BodyElement, ...],
    ) -> None:
        for value in values:
            self._expression(value)
        for inner in body:
            self._element(inner)
        if function in {"sum", "avg"}:
            self._require(values[0], NUMBER, f"value of `{function}{{…}}`")

    def _atom(self, atom: Atom) -> None:
        signature = self._signatures.get(atom.predicate)
        for position, argument in enumerate(atom.arguments):
            if isinstance(argument, Call):
                self._call(argument)
            if signature is not None and position < len(signature):
                declaration = self._declarations[atom.predicate]
                reason = f"declared `{_declared(declaration)}`"
                self._require(argument, signature[position], reason)

    def _expression(self, expression: Expression) -> None:
        if isinstance(expression, Call):
            self._call(expression)

    def _call(self, call: Call) -> None:
        for argument in call.arguments:
            self._expression(argument)
        function = FUNCTIONS.get(call.function)
        if function is None or not function.takes(len(call.arguments)):
            return
        for position, argument in enumerate(call.arguments):
            wanted = function.argument_type(position)
            self._require(argument, wanted, f"argument of `{call.function}`")
        if call.function == "=":
            left, right = call.arguments
            self._equate(left, right)
        elif call.function == "regex":
            self._pattern(call)
        if not any(True for _ in expression_variables(call)):
            self._evaluate(call)

    def _evaluate(self, call: Call) -> None:
        try:
            fold(call)
        except FunctionError as problem:
            self._no_value(call, problem)

    def _pattern(self, call: Call) -> None:
        """Check a constant regular expression early; nearly all are constant."""
        pattern, *flags = call.arguments[1:]
        constants = [
            each.constant.text for each in (pattern, *flags) if isinstance(each, Term)
        ]
        if len(constants) == len(call.arguments) - 1:
            try:
                regular_expression(*constants)
            except FunctionError as problem:
                self._no_value(pattern, problem)

    def _no_value(self, expression: Expression, problem: FunctionError) -> None:
        # A wrong type has been reported before, by a better message.
        if not self._problems:
            labels = _label(expression.span)
            error = ConstantExpressionError(
                problem.message, labels=labels, help=problem.help
            )
            self._problems.append(error)

    def _equate(self, left: Expression, right: Expression) -> None:
        for target, value in ((left, right), (right, left)):
            if isinstance(target, Variable) and not isinstance(value, Variable):
                type_ = self._type(value)
                if type_ != ANY:
                    use = _Use(type_, value.span, "by this equation")
                    self._note(target, use)

    def _require(self, argument: Expression, wanted: Type, reason: str) -> None:
        if wanted == ANY:
            return
        if isinstance(argument, Variable):
            self._note(argument, _Use(wanted, argument.span, reason))
            return
        found = self._type(argument)
        if found and not found & wanted:
            what = "constant" if isinstance(argument, Term) else "expression"
            self._problems.append(
                TypeMismatchError(
                    f"the {what} is of type {type_name(found)} where "
                    f"{type_name(wanted)} is needed",
                    labels=_label(argument.span, reason),
                    help=_conversion(found, wanted),
                )
            )

    def _note(self, variable: Variable, use: _Use) -> None:
        if variable.name != ANONYMOUS:
            self._uses.setdefault(variable.name, []).append(use)

    # -- conditions with a constant result

    def _condition(self, condition: Condition) -> None:
        call = condition.expression
        if not any(True for _ in expression_variables(call)):
            value = fold(call)
            if isinstance(value, Term):
                word = "always" if value.constant.text == "true" else "never"
                self._warn(condition, f"the condition is {word} true")
        elif call.function in _ORDER_COMPARISONS:
            left, right = (self._type(argument) for argument in call.arguments)
            if left and right and not _comparable(left, right):
                self._warn(
                    condition,
                    "the condition is never true: "
                    f"it compares {type_name(left)} with {type_name(right)}",
                )

    def _warn(self, condition: Condition, message: str) -> None:
        warning = ConstantConditionWarning(
            message, labels=_label(condition.span), help="leave it out, or correct it"
        )
        self._warnings.append(warning)


_BY_VALUE = NUMBER | {Kind.TYPED}
"""The kinds that are compared by value, including literals of type `xsd:float`."""


def _comparable(left: Type, right: Type) -> bool:
    both_numbers = left & _BY_VALUE and right & _BY_VALUE
    return bool(left & right) or bool(both_numbers)


def _signature(declaration: Declaration) -> tuple[Type, ...]:
    return tuple(COLUMN_TYPES.get(name, ANY) for name in declaration.column_types)


def _declared(declaration: Declaration) -> str:
    return f"{declaration.predicate}({', '.join(declaration.column_types)})"


def _clash(name: str, uses: list[_Use]) -> Iterator[TypeMismatchError]:
    first = uses[0]
    common = first.type
    for use in uses[1:]:
        if common & use.type:
            common &= use.type
            continue
        other = next((each for each in uses if not each.type & use.type), first)
        yield TypeMismatchError(
            f"variable `?{name}` is used both as {type_name(other.type)} "
            f"and as {type_name(use.type)}",
            labels=_use_label(use) + _use_label(other),
            help="use two variables, or change one of the two places",
        )
        return


def _use_label(use: _Use) -> tuple[Label, ...]:
    return _label(use.span, f"{type_name(use.type)}: {use.reason}")


def _label(span: Span | None, text: str = "") -> tuple[Label, ...]:
    return () if span is None else (Label(span, text),)


def _conversion(found: Type, wanted: Type) -> str | None:
    if wanted == NUMBER and Kind.STRING in found:
        return "turn a string into a number with `int(...)` or `double(...)`"
    if Kind.STRING in wanted:
        return "turn any constant into a string with `str(...)`"
    return None
