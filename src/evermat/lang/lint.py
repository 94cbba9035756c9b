"""Warnings about parts of programs that are allowed, but probably not intended."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from evermat.errors import (
    DuplicateRuleWarning,
    ForgottenVariableWarning,
    KindMismatchWarning,
    Label,
    NumberMismatchWarning,
    ProgramWarning,
    SingletonVariableWarning,
    UndefinedPredicateWarning,
    UnusedPredicateWarning,
)
from evermat.errors.wording import did_you_mean
from evermat.functions import ANY, NUMBER, Type
from evermat.lang.syntax import (
    ANONYMOUS,
    SAME_AS,
    TRIPLE,
    Aggregation,
    Assignment,
    Atom,
    Call,
    Condition,
    Expression,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
    body_atoms,
    rule_key,
    rule_variables,
)
from evermat.lang.types import call_type, type_name
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import (
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from evermat.errors import Span
    from evermat.lang.syntax import BodyElement
    from evermat.values import Constant


# ----------------------------------------------------- strings that look like variables
#
# In many rule languages a bare word is a variable; here it is a string. A rule such as
# `needs(a, c) :- part(a, c, _) .` is therefore valid and derives nothing. Two signs
# indicate such words: they join atoms, and they are short. A word that a fact of the
# program uses is a constant, and so is a quoted one.


_SHORT = 2
"""The greatest length of words that are rarely meant as constants."""


def forgotten_variables(program: Program) -> Iterator[ForgottenVariableWarning]:
    """Yield a warning for each rule with words that may be meant as variables."""
    suspects = [(rule, words) for rule in program.rules if (words := _suspects(rule))]
    if not suspects:
        return
    constants = _constants(program)
    for rule, words in suspects:
        found = [word for word in words if word not in constants]
        if found:
            yield _warning(rule, found)


def _suspects(rule: Rule) -> list[str]:
    """Return the words of a rule that are used like variables."""
    head = {term.constant.text for atom in rule.heads for term in _words(atom)}
    body = [term.constant.text for part in rule.body for term in _words(part)]
    if not head and not body:
        return []
    names = {variable.name for variable in rule_variables(rule)} - {ANONYMOUS}
    words = dict.fromkeys((*head, *body))
    return sorted(
        word
        for word in words
        if word in names  # `p(x) :- q(?x)`
        or (word in head and word in body and (len(word) <= _SHORT or not names))
        or (body.count(word) > 1 and len(word) <= _SHORT)
    )


def _words(part: BodyElement) -> Iterator[Term]:
    """Yield the strings in a head or a body element that are written without quotes."""
    match part:
        case Atom(predicate=predicate, arguments=arguments):
            # The word for `rdf:type` is not a string.
            if predicate != TRIPLE:
                yield from (word for each in arguments for word in _bare(each))
        case Negation(atom=atom):
            yield from _words(atom)
        case Condition(expression=expression) | Assignment(expression=expression):
            yield from _bare(expression)
        case Aggregation(values=values, body=body):
            for value in values:
                yield from _bare(value)
            for inner in body:
                yield from _words(inner)


def _bare(expression: Expression) -> Iterator[Term]:
    match expression:
        case Term(constant=constant, span=span):
            if constant.kind is Kind.STRING and span is not None:
                written = span.source.text[span.start : span.end]
                if written == constant.text:
                    yield expression
        case Call(arguments=arguments):
            for argument in arguments:
                yield from _bare(argument)
        case Variable():
            return


def _constants(program: Program) -> set[str]:
    """Return the strings of facts, and those that rules contain in quotes."""
    found = {
        argument.constant.text
        for fact in program.facts
        for argument in fact.arguments
        if isinstance(argument, Term)
    }
    for rule in program.rules:
        for part in (*rule.heads, *rule.body):
            bare = {id(word) for word in _words(part)}
            found.update(
                term.constant.text for term in _terms(part) if id(term) not in bare
            )
    return found


def _terms(part: BodyElement) -> Iterator[Term]:
    match part:
        case Atom(arguments=arguments) | Negation(atom=Atom(arguments=arguments)):
            yield from (each for each in arguments if isinstance(each, Term))
        case _:
            return


def _warning(rule: Rule, words: list[str]) -> ForgottenVariableWarning:
    places = [
        word.span
        for part in (*rule.heads, *rule.body)
        for word in _words(part)
        if word.constant.text in words and word.span is not None
    ]
    variables = " and ".join(f"`?{word}`" for word in words)
    strings = " and ".join(f'`"{word}"`' for word in words)
    listed = " and ".join(f"`{word}`" for word in words)
    what = "is a string" if len(words) == 1 else "are strings"
    return ForgottenVariableWarning(
        f"{listed} {what} here, not {'a variable' if len(words) == 1 else 'variables'}",
        labels=tuple(Label(place, "a string") for place in places),
        reason="a word without `?` is a string",
        help=f"write {variables}; if strings are meant, {strings}",
        words=tuple(words),
    )


# ------------------------------------------------- joins and constants that never match
#
# `1`, `1.0` and `"1"` are different constants. The kinds of constants that each column
# can have are propagated from the facts through the rules, up to a fixpoint. Where two
# columns that a rule joins have no kind in common, the rule derives nothing.


Column = tuple[str, int]
"""A predicate and a position, from 0."""

_OPEN = frozenset({TRIPLE, SAME_AS})
"""Predicates whose columns contain constants of all kinds."""

_MOST_RULES = 2_000
"""The most rules of a program to check; larger ones are generated, and take seconds."""

_INTEGER = re.compile("-?[0-9]+")
_NOTHING: Type = frozenset()


def kind_mismatches(
    program: Program, data: Mapping[str, Sequence[Type]] | None = None
) -> Iterator[ProgramWarning]:
    """Yield warnings about joins and constants that can never match.

    Args:
        program: rules and facts.
        data: the kinds in the columns of facts from elsewhere, if all are known.
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
        """Propagate kinds from bodies to heads, up to the fixpoint."""
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
        """Record the kinds of a head; return whether there are new ones."""
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
        """Return the kinds that variables can have according to the atoms of a body."""
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

    # -- mismatches

    def mismatches(self, rule: Rule) -> Iterator[ProgramWarning]:
        """Yield the joins, constants and equations of a rule that never match."""
        for atom in rule.atoms():
            if atom not in rule.heads:
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
    """Return whether names of different kinds may be made equal."""
    heads = (head for rule in program.rules for head in rule.heads)
    return any(atom.predicate == SAME_AS for atom in (*program.facts, *heads))


