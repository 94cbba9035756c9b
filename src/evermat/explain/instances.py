"""The rule instances that derive certain facts.

Rules are matched as always, by queries in which rules that differ only in constants are
folded into one; here the matches are read, and told which rule each belongs to.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from evermat.algebra import Column, Pattern
from evermat.maintenance.proof import Fact, Instance, rows_in
from evermat.values import Constant, boolean_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evermat.algebra import Engine, Operand, Query, Views
    from evermat.algebra.compile import RuleSet
    from evermat.lang.syntax import Rule

_INSTANCE = "~instance"
"""The relation of matches, one column for each column of the query."""


class Finder:
    """Finds instances of rules by their heads."""

    def __init__(self, rules: RuleSet) -> None:
        self._queries = [
            _FamilyQuery(whole, bound, tuple(family.values()))
            for whole, bound, family in zip(
                rules.full.queries,
                rules.rederive.queries,
                rules.families.values(),
                strict=True,
            )
        ]

    def find(
        self,
        engine: Engine,
        heads: Sequence[Fact],
        views: Views,
    ) -> Iterator[tuple[Fact, Instance]]:
        """All instances over some facts that derive one of the heads.

        Args:
            engine: where the facts are.
            heads: what is to be derived.
            views: facts that premises may be, facts that must be absent, and the heads
                as changed facts.
        """
        for query in self._queries:
            if any(query.may_derive(head) for head in heads):
                table = engine.answer(query.all_columns, views)
                yield from query.read(rows_in(table, table.num_rows))

    def body_patterns(self, head: Fact) -> Iterator[Pattern]:
        """The patterns that premises of instances with a head must match."""
        for query in self._queries:
            if query.may_derive(head):
                yield from query.body_patterns(head)


class _FamilyQuery:
    """A query for rules that differ in constants only."""

    def __init__(self, whole: Query, bound: Query, rules: tuple[Rule, ...]) -> None:
        self._whole = whole
        self._bound = bound
        self._rules = rules

    @cached_property
    def all_columns(self) -> Query:
        """The query with its head bound, whose answers are whole matches."""
        operands: tuple[Operand, ...] = tuple(
            Column(at) for at in range(self._bound.column_count)
        )
        yes = (boolean_constant(value=True),)
        return replace(self._bound, head=Pattern(_INSTANCE, operands or yes))

    @cached_property
    def _by_parameters(self) -> dict[tuple[Constant, ...], Rule]:
        inline = self._whole.inline
        if inline is None:
            return {}
        return dict(zip(inline.rows, self._rules, strict=True))

    @cached_property
    def _choices(self) -> dict[Column, frozenset[Constant]]:
        """What the parameters can be, one by one."""
        inline = self._whole.inline
        if inline is None:
            return {}
        values = map(frozenset, zip(*inline.rows, strict=True))
        return dict(zip(inline.columns, values, strict=True))

    def may_derive(self, fact: Fact) -> bool:
        """Whether a fact has the constants of a head; cheap, and never wrongly no."""
        head = self._whole.head
        return head.relation == fact.relation and all(
            value in self._choices.get(operand, (value,))
            if isinstance(operand, Column)
            else operand == value
            for operand, value in zip(head.operands, fact.row, strict=True)
        )

    def body_patterns(self, fact: Fact) -> Iterator[Pattern]:
        """The positive patterns of the body, with the constants of a head."""
        known = {
            operand: value
            for operand, value in zip(self._whole.head.operands, fact.row, strict=True)
            if isinstance(operand, Column)
        }
        for pattern in self._whole.positive:
            operands = tuple(
                known.get(operand, operand) if isinstance(operand, Column) else operand
                for operand in pattern.operands
            )
            yield replace(pattern, operands=operands)

    def read(
        self, rows: Iterable[tuple[Constant, ...]]
    ) -> Iterator[tuple[Fact, Instance]]:
        """Rows of all columns as instances."""
        head, inline = self._whole.head, self._whole.inline
        parameters = () if inline is None else inline.columns
        variables = self._whole.column_count - len(parameters)
        for row in rows:
            chosen = tuple(row[column.index] for column in parameters)
            rule = self._by_parameters[chosen] if parameters else self._rules[0]
            derived = tuple(
                row[operand.index] if isinstance(operand, Column) else operand
                for operand in head.operands
            )
            yield Fact(head.relation, derived), Instance(rule, row[:variables])
