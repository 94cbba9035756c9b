"""Questions: a conjunction of atoms, negated atoms and built-ins over what holds now.

A question is a rule without a head of its own. It goes the way of every rule (checks,
normal form, query) and is then run once, against the stored facts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evermat.algebra import Views
from evermat.algebra.compile import compile_rules
from evermat.columns import empty_table
from evermat.lang.checks import require_valid
from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_query
from evermat.lang.syntax import (
    ANONYMOUS,
    Atom,
    Condition,
    Declaration,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
    atom_variables,
    expression_variables,
)
from evermat.results.distant_rows import has_distant_answers
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from evermat.algebra import Engine, Facts, Pattern, Query
    from evermat.lang.catalogue import Catalogue
    from evermat.lang.syntax import BodyElement
    from evermat.results.distant_rows import DistantRows
    from evermat.values import Constant

ANSWER = "~answer"
"""The predicate of answers."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A question, ready to be asked.

    Attributes:
        columns: the variables, in the order in which they are first mentioned.
        query: what finds the answers. Without variables it yields one row, `true`.
            None if a condition, such as `1 > 2`, rules out every answer.
        body: the question as it was asked.
        auxiliaries: what must be worked out first: the facts below a `not` that
            mentions variables of its own.
    """

    columns: tuple[str, ...]
    query: Query | None
    auxiliaries: tuple[Query, ...]
    body: tuple[BodyElement, ...] = ()

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """All patterns that facts are compared with."""
        queries = self.auxiliaries
        if self.query is not None:
            queries = (self.query, *queries)
        return tuple(
            pattern
            for query in queries
            for pattern in (*query.positive, *query.negative)
        )


def read_question(
    text: str,
    *,
    catalogue: Catalogue,
    prefixes: Mapping[str, str],
    parameters: Mapping[str, Constant] | None = None,
) -> Question:
    """Parse and check a question; `parameters` are the values of `$name` in it.

    Raises:
        ParseError: the text is no question.
        UnknownPredicateError: it asks for a predicate that does not exist.
        ArityClashError: an atom has too few or too many arguments.
        ProgramError: a variable is not bound, or a built-in is misused.
    """
    return question_of(
        parse_query(text, prefixes=prefixes, parameters=parameters),
        text=text,
        catalogue=catalogue,
    )


def question_of(
    body: tuple[BodyElement, ...], *, text: str, catalogue: Catalogue
) -> Question:
    """Check a question; `text` is what it is called in messages."""
    for atom in body_atoms(body):
        span = atom.predicate_span or atom.span
        known = catalogue.require(atom.predicate, span=span)
        catalogue.check(known.name, atom.arity, span=atom.span)
    yes = Atom(ANSWER, (Term(boolean_constant(value=True)),))
    # Checked without its variables in a head, so that errors speak of the body.
    declared = tuple(_declaration(catalogue, atom) for atom in body_atoms(body))
    require_valid(Program(rules=(Rule((yes,), body),), declarations=declared))
    columns = tuple(dict.fromkeys(_open_variables(body)))
    head = Atom(ANSWER, tuple(Variable(name) for name in columns)) if columns else yes
    queries = [query_of(rule) for rule in normalise((Rule((head,), body),))]
    answers = [each for each in queries if each.head.relation == ANSWER]
    if not answers:
        return Question(columns, None, (), body)
    (query,) = answers
    others = tuple(each for each in queries if each is not query)
    return Question(columns, replace(query, label=text.strip()), others, body)


def _declaration(catalogue: Catalogue, atom: Atom) -> Declaration:
    known = catalogue.require(atom.predicate)
    return Declaration(known.name, known.arity, known.types)


def query_of(rule: Rule) -> Query:
    """The query of a normal rule."""
    (query,) = compile_rules((rule,), lambda _rule, _atom: False).full.queries
    return query


def ask(engine: Engine, question: Question, facts: Facts) -> pa.Table | DistantRows:
    """The distinct answers, as term columns; without columns, one empty row or none.

    Args:
        engine: where the facts are. If the question has auxiliaries, a transaction
            must be under way, which is to be rolled back.
        question: the question.
        facts: what it is about.
    """
    if question.query is None:
        return empty_table(len(question.columns))
    negative = facts
    for query in question.auxiliaries:
        relation = query.head.relation
        engine.declare(relation, len(query.head.operands))
        rows = engine.answer(query, Views(positive=facts, negative=facts))
        negative = negative | engine.intern(relation, rows)
    views = Views(positive=facts, negative=negative)
    if question.columns and has_distant_answers(engine):
        return engine.answer_distant(question.query, views)
    table = engine.answer(question.query, views)
    return table if question.columns else table.select([])


def body_atoms(body: Iterable[BodyElement]) -> Iterator[Atom]:
    """The atoms of a body, negated ones included."""
    for element in body:
        match element:
            case Atom():
                yield element
            case Negation(atom=atom):
                yield atom


def _open_variables(body: tuple[BodyElement, ...]) -> Iterator[str]:
    """The variables outside of negations: those that an answer gives values to."""
    for element in body:
        match element:
            case Atom():
                found = atom_variables(element)
            case Condition(expression=expression):
                found = expression_variables(expression)
            case _:
                continue
        yield from (each.name for each in found if each.name != ANONYMOUS)