def _strings_of_digits(program: Program) -> Iterator[KindMismatchWarning]:
    """Yield warnings for columns with both integers and strings of digits in facts."""
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
            reason="numbers of different types are never equal, not even `2` and `2.0`",
            help="write all of them in one way, or turn them into doubles with "
            "`double(...)`",
        )
    return KindMismatchWarning(
        message,
        labels=labels,
        reason='constants of different kinds are never equal, not even `1` and `"1"`',
        help="correct one of the two, or turn values into strings with `str(...)`, "
        "strings into integers with `int(...)`",
    )


def _a(kinds: Type) -> str:
    """Return a kind with its article: `an integer`."""
    name = type_name(kinds)
    if name == "iri":
        return "an IRI"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _number(constant: Constant) -> Decimal | None:
    """Return the value of a number; None for others, and for `INF` and `NaN`."""
    if constant.kind not in NUMBER:
        return None
    try:
        value = Decimal(constant.text)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def remarks(
    program: Program, known: Collection[str] | None = None
) -> Iterator[ProgramWarning]:
    """Yield all warnings about a program, except those of `type_checks`."""
    yield from lint(program)
    yield from _undefined_predicates(program, known)
    yield from _unused_predicates(program)
    yield from _duplicate_rules(program)
    for rule in program.rules:
        yield from _singleton_variables(rule)


def lint(
    program: Program, data: Mapping[str, Sequence[Type]] | None = None
) -> Iterator[ProgramWarning]:
    """Yield warnings about programs with no results, or with unintended ones.

    Args:
        program: rules and facts.
        data: the kinds in the columns of facts from elsewhere, if all of them are
            known.
    """
    yield from forgotten_variables(program)
    yield from kind_mismatches(program, data)


def _body_atoms(program: Program) -> Iterator[Atom]:
    for rule in program.rules:
        yield from body_atoms(rule.body)


def _derived(program: Program) -> set[str]:
    return {head.predicate for rule in program.rules for head in rule.heads}


