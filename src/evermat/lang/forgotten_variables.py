"""Words that are strings, and look as if they were meant as variables.

In many languages of rules a bare word is a variable; here it is a string. A rule such
as `needs(a, c) :- part(a, c, _) .` is therefore allowed and derives nothing. Such words
are found by what people do with variables: they join with them, and give them short
names. A word that a fact of the program has is a constant, and one in quotes is, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.errors import ForgottenVariableWarning, Label
from evermat.lang.syntax import (
    ANONYMOUS,
    TRIPLE,
    Assignment,
    Atom,
    Call,
    Condition,
    Expression,
    Negation,
    Rule,
    Term,
    Variable,
    rule_variables,
)
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.lang.syntax import BodyElement, Program

_SHORT = 2
"""Words of so many letters are hardly ever constants."""


def forgotten_variables(program: Program) -> Iterator[ForgottenVariableWarning]:
    """A warning for each rule with words that may be meant as variables."""
    suspects = [(rule, words) for rule in program.rules if (words := _suspects(rule))]
    if not suspects:
        return
    constants = _constants(program)
    for rule, words in suspects:
        found = [word for word in words if word not in constants]
        if found:
            yield _warning(rule, found)


def _suspects(rule: Rule) -> list[str]:
    """The words of a rule that are used like variables."""
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
    """The strings of a head or a part of a body that are written without quotes."""
    match part:
        case Atom(predicate=predicate, arguments=arguments):
            # What stands for `rdf:type` is no string.
            if predicate != TRIPLE:
                yield from (word for each in arguments for word in _bare(each))
        case Negation(atom=atom):
            yield from _words(atom)
        case Condition(expression=expression) | Assignment(expression=expression):
            yield from _bare(expression)


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
    """The strings of facts, and those that rules have in quotes."""
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
        law="a word without `?` is a string",
        help=f"write {variables}; if strings are meant, {strings}",
        words=tuple(words),
    )
