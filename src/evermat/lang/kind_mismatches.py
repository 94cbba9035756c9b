"""Joins and constants that never match, as `1`, `1.0` and `"1"` are different things.

The kinds of constants that each column can have are worked out from the facts, through
the rules, up to a fixpoint. Where two columns that a rule joins have no kind in common,
the rule derives nothing, and nothing else would tell.
"""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from evermat.errors import (
    KindMismatchWarning,
    Label,
    NumberMismatchWarning,
    ProgramWarning,
)
from evermat.functions import ANY, NUMBER, Type
from evermat.lang.column_types import type_name
from evermat.lang.syntax import (
    ANONYMOUS,
    SAME_AS,
    TRIPLE,
    Atom,
    Call,
    Condition,
    Expression,
    Rule,
    Term,
    Variable,
)
from evermat.lang.type_checks import call_type
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evermat.errors import Span
    from evermat.lang.syntax import Program
    from evermat.values import Constant

Column = tuple[str, int]
"""A predicate and a position, from 0."""

_OPEN = frozenset({TRIPLE, SAME_AS})
"""Predicates whose columns have all sorts of constants."""

_MOST_RULES = 2_000
"""Programs of more are made by programs, and would take seconds."""

_INTEGER = re.compile("-?[0-9]+")
_NOTHING: Type = frozenset()


def kind_mismatches(
    program: Program, data: Mapping[str, Sequence[Type]] | None = None
) -> Iterator[ProgramWarning]:
    """Warnings of what can never match.

    Args:
        program: rules and facts.
        data: the kinds in the columns of facts that the program is not alone with.
    """
    yield from _strings_of_digits(program)
    if len(program.rules) > _MOST_RULES or _has_equality(program):
        return
    columns = _Columns(program, data)
    for rule in program.rules:
        yield from columns.mismatches(rule)


class _Columns:
    """The kinds of constants that columns can have."""

    def __init__(
        self, program: Program, data: Mapping[str, Sequence[Type]] | None
    ) -> None:
        self._kinds: dict[Column, set[Kind]] = defaultdict(set)
        self._numbers: dict[Column, dict[Decimal, set[Kind]]] = {}
        self._open = set(_OPEN)
        if data is None:
            self._open.update(source.predicate for source in program.sources)
        for fact in program.facts:
            for at, argument in enumerate(fact.arguments):
                if isinstance(argument, Term):
                    self._note(argument.constant, (fact.predicate, at))
        for name, kinds in (data or {}).items():
            for at, found in enumerate(kinds):
                self._kinds[name, at] |= found
        heads = {head.predicate for rule in program.rules for head in rule.heads}
        self._known = heads | {name for name, _ in self._kinds}
        self._saturate(program.rules)

    def _note(self, constant: Constant, column: Column) -> None:
        self._kinds[column].add(constant.kind)
        number = _number(constant)
        if number is not None:
            same = self._numbers.setdefault(column, {})
            same.setdefault(number, set()).add(constant.kind)

    def _saturate(self, rules: Sequence[Rule]) -> None:
        """Take the kinds of bodies over into heads, until nothing is new."""
        readers: dict[str, list[Rule]] = defaultdict(list)
        for rule in rules:
            for name in {atom.predicate for atom in rule.positive_atoms()}:
                readers[name].append(rule)
        waiting = dict.fromkeys(rules)
        while waiting:
            rule = next(iter(waiting))
            del waiting[rule]
            for head in rule.heads:
                if head.predicate not in self._open and self._derive(rule, head):
                    waiting.update(dict.fromkeys(readers[head.predicate]))

    def _derive(self, rule: Rule, head: Atom) -> bool:
        """Note the kinds of a head; whether there are new ones."""
        variables = self._variables(rule)
        is_news = False
        for at, argument in enumerate(head.arguments):
            found = self._expression(argument, variables)
            known = self._kinds[head.predicate, at]
            if not found <= known:
                known |= found
                is_news = True
        return is_news

    def _of(self, predicate: str, at: int) -> Type:
        if predicate in self._open or predicate not in self._known:
            return ANY
        return frozenset(self._kinds.get((predicate, at), ()))

    def _variables(self, rule: Rule) -> dict[str, Type]:
        """The kinds that variables can have by the atoms of a body."""
        found: dict[str, Type] = {}
        for atom in rule.positive_atoms():
            for at, argument in enumerate(atom.arguments):
                if isinstance(argument, Variable):
                    name = argument.name
                    found[name] = found.get(name, ANY) & self._of(atom.predicate, at)
        return found

    def _expression(self, expression: Expression, variables: dict[str, Type]) -> Type:
        match expression:
            case Term(constant=constant):
                return frozenset({constant.kind})
            case Variable(name=name):
                return variables.get(name, ANY)
            case Call(function=name, arguments=arguments):
                types = [self._expression(each, variables) for each in arguments]
                return call_type(name, types) if all(types) else _NOTHING

    # -- what does not match

    def mismatches(self, rule: Rule) -> Iterator[ProgramWarning]:
        """The joins, constants and equations of a rule that never match."""
        for atom in (*rule.positive_atoms(), *rule.negated_atoms()):
            yield from self._constants(atom)
        joins = list(self._joins(rule))
        yield from joins
        if not joins:
            variables = self._variables(rule)
            for element in rule.body:
                if isinstance(element, Condition):
                    yield from self._equation(element.expression, variables)

    def _constants(self, atom: Atom) -> Iterator[ProgramWarning]:
        for at, argument in enumerate(atom.arguments):
            if not isinstance(argument, Term):
                continue
            column, constant = (atom.predicate, at), argument.constant
            kinds = self._of(*column)
            number = _number(constant)
            same = self._numbers.get(column, {}).get(number or Decimal(0), set())
            if kinds and constant.kind not in kinds:
                yield _mismatch(
                    f"no fact of `{atom.predicate}` has "
                    f"{_a(frozenset({constant.kind}))} as argument {at + 1}",
                    (frozenset({constant.kind}), kinds),
                    ((argument.span, f"the facts have {_a(kinds)} here"),),
                )
            elif number is not None and same and constant.kind not in same:
                yield _mismatch(
                    f"no fact of `{atom.predicate}` has `{constant}` as argument "
                    f"{at + 1}",
                    (frozenset({constant.kind}), frozenset(same)),
                    ((argument.span, f"facts have it as {_a(frozenset(same))}"),),
                )

    def _joins(self, rule: Rule) -> Iterator[ProgramWarning]:
        seen: dict[str, list[tuple[Type, Span | None]]] = {}
        reported = {ANONYMOUS}
        for atom in rule.positive_atoms():
            for at, argument in enumerate(atom.arguments):
                kinds = self._of(atom.predicate, at)
                if not isinstance(argument, Variable) or not kinds:
                    continue
                name, before = argument.name, seen.setdefault(argument.name, [])
                other = next((each for each in before if not each[0] & kinds), None)
                before.append((kinds, argument.span))
                if other is not None and name not in reported:
                    reported.add(name)
                    yield _mismatch(
                        f"`?{name}` is {_a(kinds)} in one atom and {_a(other[0])} in "
                        "another, so nothing matches",
                        (kinds, other[0]),
                        ((argument.span, type_name(kinds)),
                         (other[1], type_name(other[0]))),
                    )  # fmt: skip

    def _equation(
        self, call: Call, variables: dict[str, Type]
    ) -> Iterator[ProgramWarning]:
        if call.function not in {"=", "!="} or len(call.arguments) != 2:  # noqa: PLR2004  both sides
            return
        left, right = (self._expression(each, variables) for each in call.arguments)
        if left and right and not left & right:
            word = "never" if call.function == "=" else "always"
            yield _mismatch(
                f"the condition is {word} true: it compares {_a(left)} with "
                f"{_a(right)}",
                (left, right),
                ((call.span, ""),),
            )


