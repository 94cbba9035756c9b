"""Questions where facts hold representatives: asked about these, answered about all.

Constants of a question are replaced by what stands for them, equalities in it say that
two terms are the same, and each answer stands for all answers that differ from it in
equal constants. They are multiplied out by `Result`, when they are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Region, Views
from evermat.columns import empty_table
from evermat.lang.equality import (
    CONSTANT,
    constants_of,
    replace_constants,
    rule_constants,
    without_equality_in,
)
from evermat.lang.normalise import normalise
from evermat.lang.syntax import Atom, Rule, Term, Variable
from evermat.maintenance.equality_state import given_among
from evermat.questions import ANSWER, query_of
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from evermat.algebra import Facts
    from evermat.engine_abilities import EqualityEngine
    from evermat.lang.syntax import BodyElement
    from evermat.maintenance.equality_materialisation import EqualityMaterialisation


def ask_representatives(
    materialisation: EqualityMaterialisation,
    columns: Sequence[str],
    body: tuple[BodyElement, ...],
) -> pa.Table:
    """The answers in terms of representatives, as term columns."""
    names = tuple(Variable(name) for name in columns)
    terms = names or (Term(boolean_constant(value=True)),)
    rules = without_equality_in(normalise((Rule((Atom(ANSWER, terms),), body),)))
    values = materialisation.representatives.replaced(rule_constants(rules))
    normal = tuple(replace_constants(rule, values) for rule in rules)
    table = _ask(materialisation, normal, len(terms))
    return table if columns else table.select([])


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
        known = everything
        # Settled at once, because an engine sees through a few sets only at a time.
        others = engine.no_facts()
        answers: Facts = engine.no_facts()
        for rule in sorted(rules, key=lambda each: each.head.predicate == ANSWER):
            query = query_of(rule)
            rows = engine.answer(query, Views(everything, known))
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
