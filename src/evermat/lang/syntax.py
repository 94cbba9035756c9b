"""Programs as plain, frozen objects.

Two objects are equal if they have the same text, at any position: spans are not
compared. A program can be parsed (`evermat.lang.parser`) or constructed:

>>> x, y, z = variables("x y z")
>>> edge, reach = predicate("edge"), predicate("reach")
>>> print(Rule(heads=(reach(x, z),), body=(reach(x, y), edge(y, z))))
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evermat.functions import FUNCTIONS, FunctionError
from evermat.values import Constant, constant

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from evermat.errors import Span

AUXILIARY_MARK = "~"
"""The first character of auxiliary predicates; users cannot write it."""


def is_auxiliary(predicate: str) -> bool:
    """Return whether a predicate was made by `normalise` and should be hidden."""
    return predicate.startswith(AUXILIARY_MARK)


TRIPLE = "triple"
"""The predicate of triple atoms: `[?s, :p, ?o]` is short for `triple(?s, :p, ?o)`."""

TRIPLE_ARITY = 3

QUAD = "quad"
"""The predicate of triples in named graphs: `[?s, :p, ?o, ?g]` is short for
`quad(?s, :p, ?o, ?g)`."""

SAME_AS = "same_as"
"""The predicate of equality: `?x ≈ ?y` is short for `same_as(?x, ?y)`."""

FALSE = "false"
"""The word at the head of a rule whose body must never hold."""

CONTRADICTION = re.compile(rf"~{FALSE}[0-9]+")
"""The names of predicates whose facts are contradictions."""
AUXILIARY_MARK = "~"
"""The first character of auxiliary predicates; users cannot write it."""

ANONYMOUS = "_"
"""The name of the anonymous variable; every occurrence is a distinct variable."""


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, `?name`; the name is without the question mark."""

    name: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Term:
    """A constant, with its position in a text."""

    constant: Constant
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator applied to expressions: `?x + 1`, `concat(?a, "b")`.

    Operators are functions named by their symbol: `+ - * / %` and the comparisons
    `= != < <= > >=`. Unary minus is `-` with one argument.
    """

    function: str
    arguments: tuple[Expression, ...]
    span: Span | None = _span()


Expression = Variable | Term | Call


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to expressions; in normal rules, to variables and terms."""

    predicate: str
    arguments: tuple[Expression, ...]
    span: Span | None = _span()
    predicate_span: Span | None = _span()

    @property
    def arity(self) -> int:
        """The number of arguments."""
        return len(self.arguments)


