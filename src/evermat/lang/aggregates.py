"""Elimination of aggregates: ordinary rules, and rules that consist of an aggregate.

`t(?x, ?n) :- part(?x), ?n = sum{ ?q, ?w : needs(?x, ?w, ?q), not old(?w) } .` becomes

    ~members(?x, ?q, ?w) :- needs(?x, ?w, ?q), not old(?w) .
    ~sum(?x, ?v, ?s)     :- ?v = sum{ … : ~members(?x, ?q, ?w) } .
    t(?x, ?n)            :- part(?x), ~sum(?x, ?n, ?s) .
    t(?x, 0)             :- part(?x), not ~sum(?x, _, _) .

The *members* are ordinary facts: the distinct tuples, by group. If the body of an
aggregate is one atom of distinct variables that are all in the tuple or group, the
facts of this atom are the members. The second rule is an *aggregate rule*, the only
kind that still contains an aggregate; `evermat.maintenance.aggregates` maintains it.
Sums and averages have a further argument, from which they are updated
(`algebra.totals`).

The last rule is for empty groups: if all grouping variables are bound outside, the
`count` or `sum` of an empty group is 0.

The names of the predicates are computed from the aggregate, up to renaming of
variables, so the same aggregate has the same predicates in all rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from evermat.lang.syntax import (
    ANONYMOUS,
    AUXILIARY_MARK,
    TRIPLE,
    Aggregation,
    Atom,
    Call,
    Condition,
    Negation,
    Rule,
    Term,
    Variable,
    aggregated_variables,
    atom_variables,
    bound_by,
    canonical,
    element_variables,
    substitute_aggregation,
)
from evermat.values import integer_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evermat.errors import Span
    from evermat.lang.syntax import BodyElement, Expression
    from evermat.values import Constant

ZERO_WHEN_EMPTY = frozenset({"count", "sum"})
"""The functions that have a value for empty groups."""

WITH_STATE = frozenset({"sum", "avg"})
"""The functions whose facts have a state as their last argument."""

MOST_EMPTY = 6
"""The most groups of one rule that may be empty or not: each doubles its rules."""

_ZERO = Term(integer_constant(0))


def is_aggregate_rule(rule: Rule) -> bool:
    """Return whether a normal rule consists of an aggregate over a single atom."""
    return len(rule.body) == 1 and isinstance(rule.body[0], Aggregation)


def without_aggregates(rule: Rule) -> Iterator[Rule]:
    """Yield rules that are together equivalent to a rule with one head and aggregates.

    These are aggregate rules in normal form, and others that need not be normal; the
    bodies of aggregates may contain aggregates, too.
    """
    others = tuple(e for e in rule.body if not isinstance(e, Aggregation))
    outside = names_outside(rule)
    seen: set[str] = set()
    choices: dict[tuple[object, ...], list[tuple[Value, int]]] = {}
    for number, element in enumerate(rule.aggregations()):
        value = Value(rule, element, outside, number)
        for made in value.rules():
            if made.head.predicate not in seen:
                seen.add(made.head.predicate)
                yield made
        key = value.group_key if value.may_be_empty else (number,)
        choices.setdefault(key, []).append((value, number))
    ways = [
        (False, True) if group[0][0].may_be_empty else (False,)
        for group in choices.values()
    ]
    for are_empty in product(*ways):
        parts: list[BodyElement] = []
        for group, is_empty in zip(choices.values(), are_empty, strict=True):
            for value, _ in group:
                parts += value.when_empty() if is_empty else [value.atom()]
        yield replace(rule, body=(*others, *parts), origin=rule.written)


def names_outside(rule: Rule) -> frozenset[str]:
    """Return the variables of a rule that occur outside of its aggregates."""
    found = {variable.name for head in rule.heads for variable in atom_variables(head)}
    for element in rule.body:
        if isinstance(element, Aggregation):
            found.add(element.target.name)
        else:
            found.update(variable.name for variable in element_variables(element))
    return frozenset(found - {ANONYMOUS})


def unnamed_targets(body: Iterable[BodyElement]) -> frozenset[str]:
    """Return the targets that users did not write, as in `count{ … } > 3`."""
    return frozenset(
        element.target.name
        for element in body
        if isinstance(element, Aggregation)
        and element.target.span is not None
        and element.target.span.source.text[element.target.span.start] != "?"
    )


def group_of(element: Aggregation, outside: frozenset[str]) -> tuple[str, ...]:
    """Return the variables by which an aggregate groups, in order of occurrence."""
    names = (variable.name for variable in aggregated_variables(element))
    return tuple(dict.fromkeys(name for name in names if name in outside))


def members_rule(rule: Rule, element: Aggregation, outside: frozenset[str]) -> Rule:
    """Return the rule that derives the members of an aggregate.

    Variables that its body uses but does not bind are bound by atoms from outside.
    """
    group = group_of(element, outside)
    arguments = (*map(Variable, group), *element.values)
    head = Atom(f"{AUXILIARY_MARK}members", arguments, element.span)
    missing = set(group) - bound_by(element.body)
    helpers = [
        atom
        for atom in rule.positive_atoms()
        if missing & {variable.name for variable in atom_variables(atom)}
    ]
    body = (*helpers, *element.body)
    return Rule((head,), body, rule.span, rule.written)


@dataclass(frozen=True, slots=True)
class Members:
    """The facts that an aggregate is computed from.

    Attributes:
        predicate: the predicate of the facts.
        arity: the number of their columns.
        group: the columns to group by.
        value: the column to aggregate.
        rule: the rule that derives the facts; None if they are those of an atom.
        place: the position of the predicate in the text, if it occurs there.
    """

    predicate: str
    arity: int
    group: tuple[int, ...]
    value: int
    rule: Rule | None = None
    place: Span | None = None

    @classmethod
    def of(cls, rule: Rule, element: Aggregation, outside: frozenset[str]) -> Members:
        """Return the members of an aggregate of a rule."""
        group = group_of(element, outside)
        derived = members_rule(rule, element, outside)
        direct = cls._direct(derived, element, group)
        if direct is not None:
            return direct
        head = replace(derived.head, predicate=_name_of(derived))
        columns = tuple(range(len(group)))
        named = replace(derived, heads=(head,))
        return cls(head.predicate, head.arity, columns, len(group), named)

    @classmethod
    def _direct(
        cls, rule: Rule, element: Aggregation, group: tuple[str, ...]
    ) -> Members | None:
        """Return the facts of the only atom, if each of them is a distinct tuple."""
        atom = rule.body[0]
        if len(rule.body) != 1 or not isinstance(atom, Atom):
            return None
        columns = {
            argument.name: at
            for at, argument in enumerate(atom.arguments)
            if isinstance(argument, Variable) and argument.name != ANONYMOUS
        }
        tuple_ = {v.name for v in element.values if isinstance(v, Variable)}
        first = element.values[0]
        if (
            atom.predicate == TRIPLE
            or len(columns) != atom.arity
            or not isinstance(first, Variable)
            or not all(isinstance(value, Variable) for value in element.values)
            or columns.keys() != tuple_ | set(group)
        ):
            return None
        places = tuple(columns[name] for name in group)
        value = columns[first.name]
        place = atom.predicate_span
        return cls(atom.predicate, atom.arity, places, value, place=place)


def _name_of(rule: Rule) -> str:
    """Return a name for members that does not depend on the names of variables."""
    return str(canonical(rule)).removesuffix(" .")


def written_aggregate(
    written: Rule, predicate: str
) -> tuple[Aggregation, tuple[str, ...]] | None:
    """Return the aggregate whose results are facts of a predicate, and its group."""
    outside = names_outside(written)
    for number, element in enumerate(written.aggregations()):
        value = Value(written, element, outside, number)
        if predicate == value.predicate:
            return element, value.group
        inner = written_aggregate(members_rule(written, element, outside), predicate)
        if inner is not None:
            return inner
    return None


def aggregated_by(predicate: str) -> str:
    """Return which of `ZERO_WHEN_EMPTY` has its results in a predicate, if any."""
    for function in sorted(ZERO_WHEN_EMPTY):
        if predicate.startswith(f"{AUXILIARY_MARK}{function}("):
            return function
    return ""


def with_group(
    element: Aggregation, group: Iterable[str], values: Iterable[Constant]
) -> Aggregation:
    """Return an aggregate with constants for its grouping variables."""
    known: dict[str, Expression] = dict(zip(group, map(Term, values), strict=False))
    known.pop(element.target.name, None)
    return substitute_aggregation(element, known)


class Value:
    """One aggregate of a rule."""

    def __init__(
        self, rule: Rule, element: Aggregation, outside: frozenset[str], number: int
    ) -> None:
        self._rule = rule
        self._element = element
        self._number = number
        self._group = group_of(element, outside)
        self._members = Members.of(rule, element, outside)
        others = [each for each in rule.body if each is not element]
        bound = bound_by(others, as_groups=False)
        self.may_be_empty = element.function in ZERO_WHEN_EMPTY and bound.issuperset(
            self._group
        )

    @property
    def group_key(self) -> tuple[object, ...]:
        """A key that is equal for aggregates of one rule with the same groups."""
        members = self._members
        return members.predicate, members.group, self._group

    @property
    def group(self) -> tuple[str, ...]:
        """The grouping variables."""
        return self._group

    @property
    def predicate(self) -> str:
        """The predicate of the results."""
        members = self._members
        columns = ", ".join(map(str, members.group))
        what = f"{members.predicate}, {members.value} by [{columns}]"
        return f"{AUXILIARY_MARK}{self._element.function}({what})"

    @property
    def _has_state(self) -> bool:
        return self._element.function in WITH_STATE

    def rules(self) -> Iterator[Rule]:
        """Yield the rules of values, and of members that are not facts of an atom."""
        members = self._members
        if members.rule is not None:
            yield members.rule
        rule, span = self._rule, self._element.span
        columns = tuple(Variable(f"x{at}") for at in range(members.arity))
        inner = Atom(members.predicate, columns, span, members.place)
        value = Variable("value")
        state = [Variable("state")] if self._has_state else []
        body = Aggregation(
            value, self._element.function, (columns[members.value],), (inner,), span
        )
        arguments = (*(columns[at] for at in members.group), value, *state)
        head = Atom(self.predicate, arguments, span)
        yield Rule((head,), (body,), rule.span, rule.written)

    def atom(self) -> Atom:
        """Return the atom that binds the target to the value."""
        state = [Variable(f"_state{self._number}")] if self._has_state else []
        arguments = (*map(Variable, self._group), self._element.target, *state)
        return Atom(self.predicate, arguments, self._element.span)

    def when_empty(self) -> list[BodyElement]:
        """Return the body elements for an empty group."""
        rest = [Variable(ANONYMOUS)] * (2 if self._has_state else 1)
        span = self._element.span
        absent = Atom(self.predicate, (*map(Variable, self._group), *rest), span)
        return [
            Condition(Call("=", (self._element.target, _ZERO), span), span),
            Negation(absent, span),
        ]
