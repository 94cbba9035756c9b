"""Questions where facts hold representatives: asked about these, answered about all.

Constants of a question are replaced by what stands for them, equalities in it say that
two terms are the same, and each answer stands for all answers that differ from it in
equal constants. They are multiplied out by `Result`, when they are read. What built-ins
read is multiplied out before they read it: these columns of answers are names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.algebra import Region, Views
from evermat.columns import empty_table
from evermat.kb.queries import ANSWER, query_of
from evermat.lang.equality import (
    CONSTANT,
    answers_with_names,
    constants_of,
    replace_constants,
    rule_constants,
    without_equality_in,
)
from evermat.lang.names import NAME, OTHER, reads_other_names
from evermat.lang.normalise import normalise
from evermat.lang.syntax import Atom, Rule, Term, Variable
from evermat.maintenance.equality.names import all_names
from evermat.maintenance.equality.state import given_among, values_among
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from evermat.algebra import Facts
    from evermat.algebra.abilities import EqualityEngine
    from evermat.kb.equality_materialisation import EqualityMaterialisation
    from evermat.lang.syntax import BodyElement


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Answers in terms of representatives.

    Attributes:
        rows: term columns.
        names: the columns of names as they are; the others are of representatives.
    """

    rows: pa.Table
    names: frozenset[int] = frozenset()


def ask_representatives(
    materialisation: EqualityMaterialisation,
    columns: Sequence[str],
    body: tuple[BodyElement, ...],
    *,
    raw: bool,
) -> Answers:
    """The answers to a question.

    Args:
        materialisation: the facts.
        columns: the variables that are asked for.
        body: the question.
        raw: have representatives in all columns.
    """
    variables = tuple(Variable(name) for name in columns)
    terms = variables or (Term(boolean_constant(value=True)),)
    normal = normalise((Rule((Atom(ANSWER, terms),), body),))
    representatives = materialisation.representatives
    names: frozenset[int] = frozenset()
    if representatives.is_identity():
        rules = without_equality_in(normal)
    else:
        values = values_among(materialisation.engine.relations())
        rules, names = answers_with_names(normal, ANSWER, values, raw=raw)
    replaced = representatives.replaced(rule_constants(rules))
    rules = tuple(replace_constants(rule, replaced) for rule in rules)
    table = _ask(materialisation, rules, len(terms))
    return Answers(table, names) if columns else Answers(table.select([]))


def _ask(
    materialisation: EqualityMaterialisation, rules: tuple[Rule, ...], arity: int
) -> pa.Table:
    engine = materialisation.engine
    needs_constants = any(
        atom.predicate == CONSTANT
        for rule in rules
        for atom in (*rule.positive_atoms(), *rule.negated_atoms())
    )
    engine.begin()
    try:
        everything: Facts = engine.materialised
        if needs_constants:
            everything = everything | _constants(materialisation)
        if any(map(reads_other_names, rules)) and NAME not in engine.relations():
            names = all_names(engine, materialisation.representatives)
            everything = everything | names
        known = everything
        # Settled at once, because an engine sees through a few sets only at a time.
        others = engine.no_facts()
        answers: Facts = engine.no_facts()
        for rule in sorted(rules, key=_turn):
            query = query_of(rule)
            rows = engine.answer(query, Views(known, known))
            facts = engine.intern(rule.head.predicate, rows)
            if rule.head.predicate == ANSWER:
                answers = answers | facts
            else:
                others = engine.settle(others | facts)
                known = everything | others
        snapshot = engine.snapshot(engine.settle(answers))
        if not snapshot.relations():
            return empty_table(arity)
        return snapshot.read(ANSWER)
    finally:
        engine.rollback()


def _turn(rule: Rule) -> int:
    """When a rule is applied: all others may refer to `~other`, and none to answers."""
    return {OTHER: 0, ANSWER: 2}.get(rule.head.predicate, 1)


def _constants(materialisation: EqualityMaterialisation) -> Facts:
    """Every constant that occurs in a fact, or that is equal to another one."""
    engine = materialisation.engine
    cliques = materialisation.representatives.cliques()
    facts: Facts = engine.intern(CONSTANT, cliques.select([1]))
    everything = engine.materialised
    for rule in constants_of(engine.relations()):
        rows = engine.answer(query_of(rule), Views(everything, everything))
        facts = engine.settle(facts | engine.intern(CONSTANT, rows))
    return facts


def given_table(engine: EqualityEngine, predicate: str, arity: int) -> pa.Table:
    """The facts of a predicate that were given, as they were given."""
    region = Region(frozenset({predicate}))
    snapshot = engine.snapshot(engine.explicit.within(region))
    if not snapshot.relations().get(predicate):
        return empty_table(arity)
    engine.begin()
    try:
        found = given_among(engine, engine.find(predicate, snapshot.read(predicate)))
        given = engine.snapshot(found)
    finally:
        engine.rollback()
    if not given.relations().get(predicate):
        return empty_table(arity)
    return given.read(predicate)