@dataclass(frozen=True, slots=True)
class Negation:
    """`not atom`."""

    atom: Atom
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression that must be true: a comparison, or a call such as `contains`.

    `?z = expression` is parsed as a condition; if nothing else binds `?z`, it is an
    `Assignment` in normal rules.
    """

    expression: Call
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Assignment:
    """`?z = expression`, binding `?z`. Only in normal rules."""

    variable: Variable
    expression: Expression
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Aggregation:
    """`?t = sum{ ?q, ?w : needs(?x, ?w, ?q) }`, a value computed from tuples of a body.

    The tuples are distinct, and their first values are aggregated. Variables that also
    occur outside define the groups.

    Attributes:
        target: the variable that is bound to the value.
        function: one of `AGGREGATE_FUNCTIONS`.
        values: the tuple, before the colon.
        body: the elements after the colon.
    """

    target: Variable
    function: str
    values: tuple[Expression, ...]
    body: tuple[BodyElement, ...]
    span: Span | None = _span()

    def atoms(self) -> Iterator[Atom]:
        """Yield the atoms of the body, including negated and aggregated ones."""
        return body_atoms(self.body)


AGGREGATE_FUNCTIONS = ("count", "sum", "min", "max", "avg", "list", "any")
"""The functions of aggregates."""

BodyElement = Atom | Negation | Condition | Assignment | Aggregation


class _KeyedOnce:
    """Slots for a cached hash and key, which are not compared, copied or stored."""

    __slots__ = ("_hash", "_key")

    _hash: int
    _key: Hashable


@dataclass(frozen=True, slots=True)
class Rule(_KeyedOnce):
    """`heads :- body .`; a rule with several heads represents one rule per head.

    Programs with many rules are sets of them, so the hash and the key are cached.

    Attributes:
        origin: for a rule in normal form, the rule that it was made from.
    """

    heads: tuple[Atom, ...]
    body: tuple[BodyElement, ...]
    span: Span | None = _span()
    origin: Rule | None = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash((self.heads, self.body)))
            return self._hash

    @property
    def key(self) -> Hashable:
        """What is equal for rules that differ only in names of variables."""
        try:
            return self._key
        except AttributeError:
            numbers: dict[str, int] = {}
            heads = tuple(_atom_key(head, numbers) for head in self.heads)
            body = tuple(_element_key(element, numbers) for element in self.body)
            object.__setattr__(self, "_key", (heads, body))
            return self._key

    def __str__(self) -> str:
        from evermat.lang.printer import rule_text  # noqa: PLC0415  printer imports this module

        return rule_text(self)

    def __repr__(self) -> str:
        return f"<Rule {self}>"

    @property
    def written(self) -> Rule:
        """The rule as its author wrote it, which messages show."""
        return self if self.origin is None else self.origin

    @property
    def head(self) -> Atom:
        """The only head of a normal rule."""
        (head,) = self.heads
        return head

    def positive_atoms(self) -> Iterator[Atom]:
        """Yield the atoms of the body that are not negated, in order."""
        return (element for element in self.body if isinstance(element, Atom))

    def negated_atoms(self) -> Iterator[Atom]:
        """Yield the atoms below `not`, in order."""
        return (element.atom for element in self.body if isinstance(element, Negation))

    @property
    def has_aggregates(self) -> bool:
        """Whether there is an aggregate in the body."""
        return Aggregation in map(type, self.body)

    def aggregations(self) -> Iterator[Aggregation]:
        """Yield the aggregates of the body, in order."""
        return (element for element in self.body if isinstance(element, Aggregation))

    def aggregated_atoms(self) -> Iterator[Atom]:
        """Yield the atoms inside of aggregates, in order."""
        return (atom for each in self.aggregations() for atom in each.atoms())

    def atoms(self) -> Iterator[Atom]:
        """Yield all atoms, heads first, including negated and aggregated ones."""
        yield from self.heads
        yield from body_atoms(self.body)


@dataclass(frozen=True, slots=True)
class DataSource:
    """A file that a program reads (`@import`, `.input`).

    Attributes:
        predicate: the predicate of the rows.
        path: as written in the program, relative to its folder.
        options: the options of the file's format, by name (`delimiter`, `header`,
            `columns`, …), as plain strings.
    """

    predicate: str
    path: str
    options: tuple[tuple[str, str], ...] = ()
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class DataSink:
    """A file that a program writes (`@export`, `.output`)."""

    predicate: str
    path: str
    options: tuple[tuple[str, str], ...] = ()
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A predicate with its arity and, if known, the types of its columns."""

    predicate: str
    arity: int
    column_types: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Program:
    """Rules, facts, and the directives about names, inputs and outputs."""

    rules: tuple[Rule, ...] = ()
    facts: tuple[Atom, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = ()
    base: str | None = None
    declarations: tuple[Declaration, ...] = ()
    sources: tuple[DataSource, ...] = ()
    sinks: tuple[DataSink, ...] = ()

    def __str__(self) -> str:
        from evermat.lang.printer import program_text  # noqa: PLC0415  printer imports this module

        return program_text(self)

    def __add__(self, other: Program) -> Program:
        """Combine both programs; the prefixes of the second take precedence."""
        return Program(
            rules=self.rules + other.rules,
            facts=self.facts + other.facts,
            prefixes=tuple((dict(self.prefixes) | dict(other.prefixes)).items()),
            base=other.base or self.base,
            declarations=self.declarations + other.declarations,
            sources=self.sources + other.sources,
            sinks=self.sinks + other.sinks,
        )


def contradiction(*arguments: Expression, span: Span | None = None) -> Atom:
    """Return the head `false(...)`, whose derived facts are contradictions.

    The predicate is an auxiliary one for each number of arguments.
    """
    return Atom(f"~{FALSE}{len(arguments)}", arguments, span, span)


def is_contradiction(predicate: object) -> bool:
    """Return whether the facts of a predicate are contradictions."""
    return isinstance(predicate, str) and bool(CONTRADICTION.fullmatch(predicate))


def variables(names: str) -> tuple[Variable, ...]:
    """Return variables by name: `x, y = variables("x y")`."""
    return tuple(Variable(name) for name in names.split())


def predicate(name: str) -> Callable[..., Atom]:
    """Return a function that makes atoms; Python values become constants."""

    def atom(*arguments: object) -> Atom:
        return Atom(name, tuple(as_expression(argument) for argument in arguments))

    return atom


def call(function: str, *arguments: object) -> Call:
    """Return a function or operator applied to expressions and Python values.

    >>> call("+", Variable("x"), 1).function
    '+'
    """
    return Call(function, tuple(as_expression(argument) for argument in arguments))


def condition(function: str, *arguments: object) -> Condition:
    """Return a comparison or another condition for a body: `condition("<", x, 3)`."""
    return Condition(call(function, *arguments))


def as_expression(value: object) -> Expression:
    """Return an expression unchanged, and any other Python value as a constant."""
    if isinstance(value, Variable | Term | Call):
        return value
    return Term(constant(value))


def expression_variables(expression: Expression) -> Iterator[Variable]:
    """Yield the variables of an expression, from left to right, with repetitions."""
    match expression:
        case Variable():
            yield expression
        case Call(arguments=arguments):
            for argument in arguments:
                yield from expression_variables(argument)
        case Term():
            return


def atom_variables(atom: Atom) -> Iterator[Variable]:
    """Yield the variables of an atom, from left to right, with repetitions."""
    for argument in atom.arguments:
        yield from expression_variables(argument)


def body_atoms(body: Iterable[BodyElement]) -> Iterator[Atom]:
    """Yield the atoms of a body in order, including negated and aggregated ones."""
    for element in body:
        match element:
            case Atom():
                yield element
            case Negation(atom=atom):
                yield atom
            case Aggregation():
                yield from body_atoms(element.body)
            case _:
                pass


def element_variables(element: BodyElement) -> Iterator[Variable]:
    """Yield the variables of a body element, from left to right, with repetitions."""
    match element:
        case Atom():
            yield from atom_variables(element)
        case Negation(atom=atom):
            yield from atom_variables(atom)
        case Condition(expression=expression):
            yield from expression_variables(expression)
        case Assignment(variable=variable, expression=expression):
            yield variable
            yield from expression_variables(expression)
        case Aggregation(target=target):
            yield target
            yield from aggregated_variables(element)


def aggregated_variables(element: Aggregation) -> Iterator[Variable]:
    """Yield the variables of an aggregate except its target, with repetitions."""
    for value in element.values:
        yield from expression_variables(value)
    for inner in element.body:
        yield from element_variables(inner)


def rule_variables(rule: Rule) -> Iterator[Variable]:
    """Yield the variables of a rule, heads first, with repetitions."""
    for head in rule.heads:
        yield from atom_variables(head)
    for element in rule.body:
        yield from element_variables(element)


def bound_by(  # noqa: C901  one case for each kind of element
    body: Iterable[BodyElement], known: Iterable[str] = (), *, as_groups: bool = True
) -> set[str]:
    """Return the variables that the elements of a body bind, given some known ones.

    Args:
        body: the elements.
        known: the names of further variables.
        as_groups: whether aggregates bind the variables that their atoms bind.
    """
    bound = set(known)
    equations: list[tuple[Expression, Expression]] = []
    for element in body:
        match element:
            case Atom(arguments=arguments):
                bound |= {a.name for a in arguments if isinstance(a, Variable)}
            case Condition(expression=Call(function="=", arguments=(left, right))):
                equations += [(left, right), (right, left)]
            case Assignment(variable=variable, expression=value):
                equations.append((variable, value))
            case Aggregation(target=target, body=inner):
                bound.add(target.name)
                if as_groups:
                    bound |= bound_by(inner)
            case _:
                pass
    size = -1
    while size < len(bound):
        size = len(bound)
        for side, value in equations:
            if isinstance(side, Variable) and all(
                each.name in bound for each in expression_variables(value)
            ):
                bound.add(side.name)
    return bound - {ANONYMOUS}


# ---------------------------------------------------- substitution and constant folding


def fold(expression: Expression) -> Expression:
    """Return an expression with calls on constants replaced by their values.

    Raises:
        FunctionError: if such a call has no value.
    """
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(fold(argument) for argument in expression.arguments)
    constants = [
        argument.constant for argument in arguments if isinstance(argument, Term)
    ]
    function = FUNCTIONS.get(expression.function)
    if len(constants) == len(arguments) and function and function.takes(len(arguments)):
        return Term(function.evaluate(*constants), expression.span)
    return Call(expression.function, arguments, expression.span)


def fold_if_possible(expression: Expression) -> Expression:
    """Like `fold`, but an expression that has no value is unchanged."""
    try:
        return fold(expression)
    except FunctionError:
        return expression


def substitute(
    expression: Expression, substitution: Mapping[str, Expression]
) -> Expression:
    """Return the expression with other expressions in place of variables."""
    match expression:
        case Variable(name=name):
            return substitution.get(name, expression)
        case Call(arguments=arguments):
            changed = tuple(
                substitute(argument, substitution) for argument in arguments
            )
            return replace(expression, arguments=changed)
        case Term():
            return expression


def substitute_atom(atom: Atom, substitution: Mapping[str, Expression]) -> Atom:
    """Return the atom with expressions in place of variables."""
    arguments = tuple(substitute(argument, substitution) for argument in atom.arguments)
    return replace(atom, arguments=arguments)


# ------------------------------------------------- equality up to renaming of variables


def canonical(rule: Rule) -> Rule:
    """Return the rule with its variables renamed in order of first occurrence.

    Two rules that differ only in the names of variables have equal canonical forms.
    """
    names: dict[str, Expression] = {}
    for variable in rule_variables(rule):
        if variable.name != ANONYMOUS:
            names.setdefault(variable.name, Variable(f"x{len(names) + 1}"))
    return substitute_rule(rule, names)


def rule_key(rule: Rule) -> Hashable:
    """Return a key that is equal for rules that differ only in names of variables."""
    return rule.key


def substitute_condition(
    condition: Condition, substitution: Mapping[str, Expression]
) -> Condition:
    """Return the condition with expressions in place of variables."""
    call = condition.expression
    arguments = tuple(substitute(argument, substitution) for argument in call.arguments)
    return replace(condition, expression=replace(call, arguments=arguments))


def _substitute_element(
    element: BodyElement, substitution: Mapping[str, Expression]
) -> BodyElement:
    match element:
        case Atom():
            return substitute_atom(element, substitution)
        case Negation(atom=atom):
            return replace(element, atom=substitute_atom(atom, substitution))
        case Condition():
            return substitute_condition(element, substitution)
        case Assignment(variable=variable, expression=expression):
            target = substitution.get(variable.name, variable)
            value = substitute(expression, substitution)
            if not isinstance(target, Variable):
                return Condition(Call("=", (target, value)), element.span)
            return replace(element, variable=target, expression=value)
        case Aggregation():
            return substitute_aggregation(element, substitution)


def substitute_aggregation(
    element: Aggregation, substitution: Mapping[str, Expression]
) -> Aggregation:
    """Return the aggregate with expressions for variables other than its target."""
    target = substitution.get(element.target.name, element.target)
    if not isinstance(target, Variable):
        message = "the target of an aggregate can only be renamed"
        raise TypeError(message)
    return replace(
        element,
        target=target,
        values=tuple(substitute(value, substitution) for value in element.values),
        body=tuple(_substitute_element(each, substitution) for each in element.body),
    )


def substitute_rule(rule: Rule, substitution: Mapping[str, Expression]) -> Rule:
    """Return the rule with expressions in place of variables."""
    return replace(
        rule,
        heads=tuple(substitute_atom(head, substitution) for head in rule.heads),
        body=tuple(_substitute_element(element, substitution) for element in rule.body),
    )


def _expression_key(expression: Expression, numbers: dict[str, int]) -> Hashable:
    match expression:
        case Variable(name=name) if name == ANONYMOUS:
            return name
        case Variable(name=name):
            return numbers.setdefault(name, len(numbers))
        case Term(constant=constant):
            return constant.kind, constant.text  # faster to hash than the constant
        case Call(function=function, arguments=arguments):
            return function, *(_expression_key(part, numbers) for part in arguments)


def _atom_key(atom: Atom, numbers: dict[str, int]) -> Hashable:
    keys = (_expression_key(argument, numbers) for argument in atom.arguments)
    return atom.predicate, *keys


def _element_key(element: BodyElement, numbers: dict[str, int]) -> Hashable:
    match element:
        case Atom():
            return _atom_key(element, numbers)
        case Negation(atom=atom):
            return "not", _atom_key(atom, numbers)
        case Condition(expression=expression):
            return "if", _expression_key(expression, numbers)
        case Assignment(variable=variable, expression=expression):
            value = _expression_key(expression, numbers)
            return "let", _expression_key(variable, numbers), value
        case Aggregation(target=target, function=function):
            values = tuple(_expression_key(each, numbers) for each in element.values)
            body = tuple(_element_key(each, numbers) for each in element.body)
            return function, _expression_key(target, numbers), values, body
