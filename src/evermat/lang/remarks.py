"""Warnings: what a program may say, but hardly means."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evermat.errors import (
    DuplicateRuleWarning,
    Label,
    LoneExtremeWarning,
    ProgramWarning,
    SingletonVariableWarning,
    UndefinedPredicateWarning,
    UnusedPredicateWarning,
)
from evermat.lang.forgotten_variables import forgotten_variables
from evermat.lang.kind_mismatches import kind_mismatches
from evermat.lang.renaming import rule_key
from evermat.lang.suggestions import did_you_mean
from evermat.lang.syntax import (
    TRIPLE,
    Assignment,
    Atom,
    Call,
    Condition,
    Expression,
    Negation,
    Program,
    Rule,
    Variable,
    rule_variables,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

    from evermat.errors import Span
    from evermat.functions import Type


def remarks(
    program: Program, known: Collection[str] | None = None
) -> Iterator[ProgramWarning]:
    """All warnings about a program, except those of `type_checks`."""
    yield from doubts(program)
    yield from _undefined_predicates(program, known)
    yield from _unused_predicates(program)
    yield from _duplicate_rules(program)
    for rule in program.rules:
        yield from _singleton_variables(rule)


def doubts(
    program: Program, data: Mapping[str, Sequence[Type]] | None = None
) -> Iterator[ProgramWarning]:
    """Warnings of what a program hardly means: it would have no or other results.

    Args:
        program: rules and facts.
        data: the kinds in the columns of facts that come from elsewhere, if all of
            them are known.
    """
    yield from forgotten_variables(program)
    yield from kind_mismatches(program, data)
    for rule in program.rules:
        yield from _lone_extremes(rule)


def _body_atoms(program: Program) -> Iterator[Atom]:
    for rule in program.rules:
        for element in rule.body:
            if isinstance(element, Atom):
                yield element
            elif isinstance(element, Negation):
                yield element.atom


def _derived(program: Program) -> set[str]:
    return {head.predicate for rule in program.rules for head in rule.heads}


def _undefined_predicates(
    program: Program, known: Collection[str] | None
) -> Iterator[UndefinedPredicateWarning]:
    defined = _derived(program) | {fact.predicate for fact in program.facts} | {TRIPLE}
    defined.update(source.predicate for source in program.sources)
    defined.update(each.predicate for each in program.declarations)
    defined.update(known or ())
    # A program that says where its data comes from is taken at its word; any other
    # may be given data of any name.
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
    """Where the program says what it exports, all else should serve that."""
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
    """Variables that are arguments of body atoms; elsewhere safety has its say."""
    for atom in (*rule.positive_atoms(), *rule.negated_atoms()):
        for argument in atom.arguments:
            if isinstance(argument, Variable):
                yield argument


def _lone_extremes(rule: Rule) -> Iterator[LoneExtremeWarning]:
    for call in _calls(rule):
        if call.function in {"min", "max"} and len(call.arguments) == 1:
            yield LoneExtremeWarning(
                f"`{call.function}` of a single value is that value",
                labels=_labels(call.span),
                law="rules have no aggregates yet: a function sees the values of one "
                "row",
                help="sort or group the answers of a query instead, or give two "
                f"values: `{call.function}(?a, ?b)`",
            )


def _calls(rule: Rule) -> Iterator[Call]:
    for part in (*rule.heads, *rule.body):
        match part:
            case Atom(arguments=arguments) | Negation(atom=Atom(arguments=arguments)):
                for argument in arguments:
                    yield from _calls_in(argument)
            case Condition(expression=expression) | Assignment(expression=expression):
                yield from _calls_in(expression)


def _calls_in(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for argument in expression.arguments:
            yield from _calls_in(argument)


def _labels(span: Span | None, text: str = "") -> tuple[Label, ...]:
    return () if span is None else (Label(span, text),)
