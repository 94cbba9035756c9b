"""The normal form of rules: atoms, computations in order, and negations.

A normal rule has

- one head, whose arguments, like those of all its atoms, are variables and constants;
- no anonymous variables;
- a body of atoms, then conditions and assignments in an order in which the variables of
  each are bound before it, then negated atoms;
- no equation that merely renames a variable or names a constant: it is substituted;
- no variable that occurs only in one negated atom: `not p(?x, _)` becomes `not ~p(?x)`
  with a rule that defines the auxiliary predicate `~p(?x)`;
- no aggregate, unless it is an aggregate rule (`evermat.lang.aggregates`).

The name of an auxiliary predicate is computed from the negated atom, so the same
negation has the same predicate in all programs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evermat.errors import Label, UnsafeRuleError
from evermat.lang.aggregates import is_aggregate_rule, without_aggregates
from evermat.lang.syntax import (
    ANONYMOUS,
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
    element_variables,
    expression_variables,
    fold_if_possible,
    rule_key,
    rule_variables,
    substitute,
    substitute_atom,
    substitute_condition,
)
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from evermat.values import Constant


_TRUE = boolean_constant(value=True)


def normalise(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules in normal form, without duplicates.

    Rules with a condition that is never true are omitted.

    Raises:
        UnsafeRuleError: if a variable is not bound (`checks` gives more details).
    """
    found = tuple(_all_normal_rules(rules))
    return found if len(found) == 1 else tuple(_by_key(found).values())


def normal_rules(rules: Iterable[Rule]) -> dict[Hashable, Rule]:
    """Return the rules in normal form, by their keys (`rule_key`)."""
    return _by_key(_all_normal_rules(rules))


def _by_key(rules: Iterable[Rule]) -> dict[Hashable, Rule]:
    found: dict[Hashable, Rule] = {}
    for rule in rules:
        found.setdefault(rule_key(rule), rule)
    return found


def _all_normal_rules(rules: Iterable[Rule]) -> Iterator[Rule]:
    for rule in rules:
        for head in rule.heads:
            yield from _normal_rules(head, rule)


# ------------------------------------------------------------------- one rule


def _normal_rules(head: Atom, rule: Rule) -> Iterator[Rule]:
    if rule.has_aggregates:
        for part in without_aggregates(replace(rule, heads=(head,))):
            if is_aggregate_rule(part):
                yield part
            else:
                yield from _normal_rules(part.head, part)
        return
    if _is_normal(head, rule):
        yield rule if len(rule.heads) == 1 else replace(rule, heads=(head,))
        return
    draft = _Draft.of(head, rule)
    draft.substitute_equations()
    if not draft.settle_constant_conditions():
        return
    draft.order_computations()
    auxiliary = list(draft.project_negations())
    yield Rule((draft.head,), draft.body(), rule.span, rule.written)
    yield from auxiliary


def _is_normal(head: Atom, rule: Rule) -> bool:
    """Return whether a rule is safe and consists of distinct, plain atoms."""
    bound: set[str] = set()
    for element in rule.body:
        if not isinstance(element, Atom):
            return False
        for argument in element.arguments:
            if not _is_plain(argument):
                return False
            if isinstance(argument, Variable):
                bound.add(argument.name)
    return all(
        argument.name in bound
        if isinstance(argument, Variable)
        else isinstance(argument, Term)
        for argument in head.arguments
    ) and len(set(rule.body)) == len(rule.body)


