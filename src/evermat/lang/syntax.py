"""Programs as plain, frozen objects.

Two objects are equal when they mean the same text, wherever they stand: spans do not
take part in comparisons. A program can be parsed (`evermat.lang.parser`) or built by
hand:

>>> x, y, z = variables("x y z")
>>> edge, reach = predicate("edge"), predicate("reach")
>>> print(Rule(heads=(reach(x, z),), body=(reach(x, y), edge(y, z))))
reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evermat.values import Constant, constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evermat.errors import Span

TRIPLE = "triple"
"""The predicate of triple atoms: `[?s, :p, ?o]` is short for `triple(?s, :p, ?o)`."""

SAME_AS = "same_as"
"""The predicate of equality: `?x ≈ ?y` is short for `same_as(?x, ?y)`."""

ANONYMOUS = "_"
"""The name of the anonymous variable; every occurrence is a variable of its own."""


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, `?name`; the name is without the question mark."""

    name: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Term:
    """A constant at a place in a text."""

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

    `?z = expression` is parsed as a condition; when nothing else binds `?z`, normal
    rules hold it as an `Assignment`.
    """

    expression: Call
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Assignment:
    """`?z = expression`, giving `?z` its value. Only in normal rules."""

    variable: Variable
    expression: Expression
    span: Span | None = _span()


BodyElement = Atom | Negation | Condition | Assignment


class _HashedOnce:
    """Room for a hash, which is no part of what is compared, copied or stored."""

    __slots__ = ("_hash",)

    _hash: int


@dataclass(frozen=True, slots=True)
class Rule(_HashedOnce):
    """`heads :- body .`; a rule with several heads stands for one rule per head.

    Programs of many rules are sets of them, so the hash is worked out once.

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

    def __str__(self) -> str:
        from evermat.lang.printer import rule_text  # noqa: PLC0415  printer reads us

        return rule_text(self)

    def __repr__(self) -> str:
        return f"<Rule {self}>"

    @property
    def written(self) -> Rule:
        """The rule as its author wrote it, which is what messages show."""
        return self if self.origin is None else self.origin

    @property
    def head(self) -> Atom:
        """The only head of a normal rule."""
        (head,) = self.heads
        return head

    def positive_atoms(self) -> Iterator[Atom]:
        """The atoms of the body that are not negated, in order."""
        return (element for element in self.body if isinstance(element, Atom))

    def negated_atoms(self) -> Iterator[Atom]:
        """The atoms below `not`, in order."""
        return (element.atom for element in self.body if isinstance(element, Negation))


@dataclass(frozen=True, slots=True)
class DataSource:
    """A file that a program asks to be read (`@import`, `.input`).

    Attributes:
        predicate: where the rows go.
        path: as written in the program, relative to its folder.
        options: what the program says about the file's form, by name (`delimiter`,
            `header`, `columns`, …), as plain strings.
    """

    predicate: str
    path: str
    options: tuple[tuple[str, str], ...] = ()
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class DataSink:
    """A file that a program asks to be written (`@export`, `.output`)."""

    predicate: str
    path: str
    options: tuple[tuple[str, str], ...] = ()
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A predicate with its arity and, where known, the types of its columns."""

    predicate: str
    arity: int
    column_types: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Program:
    """Rules, facts, and what the text says about names, inputs and outputs."""

    rules: tuple[Rule, ...] = ()
    facts: tuple[Atom, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = ()
    base: str | None = None
    declarations: tuple[Declaration, ...] = ()
    sources: tuple[DataSource, ...] = ()
    sinks: tuple[DataSink, ...] = ()

    def __str__(self) -> str:
        from evermat.lang.printer import program_text  # noqa: PLC0415  printer reads us

        return program_text(self)

    def __add__(self, other: Program) -> Program:
        """Both programs together; the prefixes of the second win."""
        return Program(
            rules=self.rules + other.rules,
            facts=self.facts + other.facts,
            prefixes=tuple((dict(self.prefixes) | dict(other.prefixes)).items()),
            base=other.base or self.base,
            declarations=self.declarations + other.declarations,
            sources=self.sources + other.sources,
            sinks=self.sinks + other.sinks,
        )


def variables(names: str) -> tuple[Variable, ...]:
    """Variables by name: `x, y = variables("x y")`."""
    return tuple(Variable(name) for name in names.split())


def predicate(name: str) -> Callable[..., Atom]:
    """A maker of atoms; Python values among the arguments become constants."""

    def atom(*arguments: object) -> Atom:
        return Atom(name, tuple(as_expression(argument) for argument in arguments))

    return atom


def call(function: str, *arguments: object) -> Call:
    """A function or operator applied to expressions and Python values.

    >>> call("+", Variable("x"), 1).function
    '+'
    """
    return Call(function, tuple(as_expression(argument) for argument in arguments))


def condition(function: str, *arguments: object) -> Condition:
    """A comparison or another condition for a body: `condition("<", x, 3)`."""
    return Condition(call(function, *arguments))


def as_expression(value: object) -> Expression:
    """An expression as it is, and any other Python value as a constant."""
    if isinstance(value, Variable | Term | Call):
        return value
    return Term(constant(value))


def expression_variables(expression: Expression) -> Iterator[Variable]:
    """The variables of an expression, from left to right, with repetitions."""
    match expression:
        case Variable():
            yield expression
        case Call(arguments=arguments):
            for argument in arguments:
                yield from expression_variables(argument)
        case Term():
            return


def atom_variables(atom: Atom) -> Iterator[Variable]:
    """The variables of an atom, from left to right, with repetitions."""
    for argument in atom.arguments:
        yield from expression_variables(argument)


def element_variables(element: BodyElement) -> Iterator[Variable]:
    """The variables of a body element, from left to right, with repetitions."""
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


def rule_variables(rule: Rule) -> Iterator[Variable]:
    """The variables of a rule, heads first, with repetitions."""
    for head in rule.heads:
        yield from atom_variables(head)
    for element in rule.body:
        yield from element_variables(element)
