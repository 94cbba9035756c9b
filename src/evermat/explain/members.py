"""Results of aggregates in explanations: their members, and their actual values.

A proof ends at the results of aggregates, as it does at explicit facts. The members of
their groups then have proofs of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.algebra import Column, InlineRows, Pattern, Query, Views
from evermat.algebra.aggregates import rows_of_table
from evermat.algebra.compile import compile_aggregate, compile_rules, derive
from evermat.lang.syntax import Term
from evermat.maintenance.aggregates import plain
from evermat.maintenance.proof import Fact, Result, constant_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evermat.algebra import Engine, Facts
    from evermat.lang.syntax import Atom, Rule
    from evermat.values import Constant

MOST_MEMBERS = 10
"""The most members of a group that are shown."""


class ResultLook:
    """The aggregates of a program, by the predicates of their results."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._aggregates = {
            rule.head.predicate: compile_aggregate(rule) for rule in rules
        }
        self._all = compile_rules(
            (plain(each.rule) for each in self._aggregates.values()),
            lambda _rule, _atom: False,
        )

    def has(self, fact: Fact) -> bool:
        """Return whether a fact is the result of an aggregate."""
        return fact.relation in self._aggregates

    def leaves(self, engine: Engine) -> Facts:
        """Return the facts that need no proof; inside of a transaction."""
        if not self._aggregates:
            return engine.explicit
        facts = engine.materialised
        results = derive(engine, self._all.full, positive=facts, negative=facts)
        return engine.explicit | results

    def result(self, engine: Engine, fact: Fact) -> Result:
        """Return the members of the group of a result; inside of a transaction."""
        compiled = self._aggregates[fact.relation]
        aggregate = compiled.aggregate
        group = fact.row[: len(aggregate.group)]
        fixed = dict(zip(aggregate.group, group, strict=True))
        rows = _matching(engine, aggregate.members, aggregate.arity, fixed)
        size = len(rows)
        if aggregate.function in {"min", "max", "any"}:
            value = fact.row[len(group)]
            rows = [row for row in rows if row[aggregate.value] == value]
            most = 1
        else:
            most = MOST_MEMBERS
        rows.sort(key=lambda row: [constant_order(each) for each in row])
        members = tuple(Fact(aggregate.members, row) for row in rows[:most])
        return Result(compiled.rule, size, members)

    def actual(self, engine: Engine, atom: Atom) -> Fact | None:
        """Return the result of the group that matches an atom, if there is one."""
        aggregate = self._aggregates[atom.predicate].aggregate
        group = atom.arguments[: len(aggregate.group)]
        fixed = {
            at: argument.constant
            for at, argument in enumerate(group)
            if isinstance(argument, Term)
        }
        rows = _matching(engine, atom.predicate, atom.arity, fixed)
        return Fact(atom.predicate, rows[0]) if len(rows) == 1 else None


def _matching(
    engine: Engine, relation: str, arity: int, fixed: dict[int, Constant]
) -> list[tuple[Constant, ...]]:
    """Return the facts with certain constants."""
    columns = tuple(map(Column, range(arity)))
    pattern = Pattern(relation, columns)
    places: Sequence[int] = sorted(fixed)
    inline = InlineRows(
        tuple(columns[at] for at in places), (tuple(fixed[at] for at in places),)
    )
    query = Query(
        pattern,
        (pattern,),
        inline=inline if places else None,
        column_count=arity,
        label="an explanation",
    )
    facts = engine.materialised
    return rows_of_table(engine.answer(query, Views(facts, facts)))