@dataclass
class _Draft:
    """A rule in parts, while it is being normalised."""

    rule: Rule
    head: Atom
    atoms: list[Atom] = field(default_factory=list)
    negations: list[Negation] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    computations: list[Condition | Assignment] = field(default_factory=list)
    used_names: set[str] = field(default_factory=set)
    fresh_count: int = 0

    @classmethod
    def of(cls, head: Atom, rule: Rule) -> _Draft:
        """Split a rule into parts, moving expressions out of its atoms."""
        draft = cls(rule, head)
        draft.used_names = {variable.name for variable in rule_variables(rule)}
        for element in rule.body:
            match element:
                case Atom():
                    draft.atoms.append(draft._flatten(element))
                case Negation(atom=atom, span=span):
                    draft.negations.append(Negation(draft._flatten(atom), span))
                case Condition():
                    draft.conditions.append(element)
                case Assignment(variable=variable, expression=expression, span=span):
                    call = Call("=", (variable, expression), span)
                    draft.conditions.append(Condition(call, span))
        draft.head = draft._flatten(head)
        return draft

    def _fresh(self) -> Variable:
        while True:
            self.fresh_count += 1
            name = f"_{self.fresh_count}"
            if name not in self.used_names:
                return Variable(name)

    def _flatten(self, atom: Atom) -> Atom:
        if all(map(_is_plain, atom.arguments)):
            return atom
        return replace(atom, arguments=tuple(map(self._plain, atom.arguments)))

    def _plain(self, argument: Expression) -> Expression:
        match argument:
            case Variable(name=name) if name == ANONYMOUS:
                return replace(self._fresh(), span=argument.span)
            case Call():
                value = fold_if_possible(argument)
                if isinstance(value, Term):
                    return value
                variable = replace(self._fresh(), span=argument.span)
                equation = Call("=", (variable, argument), argument.span)
                self.conditions.append(Condition(equation, argument.span))
                return variable
            case _:
                return argument

    def substitute_equations(self) -> None:
        """Substitute variables that equal another variable or a constant."""
        while True:
            substitution = self._next_substitution()
            if substitution is None:
                return
            self.head = substitute_atom(self.head, substitution)
            self.atoms = [substitute_atom(atom, substitution) for atom in self.atoms]
            self.negations = [
                Negation(substitute_atom(negation.atom, substitution), negation.span)
                for negation in self.negations
            ]
            self.conditions = [
                substitute_condition(condition, substitution)
                for condition in self.conditions
            ]

    def _next_substitution(self) -> dict[str, Expression] | None:
        for index, condition in enumerate(self.conditions):
            call = condition.expression
            if call.function != "=":
                continue
            left, right = map(fold_if_possible, call.arguments)
            if not isinstance(left, Variable):
                left, right = right, left
            if isinstance(left, Variable) and not isinstance(right, Call):
                del self.conditions[index]
                return {left.name: right}
        return None

    def settle_constant_conditions(self) -> bool:
        """Drop conditions that always hold; return False if one never does."""
        kept: list[Condition] = []
        for condition in self.conditions:
            value = fold_if_possible(condition.expression)
            if not isinstance(value, Term):
                kept.append(condition)
            elif value.constant != _TRUE:
                return False
        self.conditions = kept
        return True

    def order_computations(self) -> None:
        """Order computations by their inputs, and convert some to assignments."""
        bound = {
            variable.name for atom in self.atoms for variable in atom_variables(atom)
        }
        pending = self.conditions
        while pending:
            waiting: list[Condition] = []
            for condition in pending:
                ready = _bind(condition, bound)
                if ready is None:
                    waiting.append(condition)
                else:
                    self.computations.append(ready)
            if len(waiting) == len(pending):
                raise _unbound(self.rule, waiting[0].expression, bound)
            pending = waiting
        for variable in atom_variables(self.head):
            if variable.name not in bound:
                raise _unbound(self.rule, variable, bound)

    def project_negations(self) -> Iterator[Rule]:
        """Project away variables of single negated atoms; yield the new rules."""
        bound = {
            variable.name for atom in self.atoms for variable in atom_variables(atom)
        }
        bound.update(
            element.variable.name
            for element in self.computations
            if isinstance(element, Assignment)
        )
        seen: set[str] = set()
        for index, negation in enumerate(self.negations):
            names = {variable.name for variable in atom_variables(negation.atom)}
            local = names - bound
            if local & seen:
                raise _unbound(self.rule, Variable(min(local & seen)), bound)
            seen |= local
            if local:
                definition = _projection(negation.atom, local, self.rule)
                head = definition.head
                kept = _distinct(negation.atom, local)
                atom = replace(negation.atom, predicate=head.predicate, arguments=kept)
                self.negations[index] = Negation(atom, negation.span)
                yield definition

    def body(self) -> tuple[BodyElement, ...]:
        """Return the body put together again, without duplicates."""
        elements = (*self.atoms, *self.computations, *self.negations)
        return tuple(dict.fromkeys(elements))


def _bind(condition: Condition, bound: set[str]) -> Condition | Assignment | None:
    """Return the condition if its inputs are bound, an assignment if it binds one."""
    call = condition.expression
    if _is_bound(call, bound):
        return condition
    if call.function == "=":
        left, right = call.arguments
        for target, value in ((left, right), (right, left)):
            if isinstance(target, Variable) and _is_bound(value, bound):
                bound.add(target.name)
                return Assignment(target, value, condition.span)
    return None


def _is_bound(expression: Expression, bound: set[str]) -> bool:
    return all(variable.name in bound for variable in expression_variables(expression))


def _unbound(rule: Rule, expression: Expression, bound: set[str]) -> UnsafeRuleError:
    names = [
        variable
        for variable in expression_variables(expression)
        if variable.name not in bound
    ]
    variable = names[0]
    span = variable.span or rule.span
    return UnsafeRuleError(
        f"variable `?{variable.name}` is not bound by the body",
        labels=() if span is None else (Label(span, "needs a value here"),),
        reason="every variable must occur in a positive body atom",
    )


# ---------------------------------------------------------- auxiliary predicates


def _distinct(atom: Atom, local: set[str]) -> tuple[Variable, ...]:
    """Return the variables of an atom that are not local, each once."""
    names = dict.fromkeys(variable.name for variable in atom_variables(atom))
    return tuple(Variable(name) for name in names if name not in local)