def _undefined_predicates(
    program: Program, known: Collection[str] | None
) -> Iterator[UndefinedPredicateWarning]:
    defined = _derived(program) | {fact.predicate for fact in program.facts} | {TRIPLE}
    defined.update(source.predicate for source in program.sources)
    defined.update(each.predicate for each in program.declarations)
    defined.update(known or ())
    # A program that declares its data sources is complete; any other may get data of
    # any name.
    is_closed = known is not None or bool(program.sources or program.declarations)
    reported: set[str] = set()
    for atom in _body_atoms(program):
        name = atom.predicate
        if name in defined or name in reported:
            continue
        reported.add(name)
        question = did_you_mean(name, defined)
        if question is not None or is_closed:
            yield UndefinedPredicateWarning(
                f"nothing gives `{name}` any facts",
                labels=_labels(atom.predicate_span or atom.span),
                help=question or "add a rule, a fact, `@import` or `@declare` for it",
            )


def _unused_predicates(program: Program) -> Iterator[UnusedPredicateWarning]:
    read = {atom.predicate for atom in _body_atoms(program)}
    written = {sink.predicate for sink in program.sinks}
    mentioned = read | written | _derived(program)
    mentioned.update(fact.predicate for fact in program.facts)
    mentioned.update(source.predicate for source in program.sources)
    for declaration in program.declarations:
        if declaration.predicate not in mentioned:
            yield _unused(declaration.predicate, declaration.span, "declared")
    for source in program.sources:
        if source.predicate not in read | written:
            yield _unused(source.predicate, source.span, "imported")
    if written:
        yield from _unread_rules(program, read | written)


def _unread_rules(program: Program, used: set[str]) -> Iterator[UnusedPredicateWarning]:
    """Yield warnings for rules that none of the exported predicates depends on."""
    reported: set[str] = set()
    for rule in program.rules:
        for head in rule.heads:
            if head.predicate not in used | reported:
                reported.add(head.predicate)
                span = head.predicate_span or head.span
                yield _unused(head.predicate, span, "derived")


def _unused(name: str, span: Span | None, participle: str) -> UnusedPredicateWarning:
    return UnusedPredicateWarning(
        f"`{name}` is {participle} but never used",
        labels=_labels(span),
        help="use it, export it, or leave it out",
    )


def _duplicate_rules(program: Program) -> Iterator[DuplicateRuleWarning]:
    first: dict[Hashable, Rule] = {}
    for rule in program.rules:
        earlier = first.setdefault(rule_key(rule), rule)
        if earlier is not rule:
            yield DuplicateRuleWarning(
                "the rule says the same as an earlier one",
                labels=_labels(rule.span, "this one")
                + _labels(earlier.span, "the earlier one"),
                help="leave one of them out",
            )


def _singleton_variables(rule: Rule) -> Iterator[SingletonVariableWarning]:
    counts = Counter(variable.name for variable in rule_variables(rule))
    for variable in _plain_arguments(rule):
        name = variable.name
        if counts[name] == 1 and not name.startswith("_"):
            yield SingletonVariableWarning(
                f"variable `?{name}` occurs only once",
                labels=_labels(variable.span),
                help="write `_` if its value does not matter",
            )


def _plain_arguments(rule: Rule) -> Iterator[Variable]:
    """Yield variables that are arguments of body atoms; `checks` covers others."""
    atoms = (*rule.positive_atoms(), *rule.negated_atoms(), *rule.aggregated_atoms())
    for atom in atoms:
        for argument in atom.arguments:
            if isinstance(argument, Variable):
                yield argument


def _calls(rule: Rule) -> Iterator[Call]:
    for part in (*rule.heads, *rule.body):
        match part:
            case Atom(arguments=arguments) | Negation(atom=Atom(arguments=arguments)):
                for argument in arguments:
                    yield from _calls_in(argument)
            case Condition(expression=expression) | Assignment(expression=expression):
                yield from _calls_in(expression)
            case Aggregation(values=values):
                for value in values:
                    yield from _calls_in(value)


def _calls_in(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for argument in expression.arguments:
            yield from _calls_in(argument)


def _labels(span: Span | None, text: str = "") -> tuple[Label, ...]:
    return () if span is None else (Label(span, text),)