def _has_equality(program: Program) -> bool:
    """Whether names of different kinds may be made equal."""
    heads = (head for rule in program.rules for head in rule.heads)
    return any(atom.predicate == SAME_AS for atom in (*program.facts, *heads))


def _strings_of_digits(program: Program) -> Iterator[KindMismatchWarning]:
    """Columns that have integers in some facts and strings of digits in others."""
    integers: dict[Column, Term] = {}
    strings: dict[Column, Term] = {}
    for fact in program.facts:
        for at, argument in enumerate(fact.arguments):
            if isinstance(argument, Term) and fact.predicate not in _OPEN:
                constant, column = argument.constant, (fact.predicate, at)
                if constant.kind is Kind.INTEGER:
                    integers.setdefault(column, argument)
                elif constant.kind is Kind.STRING and _INTEGER.fullmatch(constant.text):
                    strings.setdefault(column, argument)
    for name, at in sorted(integers.keys() & strings.keys()):
        places = (
            (strings[name, at].span, "a string"),
            (integers[name, at].span, "an integer"),
        )
        kinds = (frozenset({Kind.INTEGER}), frozenset({Kind.STRING}))
        message = (
            f"argument {at + 1} of `{name}` is an integer in some facts and a string "
            "of digits in others"
        )
        yield _mismatch(message, kinds, places)


def _mismatch(
    message: str,
    kinds: tuple[Type, Type],
    places: Iterable[tuple[Span | None, str]],
) -> KindMismatchWarning:
    labels = tuple(Label(span, text) for span, text in places if span is not None)
    if all(each <= NUMBER for each in kinds):
        return NumberMismatchWarning(
            message,
            labels=labels,
            law="numbers of different types are never equal, not even `2` and `2.0`",
            help="write all of them in one way, or turn them into doubles with "
            "`double(...)`",
        )
    return KindMismatchWarning(
        message,
        labels=labels,
        law='constants of different kinds are never equal, not even `1` and `"1"`',
        help="correct one of the two, or turn values into strings with `str(...)`, "
        "strings into integers with `int(...)`",
    )


def _a(kinds: Type) -> str:
    """A kind with its article: `an integer`."""
    name = type_name(kinds)
    if name == "iri":
        return "an IRI"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _number(constant: Constant) -> Decimal | None:
    """The value of a number; none of others, and of `INF` and `NaN`."""
    if constant.kind not in NUMBER:
        return None
    try:
        value = Decimal(constant.text)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