def _projection(atom: Atom, local: set[str], rule: Rule) -> Rule:
    """Return `~p(?x1) :- p(?x1, ?_1) .` for `p(?x, ?y)` with local variable `?y`."""
    names: dict[str, Expression] = {}
    for variable in atom_variables(atom):
        prefix = "_" if variable.name in local else "x"
        names.setdefault(variable.name, Variable(f"{prefix}{len(names) + 1}"))
    body = substitute_atom(atom, names)
    arguments = ", ".join(map(_argument_text, body.arguments))
    head = Atom(
        f"{AUXILIARY_MARK}{atom.predicate}({arguments})",
        tuple(names[variable.name] for variable in _distinct(atom, local)),
        atom.span,
        atom.predicate_span,
    )
    return Rule((head,), (body,), rule.span, rule.written)


def _argument_text(argument: Expression) -> str:
    if isinstance(argument, Term):
        return str(argument.constant)
    (variable,) = expression_variables(argument)
    return f"?{variable.name}"


# ------------------------------------------------------------- parts of rules


def _is_plain(argument: Expression) -> bool:
    if isinstance(argument, Variable):
        return argument.name != ANONYMOUS
    return isinstance(argument, Term)


# ---------------------------------------------------------- instances of written rules

# Rules are matched in normal form, in which expressions have moved, equations are
# substituted and some negated atoms are projected. Explanations show the rule as
# written, with the values of its own variables, computed values, and absent facts.


@dataclass(frozen=True, slots=True)
class Computation:
    """An expression of a rule, with values in place of its variables.

    Attributes:
        expression: as written.
        filled: with values.
        result: its value; `true` for conditions.
    """

    expression: Call
    filled: Call
    result: Constant


@dataclass(frozen=True, slots=True)
class WrittenInstance:
    """The parts of a rule for one instance.

    Attributes:
        binding: the variables and their values, those of the body first.
        absent: the negated atoms, with values; remaining variables match anything.
        computations: conditions, and expressions inside of atoms.
    """

    binding: dict[str, Constant]
    absent: tuple[Atom, ...]
    computations: tuple[Computation, ...]


def written_instance(rule: Rule, normal: Mapping[str, Constant]) -> WrittenInstance:
    """Return the instance of a rule that has one head.

    Args:
        rule: as written.
        normal: values of the variables of its normal form, which has some of the
            variables of the rule and some of its own.
    """
    known = written_values(rule, normal)
    calls = [call for element in (*rule.body, rule.head) for call in _calls(element)]
    filled = [(call, substitute(call, known)) for call in calls]
    results = [(call, full, fold_if_possible(full)) for call, full in filled]
    return WrittenInstance(
        binding=written_binding(rule, known),
        absent=tuple(filled_atom(atom, known) for atom in rule.negated_atoms()),
        computations=tuple(
            Computation(call, full, result.constant)
            for call, full, result in results
            if isinstance(full, Call) and isinstance(result, Term)
        ),
    )


def written_values(rule: Rule, normal: Mapping[str, Constant]) -> dict[str, Expression]:
    """Return the values of all variables that have one, using the rule's equations."""
    known: dict[str, Expression] = {name: Term(value) for name, value in normal.items()}
    calls = (call for element in rule.body for call in _calls(element))
    equations = [call for call in calls if call.function == "="]
    while any(_solve(equation, known) for equation in equations):
        pass
    return known


def written_binding(rule: Rule, known: Mapping[str, Expression]) -> dict[str, Constant]:
    """Return the values of the variables of a rule, those of the body first."""
    variables = [v for element in rule.body for v in element_variables(element)]
    found = {}
    for variable in (*variables, *atom_variables(rule.head)):
        value = known.get(variable.name)
        if isinstance(value, Term) and variable.name != ANONYMOUS:
            found[variable.name] = value.constant
    return found


def _calls(element: object) -> Iterator[Call]:
    """Yield the conditions of a body, and the expressions in its atoms."""
    match element:
        case Condition(expression=expression):
            yield expression
        case Assignment(variable=variable, expression=value):
            yield Call("=", (variable, value))
        case Atom(arguments=arguments) | Negation(atom=Atom(arguments=arguments)):
            yield from (each for each in arguments if isinstance(each, Call))
        case _:
            return


def _solve(equation: Call, known: dict[str, Expression]) -> bool:
    """Solve an equation for an unknown variable; return whether there was one."""
    left, right = (
        fold_if_possible(substitute(each, known)) for each in equation.arguments
    )
    if not isinstance(left, Variable):
        left, right = right, left
    if isinstance(left, Variable) and isinstance(right, Term):
        known[left.name] = right
        return True
    return False


def filled_atom(atom: Atom, known: Mapping[str, Expression]) -> Atom:
    """Return an atom with values for its variables, and expressions evaluated."""
    arguments = substitute_atom(atom, known).arguments
    return Atom(atom.predicate, tuple(map(fold_if_possible, arguments)))
