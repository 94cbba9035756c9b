"""Built-ins under equality with representatives: they read names.

A fact about representatives holds for all names that are equal to them, but a built-in
such as `starts_with(?x, "ann")` only for some of these. So a built-in reads a variable
of its own, which ranges over all names of a constant that the rule has matched:

    friend(?x) :- person(?x), starts_with(?x, "ann") .

becomes two rules, for the representative and for all other names:

    friend(?x) :- person(?x), starts_with(?x, "ann") .
    friend(?x) :- person(?x), ~name(?x, ?n), starts_with(?n, "ann") .

A computed constant may be a name with another representative. A rule with such a
variable in its head, or below a negation, is divided: the first part computes the name,
the second one looks up its representative. Values of data types (`evermat.values`) are
always representatives, so arithmetic, for instance, needs none of this.

Constants of built-ins are names as written (`Written`), and are not replaced by
representatives, unlike constants in atoms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from evermat.functions import FUNCTIONS
from evermat.lang.syntax import (
    AUXILIARY_MARK,
    Assignment,
    Atom,
    BodyElement,
    Call,
    Condition,
    Expression,
    Negation,
    Rule,
    Term,
    Variable,
    atom_variables,
    canonical,
    expression_variables,
    fold_if_possible,
    substitute_rule,
)
from evermat.values import NUMERIC_KINDS, Kind, boolean_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


NAME = "~name"
"""`~name(?x, ?n)`: `?x` is the representative of `?n`, another constant."""
OTHER = "~other"
"""`~other(?n)`: `?n` has another representative."""
_ANY_NAME = "~any_name"
"""`~any_name(?x, ?n)`: `?n` is `?x`, or another name of it; eliminated at the end."""

COMPUTED = f"{AUXILIARY_MARK}computed"
"""The prefix of relations of computed names."""
_NUMERIC = frozenset({"+", "-", "*", "/", "%", "abs"})
_EXTREME = frozenset({"min", "max"})
_ORDER = frozenset({"<", "<=", ">", ">="})
_OF_VALUES = frozenset({"is_literal", "literal_outside", "values_differ"})
"""Conditions on the value of a clique, if it has one; they do not depend on names."""
_TRUE = Term(boolean_constant(value=True))


@dataclass(frozen=True, slots=True)
class Written(Term):
    """A constant of a built-in: a name as written, never its representative."""


# ------------------------------------------------------------- names read by built-ins


def reads_numbers_only(element: BodyElement) -> bool:
    """Return whether no built-in in a part of a body distinguishes names.

    It computes with numbers only, or passes names on unchanged. A number is the
    representative of all names that are equal to it.
    """
    match element:
        case Assignment(expression=expression):
            return _is_numeric(expression)
        case Condition(expression=call) if _reads_values(call):
            return True
        case Condition(expression=Call(function=function, arguments=arguments)):
            is_order = function in _ORDER and any(map(_is_number, arguments))
            return (is_order or function == "=") and all(map(_is_numeric, arguments))
        case _:
            return True


def _reads_values(expression: Expression) -> bool:
    """Return whether a condition is the same for all names of a clique."""
    match expression:
        case Call(function="=" | "!=", arguments=(Call() as call, Term())):
            return _reads_values(call)
        case Call(function=function, arguments=arguments):
            return function in _OF_VALUES and not any(
                isinstance(each, Call) for each in arguments
            )
        case _:
            return False


def _is_number(expression: Expression) -> bool:
    """Return whether an expression can only be compared with numbers."""
    match expression:
        case Term(constant=constant):
            return constant.kind in NUMERIC_KINDS
        case Call(function=function, arguments=arguments):
            # The least of two names is a name; names and numbers have no least element.
            is_extreme = function in _EXTREME and any(map(_is_number, arguments))
            return is_extreme or function in _NUMERIC
        case _:
            return False


def _is_numeric(expression: Expression) -> bool:
    """Return whether an expression is a plain name, or computes with numbers only."""
    if not isinstance(expression, Call) or not any(expression_variables(expression)):
        return True
    return _is_number(expression) and all(map(_is_numeric, expression.arguments))


def names_read(rule: Rule, values: frozenset[Kind]) -> tuple[str, ...]:
    """Return the variables of a normal rule whose names built-ins read.

    Args:
        rule: a normal rule.
        values: the kinds of constants that are never equal to each other.
    """
    found: dict[str, None] = {}
    for element in rule.body:
        match element:
            case Condition(expression=call) | Assignment(expression=Call() as call):
                if not reads_numbers_only(element):
                    found.update(dict.fromkeys(_names_in(call, values)))
            case _:
                pass
    made = _assigned(rule)
    return tuple(name for name in found if name not in made)


def _names_in(call: Call, values: frozenset[Kind]) -> Iterator[str]:
    function = FUNCTIONS.get(call.function)
    for at, argument in enumerate(call.arguments):
        match argument:
            case Variable(name=name):
                if function is None or not function.argument_type(at) <= values:
                    yield name
            case Call():
                yield from _names_in(argument, values)
            case _:
                pass


def _assigned(rule: Rule) -> frozenset[str]:
    return frozenset(e.variable.name for e in rule.body if isinstance(e, Assignment))


def names_made(rule: Rule, values: frozenset[Kind]) -> frozenset[str]:
    """Return computed variables of a rule that may have another representative."""
    made: set[str] = set()
    for element in rule.body:
        if isinstance(element, Assignment) and not _is_value(element, values, made):
            made.add(element.variable.name)
    return frozenset(made)


def _is_value(element: Assignment, values: frozenset[Kind], made: set[str]) -> bool:
    match element.expression:
        case Call(function=name):
            return reads_numbers_only(element) or FUNCTIONS[name].result_type <= values
        case Term(constant=constant):
            return constant.kind in values
        case Variable(name=name):
            return name not in made


# ----------------------------------------------------------------- rules with names


def as_written(rule: Rule) -> Rule:
    """Return the rule with the constants of its built-ins marked as written."""
    if all(isinstance(element, Atom | Negation) for element in rule.body):
        return rule

    def mark(expression: Expression) -> Expression:
        match expression:
            case Call(arguments=arguments):
                return replace(expression, arguments=tuple(map(mark, arguments)))
            case Term(constant=constant, span=span):
                return Written(constant, span)
            case _:
                return expression

    def part(element: BodyElement) -> BodyElement:
        match element:
            case Condition(expression=call):
                arguments = tuple(map(mark, call.arguments))
                return replace(element, expression=replace(call, arguments=arguments))
            case Assignment(expression=value):
                return replace(element, expression=mark(value))
            case _:
                return element

    return replace(rule, body=tuple(map(part, rule.body)))


def divided(
    rule: Rule, values: frozenset[Kind], *, is_answer: bool = False
) -> Iterator[Rule]:
    """Yield the rule, or rules that compute names and then look up representatives.

    Heads and negations need representatives. Facts of the relation between the rules
    contain names as computed.

    Args:
        rule: a normal rule.
        values: the kinds of constants that are never equal to each other.
        is_answer: whether the head contains names as computed.
    """
    negations = tuple(each for each in rule.body if isinstance(each, Negation))
    negated = tuple(each.atom for each in negations)
    met = negated if is_answer else (*rule.heads, *negated)
    made = sorted(names_made(rule, values) & _variables(met))
    if not made:
        yield rule
        return
    rest = tuple(each for each in rule.body if not isinstance(each, Negation))
    columns = tuple(map(Variable, sorted(_variables((*rule.heads, *negated)))))
    between = Atom(f"{COMPUTED}({canonical(rule)})", columns)
    yield replace(rule, heads=(between,), body=rest)
    for is_other in product((False, True), repeat=len(made)):
        body: list[BodyElement] = [between]
        absent: list[BodyElement] = []
        meaning: dict[str, Expression] = {}
        for name, has_other in zip(made, is_other, strict=True):
            if has_other:
                meaning[name] = Variable(f"{name}~")
                body.append(Atom(NAME, (meaning[name], Variable(name))))
            else:
                absent.append(Negation(Atom(OTHER, (Variable(name),))))
        changed = substitute_rule(Rule(rule.heads, negations), meaning)
        heads = rule.heads if is_answer else changed.heads
        yield replace(rule, heads=heads, body=(*body, *changed.body, *absent))


def _variables(atoms: Iterable[Atom]) -> set[str]:
    return {each.name for atom in atoms for each in atom_variables(atom)}


def with_names(rule: Rule, names: Iterable[str], shown: frozenset[str]) -> Rule:
    """Let built-ins read names of some variables, and the head return some of them."""
    own: dict[str, Expression] = {name: Variable(f"{name}~") for name in names}
    if not own:
        return rule
    read = [e for e in rule.body if isinstance(e, Condition | Assignment)]
    others = tuple(e for e in rule.body if not isinstance(e, Condition | Assignment))
    changed = substitute_rule(Rule((), tuple(read)), own)
    head = {name: new for name, new in own.items() if name in shown}
    heads = substitute_rule(Rule(rule.heads, ()), head).heads
    found = (Atom(_ANY_NAME, (Variable(name), new)) for name, new in own.items())
    return replace(rule, heads=heads, body=(*found, *others, *changed.body))


def binding_atoms(rule: Rule) -> Iterator[Atom]:
    """Yield the atoms of a body that bind variables to representatives."""
    return (atom for atom in rule.positive_atoms() if atom.predicate != _ANY_NAME)


def cases(rule: Rule) -> Iterator[Rule]:
    """Yield the cases of a rule: variables are representatives, or other names."""
    found = [atom for atom in rule.positive_atoms() if atom.predicate == _ANY_NAME]
    if not found:
        yield rule
        return
    rest = tuple(element for element in rule.body if element not in found)
    for chosen in product(*(tuple(_ways(*atom.arguments)) for atom in found)):
        atoms = tuple(each for each in chosen if isinstance(each, Atom))
        same = dict(each for each in chosen if not isinstance(each, Atom))
        case = substitute_rule(replace(rule, body=(*atoms, *rest)), same)
        body = _settled(case.body)
        if body is not None:
            yield replace(case, body=body)


def _ways(one: Expression, name: Expression) -> Iterator[Atom | tuple[str, Expression]]:
    """Yield the ways to find a name: an expression to substitute, or an atom."""
    if not isinstance(name, Variable):
        raise TypeError(name)
    if isinstance(one, Term):
        # A constant is replaced by its representative, which is a name as well.
        written = Written(one.constant, one.span)
        yield name.name, written
        yield Atom(NAME, (name, written))
    else:
        yield name.name, one
    yield Atom(NAME, (one, name))


def _settled(body: Iterable[BodyElement]) -> tuple[BodyElement, ...] | None:
    """Return a body without conditions that always hold; None if one never does."""
    kept: list[BodyElement] = []
    for element in dict.fromkeys(body):
        if isinstance(element, Condition):
            value = fold_if_possible(element.expression)
            if isinstance(value, Term):
                if value.constant != _TRUE.constant:
                    return None
                continue
        kept.append(element)
    return tuple(kept)


def reads_other_names(rule: Rule) -> bool:
    """Return whether a rule reads names that are not representatives."""
    atoms = (*rule.positive_atoms(), *rule.negated_atoms())
    return any(atom.predicate in {NAME, OTHER} for atom in atoms)


def definitions(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules that define `~other`, if rules refer to it."""
    if not any(a.predicate == OTHER for rule in rules for a in rule.negated_atoms()):
        return ()
    one, name = Variable("x"), Variable("n")
    return (Rule((Atom(OTHER, (name,)),), (Atom(NAME, (one, name)),)),)
